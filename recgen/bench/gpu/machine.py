"""On what a run was made: device, driver, versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Any

import torch

import recgen

PEER_PACKAGES = ("flash-linear-attention", "fla-core")


def machine(dry: bool) -> dict[str, Any]:
    """Names and versions; the device is None in a dry run."""
    return {
        "device": None if dry else torch.cuda.get_device_name(),
        "device_properties": None if dry else _properties(),
        "driver": None if dry else _driver(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "recgen": recgen.__version__,
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "triton": installed("triton"),
        "fla": next((f"{name} {found}" for name in PEER_PACKAGES if (found := installed(name))), None),
    }


def peer_obstacle(dry: bool) -> str:
    """Why no peer can be timed here, or nothing."""
    if find_spec("fla") is None:
        return "flash-linear-attention is not installed: pip install flash-linear-attention"
    return "it is timed on a GPU only" if dry else ""


def installed(package: str) -> str | None:
    """A package's version, or None."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _properties() -> str:
    found = torch.cuda.get_device_properties(0)
    memory = f"{found.total_memory / 2**30:.0f} GiB"
    return f"compute capability {found.major}.{found.minor}, {found.multi_processor_count} multiprocessors, {memory}"


def _driver() -> str | None:
    try:
        fields = "--query-gpu=driver_version,clocks.max.sm,power.limit"
        query = ["nvidia-smi", fields, "--format=csv,noheader", "--id=0"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None

"""The stand-in driver of `offline`: it answers what Triton's runtime asks of one, and loads and launches nothing."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from recgen.targets import Target

from .offline import Compiled, Kernel

loaded: dict[str, Kernel] = {}
"""Every kernel that this process has compiled, by its hash. Triton keeps them too: a later block launches them without
loading."""


class StandIn:
    """Triton keeps compiled kernels per device number, so each target has a number of its own."""

    def __init__(self, compiled: Compiled, resources: bool) -> None:
        self.compiled = compiled
        self.utils = _Utilities(compiled, resources)

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget

        target = self.compiled.target
        return GPUTarget(target.backend, target.arch, target.warp)

    def get_current_device(self) -> int:
        return self.compiled.target.device

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> ModuleType:
        import torch

        return torch.cuda

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        arch = self.compiled.target.arch
        return divmod(arch, 10) if isinstance(arch, int) else (9, 4)

    def map_python_to_cpp_type(self, type_name: str) -> str:
        return type_name

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        loaded[metadata.hash] = Kernel(
            metadata.name,
            metadata.hash,
            metadata.num_warps,
            metadata.num_stages,
            metadata.shared,
            files=_files(src.name, metadata.hash),
        )

        def launch(grid_x: int, grid_y: int, grid_z: int, *_: Any) -> None:
            from triton.runtime import driver

            kernels = driver.active.compiled.kernels  # of the block that is open now
            kernel = kernels.setdefault(metadata.hash, replace(loaded[metadata.hash]))
            kernel.launches += 1
            kernel.programs += grid_x * grid_y * grid_z
            kernel.grid = (grid_x, grid_y, grid_z)

        return launch


class _Utilities:
    def __init__(self, compiled: Compiled, resources: bool) -> None:
        self.compiled = compiled
        self.resources = resources

    def get_device_properties(self, device: int) -> dict[str, int]:
        target = self.compiled.target
        return {
            "max_shared_mem": target.shared,
            "multiprocessor_count": 132,
            "warpSize": target.warp,
            "max_num_regs": 65536,
            "sm_clock_rate": 1_000_000,
            "mem_clock_rate": 1_000_000,
            "mem_bus_width": 4096,
        }

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[int, ...]:
        """module, function, registers, spills, and from Triton 3.4 on the most threads per program."""
        kernel = list(loaded.values())[-1]
        if self.resources:
            read = _nvidia_resources if self.compiled.target.backend == "cuda" else _amd_resources
            kernel.registers, kernel.spill = read(binary)
        found = (1, 1, max(kernel.registers, 0), max(kernel.spill, 0))
        return found if triton_version() < (3, 4) else (*found, 1024)

    def unload_module(self, module: int) -> None:
        pass


def triton_version() -> tuple[int, int]:
    """Major and minor version of the Triton that this process imports."""
    import triton

    major, minor, *_ = triton.__version__.split(".")
    return int(major), int(minor)


@contextlib.contextmanager
def linker(target: Target) -> Iterator[None]:
    """Before 3.5, Triton finishes an AMD binary with ROCm's linker, which it does not come with. Nothing is run here,
    so the unlinked object will do: it is handed on as it is, unless a linker is named already."""
    variable = "TRITON_HIP_LLD_PATH"
    if target.backend != "hip" or triton_version() >= (3, 5) or variable in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="recgen-") as folder:
        program = Path(folder) / "lld"
        program.write_text('#!/bin/sh\n[ "$1" = --version ] && exec echo "objects as they are"\ncp "$4" "$6"\n')
        program.chmod(0o755)
        os.environ[variable] = str(program)
        try:
            yield
        finally:
            del os.environ[variable]


def _files(name: str, hash: str) -> dict[str, Path]:
    """What Triton's compiler has written of a kernel: stage → file."""
    from triton.runtime.cache import get_cache_manager

    group = get_cache_manager(hash).get_group(f"{name[:150]}.json") or {}
    return {Path(path).suffix[1:]: Path(path) for path in group.values()}


def nvidia_tool(name: str) -> Path | None:
    """A program that comes with Triton, such as cuobjdump, or None where it does not."""
    import triton

    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name
    return tool if tool.exists() else None


def _nvidia_resources(binary: bytes) -> tuple[int, int]:
    """Registers per thread and bytes of stack per thread, which is where ptxas puts what it spills."""
    tool = nvidia_tool("cuobjdump")
    if tool is None:
        return -1, -1
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        text = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (-1, -1)


def _amd_resources(binary: bytes) -> tuple[int, int]:
    """Vector registers per lane and bytes of scratch per lane, from the MessagePack metadata of the code object."""
    return _packed_number(binary, b".vgpr_count"), _packed_number(binary, b".private_segment_fixed_size")


def _packed_number(binary: bytes, key: bytes) -> int:
    """The unsigned integer that follows `key` in MessagePack, or -1 when the key is not there."""
    at = binary.find(key)
    if at < 0:
        return -1
    rest = binary[at + len(key) :]
    if rest[0] < 0x80:
        return rest[0]
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}[rest[0]]
    return int.from_bytes(rest[1 : 1 + width], "big")

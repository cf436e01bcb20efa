"""The checks of `recgen doctor`. Each finds something, or fails with a reason; what then helps is said with it."""

from __future__ import annotations

import os
import platform
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Literal

from packaging.requirements import Requirement

from recgen.python import command, search_path
from recgen.targets import TARGETS

APART = ("torch", "triton")  # packages that have a check of their own
SECONDS = 120


class NotThere(Exception):
    """What is looked for is not on this machine."""


@dataclass(frozen=True)
class Check:
    """One thing to look at. look: says what it found, or raises. fix: what to do then.

    needed: whether recgen generates and verifies only where it works.
    """

    what: str
    look: Callable[[], str]
    fix: str
    needed: bool


@dataclass(frozen=True)
class Finding:
    """What a check found."""

    what: str
    needed: bool
    state: Literal["works", "absent", "broken"]
    found: str
    fix: str


def examine(check: Check) -> Finding:
    """Does one check; whatever it raises is what it found."""
    try:
        return Finding(check.what, check.needed, "works", check.look(), "")
    except NotThere as reason:
        return Finding(check.what, check.needed, "broken" if check.needed else "absent", str(reason), check.fix)
    except Exception as error:  # a broken package raises anything
        said = f"{type(error).__name__}: {(str(error).strip() or 'no reason given').splitlines()[-1]}"
        return Finding(check.what, check.needed, "broken", said, check.fix)


def able(findings: Iterable[Finding]) -> bool:
    """Whether recgen can generate and verify here."""
    return all(finding.state == "works" for finding in findings if finding.needed)


def _python() -> str:
    return f"{platform.python_version()} at {sys.executable}"


def _required() -> dict[str, Requirement]:
    """What recgen needs, as its own installation says."""
    try:
        found = [Requirement(text) for text in requires("recgen") or []]
    except PackageNotFoundError:
        raise NotThere("recgen itself is not installed, only found on the path") from None
    here = [need for need in found if need.marker is None or need.marker.evaluate({"extra": ""})]
    return {need.name: need for need in here}


def _wanted(name: str) -> str:
    """A package with the versions that recgen needs, as pip takes it."""
    try:
        return str(_required().get(name, name))
    except NotThere:
        return name


def _unfit(need: Requirement) -> str:
    """What is wrong with an installed package, "" when nothing is."""
    try:
        there = version(need.name)
    except PackageNotFoundError:
        return f"{need.name} is not installed"
    fits = need.specifier.contains(there, prereleases=True)
    return "" if fits else f"{need.name} {there} is installed, {need.specifier} needed"


def _packages() -> str:
    needs = [need for name, need in _required().items() if name not in APART]
    if wrong := [text for need in needs if (text := _unfit(need))]:
        raise NotThere("; ".join(wrong))
    return f"{len(needs)} packages in the versions that recgen needs"


def _package(name: str) -> str:
    need = _required().get(name, Requirement(name))
    if wrong := _unfit(need):
        raise NotThere(wrong)
    __import__(name)
    return version(name)


def _ruff() -> str:
    from recgen.emit.render import formatted

    if formatted("x=1") != "x = 1\n":
        raise RuntimeError("ruff does not format what is emitted")
    return version("ruff")


def _data() -> str:
    from recgen.resources import catalogue, families_dir, templates_dir

    counts = len(list(templates_dir().glob("*.j2"))), len(catalogue()), len(list(families_dir().glob("*.yaml")))
    if not all(counts):
        raise NotThere("templates, specs or decay families are missing")
    return "{} templates, {} operators, {} decay families".format(*counts)


def _cache() -> str:
    from recgen.loader.cache import cache_dir

    folder = cache_dir()
    trial = folder / f".{secrets.token_hex(8)}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.write_bytes(b"")
        trial.unlink()
    except OSError as error:
        raise NotThere(f"{folder} cannot be written ({error.strerror}); every process compiles again") from None
    return str(folder)


def _operator() -> str:
    """Compiles a small operator and compares two of its forms."""
    import torch

    from recgen.compiler import compile_spec
    from recgen.loader.execute import execute
    from recgen.resources import PACKAGE
    from recgen.spec import read_dict

    name = f"recgen_trial_{os.getpid()}"
    source = compile_spec(read_dict({"name": "trial", "decay": {"type": "fixed", "value": 0.5}}))
    module = execute(name, PACKAGE / "doctor" / "trial_operator.py", source, filename=f"<{name}>")
    try:
        values = module.sample_inputs(T=20, dtype=torch.float64)
        error = float((module.chunk(**values)[0] - module.naive(**values)[0]).abs().max())
    finally:
        del sys.modules[name]
    if not error < 1e-9:
        raise RuntimeError(f"the chunk form is off by {error:.1e}")
    return "proven, compiled and compared with its recurrence"


def _gpu() -> str:
    import torch

    if not torch.cuda.is_available():
        raise NotThere("none that torch can use")
    names = [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
    return ", ".join(f"{name} × {names.count(name)}" for name in dict.fromkeys(names))


def _triton_works(*ways: str) -> str:
    """Runs a small kernel these ways, in a process of its own."""
    if wrong := _unfit(Requirement("triton")):
        raise NotThere(wrong)
    kept = {name: text for name, text in os.environ.items() if name != "TRITON_INTERPRET"}
    settled = kept | {"PYTHONPATH": search_path()} | ({"TRITON_INTERPRET": "1"} if ways == ("interpreter",) else {})
    done = subprocess.run(
        command("recgen.doctor.trial", *ways), env=settled, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip() or "it failed without a word").splitlines()[-1])
    return done.stdout.strip()


_INSTALL = "pip install --upgrade recgen"
_TRITON = "pip install triton (Linux); without it, and without a GPU, everything runs in torch"

CHECKS: tuple[Check, ...] = (
    Check("python", _python, "install Python 3.11 or newer", True),
    Check("packages", _packages, _INSTALL, True),
    Check("torch", partial(_package, "torch"), "pip install torch, see pytorch.org for a build for your GPU", True),
    Check("ruff", _ruff, f"pip install '{_wanted('ruff')}' into the same environment", True),
    Check("recgen's files", _data, "install recgen again", True),
    Check("an operator", _operator, "if everything above works, this is a mistake of recgen's: report it", True),
    Check("cache", _cache, "set RECGEN_CACHE to a folder that can be written", False),
    Check("triton", partial(_package, "triton"), _TRITON, False),
    Check("interpreter", partial(_triton_works, "interpreter"), _TRITON, False),
    Check("GPU", _gpu, "none is needed to generate and verify; recgen compile looks at kernels without one", False),
    Check("compilers", partial(_triton_works, *TARGETS), "install triton again: it carries its compilers", False),
)

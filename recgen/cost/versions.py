"""Compile some operators with every minor version of Triton from 3.3 on, side by side: `make compile-versions`.

    python -m recgen.cost.versions [VERSION ...]

Each version is installed into a folder of its own, next to the others, and stays there for the next time. What is
installed for recgen itself is left alone. Without versions, the newest of each minor version is taken. Exit code 1
when a version fails; its failures are named.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recgen.loader import load
from recgen.python import command
from recgen.targets import TARGETS

from .compile import compiler
from .jobs import Job, kernel_forms, keys_at, profile

OLDEST = (3, 3)
OPERATORS = ("linear_attention_global", "simple_gla", "gla", "mlstm", "hgrn")
"""One of each kind of kernel: over all positions, matrix products, a pair tree, a running maximum, a scan."""
FOLDER = Path("build") / "triton"


@dataclass(frozen=True)
class Outcome:
    """What became of one version: how many kernels were compiled, and what failed."""

    version: str
    kernels: int
    failures: tuple[str, ...]

    def __str__(self) -> str:
        if not self.failures:
            return f"triton {self.version}: all {self.kernels} kernels compile"
        return "\n  ".join([f"triton {self.version}: FAILS", *self.failures])


def newest_of_each_minor(versions: Iterable[str]) -> list[str]:
    """The newest release of every minor version from OLDEST on, in order."""
    releases = [tuple(map(int, v.split("."))) for v in versions if re.fullmatch(r"\d+\.\d+\.\d+", v)]
    newest = {release[:2]: release for release in sorted(releases) if release[:2] >= OLDEST}
    return [".".join(map(str, release)) for release in newest.values()]


def published() -> list[str]:
    """All versions that the package index has, as pip tells them. RuntimeError when it tells none."""
    done = _pip("index", "versions", "triton")
    found = re.search(r"^Available versions: (.*)$", done.stdout, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"pip names no versions of triton:\n{done.stdout}{done.stderr}")
    return found[1].split(", ")


def install(version: str, folder: Path) -> Path:
    """A folder with this version of Triton alone. RuntimeError when pip cannot install it."""
    place = folder / version
    if not (place / f"triton-{version}.dist-info").is_dir():
        done = _pip("install", "--quiet", "--no-deps", "--upgrade", "--target", str(place), f"triton=={version}")
        if done.returncode:
            raise RuntimeError(f"pip cannot install triton {version}: {_last_line(done.stderr)}")
    return place


def _pip(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command("pip", "--disable-pip-version-check", *arguments), capture_output=True, text=True)


def attempt(version: str, place: Path, jobs: Sequence[Job]) -> Outcome:
    """Compile the jobs with the Triton in the folder `place`."""
    kernels: set[str] = set()
    failures: list[str] = []
    try:
        with compiler(first=place, env={"TRITON_CACHE_DIR": str(place.with_name(f"{version}-cache"))}) as worker:
            for job in jobs:
                result = worker.ask({**asdict(job), "disassemble": False})
                if result["triton"] != version:
                    raise RuntimeError(f"{place} has triton {result['triton']}")
                kernels |= {kernel["hash"] for kernel in result["kernels"]}
                failures += _failures(job, result)
    except RuntimeError as error:
        failures.append(_last_line(str(error)))
    return Outcome(version, len(kernels), tuple(failures))


def _failures(job: Job, result: dict[str, Any]) -> Iterator[str]:
    name = profile(job.module).module.SPEC["name"]
    call = f"{name}, {job.target}, {job.mode}"
    failed = [kernel for kernel in result["kernels"] if kernel["error"]]
    yield from (f"{call}, {kernel['name']}: {' '.join(kernel['error'].split())[:200]}" for kernel in failed)
    if result["error"] and not failed:
        yield f"{call}: {result['error'][:200]}"


def _last_line(text: str) -> str:
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def sample(operators: Sequence[str] = OPERATORS, targets: Sequence[str] = tuple(TARGETS)) -> list[Job]:
    """Every form of the operators for every target, at width 64 in bfloat16."""
    paths = [str(load(operator).__file__) for operator in operators]
    return [
        Job(path, mode, target, schedule, K=keys_at(profile(path), 64))
        for path in paths
        for target in targets
        for mode, schedule in [*kernel_forms(profile(path)), *([("step", "auto")] if profile(path).state else [])]
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the versions that are named, or the newest of each minor version."""
    parser = argparse.ArgumentParser(prog="python -m recgen.cost.versions", description=__doc__.split("\n")[0])
    parser.add_argument("versions", metavar="VERSION", nargs="*", help="such as 3.5.1")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the versions are installed")
    parser.add_argument("--operators", default=",".join(OPERATORS), help="of the catalogue, with commas")
    parser.add_argument("--targets", default=",".join(TARGETS), help="with commas")
    given = parser.parse_args(arguments)
    jobs = sample(given.operators.split(","), given.targets.split(","))
    ok = True
    for version in given.versions or newest_of_each_minor(published()):
        try:
            outcome = attempt(version, install(version, given.folder.absolute()), jobs)
        except RuntimeError as error:
            outcome = Outcome(version, 0, (str(error),))
        print(outcome, flush=True)
        ok &= not outcome.failures
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())

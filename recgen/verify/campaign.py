"""Many specs of the space, one after the other, and a record of what became of them.

    python -m recgen.verify.campaign --specs 500 --seed 0 --record docs/space.md

The same seed and number draw the same specs, with one version of hypothesis. Every tenth is run in Triton's interpreter
as well, where there is Triton. The exit status is 1 when a spec failed; the record has it in its smallest form.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recgen.files import write_atomically

if TYPE_CHECKING:
    from .space import SpecDict, Verdict

EVERY = 10  # one spec in so many runs in the interpreter too
KINDS = ("verified", "refused", "not lowered", "no value", "failed")


def campaign(
    count: int, seed: int, *, triton: bool = False, progress: Callable[[int, Verdict], None] = lambda n, verdict: None
) -> list[Verdict]:
    """Verdicts of `count` different specs, drawn with this seed."""
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as seeded

    from .space import judge
    from .specs import specs

    seen: set[str] = set()
    verdicts: list[Verdict] = []

    @seeded(seed)
    @settings(
        max_examples=20 * count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(specs())
    def one(spec: SpecDict) -> None:
        key = json.dumps(spec, sort_keys=True)
        if key in seen or len(verdicts) == count:
            return
        seen.add(key)
        verdicts.append(judge(spec, triton=triton and len(verdicts) % EVERY == 0))
        progress(len(verdicts), verdicts[-1])

    one()
    return verdicts


def smallest(verdict: Verdict, seconds: float = 60.0) -> Verdict:
    """A failure like this one, of a spec that is as small as single steps make it in this time."""
    from .space import judge, smaller

    deadline = time.monotonic() + seconds
    like = verdict.reasons[0][:30]

    def fails(spec: SpecDict) -> bool:
        if time.monotonic() > deadline:
            return False
        again = judge(spec, triton=" on triton" in verdict.reasons[0])
        return not again.ok and again.reasons[0][:30] == like

    return judge(smaller(verdict.spec, fails), triton=" on triton" in verdict.reasons[0])


def record(verdicts: Sequence[Verdict], seed: int, seconds: float) -> str:
    """The page: how many of what, what the verified ones cover, why others were refused, and every failure."""
    import recgen

    verified = [v for v in verdicts if v.kind == "verified"]
    counts = Counter(v.kind for v in verdicts)
    lines = [
        "# Specs drawn from the whole space",
        "",
        f"`python -m recgen.verify.campaign --specs {len(verdicts)} --seed {seed}`, recgen {recgen.__version__}, "
        f"{seconds / 60:.0f} minutes on one core.",
        "",
        "Each drawn spec is refused with a place and a reason, or compiled, proven, and verified: outputs, final state",
        "and all gradients of every form against `naive` in float64, on small shapes, cut in two and packed as well.",
        f"Every {EVERY}th also runs in Triton's interpreter.",
        "",
        *_rows(("what became of it", "specs"), [(kind, counts[kind]) for kind in KINDS if counts[kind]]),
        "",
        "## What the verified ones cover",
        "",
        *_rows(("part", "as", "specs"), _covered(verified)),
        "",
        "## Why others were refused",
        "",
        *_rows(("reason", "specs"), _reasons(verdicts)),
    ]
    failures = {v.reasons[0][:30]: v for v in verdicts if not v.ok}  # one of a kind
    if failures:
        lines += ["", "## Failures"]
    for verdict in failures.values():
        found = smallest(verdict)
        lines += [
            "",
            *(f"- {reason.splitlines()[0]}" for reason in found.reasons[:5]),
            "",
            "```json",
            json.dumps(found.spec),
            "```",
        ]
    return "\n".join(lines) + "\n"


def _rows(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    return [f"| {' | '.join(map(str, row))} |" for row in (head, ["---"] * len(head), *rows)]


def _covered(verified: Sequence[Verdict]) -> list[tuple[str, str, int]]:
    """(part of a spec, how it is, specs that have it so)."""
    found: Counter[tuple[str, str]] = Counter()
    for verdict in verified:
        spec = verdict.spec
        decay = spec.get("decay", {"type": "none"})
        turns = ", complex" if "complex(" in str(decay.get("log")) else ""
        found["decay", " per ".join(decay[k] for k in ("type", "per") if k in decay) + turns] += 1
        normalizer = spec.get("normalizer", "none")
        found["normalizer", normalizer["kind"] if isinstance(normalizer, dict) else normalizer] += 1
        readout = {"kind": "inclusive", **spec.get("readout", {})}
        found["readout", ", ".join([readout["kind"], *(k for k in ("bonus", "skip", "gate") if k in readout)])] += 1
        found["state", spec.get("state", "matrix")] += 1
        found["causal", spec.get("causal", "true")] += 1
        for key in ("query", "key", "value", "feature_map", "key_weight", "rotation", "scale"):
            if key in spec:
                by_log = key == "key_weight" and isinstance(spec[key], dict)
                found[key, "by its logarithm" if by_log else "written out"] += 1
    return sorted((part, how, n) for (part, how), n in found.items())


def _reasons(verdicts: Sequence[Verdict]) -> list[tuple[str, int]]:
    """Reasons by how often they were given; the names and numbers in them are left out."""
    import re

    def plain(reason: str) -> str:
        return re.sub(r"\|", "/", re.sub(r"it lies in .*?[\])]", "it lies in …", reason))

    found = Counter(plain(v.reasons[0]) for v in verdicts if v.kind in ("refused", "not lowered"))
    return found.most_common()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m recgen.verify.campaign", description=__doc__.splitlines()[0])
    parser.add_argument("--specs", type=int, default=500, help="how many different specs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--record", type=Path, help="write the record here, instead of printing it")
    given = parser.parse_args(arguments)
    started = time.monotonic()

    def progress(done: int, verdict: Verdict) -> None:
        if not verdict.ok or done % 25 == 0:
            what = f"{verdict.reasons[0].splitlines()[0]}  {json.dumps(verdict.spec)}" if not verdict.ok else ""
            print(f"{done:5d} {time.monotonic() - started:6.0f} s  {what}", file=sys.stderr, flush=True)

    triton = os.environ.get("TRITON_INTERPRET") == "1"
    verdicts = campaign(given.specs, given.seed, triton=triton, progress=progress)
    text = record(verdicts, given.seed, time.monotonic() - started)
    if given.record:
        write_atomically(given.record, text)
    else:
        print(text)
    return int(any(not verdict.ok for verdict in verdicts))


if __name__ == "__main__":
    os.environ.setdefault("TRITON_INTERPRET", "1")  # before anything imports Triton
    sys.exit(main())

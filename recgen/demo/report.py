"""The report: what the demo found, laid out as one HTML page that needs nothing but itself."""

from __future__ import annotations

import math
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from markupsafe import Markup

import recgen
from recgen.demo import figures
from recgen.demo.costs import FUSED, Costs
from recgen.demo.equality import Equality
from recgen.demo.operators import Made
from recgen.demo.sampling import Sample
from recgen.demo.training import History
from recgen.page import environment
from recgen.page.formulas import parts
from recgen.verify import Row

OPEN_PARTS = 3
PROOF = "Proof"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Findings:
    """Everything that the demo found. `trained` is the one of `operators` that the language model is made of."""

    operators: Sequence[Made]
    trained: Made
    parameters: int
    alphabet: int
    history: History
    sample: Sample
    equalities: Sequence[Equality]
    costs: Costs
    threads: int
    seconds: float

    @property
    def failures(self) -> list[str]:
        """What did not hold, a line each; empty when all is well."""
        unverified = [
            f"{made.spec.name} was not verified:\n{made.report.render()}"
            for made in self.operators
            if not made.report.ok
        ]
        unequal = [
            f"logits of the {row.form} form ({row.dtype}) are off by {row.relative:.1e}, more than {row.tolerance:.0e}"
            for row in self.equalities
            if not row.ok
        ]
        return unverified + unequal


def render(findings: Findings) -> str:
    """The page as HTML text."""
    templates = environment(Path(__file__).parent)
    templates.globals |= {"verdict": _verdict, "power": power}
    return templates.get_template("report.html.j2").render(_content(findings))


def _content(found: Findings) -> dict[str, Any]:
    operators = [_operator(made) for made in found.operators]
    history, sample = found.history, found.sample
    return {
        "version": recgen.__version__,
        "facts": list(_facts(found)),
        "operators": operators,
        "shown": operators[list(found.operators).index(found.trained)],
        "model": {
            "parameters": found.parameters,
            "characters": history.characters,
            "seconds": history.seconds,
            "first": history.held_out[0],
            "last": history.held_out[-1],
        },
        "sample": {
            "prompt": sample.prompt,
            "text": sample.text,
            "length": len(sample.text),
            "temperature": sample.temperature,
            "milliseconds": 1e3 * sample.seconds / max(1, len(sample.text)),
            "memory_numbers": sample.memory_numbers,
        },
        "equalities": found.equalities,
        "costs": {"setting": _setting(found.costs), "verdict": _faster(found.costs)},
        "figures": {
            "loss": Markup(figures.loss_figure(history, found.alphabet)),
            "time": Markup(figures.time_figure(found.costs)),
            "memory": Markup(figures.memory_figure(found.costs)),
            "token": Markup(figures.token_figure(found.costs)),
        },
        "machine": {
            "seconds": found.seconds,
            "platform": f"{platform.system()} {platform.machine()}",
            "threads": found.threads,
            "python": platform.python_version(),
            "torch": torch.__version__,
        },
    }


def _facts(found: Findings) -> Iterable[dict[str, str]]:
    runs = sum(made.report.cases for made in found.operators)
    lines = sum(made.source.count("\n") for made in found.operators)
    worst = max(row.relative for row in found.equalities if row.dtype == "float32")
    generated, softmax = _longest(found.costs)
    made = f"operators, {lines:,} lines of code, generated, proven and tried in {runs:,} runs"
    yield {"value": f"{len(found.operators)}", "label": made}
    yield {"value": f"{found.history.held_out[-1]:.2f} bits", "label": "per character of unseen Python source"}
    yield {"value": power(worst), "label": "relative error between the logits of the forms, float32"}
    yield {
        "value": f"{softmax[1] / generated[1]:.1f}×",
        "label": f"faster than softmax attention at {generated[0]:,} tokens",
    }


def _operator(made: Made) -> dict[str, Any]:
    sections = parts(made.derivation)
    return {
        "name": made.spec.name,
        "title": made.spec.title,
        "spec": made.text.strip(),
        "spec_lines": len(made.text.strip().splitlines()),
        "module": made.source,
        "module_lines": made.source.count("\n"),
        "derivation": Markup("\n").join(
            Markup("<details{}><summary>{}</summary>{}</details>").format(
                Markup(" open") if n < OPEN_PARTS else "", part.title, part.body
            )
            for n, part in enumerate(sections)
            if part.title != PROOF
        ),
        "proof": next(part.body for part in sections if part.title == PROOF),
        "seconds": made.seconds,
        "runs": made.report.cases,
        "outputs": _worst(row for row in made.report.rows if row.what != "gradient" and row.dtype == "float32"),
        "gradients": _worst(row for row in made.report.rows if row.what == "gradient" and row.dtype == "float32"),
        "ok": made.report.ok,
        "failure": made.report.render(),
    }


def _worst(rows: Iterable[Row]) -> str:
    row = max(rows, key=lambda row: row.error / row.allowed if row.allowed else 0.0, default=None)
    return "not run" if row is None else f"{power(row.error)} of {power(row.allowed)}"


def power(number: float) -> str:
    """A small number as a mantissa and a power of ten: 5.4·10⁻⁷; NaN and infinity as they are."""
    if number == 0 or not math.isfinite(number):
        return f"{number:g}"
    mantissa, exponent = f"{number:.1e}".split("e")
    ten = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    return ten if mantissa == "1.0" else f"{mantissa.removesuffix('.0')}·{ten}"


def _verdict(ok: bool, yes: str, no: str) -> Markup:
    return Markup('<span class="{}">{}</span>').format("yes" if ok else "no", f"✓ {yes}" if ok else f"✗ {no}")


def _longest(costs: Costs) -> tuple[tuple[int, float], tuple[int, float]]:
    """Length and seconds of the generated operator and of the fused softmax, at the longest length measured."""
    generated = costs.time[0]
    fused = next(curve for curve in costs.time if curve.name == FUSED)
    return (generated.lengths[-1], generated.costs[-1]), (fused.lengths[-1], fused.costs[-1])


def _faster(costs: Costs) -> str:
    (length, ours), (_, theirs) = _longest(costs)
    times = f"the generated operator takes {ours * 1e3:,.0f} ms and softmax attention {theirs * 1e3:,.0f} ms"
    return f"At {length:,} tokens {times}."


def _setting(costs: Costs) -> str:
    size = costs.size
    return f"Measured on this CPU in float32 with batch {size.B}, {size.H} heads of width {size.K}"

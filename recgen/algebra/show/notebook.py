"""A spec as a notebook shows it: the recurrence as mathematics, its inputs and parameters in words."""

from __future__ import annotations

import re

from recgen.errors import NotLowered
from recgen.spec.model import AXIS_MEANING, Spec, Tensor
from recgen.spec.write import to_yaml

from ..statement import recurrence
from .layout import Equation, latex_rows
from .notation import style_named
from .step import Recurrent

_MARKUP = re.compile(r"([!-/:-@\[-`{-~])")


def spec_in_latex(spec: Spec) -> str | None:
    r"""What a token does to the state and reads of it, as `$\displaystyle …$`; None where it cannot be derived yet."""
    found = _equations(spec)
    if not found:
        return None
    rows = " \\\\\n".join(latex_rows(found))
    return f"$\\displaystyle \\begin{{aligned}}\n{rows}\n\\end{{aligned}}$"


def spec_in_markdown(spec: Spec) -> str:
    """Name and title, the recurrence, and what the operator takes."""
    title = f"**{_escaped(spec.name)}**" + (f": {_escaped(spec.title)}" if spec.title else "")
    title += f" ({_escaped(spec.cite)})" if spec.cite else ""
    latex = spec_in_latex(spec)
    if latex is None:
        return f"{title}\n\n```yaml\n{to_yaml(spec.as_dict())}```\n"
    formula = latex.removeprefix("$\\displaystyle ").removesuffix("$")
    tensors = ["| | axes | |", "| --- | --- | --- |", *map(_row, spec.tensors)]
    return "\n".join([title, "", "$$", formula, "$$", "", *tensors, ""])


def _equations(spec: Spec) -> list[Equation]:
    try:
        rec = recurrence(spec)
    except NotLowered:
        return []
    w = Recurrent(rec, style_named("latex"))
    if not rec.causal:
        return [*w.quantities(), *w.totals(), *w.reading(in_place=True), *w.output()]
    return [*w.maxima(), *w.quantities(), *w.updates(), *w.reading(), *w.output()]


def _row(tensor: Tensor) -> str:
    kind = {"input": "input", "param": "learned", "buffer": "not learned"}[tensor.role]
    words = " × ".join(AXIS_MEANING[axis] for axis in tensor.axes)
    start = f"; starts as `{tensor.init.text}`" if tensor.init is not None else ""
    return f"| `{tensor.name}` | {tensor.layout} | {kind}, {words}{start.replace('|', chr(92) + '|')} |"


def _escaped(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKUP.sub(r"\\\1", text)

"""Other ways through a sequence than one call: cut in two, or document by document."""

from __future__ import annotations

from types import ModuleType

import torch

from tests.generated.catalogue import NAIVE, Form
from tests.generated.inputs import Values
from tests.generated.support import call, in_float64, leaves_of, part, remembered, results


def split_run(module: ModuleType, first: Form, second: Form, values: Values, state: Values, cut: int) -> Values:
    """Forward and backward through two calls, the state carried over."""
    leaves, start = leaves_of(values), leaves_of(state)
    before = call(module, first, part(module, leaves, None, cut), start)
    after = call(module, second, part(module, leaves, cut, None), {n: before[n] for n in state})
    outputs = {"o": torch.cat([before["o"], after["o"]], 1), **{n: after[n] for n in state}}
    return results(outputs, {**leaves, **start})


@remembered
def separately(module: ModuleType, values: Values, state: Values, offsets: tuple[int, ...]) -> Values:
    """`naive` in float64, document by document."""
    leaves, start = leaves_of(in_float64(values)), leaves_of(in_float64(state))
    found = []
    for i, (begin, end) in enumerate(zip(offsets, offsets[1:], strict=False)):
        own = {n: x[i : i + 1] for n, x in start.items()}
        found.append(call(module, NAIVE, part(module, leaves, begin, end), own) if end > begin else own)
    outputs = {
        "o": torch.cat([x["o"] for x in found if "o" in x], 1),
        **{n: torch.cat([x[n] for x in found]) for n in state},
    }
    return results(outputs, {**leaves, **start})

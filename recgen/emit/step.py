"""What the templates need of a step on a GPU: one launch, of one program per sequence, head and tile of channels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from recgen.algebra.recurrence import Recurrence
from recgen.spec.model import Spec

from .layout import Layout
from .recurrent import Recurrent
from .sizes import Shapes, in_float32, sizes_read

TILE = {"V": 32, "CHANNELS": 128}
"""Channels of a tile: few, so that there are programs enough where one token is all there is to do."""
NUMBERS = 2048
"""Numbers of the state for each warp."""


def step_context(
    spec: Spec,
    rec: Recurrence,
    kernels: Recurrent,
    features: str,
    shapes: Shapes,
    first: Sequence[str],
    head_lines: Sequence[str],
) -> dict[str, Any]:
    """first: the number of heads, and token values that are given. head_lines: the values of every head."""
    layout, output = Layout.of(rec), kernels.step_launch.buffers[0]
    text = "\n".join([*kernels.step_launch.pointers, *head_lines])
    lines = [*first, *in_float32(spec.params, text), *head_lines]
    width = layout.widths["v"]
    whole = f"1 << ({width} - 1).bit_length()"
    wide = f"1 << ({features} - 1).bit_length()"
    constants = f"K={features}, V=V, BM={wide}, BV=tile" if layout.heads else "CHANNELS=CHANNELS, BV=tile"
    letters = ("batch", "T", "_", features) if layout.heads else ("batch", "T", "CHANNELS")
    others = {"V": f"V = {shapes.value}"} if layout.heads else {}
    return {
        "step": kernels.step,
        "step_launch": kernels.step_launch,
        "launch_setup_step": [*lines, *sizes_read(f"batch {width} {constants} {output}", shapes.key, letters, others)],
        "step_output": output,
        "step_width": width,
        "step_tile": whole if _shared(rule.axes for rule in rec.states) else f"min({TILE[width]}, {whole})",
        "step_constants": constants,
        "step_warps": f"max(1, min(16, ({wide}) * tile // {NUMBERS}))" if layout.heads else "1",
    }


def _shared(states: Iterable[str]) -> bool:
    """Whether all channels share a part of the state: one program then has them all, since it may be overwritten."""
    return any("v" not in axes for axes in states)

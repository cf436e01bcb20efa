"""What an emitted module says of itself: its forms, its arguments and state, and how tensors are laid out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from recgen.algebra.recurrence import Recurrence, StateRule
from recgen.spec.model import Tensor

from .layout import Layout
from .sizes import feature_letter

FORMS = [
    ("naive", "The definition: a loop over tokens in plain torch, differentiated by autograd."),
    ("parallel", "All pairs of tokens at once: quadratic in time, the chunkwise form with a single chunk."),
    ("chunk", "Chunk by chunk: linear in time, matrix products inside a chunk."),
    ("recurrent", "Token by token with nothing but the state in memory; its backward pass is the chunkwise one."),
]
STATE_WORDS = {"S": "the sum of decayed writes key valueᵀ", "z": "the sum of decayed keys"}


def quoted(text: str) -> str:
    """The text as it stands inside a docstring."""
    return text.replace("\\", "\\\\").replace('"', '\\"')


def state_layout(rec: Recurrence, layout: Layout, axes: str) -> str:
    letters = layout.state(axes).split()
    return " ".join(feature_letter(rec) if a == "K" else a for a in letters)


def _state_words(rule: StateRule) -> str:
    vector = {"S": "the sum of decayed values", "z": "the sum of decayed weights"}
    return (STATE_WORDS if "m" in rule.axes else vector)[rule.field]


def _complex_state_doc(rec: Recurrence) -> list[str]:
    """How the features of a state with a complex decay are a complex state."""
    if rec.complex_step is None:
        return []
    return ["   The complex state is exp(i (position - 1) angle) (S[:, :, :K] + i S[:, :, K:])."]


def layout_context(layout: Layout, scans: bool, total: bool) -> dict[str, Any]:
    """How tensors are laid out, in words and in code."""
    widths = list(layout.letters.values())
    sizes = {"H": 2, "K": 16, "V": 16} if layout.heads else {"D": 32}
    tile = "head and tile" if layout.heads else "tile"
    return {
        "heads": layout.heads,
        "layout": "[batch, time, heads, width]" if layout.heads else "[batch, time, channels]",
        "output_layout": "[B, T, H, V]" if layout.heads else "[B, T, D]",
        "token_layout": "[B, H, …]" if layout.heads else "[B, D]",
        "token_output_layout": "[B, H, V]" if layout.heads else "[B, D]",
        "widths": widths,
        "tiled_widths": widths if not scans else widths[:-1],
        "sample_sizes": sizes,
        "kernels_comment": f"Triton kernels of the scan: one program per chunk, {tile}, tokens in turn, all in float32."
        if scans
        else f"Triton kernels of the chunkwise form: one program per piece of time, {tile}. Sums are float32."
        if total
        else f"Triton kernels of the chunkwise form: one program per sequence, {tile}. State and sums are float32.",
    }


def argument_doc(tensor: Tensor) -> str:
    kind = {"input": "input", "param": "learned parameter", "buffer": "buffer"}[tensor.role]
    return f"{tensor.name}: {kind} [{', '.join(tensor.axes)}]."


def state_docs(rec: Recurrence, layout: Layout, maximum: Mapping[str, str], position: Mapping[str, str]) -> list[str]:
    """What each field of the state is. maximum, position: the layouts of what is carried beside the sums."""
    return [
        *(
            f"{rule.field}: {_state_words(rule)} [{state_layout(rec, layout, rule.axes).replace(' ', ', ')}]."
            for rule in rec.states
        ),
        *(
            f"{name}: the largest logarithm of a weight so far, decayed. Rounded to float32: that of the sums' unit "
            f"[{axes.replace(' ', ', ')}]."
            for name, axes in maximum.items()
        ),
        *_complex_state_doc(rec),
        *(f"{name}: how many tokens it has seen [{axes}]." for name, axes in position.items()),
    ]

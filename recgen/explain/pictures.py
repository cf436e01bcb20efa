"""Pictures of an operator as SVG text: its mask for sampled decays, and which pairs of tokens meet in a chunk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from recgen.algebra.exact import Residues
from recgen.algebra.meaning import Chunk, meaning
from recgen.algebra.operations import Mask as MaskOf
from recgen.algebra.program import Program
from recgen.algebra.recurrence import Recurrence
from recgen.page.figures import INK, svg_of, transparent

from .sampled import Mask

CHUNK, CHUNKS = 8, 3
THROUGH, TOKEN, WITHIN = "#ea580c", "#115e59", ("#0d9488", "#14b8a6", "#5eead4")
ACROSS, DOWN = "token i, which writes (position)", "token t, which reads (position)"
SQUARE = (4.4, 3.7)
SHADES = colormaps["viridis"].resampled(64)


def mask_picture(mask: Mask, name: str) -> str:
    """A heat map of the weights M[t, i]."""

    def draw(figure: Figure) -> None:
        axes = transparent(figure.add_subplot())
        size = len(mask.weights)
        edges = np.arange(size + 1) - 0.5
        drawn = axes.pcolormesh(edges, edges, mask.weights, cmap=SHADES, vmin=0, vmax=1)
        _square(axes, size)
        axes.set_title(mask.title, fontsize="medium")
        axes.set_ylabel("token t (position)")
        axes.set_xlabel("token i (position)")
        bar = figure.colorbar(drawn, ax=axes, shrink=0.9)
        bar.set_label("weight M[t, i] (no unit)")
        bar.outline.set_visible(False)
        assert bar.solids is not None  # of a mesh it has one
        bar.solids.set_rasterized(False)  # not an image inside the drawing

    return svg_of(draw, f"The mask of {name}, {mask.title}: the weight of token i in the state after token t", SQUARE)


@dataclass(frozen=True)
class Kinds:
    """What becomes of each pair of tokens: cells[t, i] is an index into the words and colours, -1 for none."""

    cells: NDArray[np.int64]
    words: tuple[str, ...]
    colours: tuple[str, ...]


def pair_kinds(rec: Recurrence, program: Program) -> Kinds:
    """How the pairs of some chunks are divided: inside a chunk by the program's masks, as the proof reads them."""
    t, i = np.indices((CHUNK * CHUNKS, CHUNK * CHUNKS))
    if not rec.causal:
        return Kinds(np.zeros_like(t), ("through the sum over all chunks",), (THROUGH,))
    cells = np.where(t // CHUNK > i // CHUNK, 0, -1)
    words, colours = ["through the state at the start of the chunk"], [THROUGH]
    for how, inside in _token_by_token(rec) if rec.scans else _products(program):
        new = np.kron(np.eye(CHUNKS, dtype=bool), inside) & (cells < 0)
        if new.any():
            cells[new] = len(words)
            words.append(f"inside a chunk: {how}")
            colours.append(WITHIN[(len(words) - 2) % len(WITHIN)])
    itself = (t == i) & (cells < 0)
    if itself.any() and any(not rule.before or rule.own != 0 for rule in rec.states):
        cells[itself] = len(words)
        words.append("the token itself")
        colours.append(TOKEN)
    return Kinds(cells, tuple(words), tuple(colours))


def _token_by_token(rec: Recurrence) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """What the tokens of a chunk read of its state, which takes one write after the other."""
    before = all(rule.before for rule in rec.states)
    yield "token by token", np.tri(CHUNK, k=-1 if before else 0, dtype=bool)


def _products(program: Program) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The pairs that the masks of the program keep, those of the pair tree level by level."""
    chunk = Chunk(CHUNK, range(CHUNK), Residues())
    for n in program.nodes():
        if not isinstance(n.op, MaskOf):
            continue
        lengths = {"s": len(chunk.levels), "t": CHUNK, "i": CHUNK}
        everything = np.ones([lengths.get(a, 1) for a in n.args[0].axes], dtype=object)
        kept = meaning(n.op, n, [everything], chunk) != 0
        kept = kept.any(axis=tuple(k for k, a in enumerate(n.axes) if a not in lengths))
        if "s" not in n.axes:
            yield "a product of rows", kept
        else:
            for half, level in zip(chunk.levels, kept, strict=True):
                yield f"a product of the halves of {2 * half} rows", level


def chunk_picture(kinds: Kinds, name: str) -> str:
    """Which pairs of tokens meet inside a chunk, and which through what chunks hand on."""
    size = len(kinds.cells)

    def draw(figure: Figure) -> None:
        axes = transparent(figure.add_subplot())
        edges = np.arange(size + 1) - 0.5
        cells = np.where(kinds.cells < 0, np.nan, kinds.cells)
        axes.pcolormesh(edges, edges, cells, cmap=ListedColormap(kinds.colours), vmin=-0.5, vmax=len(kinds.words) - 0.5)
        _square(axes, size)
        axes.set_xticks(range(0, size, CHUNK))
        axes.set_yticks(range(0, size, CHUNK))
        for edge in range(CHUNK, size, CHUNK):
            axes.axhline(edge - 0.5, color=INK, lw=1.6)
            axes.axvline(edge - 0.5, color=INK, lw=1.6)
        axes.set_xlabel(ACROSS)
        axes.set_ylabel(DOWN)
        figure.legend(handles=_handles(kinds), loc="outside lower center", ncols=1, frameon=False)

    return svg_of(draw, f"How {name} divides the pairs of tokens of {CHUNKS} chunks of {CHUNK} tokens", (5.0, 5.6))


def _handles(kinds: Kinds) -> Sequence[Patch]:
    return [Patch(color=colour, label=words) for colour, words in zip(kinds.colours, kinds.words, strict=True)]


def _square(axes: Axes, size: int) -> None:
    """Equal axes with the first token in the upper left corner."""
    axes.set_aspect("equal")
    axes.set_xlim(-0.5, size - 0.5)
    axes.set_ylim(size - 0.5, -0.5)
    axes.grid(False)

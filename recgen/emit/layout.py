"""Where a kernel that goes token by token finds its values: the addresses of tiles, and how they are loaded and stored.

A matrix state has heads, K features and V channels, and a tile of it is [BM, BV]; a vector state has D channels and no
heads, and a tile of it is [BV].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from recgen.algebra.recurrence import Recurrence

from .triton_program import COLUMN, EXTENT


@dataclass(frozen=True)
class Layout:
    """The axes of a module's tensors."""

    heads: bool

    @classmethod
    def of(cls, rec: Recurrence) -> Layout:
        return cls("m" in rec.states[0].axes)

    @property
    def letters(self) -> dict[str, str]:
        """The axes of features and values, as layouts have them."""
        return {"m": "K", "v": "V"} if self.heads else {"v": "D"}

    @property
    def widths(self) -> dict[str, str]:
        """What kernels and launches call the sizes of these axes. A vector operator may have a parameter D."""
        return self.letters if self.heads else {"v": "CHANNELS"}

    @property
    def constants(self) -> list[str]:
        """What a kernel takes as constants of its own: widths, tiles."""
        return [*self.widths.values(), *(EXTENT[a] for a in self.letters), "TILES"]

    @property
    def counts(self) -> list[str]:
        return ["H"] if self.heads else []

    def state(self, axes: str, lead: str = "N") -> str:
        """The axes of a state or of values per head, as a layout: "N H K V"."""
        return " ".join([lead, *self.counts, *(self.letters[a] for a in axes)])

    def row(self, number: str) -> str:
        """A row of a tensor by its number: a token's, a sequence's, a chunk's; each has one row per head."""
        return f"({number} * H + head)" if self.heads else number

    @property
    def token(self) -> str:
        """The row of a token t."""
        return "t * H + head" if self.heads else "t"

    @property
    def head(self) -> str:
        """The row of a tensor that is constant in time."""
        return "head" if self.heads else ""

    def _base(self, pointer: str, row: str, axes: Sequence[str]) -> str:
        return f"{pointer} + {' * '.join([row, *(self.widths[a] for a in axes)])}" if row else pointer

    def load(self, pointer: str, row: str, axes: Sequence[str], wide: bool = False) -> str:
        """A tile of a row in float32; `wide`: it is float32 in memory."""
        convert, base = "" if wide else ".to(tl.float32)", self._base(pointer, row, axes)
        if len(axes) == 2:
            return f"_load({base}, feature, channel, feature_valid, channel_valid, {self.widths['v']})"
        if not axes:
            return f"tl.load({base}){convert}"
        column = COLUMN[axes[0]]
        return f"tl.load({base} + {column}, mask={column}_valid, other=0.0){convert}"

    def store(self, pointer: str, row: str, axes: Sequence[str], value: str, once: bool = False) -> str:
        """Store a tile of a row; `once`: the programs of all tiles hold it, and the first stores it."""
        base = self._base(pointer, row, axes)
        if len(axes) == 2:
            width = self.widths["v"]
            return f"_store({base}, feature, channel, feature_valid, channel_valid, {width}, {value})"
        masks = ([f"{COLUMN[axes[0]]}_valid"] if axes else []) + ["(tile == 0)" if axes else "tile == 0"] * once
        mask = f", mask={' & '.join(masks)}" if masks else ""
        return f"tl.store({base}{f' + {COLUMN[axes[0]]}' if axes else ''}, {value}{mask})"

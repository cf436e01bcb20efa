"""What a program is compared with the recurrence at: methods, widths and cuts, and what the recurrence gives there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from recgen.algebra.defined import proper_sizes
from recgen.algebra.exact import Domain, Residues
from recgen.algebra.interpret import Cut
from recgen.algebra.laurent import Symbols
from recgen.algebra.operations import Leaf
from recgen.algebra.program import Program
from recgen.algebra.recurrence import Recurrence, StateRule, affine
from recgen.algebra.tokens import Array, Draw, filled, spread, total
from recgen.algebra.unrolled import Unrolled
from recgen.algebra.wide_values import size_of
from recgen.algebra.widths import is_wide, width
from recgen.spec.axes import widths_of

SYMBOLS = "exact symbols"
RESIDUES = "residues modulo 2^127-1 at random points"


@dataclass(frozen=True)
class Trial:
    """A method, the widths of m and v, and the cuts to compare at."""

    method: str
    domain: Domain
    widths: Mapping[str, int]
    cuts: Sequence[Cut]
    draw_type: type[Draw] = Draw
    proper: Mapping[str, int] = field(default_factory=dict)  # sizes that may not be drawn
    _references: dict[tuple[int, int], tuple[Recurrence, Reference]] = field(default_factory=dict, repr=False)

    @property
    def draw(self) -> Draw:
        return self.draw_type(1, self.widths, self.proper)

    def reference(self, rec: Recurrence, length: int) -> Reference:
        """What the recurrence gives for a sequence of this length, computed once."""
        key = (id(rec), length)
        if key not in self._references:
            self._references[key] = rec, Reference(rec, self.draw, self.domain, length)
        return self._references[key][1]

    @property
    def sizes(self) -> str:
        widths = f"{self.widths['m']} features, {self.widths['v']} values"
        if all(c.size == 1 and c.rows == (1,) * c.length for c in self.cuts):
            return f"T = {', '.join(str(c.length) for c in self.cuts)}, token by token; {widths}"
        if len(self.cuts) < 5:
            return f"{'; '.join(map(str, self.cuts))}; {widths}"
        lengths = dict.fromkeys(str(c.length) for c in self.cuts)
        chunks = dict.fromkeys(str(c.size) for c in self.cuts)
        return f"T = {', '.join(lengths)} in {len(self.cuts)} cuts into chunks of {', '.join(chunks)}; {widths}"


def standard_trials(rec: Recurrence, program: Program) -> list[Trial]:
    """Short sequences in every cut, with symbols; all levels of the pair tree, ragged and empty chunks, as residues."""
    short = [cut for length in (1, 2, 3) for size in (1, 2, 4) for cut in cuts(length, size)]
    full = [Cut(2, (2, 2)), Cut(4, (4,)), Cut(4, (3, 1))]
    long = [Cut(16, (16, 16, 5)), Cut(4, (0, 4, 3)), Cut(4, (0,))]
    proper = whole_sizes(rec)
    return [
        Trial(SYMBOLS, Symbols(), feature_widths(rec, program, 2), short + full, proper=proper),
        Trial(RESIDUES, Residues(), feature_widths(rec, program, 3), long, proper=proper),
    ]


def whole_sizes(rec: Recurrence) -> dict[str, int]:
    """Sizes at which every expression of the recurrence has a value, by name, where not every size is one."""
    return {s.name: n for s, n in proper_sizes(q.expr for q in rec.quantities.values()).items()}


def feature_widths(rec: Recurrence, program: Program, values: int, widest: int = 2) -> dict[str, int]:
    """How wide everything is in a trial: the axes of the program, and the sizes K, M, V by their names."""
    wide = [q for q in rec.quantities.values() if is_wide(q.expr)]
    for K in range(widest, 0, -1):
        sizes = {"K": K, "M": 3, "V": values}
        m = size_of(width(wide[0].expr, widths_of(rec.tensors)), sizes) if wide else K
        if m <= 4:
            break
    found = {**sizes, "m": m, "v": values}
    for leaf in program.leaves():
        tensor = rec.tensors.get(leaf.leaf.name)
        if tensor is not None and wide:
            own, letters = [a for a in tensor.axes if a in sizes], [a for a in leaf.axes if a != "t"]
            found |= {a: sizes[s] for a, s in zip(letters, own, strict=True) if a not in "mv"}
    return found


def token_trials(rec: Recurrence, program: Program) -> list[Trial]:
    """Sequences token by token: short ones with symbols, and a longer one as residues."""
    short, long = ([Cut(1, (1,) * n) for n in lengths] for lengths in ((0, 1, 2, 3), (9,)))
    proper = whole_sizes(rec)
    return [
        Trial(SYMBOLS, Symbols(), feature_widths(rec, program, 2), short, proper=proper),
        Trial(RESIDUES, Residues(), feature_widths(rec, program, 3), long, proper=proper),
    ]


def cuts(length: int, size: int) -> list[Cut]:
    """Every way to cut a sequence into chunks of at most `size` tokens."""

    def parts(n: int) -> Iterator[tuple[int, ...]]:
        if n == 0:
            yield ()
        for first in range(1, min(n, size) + 1):
            yield from ((first, *rest) for rest in parts(n - first))

    return [Cut(size, rows) for rows in parts(length)]


class Reference:
    """What the recurrence gives for a sequence, and the derivative of Σ d_o·o + Σ d_S·S_T."""

    def __init__(self, rec: Recurrence, draw: Draw, domain: Domain, length: int) -> None:
        unrolled = Unrolled(rec, draw, domain, length)
        value = np.vectorize(lambda x: x.value, otypes=[object])
        self.initial = {name: value(x) for name, x in unrolled.initial.items()}
        self.final = {name: value(x) for name, x in unrolled.states.items()}
        self.outputs = {"o": value(unrolled.outputs)}

        def cotangent(name: str, kind: str, axes: str) -> Array:
            numbers = draw.leaf(Leaf(name, kind), axes, length)
            return filled(numbers.shape, lambda i: domain.atom(numbers[i], f"{name}[{','.join(map(str, i))}]"))

        self.decay = {rule.name: self._decay(rule, unrolled, domain) for rule in rec.states}
        self.d_final = {
            rule.name: cotangent(f"d_{rule.name}", "carry", rule.axes) for rule in rec.states if rule.name in self.final
        }
        inputs, self.d_initial = unrolled.gradients(cotangent("d_o", "cotangent", "tv"), self.d_final)
        self.d_inputs = {f"d_{name}": gradient for name, gradient in inputs.items()}
        self.divisors = frozenset(domain.divisors) if isinstance(domain, Symbols) else frozenset()

    def _decay(self, rule: StateRule, unrolled: Unrolled, domain: Domain) -> Array:
        """The decay of a state over the whole sequence, along the axes of the state."""
        summed = np.full([1] * len(rule.axes), 0, dtype=object)
        for q in (q for q in unrolled.rec.log_decays if q.symbol in affine(rule).log_decay.free_symbols):
            logs = np.vectorize(lambda x: x.value, otypes=[object])(unrolled.quantities[q.name])
            summed = summed + spread(total(logs, ("t", *q.axes), "t"), q.axes, rule.axes)
        decay: Array = np.vectorize(domain.exp, otypes=[object])(summed)
        return decay

"""The recurrence of one head in index notation: one token, and all tokens at once."""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from ..chunkwise import AXIS
from ..recurrence import Quantity, Recurrence, StateRule, affine, linear_read
from ..stabiliser import MAXIMUM, READ_MAXIMUM, TRACKS
from .complex_step import ComplexValues
from .expressions import written
from .formulas import letters
from .layout import Equation, Term, terms
from .notation import Piece, Style, style_named
from .unroll import gated


class Recurrent:
    """Writes the one-step statement of a recurrence in one style."""

    def __init__(self, rec: Recurrence, style: Style) -> None:
        self.rec = rec
        self.style = style
        self.states = {rule.symbol: rule for rule in rec.states}
        self.reads = {rule.read_name: rule for rule in rec.states}

    # what a symbol looks like

    def letters(self, axes: str) -> list[str]:
        return [letters(a)[0] for a in axes]

    def quantity(self, q: Quantity, row: str = "t") -> Piece:
        """A quantity at one token: `query[t,m]`, `ℓ` if it is the same at every token."""
        return self.style.indexed(q.name, ([row] if gated(self.rec, q.name) else []) + self.letters(q.axes))

    def state(self, rule: StateRule, row: str) -> Piece:
        return self.style.indexed(rule.name, ([row] if row else []) + self.letters(rule.axes))

    def read(self, name: str) -> Piece:
        axes = self.reads[name].axes.replace("m", "")
        return self.style.indexed("o" if self.direct and name in self.reads else name, ["t", *self.letters(axes)])

    @property
    def direct(self) -> bool:
        """Whether the output is a read as it stands."""
        return bool(self.rec.output.is_Symbol)

    def spelled(self, row: str, previous: str) -> dict[sympy.Symbol, Piece]:
        """Quantities at token `row`, states at token `previous`; a state without a row is the one in place."""
        return {q.symbol: self.quantity(q, row) for q in self.rec.quantities.values()} | {
            rule.symbol: self.state(rule, previous) for rule in self.rec.states
        }

    def tensor(self, s: sympy.Symbol) -> Piece:
        """An input or parameter with the axes it has inside a head; other symbols by their name."""
        if s in TRACKS:
            return self.style.indexed(s.name, ["t", *self.letters(self.rec.tracks[s.name])])
        t = self.rec.tensors.get(s.name) if s.is_integer is None else None
        return self.style.indexed(s.name, self.letters("".join(AXIS[a] for a in t.axes if a in AXIS)) if t else ())

    def vector(self, s: sympy.Symbol) -> Piece:
        """An input or parameter inside a function of the whole width: without the letters of its width."""
        t = self.rec.tensors.get(s.name) if s.is_integer is None else None
        return self.style.indexed(s.name, ["t"] if t and "T" in t.axes else [])

    # equations

    def quantities(self) -> list[Equation]:
        """What query, key, value and log-decay are, in inputs and parameters."""
        values = ComplexValues(self.rec, self.style, self.tensor, self.vector)
        return values.equations + [
            Equation(
                str(self.quantity(q)),
                "=",
                terms(
                    self.style, [written(q.expr.xreplace(values.inside), self.style, values.spell, values.spell_vector)]
                ),
            )
            for q in self.rec.quantities.values()
        ]

    def maxima(self) -> list[Equation]:
        """What weights and sums are relative to, where it is a running maximum."""
        held = self.rec.stabiliser
        if held is None:
            return []
        before, axes = sympy.Symbol("_before", real=True), self.letters(held.axes)
        spelled = {
            before: self.style.indexed(MAXIMUM.name, ["t-1", *axes]),
            MAXIMUM: self.style.indexed(MAXIMUM.name, ["t", *axes]),
            READ_MAXIMUM: self.style.indexed(READ_MAXIMUM.name, ["t", *self.letters(held.read_axes)]),
        }
        read_from = before if held.before else MAXIMUM
        meaning = held.tracks(before, MAXIMUM, READ_MAXIMUM) | {
            MAXIMUM: sympy.Max(held.log_decay + before, held.log_weight),
            READ_MAXIMUM: read_from if held.log_own is None else sympy.Max(read_from, held.log_own),
        }

        def spell(s: sympy.Symbol) -> Piece:
            return spelled.get(s) or self.tensor(s)

        found = []
        for track in (s for s in meaning if s.name in self.rec.tracks):
            piece = written(meaning[track], self.style, spell)
            if track == READ_MAXIMUM and "m" in held.axes:
                piece = self.style.largest("m", piece)
            left = self.style.indexed(track.name, ["t", *self.letters(held.axes_of(track))])
            found.append(Equation(str(left), "=", terms(self.style, [piece])))
        return found

    def decay_value(self) -> list[Equation]:
        """exp(ℓ) written out, where the exponential cancels: exp(ℓ) = 1 - 2^(-h - 5)."""
        q = self.rec.quantities.get("log_decay")
        if q is None:
            return []
        value = sympy.exp(q.expr)
        if isinstance(value, sympy.exp):
            return []
        left = self.style.exp(self.quantity(q))
        return [Equation(str(left), "=", terms(self.style, [written(value, self.style, self.tensor)]))]

    def updates(self, in_place: bool = False) -> list[Equation]:
        """S[t] from S[t-1], or S ← … in place."""
        now, before = ("", "") if in_place else ("t", "t-1")
        return [
            Equation(str(self.state(rule, now)), self.style.arrow if in_place else "=", self._update(rule, before))
            for rule in self.rec.states
        ]

    def _update(self, rule: StateRule, before: str) -> tuple[Term, ...]:
        parts = sorted(sympy.Add.make_args(sympy.expand_mul(rule.update)), key=lambda e: not e.has(rule.symbol))
        return terms(self.style, [self._with_state_last(e, rule.symbol, self.spelled("t", before)) for e in parts])

    def _with_state_last(self, e: sympy.Expr, state: sympy.Symbol, spelled: dict[sympy.Symbol, Piece]) -> Piece:
        if not e.has(state) or e == state:
            return written(e, self.style, spelled)
        return self.style.product([written(sympy.cancel(e / state), self.style, spelled), spelled[state]])

    def reading(self, in_place: bool = False) -> list[Equation]:
        """What the token reads of the states."""
        found = []
        for rule in self.rec.states:
            spelled = self.spelled("t", "" if in_place else "t-1" if rule.before else "t")
            factors = [written(f, self.style, spelled) for f in linear_read(rule)] + [spelled[rule.symbol]]
            total = (
                self.style.summed("m", self.style.product(factors)) if "m" in rule.axes else self.style.product(factors)
            )
            found.append(Equation(str(self.read(rule.read_name)), "=", terms(self.style, [total, *self.own(rule)])))
        return found

    def totals(self) -> list[Equation]:
        """S as the sum of what all tokens write."""
        return [
            Equation(
                str(self.state(rule, "")),
                "=",
                terms(
                    self.style,
                    [self.style.summed("i", self.style.product(self._pieces([(f, "i") for f in affine(rule).write])))],
                ),
            )
            for rule in self.rec.states
        ]

    def in_place(self) -> list[Equation]:
        """Updates and reads of states in place, in their order."""
        updates, reads = self.updates(in_place=True), self.reading(in_place=True)
        return reads + updates if any(rule.before for rule in self.rec.states) else updates + reads

    def own(self, rule: StateRule) -> list[Piece]:
        """What a token adds to its own read, beside the state; nothing where there is no such share."""
        if rule.own == 0:
            return []
        inner = [f for f in sympy.Mul.make_args(rule.own) if self._along("m", f) or not self._along("v", f)]
        outer = [f for f in sympy.Mul.make_args(rule.own) if f not in inner]
        shares = [self.style.product(self._pieces([(f, "t") for f in inner]))] if inner else []
        shares = [self.style.summed("m", share) for share in shares] if "m" in rule.axes else shares
        return [self.style.product([*shares, *self._pieces([(f, "t") for f in outer])]) if outer else shares[0]]

    def output(self) -> list[Equation]:
        """The output in the reads' names; nothing when it is a read as it stands."""
        if self.direct:
            return []
        reads = {q.symbol: self.quantity(q) for q in self.rec.quantities.values()}
        reads |= {sympy.Symbol(name, real=True): self.read(name) for name in self.reads}
        axes = "".join(a for rule in self.rec.states for a in rule.axes if a != "m")
        left = self.style.indexed("o", ["t", *self.letters("".join(dict.fromkeys(axes)))])
        return [Equation(str(left), "=", terms(self.style, [written(self.rec.output, self.style, reads)]))]

    # all tokens at once

    def decay_between(self, first: str, last: str, count: str) -> Piece:
        """The decay of the tokens j with `first` < j ≤ `last`, or of all up to `last`; `count` is how many they are."""
        under = f"{first} < j <= {last}" if first else f"j <= {last}"
        number = Piece(self.style.brackets(count) if " " in count else count)
        gated_ones = [self.quantity(q, "j") for q in self.rec.log_decays if gated(self.rec, q.name)]
        constant = [self.quantity(q) for q in self.rec.log_decays if not gated(self.rec, q.name)]
        parts = [self.style.summed(under, self.style.total(gated_ones))] if gated_ones else []
        parts += [self.style.product([number, q]) for q in constant]
        return self.style.exp(self.style.total(parts)) if parts else Piece("1")

    def mask(self) -> Equation:
        """M[t,i], the weight of token i in the state after token t."""
        weight = self.decay_between("i", "t", "t - i")
        kept = self.style.restricted(weight, self.style.relation("i <= t"))
        return Equation(str(self.mask_entry()), "=", terms(self.style, [kept]))

    def mask_entry(self, row: str = "t") -> Piece:
        axes = self.rec.structure
        return self.style.indexed("M", [row, "i", *self.letters(axes)])

    def summed_states(self) -> list[Equation]:
        """S[t] as a sum over the tokens so far."""
        found = []
        for rule in self.rec.states:
            carried = self.decay_between("", "t", "t")
            start = self.state(rule, "0")
            kept = start if carried.text == "1" else self.style.product([carried, start])
            write = [written(f, self.style, self.spelled("i", "")) for f in affine(rule).write]
            found.append(
                Equation(
                    str(self.state(rule, "t")),
                    "=",
                    terms(self.style, [kept, self.style.summed("i", self.style.product([self.mask_entry(), *write]))]),
                )
            )
        return found

    def parallel(self) -> list[Equation]:
        """Every read as one sum over all tokens, from an empty state."""
        found = []
        for rule in self.rec.states:
            read = [(f, "t") for f in linear_read(rule)]
            write = [(f, "i") for f in affine(rule).write]
            inner = [p for p in (read + write) if self._along("m", p[0])]
            outer = [p for p in (read + write) if not self._along("m", p[0])]
            weight = [self.mask_entry("t-1" if rule.before else "t")] if self.rec.causal else []
            if "m" not in rule.axes:
                product = self.style.product([*weight, *self._pieces([*read, *write])])
                total = self.style.summed("i", product)
                found.append(Equation(str(self.read(rule.read_name)), "=", terms(self.style, [total, *self.own(rule)])))
                continue
            on_m = "m" in self.rec.structure
            scores = self.style.summed("m", self.style.product([*self._pieces(inner), *(weight if on_m else [])]))
            factors = [*([] if on_m else weight), scores, *self._pieces(outer)]
            total = self.style.summed("i", self.style.product(factors) if len(factors) > 1 else scores)
            found.append(Equation(str(self.read(rule.read_name)), "=", terms(self.style, [total, *self.own(rule)])))
        return found

    def _along(self, axis: str, e: sympy.Expr) -> bool:
        return any(axis in q.axes for q in self.rec.quantities.values() if q.symbol in e.free_symbols)

    def _pieces(self, factors: Sequence[tuple[sympy.Expr, str]]) -> list[Piece]:
        return [written(f, self.style, self.spelled(row, "")) for f, row in factors]


def step_equations(rec: Recurrence) -> dict[str, str]:
    """The equation of each update, by the state's name, of each read, by its own, and of the output, `o`."""
    w = Recurrent(rec, style_named("text"))
    updates, reads = w.updates(in_place=True), w.reading(in_place=True)
    found = {rule.name: e.line() for rule, e in zip(rec.states, updates, strict=True)}
    found |= {rule.read_name: e.line() for rule, e in zip(rec.states, reads, strict=True)}
    return found | dict(zip(("o",), (e.line() for e in w.output()), strict=False))

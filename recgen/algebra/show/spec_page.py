"""A spec as a page: every key with its value and what it means, every input and parameter with its axes."""

from __future__ import annotations

from collections.abc import Iterator

from recgen.spec.model import AXIS_MEANING, FEATURE, Expr, Spec, Tensor
from recgen.spec.write import to_yaml

from .document import Document, Prose, Section, Table, Verbatim
from .expressions import written
from .notation import Style, style_named

DECAY_TYPES = {
    "none": "nothing is forgotten",
    "fixed": "constants, which may differ from head to head",
    "learned": "from parameters, the same at every token",
    "gated": "from inputs, different at every token",
}
DECAY_AXES = {
    "head": "one decay for the whole state of a head",
    "key": "every feature, a row of the state, has its own decay",
    "value": "every value channel, a column of the state, has its own decay",
    "key_value": "every entry of the state has its own decay",
    "channel": "every channel of the vector state has its own decay",
}
NORMALIZERS = {
    "none": "the read of the state is the output",
    "sum": "the output is divided by the same sum without the value, plus eps",
    "max_abs": "the output is divided by the size of the same sum without the value, at least by the floor",
    "abs_sum": "the output is divided by the sum of the sizes of keys, read by the sizes of the query's features, at"
    " least by the floor",
}
READOUTS = {
    "inclusive": "a token reads the state that holds the token itself",
    "exclusive": "a token reads the state before it",
}
STATES = {"matrix": "features × value channels", "vector": "one number per channel"}


def explain_spec(spec: Spec, latex: bool = False) -> str:
    """The spec as it was understood: defaults filled in, families written out, axes in words."""
    return spec_page(spec, "latex" if latex else "text").printed(latex)


def spec_page(spec: Spec, style: str = "text") -> Document:
    """The page of a spec in one style."""
    w = _SpecWriter(spec, style_named(style))
    title = f"{spec.name}: {spec.title}" if spec.title else spec.name
    sections = [
        Section(w.words(title), (Prose(w.words(f"Published as {spec.cite}.")),) if spec.cite else (), 1),
        Section("Meaning", (Table(tuple(w.rows())),)),
        Section("Inputs, one value per token", (Table(tuple(map(w.tensor, spec.inputs))),)),
    ]
    if spec.params:
        sections.append(Section("Parameters", (Table(tuple(map(w.tensor, spec.params))),)))
    sections.append(Section("The spec in normal form", (Verbatim(tuple(to_yaml(spec.as_dict()).splitlines())),)))
    return Document(tuple(sections))


class _SpecWriter:
    """Spells the parts of one spec in one style."""

    def __init__(self, spec: Spec, style: Style) -> None:
        self.spec = spec
        self.style = style

    def words(self, text: str) -> str:
        return self.style.prose(text)

    def expr(self, e: Expr) -> str:
        """The author's own text; as mathematics in LaTeX."""
        return self.style.inline(str(written(e.tree, self.style))) if self.style.name == "latex" else e.text

    def row(self, key: str, value: str, meaning: str) -> tuple[str, str, str]:
        return self.words(key), value, self.words(meaning)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """key, value, meaning. Keys whose value is the uninteresting default are left out."""
        s = self.spec
        yield self.row("decay.type", self.words(s.decay.type), DECAY_TYPES[s.decay.type])
        if s.decay.type != "none":
            yield self.row("decay.per", self.words(s.decay.per), DECAY_AXES[s.decay.per])
            yield self.row("decay.log", self.expr(s.decay.log), "ℓ: at every token the state is multiplied by exp(ℓ)")
            if s.decay.bounds is not None:
                low, high = s.decay.bounds
                yield self.row("decay.bounds", f"{low:g} to {high:g}", "the range of ℓ, as declared")
            if s.decay.family:
                yield self.row("decay.family", self.words(s.decay.family), "where the decay's expression comes from")
        for role, what in (
            ("query", "what reads the state"),
            ("key", "the features a token is written under"),
            ("value", "what a token writes"),
        ):
            yield self.row(role, self.expr(getattr(s, role)), what)
        yield from self._feature_maps()
        if s.key_weight.tree != (0 if s.log_key_weight else 1):
            log = "the logarithm of " if s.log_key_weight else ""
            yield self.row("key_weight", self.expr(s.key_weight), f"{log}the weight of what a token writes")
        kind = s.normalizer.kind
        yield self.row("normalizer", self.words(kind) + self._normalizer_number(), NORMALIZERS[kind])
        yield self.row("readout", self.words(s.readout.kind), READOUTS[s.readout.kind])
        yield from self._readout_parts()
        if s.rotation is not None:
            yield self.row("rotation", self.expr(s.rotation), "the angle that pairs of query and key channels turn by")
        causal = "a token sees itself and what came before" if s.causal else "every token sees every other"
        yield self.row("causal", "true" if s.causal else "false", causal)
        yield self.row("state", self.words(s.state), STATES[s.state])
        yield self.row("scale", self.expr(s.scale), "multiplies the query; a call may pass its own")

    def _feature_maps(self) -> Iterator[tuple[str, str, str]]:
        s = self.spec
        if s.query_map.tree == s.key_map.tree:
            identity = s.query_map.tree == FEATURE
            yield self.row(
                "feature_map",
                self.expr(s.query_map),
                "query and key as they are" if identity else "applied to every channel x of query and key",
            )
        else:
            yield self.row("feature_map.query", self.expr(s.query_map), "applied to every channel x of the query")
            yield self.row("feature_map.key", self.expr(s.key_map), "applied to every channel x of the key")

    def _normalizer_number(self) -> str:
        n = self.spec.normalizer
        key = {"none": "", "sum": "eps"}.get(n.kind, "floor")
        return f", {key} {self.style.inline(str(self.style.number(getattr(n, key))))}" if key else ""

    def _readout_parts(self) -> Iterator[tuple[str, str, str]]:
        r = self.spec.readout
        if r.bonus:
            yield self.row("readout.bonus", self.expr(r.bonus), "weight of the token itself in its own output")
        if r.skip:
            yield self.row("readout.skip", self.words(r.skip), "weight of the token's value, added to the output")
        if r.gate is not None:
            yield self.row("readout.gate", self.expr(r.gate), "multiplies the output")

    def tensor(self, t: Tensor) -> tuple[str, str, str]:
        axes = " × ".join(AXIS_MEANING[a] for a in t.axes)
        kind = {"input": "", "param": "learned", "buffer": "not learned"}[t.role]
        start = f", starts as {self.expr(t.init)}" if t.init is not None else ""
        return self.words(t.name), self.words(t.layout), self.words(axes) + (f"; {kind}{start}" if kind else "")

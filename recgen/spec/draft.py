"""A new spec, from a few choices, as text with comments: what `recgen new` writes.

Which choices fit together is not known here: the spec is read and stated as a recurrence, and what is said decides.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from recgen.algebra.statement import recurrence
from recgen.errors import SpecError
from recgen.spec.families import Family, named_family
from recgen.spec.layout import normal_form
from recgen.spec.reader import read_text
from recgen.spec.schema import HINT
from recgen.spec.write import to_yaml

NONE = "none"

FEATURE_MAPS: Mapping[str, str] = {
    "identity": "x",
    "elu": "elu(x) + 1",
    "relu": "relu(x)",
    "square": "x ** 2",
    "exp": "exp(x)",
    "softmax": "softmax(x)",
    "l2norm": "l2norm(x)",
}
NORMALIZERS: Mapping[str, str] = {
    NONE: "nothing",
    "sum": "the sum of the weights",
    "max_abs": "the size of the sum of the weights, at least 1",
    "abs_sum": "the sum of the sizes of the weights, at least 1",
}
READOUTS: Mapping[str, str] = {
    "inclusive": "a token reads the state with itself in it",
    "exclusive": "a token reads the state before it, and itself with a weight that is learned",
}


@dataclass(frozen=True)
class Draft:
    """What is chosen. family: the name of a decay family, or none; the others are keys of the tables above."""

    name: str
    title: str = ""
    family: str = "key_gate"
    feature_map: str = "identity"
    normalizer: str = NONE
    readout: str = "inclusive"
    skip: bool = False
    gate: bool = False

    def text(self, schema: str = "") -> str:
        """The spec. schema: the path of its JSON Schema, for editors. Raises SpecError where the choices do not fit."""
        family = named_family(self.family)
        vector = family is not None and family.per == "channel"
        parts = [
            f"{HINT}{schema}\n" if schema else "",
            _comment(f"recgen check {self.name}.yaml says whether it is right; explain, verify, generate take it too."),
            "\n",
            to_yaml({"name": self.name} | ({"title": self.title} if self.title else {})),
            *self._tensors(vector),
            *self._decay(family),
            *self._features(vector),
            _part("What the output is divided by: none, sum, max_abs or abs_sum.", {"normalizer": self.normalizer}),
            *self._readout(),
            _part("A vector: one number per channel, no heads.", {"state": "vector"}) if vector else "",
            "" if vector else _part("The factor of the query.", {"scale": "K ** -0.5"}),
        ]
        text = "".join(parts)
        recurrence(read_text(text, f"{self.name}.yaml"))
        return normal_form(text, f"{self.name}.yaml")

    def fits(self) -> bool:
        """Whether the choices fit together."""
        return self.wrong() is None

    def wrong(self) -> SpecError | None:
        """Why the choices do not fit together, None where they do."""
        try:
            self.text()
        except SpecError as error:
            return error
        return None

    def conflicts(self, chosen: Sequence[str]) -> dict[tuple[str, ...], SpecError]:
        """Of the choices with these names: those that are wrong by themselves, and pairs that do not go together.

        All of them where only more than two are wrong together.
        """
        whole = self.wrong()
        if whole is None:
            return {}
        plain = Draft(self.name)
        found: dict[tuple[str, ...], SpecError] = {}
        for names in [*((name,) for name in chosen), *combinations(chosen, 2)]:
            if not any(name in names for single in found if len(single) == 1 for name in single):
                values: dict[str, Any] = {name: getattr(self, name) for name in names}
                if error := replace(plain, **values).wrong():
                    found[names] = error
        return found or {tuple(chosen): whole}

    def _tensors(self, vector: bool) -> list[str]:
        found = []
        if self.gate:
            axes = "B T D" if vector else "B T H V"
            words = "One value per token, beside q, k, v and what the decay needs."
            found.append(_part(words, {"inputs": {"gate": axes}}))
        params: dict[str, Any] = {}
        if self.readout == "exclusive":
            params["u"] = {"axes": "D" if vector else "H K", "init": 0}
        if self.skip:
            params["D"] = {"axes": "D" if vector else "H", "init": 1}
        if params:
            words = "Learned; init may be an expression such as normal(0, 1) * K ** -0.5."
            found.append(_part(words, {"params": params}))
        return found

    def _decay(self, family: Family | None) -> list[str]:
        if self.family == NONE:
            words = "Nothing is forgotten. For a decay, name a family (recgen families lists them), as in"
            return ["\n", _comment(words), _comment("decay: {family: key_gate}")]
        constants = {"constants": dict(family.constants)} if family and family.constants else {}
        formula = f" Its logarithm is {family.log or f'log({family.value})'}." if family else ""
        return [
            "\n",
            _comment(f"{family.doc if family else 'How the state forgets'}.{formula}"),
            _comment("recgen families lists the others; one of your own is a file: {family: ./my_decay.yaml}"),
            to_yaml({"decay": {"family": self.family, **constants}}),
        ]

    def _features(self, vector: bool) -> list[str]:
        if vector and self.feature_map == "identity":
            return []
        chosen = FEATURE_MAPS.get(self.feature_map, self.feature_map)
        words = "What becomes of a channel x of query and key; {query: …, key: …} says it apart."
        return [_part(words, {"feature_map": chosen})]

    def _readout(self) -> list[str]:
        content: dict[str, Any] = {"kind": self.readout}
        content |= {"bonus": "u"} if self.readout == "exclusive" else {}
        content |= {"skip": "D"} if self.skip else {}
        content |= {"gate": "sigmoid(gate)"} if self.gate else {}
        return [_part(f"{READOUTS.get(self.readout, self.readout).capitalize()}.", {"readout": content})]


def _part(comment: str, content: Mapping[str, Any]) -> str:
    return f"\n{_comment(comment)}{to_yaml(content)}"


def _comment(words: str) -> str:
    return textwrap.fill(words, 118, initial_indent="# ", subsequent_indent="# ", break_long_words=False) + "\n"

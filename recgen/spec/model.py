"""The frozen, checked form of a spec: what every later stage reads.

Expressions are sympy trees over the symbols made here. A tensor's symbol is `symbol(name)`; the head index and the
sizes have symbols of their own, so that sympy knows their signs.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import sympy

from recgen.algebra.widths import PAIR as PAIR
from recgen.errors import NOWHERE, Location

AxisLetter = Literal["B", "T", "H", "K", "V", "M", "D"]
DecayType = Literal["none", "fixed", "learned", "gated"]
DecayAxes = Literal["head", "key", "value", "key_value", "channel"]
NormalizerKind = Literal["none", "sum", "max_abs", "abs_sum"]
ReadoutKind = Literal["inclusive", "exclusive"]
StateKind = Literal["matrix", "vector"]
Role = Literal["input", "param", "buffer"]

AXIS_MEANING: dict[str, str] = {
    "B": "batch",
    "T": "time",
    "H": "head",
    "K": "key channel",
    "V": "value channel",
    "M": "feature",
    "D": "channel",
}


def symbol(name: str) -> sympy.Symbol:
    """The symbol of an input, a parameter, or the feature map's argument x."""
    return sympy.Symbol(name, real=True)


HEAD = sympy.Symbol("h", integer=True, nonnegative=True)
"""The head index, from 0."""

CHANNEL = sympy.Symbol("k", integer=True, nonnegative=True)
"""The index of a key channel, or of a channel of a vector state, from 0; only initial values use it."""

CHANNELS = sympy.Symbol("D", integer=True, positive=True)
"""How many channels a vector state has; only initial values use it."""

SIZES: dict[str, sympy.Symbol] = {
    letter: sympy.Symbol(letter, integer=True, positive=True) for letter in ("H", "K", "V", "M")
}
"""Heads, key width, value width, number of features."""

FEATURE = symbol("x")
"""The argument of a feature map."""

DEFAULT_ROLES: dict[str, str] = {"query": "q", "key": "k", "value": "v"}


@dataclass(frozen=True)
class Expr:
    """An expression: its text in the language's own spelling, its tree, and where it was written."""

    text: str
    tree: sympy.Expr
    at: Location = field(default=NOWHERE, compare=False)

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Tensor:
    """A declared input (per token), learned parameter, or buffer; `init` is None exactly for inputs."""

    name: str
    axes: tuple[str, ...]
    role: Role
    init: Expr | None = None
    at: Location = field(default=NOWHERE, compare=False)

    @property
    def symbol(self) -> sympy.Symbol:
        return symbol(self.name)

    @property
    def initial(self) -> sympy.Expr:
        """The expression of a parameter's initial value."""
        assert self.init is not None, self
        return self.init.tree

    @property
    def layout(self) -> str:
        """The axes as a spec writes them, e.g. "B T H K"."""
        return " ".join(self.axes)


@dataclass(frozen=True)
class Decay:
    """The decay A_t = exp(log). `bounds` is the range of `log` that the author declares, None when he does not."""

    type: DecayType
    per: DecayAxes
    log: Expr
    bounds: tuple[float, float] | None = None
    family: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Normalizer:
    """none; sum: y / (σ φ(q)ᵀz + eps); max_abs: y / max(|σ φ(q)ᵀz|, floor); abs_sum: y / max(σ |φ(q)|ᵀa, floor).

    a is the sum of |φ(k)| as z is of φ(k).
    """

    kind: NormalizerKind = "none"
    eps: float = 0.0
    floor: float = 1.0


@dataclass(frozen=True)
class Readout:
    """Whether o_t reads the state after (inclusive) or before (exclusive) token t is added, and what is added to it.

    bonus: the weight of token t itself in its own output; skip: the name of a parameter that multiplies the value;
    gate: an expression that multiplies the output.
    """

    kind: ReadoutKind = "inclusive"
    bonus: Expr | None = None
    skip: str | None = None
    gate: Expr | None = None


@dataclass(frozen=True, init=False, repr=False)
class Spec:
    """One operator. `inputs` and `params` are in call order; `inputs` holds q, k and v as well.

        Spec(name="my_gla", inputs={"g": "B T H K"}, decay={"type": "gated", "per": "key", "log": "logsigmoid(g)"})

    takes the keys of a spec, or one mapping that holds them, and checks them as it would a file. In a notebook it shows
    itself as mathematics.
    """

    name: str
    title: str
    cite: str
    license: str
    decay: Decay
    inputs: tuple[Tensor, ...]
    params: tuple[Tensor, ...]
    query: Expr
    key: Expr
    value: Expr
    query_map: Expr
    key_map: Expr
    key_weight: Expr
    log_key_weight: bool
    normalizer: Normalizer
    readout: Readout
    rotation: Expr | None
    causal: bool
    state: StateKind
    scale: Expr
    source: str = field(default="", compare=False, repr=False)
    path: str = field(default="<spec>", compare=False)

    def __init__(self, content: Mapping[str, Any] | None = None, /, **keys: Any) -> None:
        """Raises SpecError with everything that is wrong, located in the YAML text of the same content."""
        from recgen.spec.reader import read_dict

        self.__dict__.update(vars(read_dict({**(content or {}), **keys})))

    @classmethod
    def of_parts(cls, **parts: Any) -> Spec:
        """The spec with these fields, which are checked already. Raises TypeError unless it is all of them."""
        names = {field.name for field in fields(cls)}
        if names != set(parts):
            raise TypeError(f"a spec is made of {', '.join(sorted(names ^ set(parts)))} as well, or without")
        spec = object.__new__(cls)
        spec.__dict__.update(parts)
        return spec

    def __repr__(self) -> str:
        """The call that makes the same spec."""
        return f"Spec({', '.join(f'{key}={value!r}' for key, value in self.as_dict().items())})"

    def _repr_markdown_(self) -> str:
        from recgen.algebra.mathtext import spec_in_markdown

        return spec_in_markdown(self)

    def _repr_latex_(self) -> str | None:
        from recgen.algebra.mathtext import spec_in_latex

        return spec_in_latex(self)

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """All inputs and parameters, in call order."""
        return self.inputs + self.params

    @property
    def digest(self) -> str:
        """sha256 of the normalised content; file, comments and spelling do not enter, order of arguments does."""
        content = json.dumps(self.as_dict(), ensure_ascii=True, separators=(",", ":"))
        return hashlib.sha256(content.encode("ascii")).hexdigest()

    def as_dict(self) -> dict[str, Any]:
        """The spec as its author would write it, normalised: defaults left out, families written out, JSON-able.

        Reading it again gives an equal spec.
        """
        from recgen.spec.write import spec_as_dict

        return spec_as_dict(self)

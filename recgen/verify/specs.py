"""A hypothesis strategy for whole specs, as dicts: the space that the compiler promises, not the list of a catalogue.

    specs()   decay type × structure × log-decay × feature map × normalizer × weight × readout × roles × scale

Most drawn specs are right. Some are not, as an author's are not: their refusal is checked too. A new key of the spec is
one more entry of PARTS; a new structure of the decay one more of WIDTHS.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from hypothesis import strategies as st

from . import texts

SpecDict = dict[str, Any]
Choice = TypeVar("Choice")

WIDTHS = {"head": "H", "key": "H K", "value": "H V", "key_value": "H K V", "channel": "D"}
NAMES = ("g", "a", "b", "dt", "gamma", "S", "z", "N", "E", "I", "Q", "beta", "x", "C", "B", "w", "u", "D", "lam")
UNUSED = "unused"
WIDE = (
    "softmax(x)",
    "concat(exp(-x), x)",
    "concat(1, x)",
    "x / sqrt(sum(x ** 2) + 0.01)",
    "outer(x, x)",
    "softmax(matmul(W, x))",
    "concat(softmax(matmul(W, x)), softmax(-matmul(W, x)))",
)
INITS = ("0", "1", "-1", "0.5", "normal(0, 1)", "uniform(-1, 1)", "loguniform(0.1, 1)")


@dataclass
class Drawing:
    """A spec that is being drawn: what is declared so far, and which names are left."""

    draw: st.DrawFn
    vector: bool = False
    spec: SpecDict = field(default_factory=dict)
    inputs: dict[str, str] = field(default_factory=dict)
    params: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def turns(self) -> bool:
        """Whether the decay is complex."""
        return "complex(" in self.spec.get("decay", {}).get("log", "")

    def chance(self, one_in: int) -> bool:
        return self.draw(st.integers(1, one_in)) == one_in

    def one(self, *choices: Choice) -> Choice:
        return self.draw(st.sampled_from(choices))

    def _name(self) -> str:
        taken = {*self.inputs, *self.params}
        return self.one(*(name for name in NAMES if name not in taken))

    def input(self, axes: str) -> str:
        """A new input of this width, "H K" for one value per token, head and key channel; or one that is there."""
        there = [name for name, layout in self.inputs.items() if layout == f"B T {axes}" and name not in "qkv"]
        if there and self.chance(3):
            return self.one(*there)
        name = self._name()
        self.inputs[name] = f"B T {axes}"
        return name

    def param(self, axes: str) -> str:
        """A new parameter with these axes."""
        name = self._name()
        self.params[name] = {"axes": axes, "init": self.one(*INITS)}
        return name

    def matrix(self) -> str:
        """A new parameter K × K per head. Equal entries would make a softmax constant, and its gradients rounding."""
        name = self._name()
        self.params[name] = {"axes": "H K K", "init": "normal(0, 1)"}
        return name

    def either(self, axes: str) -> str:
        return self.input(axes) if self.chance(2) else self.param(axes)

    def beside(self, axes: str) -> list[str]:
        """Now and then another name that an expression of these axes may use as well."""
        if not self.chance(3):
            return []
        return [self.param("D" if self.vector else self.one("H", axes))]


def _decay(d: Drawing) -> None:
    kind = d.one("none", "fixed", "learned", "gated", "gated", "gated")
    if kind == "none":
        return
    per = "channel" if d.vector else d.one("head", "head", "key", "key", "value", "key_value")
    if kind == "fixed":
        per = per if d.vector or d.chance(8) else "head"
        logs = (
            ("-0.1", "-0.01", "-2", "-1e-3")
            if d.vector
            else ("log(1 - 2 ** (-5 - h))", "-0.05 * (h + 1)", "-1 / K", "-(2 ** (-8 * (h + 1) / H))", "0", "0.1")
        )
        decay = {"log": d.one(*logs)} if d.chance(2) else {"value": d.one("0.9", "1", "0.5", "1 - 1 / K", "1.5")}
        d.spec["decay"] = {"type": "fixed", "per": per, **decay}
        return
    declare = d.input if kind == "gated" else d.param
    if d.chance(20):
        names = [declare(WIDTHS[per])]
        d.spec["decay"] = {"type": kind, "per": per, "log": d.draw(texts.anything(names))}
        return
    if per == "key_value" and not d.chance(8):
        sides = [d.draw(texts.decreasing(declare(f"H {letter}"), d.beside(f"H {letter}"))) for letter in "KV"]
        text = " + ".join(sides)
        if d.chance(4):
            text = f"exp({d.param('H')}) * ({text})"
        d.spec["decay"] = {"type": kind, "per": per, "log": text}
        return
    if per == "key" and d.chance(4):
        d.spec["decay"] = {"type": kind, "per": per, "log": _complex_log(d, declare)}
        return
    name, beside = declare(WIDTHS[per]), d.beside(WIDTHS[per])
    decay = {"value": d.draw(texts.share(name, beside))} if d.chance(5) else {}
    if not decay:
        text = d.draw(texts.decreasing(name, beside))
        text = f"{text} / {d.one('16', '2', '0.5')}" if d.chance(3) else text
        if d.chance(5):
            other = d.one(WIDTHS[per], "D" if d.vector else "H")
            text = f"{text} + {d.draw(texts.decreasing(d.either(other) if kind == 'gated' else d.param(other)))}"
        if d.chance(5):
            text = f"exp({d.param('D' if d.vector else 'H')}) * ({text})"
        decay = {"log": text}
    d.spec["decay"] = {"type": kind, "per": per, **decay}


def _complex_log(d: Drawing, declare: Callable[[str], str]) -> str:
    """A real part that decreases and an angle that is the same at every token, but now and then not."""
    growth = "0" if d.chance(10) else d.draw(texts.decreasing(declare(d.one("H", "H K"))))
    angle = d.draw(texts.real(declare("H K") if d.chance(12) else d.param("H K")))
    return d.one(f"complex({growth}, {angle})", f"exp({d.param('H')}) * complex({growth}, {angle})")


def _complex_role(d: Drawing, default: str) -> str:
    """A complex query or key, of the token or the same at every one."""
    one, other = d.either("H K"), d.either(d.one("H", "H K"))
    return d.one(
        f"complex({one}, {other})",
        f"{default} * exp(complex(0, {one}))",
        f"{default} / complex(1 + exp({one}), {other})",
        f"expm1(log_decay) / complex(1 + exp({one}), {other}) * {default}",
        f"({default} + complex({one}, {other}) ** 2) * log_decay",
    )


def _role(d: Drawing, default: str, axes: str, shares: bool) -> str:
    """A query, key or value. shares: it may be what the decay of its own channels takes away."""
    choices: list[Callable[[], str]] = [
        lambda: d.either(axes),
        lambda: f"{default} * {d.draw(texts.real(d.input(axes), d.beside(axes)))}",
        lambda: f"{default} * {d.draw(texts.positive(d.input('H')))}",
        lambda: f"{default} + {d.draw(texts.real(d.input('H')))}",
        lambda: f"{default} / (0.1 + {d.param(axes)}) ** 2",
        lambda: d.draw(texts.real(d.input(axes), d.beside(axes))),
    ]
    if shares:
        choices.append(lambda: f"{default} * (1 - exp(log_decay))" if d.turns else "1 - exp(log_decay)")
    return d.one(*choices)()


def _roles(d: Drawing) -> None:
    if d.vector:
        if d.chance(3):
            choices: list[Callable[[], str]] = [
                lambda: d.input("D"),
                lambda: f"v * {d.draw(texts.positive(d.input('D')))}",
            ]
            d.spec["value"] = d.one(*choices)()
        return
    per = d.spec.get("decay", {}).get("per")
    for role, default, axes in (("query", "q", "H K"), ("key", "k", "H K"), ("value", "v", "H V")):
        if not d.chance(4):
            continue
        if d.turns and role != "value" and not d.chance(4):
            d.spec[role] = _complex_role(d, default)
            continue
        d.spec[role] = _role(d, default, axes, shares=per == {"key": "key", "value": "value"}.get(role))


def _features(d: Drawing) -> None:
    if d.vector or not d.chance(20 if d.turns else 2):
        return

    def one() -> str:
        if d.chance(5):
            wide = d.one(*WIDE)
            return wide.replace("W", d.matrix()) if "W" in wide else wide
        named = d.one("elu(x) + 1", "square", "relu", "identity", "softplus", "sigmoid", "exp", "")
        if named and d.chance(2):
            return named
        beside = [d.param(d.one("H", "K", "H K"))] if d.chance(3) else []
        return (
            d.draw(texts.moderate(["x", *beside]))
            if d.chance(3)
            else d.draw(d.one(texts.positive, texts.real)("x", beside))
        )

    d.spec["feature_map"] = {"query": one(), "key": one()} if d.chance(4) else one()


def _normalizer(d: Drawing) -> None:
    if d.chance(20 if d.turns else 3):
        d.spec["normalizer"] = d.one(
            "sum",
            {"kind": "sum", "eps": "1e-3"},
            "max_abs",
            "abs_sum",
            {"kind": d.one("max_abs", "abs_sum"), "floor": "0.2"},
        )


def _weight(d: Drawing) -> None:
    if not d.chance(3):
        return
    axes = "D" if d.vector else d.one("H", "H", "H K", "H V", "H V")
    if d.chance(4):
        d.spec["key_weight"] = {"log": d.one(*(d.input(axes) for _ in "ab"), d.draw(texts.real(d.input(axes))))}
        if d.vector and d.chance(2):
            d.spec["normalizer"] = {"kind": "sum", "eps": "0"}
        elif not d.chance(8):
            d.spec.setdefault("normalizer", "sum")
        return
    text = d.draw(texts.positive(d.either(axes), d.beside(axes)))
    if d.chance(6) and not d.vector:
        text = f"{text} * {d.draw(texts.positive(d.either('H K')))}"
    if d.chance(8) and not d.vector:
        text = f"{text} / {d.param('H K')} ** 2"
    d.spec["key_weight"] = text


def _readout(d: Drawing) -> None:
    key, value = ("D", "D") if d.vector else ("H K", "H V")
    readout: dict[str, str] = {}
    if d.chance(20 if d.turns else 3):
        readout["kind"] = "exclusive"
    if d.chance(2) if readout else d.chance(40):
        bonus = d.param(d.one(key, key, "H") if not d.vector else key)
        readout["bonus"] = d.one(bonus, bonus, f"exp({bonus})", d.draw(texts.positive(bonus)))
    if d.chance(4):
        readout["skip"] = d.param(d.one("H", value) if not d.vector else value)
    if d.chance(4):
        readout["gate"] = d.draw(texts.real(d.input(value), d.beside(value)))
    if readout:
        d.spec["readout"] = readout


def _scale(d: Drawing) -> None:
    if d.chance(2):
        d.spec["scale"] = d.one("K ** -0.5", "0.3", "2 / (K + V)", "-1", "1 / H")


def _forget_the_order(spec: SpecDict) -> None:
    """Take away what makes no sense where every token reads every other."""
    spec.pop("decay", None)
    readout = {key: value for key, value in spec.pop("readout", {}).items() if key in ("skip", "gate")}
    spec |= {"readout": readout} if readout else {}


def _rarely(d: Drawing) -> None:
    """Keys that change everything else, and mistakes."""
    if d.chance(10) and not d.vector:
        d.spec["rotation"] = d.one("10000 ** (-2 * i / K)", "0.5 / (i + 1)")
    if d.chance(25) if "decay" in d.spec else not d.chance(3):
        d.spec["causal"] = "false"
        if not d.chance(4):
            _forget_the_order(d.spec)
    if d.chance(25):
        d.spec["bounds"] = d.one([-1000, 0], [0, 1])
    if d.chance(60):
        d.inputs[UNUSED] = "B T H"


PARTS: Sequence[Callable[[Drawing], None]] = (
    _decay,
    _roles,
    _features,
    _normalizer,
    _weight,
    _readout,
    _scale,
    _rarely,
)


@st.composite
def specs(draw: st.DrawFn, name: str = "drawn") -> SpecDict:
    """A spec in plain data, as `recgen.read_dict` takes it."""
    d = Drawing(draw, vector=draw(st.integers(1, 12)) == 12)
    for part in PARTS:
        part(d)
    if d.vector:
        d.spec["state"] = "vector"
    return pruned({"name": name, "inputs": d.inputs, "params": d.params, **d.spec})


def pruned(spec: SpecDict) -> SpecDict:
    """The spec without the inputs and parameters that nothing in it names."""
    used = _words({key: value for key, value in spec.items() if key not in ("name", "inputs", "params")}) | {UNUSED}
    kept: dict[str, Any] = {
        group: {name: what for name, what in spec[group].items() if name in used}
        for group in ("inputs", "params")
        if group in spec
    }
    return {key: kept.get(key, value) for key, value in spec.items() if kept.get(key, value)}


def _words(value: Any) -> set[str]:
    """Every name in the texts of a spec."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return {word for item in value for word in _words(item)}
    return set(re.findall(r"[A-Za-z_]\w*", value)) if isinstance(value, str) else set()

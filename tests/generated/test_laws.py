"""Laws between operators: where one is a special case of another, every form of it gives the other's numbers.

A law about an operator that specs/ does not have yet is not run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

import recgen
from tests.generated.catalogue import FORMS, OPERATORS, Form, emitted, forms_of
from tests.generated.inputs import Values, draw, draw_state
from tests.generated.support import assert_matches, call, run, truth

ROUNDED = {"linear": {"name": "linear_without_normalizer"}}


@dataclass(frozen=True)
class Law:
    """`special`, on inputs from which `other_inputs` makes those of `other`, equals it.

    names: the results to compare, as `special` names them → as `other` does.
    """

    special: str
    other: str
    inputs: Callable[[], Values]
    other_inputs: Callable[[Values], Values]
    names: dict[str, str]


def _never(x: torch.Tensor) -> torch.Tensor:
    """A gate that does not decay at all."""
    return torch.full_like(x, 1e4)


def _outer(shut: str) -> Callable[[], Values]:
    def inputs() -> Values:
        values = draw(emitted("gla_outer"), T=40, H=2, K=8, V=6)
        return {**values, shut: _never(values[shut])}

    return inputs


def _only(*names: str, **renamed: str) -> Callable[[Values], Values]:
    return lambda values: {**{n: values[n] for n in names}, **{new: values[old] for new, old in renamed.items()}}


def _undecayed_rwkv5() -> Values:
    values = draw(emitted("rwkv5"), T=40, H=2, K=8, V=6)
    return {**values, "w": torch.full_like(values["w"], -1000.0), "u": torch.ones_like(values["u"])}


def _repeated_rwkv6() -> Values:
    """The w of every token is the same."""
    values = draw(emitted("rwkv6"), T=40, H=2, K=8, V=6)
    return {**values, "w": values["w"][:, :1].clamp(max=1).expand_as(values["w"]).contiguous()}


def _outer_product(values: Values) -> Values:
    """A full gate whose log-decays are those of an outer gate."""
    log = torch.nn.functional.logsigmoid
    total = (log(values["g"].double())[..., None] + log(values["r"].double())[..., None, :]) / 16
    gate = total - torch.log(-torch.expm1(total))
    return {**{n: values[n] for n in ("q", "k", "v")}, "g": gate.to(values["q"].dtype)}


def _separable() -> Values:
    return draw(emitted("gla_outer"), T=20, H=2, K=5, V=4)


SHARED = {"o": "o", "S": "S", "d S": "d S", "d q": "d q", "d k": "d k", "d v": "d v"}
LAWS = {
    "an outer gate open along the values is a key gate": Law(
        "gla_outer", "gla", _outer("r"), _only("q", "k", "v", "g"), {**SHARED, "d g": "d g"}
    ),
    "an outer gate open along the keys is a value gate": Law(
        "gla_outer", "gla_value", _outer("g"), _only("q", "k", "v", g="r"), {**SHARED, "d r": "d g"}
    ),
    "rwkv5 without decay and with u = 1 is linear attention without a normalizer": Law(
        "rwkv5", "linear", _undecayed_rwkv5, _only("k", "v", q="r"), {**SHARED, "d r": "d q"}
    ),
    "rwkv6 with one w for all tokens is rwkv5": Law(
        "rwkv6",
        "rwkv5",
        _repeated_rwkv6,
        lambda v: {**v, "w": v["w"][0, 0]},
        {n: n for n in ("o", "S", "d S", "d r", "d k", "d v", "d u")},
    ),
    "a full gate that is an outer product is an outer gate": Law(
        "full_gate", "gla_outer", lambda: _outer_product(_separable()), lambda _: _separable(), SHARED
    ),
    "a temperature of 16 is a gate of its own": Law(
        "gated_retention",
        "gla",
        lambda: draw(emitted("gated_retention"), T=40, H=2, K=8, V=6),
        lambda v: {**v, "g": v["g"][..., None].expand_as(v["k"]).contiguous()},
        SHARED,
    ),
}


def module(name: str):
    return recgen.load(ROUNDED[name]) if name in ROUNDED else emitted(name)


def known(law: Law) -> bool:
    return all(name in ROUNDED or name in OPERATORS for name in (law.special, law.other))


def operators(*names: str) -> pytest.MarkDecorator:
    """Over the forms of the first of these operators; skipped where one of them is not in the catalogue."""
    missing = [name for name in names if name not in OPERATORS]
    forms = [] if missing else forms_of(names[0], FORMS)
    return pytest.mark.parametrize(
        "form", [pytest.param(form, id=str(form), marks=[pytest.mark.interpreter] * form.interpreted) for form in forms]
    )


@pytest.mark.parametrize(
    ("law", "form"),
    [
        pytest.param(text, form, id=f"{text}-{form}", marks=[pytest.mark.interpreter] * form.interpreted)
        for text, law in LAWS.items()
        if known(law)
        for form in forms_of(law.special, FORMS)
    ],
)
def test_special_case(law: str, form: Form) -> None:
    one = LAWS[law]
    values = one.inputs()
    state = draw_state(module(one.special), values)
    expected = truth(module(one.other), one.other_inputs(values), state)
    found = run(module(one.special), form, values, state)
    names = {mine: theirs for mine, theirs in one.names.items() if mine in found}
    assert {"o", "S", "d S", "d v"} <= set(names)
    assert_matches({mine: found[mine] for mine in names}, {mine: expected[theirs] for mine, theirs in names.items()})


@operators("mamba", "mamba2")
def test_mamba_with_one_rate_for_all_keys_is_mamba2_with_a_head_per_channel(form: Form) -> None:
    values = draw(emitted("mamba"), T=20, H=2, K=5, V=3)
    values["A_log"].copy_(values["A_log"][:, :1].expand_as(values["A_log"]).clone())
    flat = {n: values[n].repeat_interleave(3, 2) for n in ("C", "B")}
    flat |= {
        "x": values["x"].flatten(2)[..., None],
        "dt": values["dt"].flatten(2),
        "A_log": values["A_log"][:, 0].flatten(),
        "dt_bias": values["dt_bias"].flatten(),
        "D": values["D"].flatten(),
    }
    other = truth(emitted("mamba2"), {n: flat[n] for n in (*emitted("mamba2").INPUTS, *emitted("mamba2").PARAMS)})
    found = run(emitted("mamba"), form, values, loss="output")
    o = call(emitted("mamba"), form, values)
    expected = {"o": other["o"].reshape(o["o"].shape), "S": other["S"].reshape(1, 2, 3, 5).transpose(2, 3).contiguous()}
    assert_matches(o, expected)
    assert found["d x"].isfinite().all()


@operators("hgrn")
def test_a_vector_state_is_a_head_of_one_feature_per_channel(form: Form) -> None:
    spec = {
        "name": "hgrn_of_heads",
        "query": "q",
        "key": "k",
        "value": "x",
        "inputs": {"q": "B T H K", "k": "B T H K", "x": "B T H V", "g": "B T H"},
        "key_weight": "1 - exp(log_decay)",
        "decay": {"type": "gated", "log": "logsigmoid(g)"},
    }
    values = draw(emitted("hgrn"), T=40, V=6)
    one = torch.ones_like(values["x"])[..., None]
    heads = {"q": one, "k": one, "x": values["x"][..., None], "g": values["g"]}
    other = truth(recgen.load(spec), heads, loss="output")
    found = run(emitted("hgrn"), form, values, loss="output")
    assert_matches(
        {n: found[n] for n in ("o", "d x", "d g")},
        {"o": other["o"][..., 0], "d x": other["d x"][..., 0], "d g": other["d g"]},
    )


@operators("mlstm")
def test_mlstm_that_forgets_everything_reads_the_current_token(form: Form) -> None:
    values = draw(emitted("mlstm"), T=40, H=2, K=8, V=6)
    values["f"].fill_(-1000)
    q, k, v, i = (values[n].double() for n in "qkvi")
    score = (q * k).sum(-1, keepdim=True) * q.shape[-1] ** -0.5 * torch.exp(i)[..., None]
    assert_matches({"o": call(emitted("mlstm"), form, values)["o"]}, {"o": score * v / score.abs().clamp(min=1)})

"""The operator against someone's own code: equal code is found equal, each kind of difference is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

import recgen
from recgen.verify.against import Comparison, Refused, compare_with
from recgen.verify.profile import Profile
from recgen.verify.states import compare_states

OWN = '''
import torch
import torch.nn.functional as F

def gated(query, key, value, log_gate, scale=1.0):
    """simple_gla with time before heads, and the state as well."""
    S = query.new_zeros(query.shape[0], query.shape[2], query.shape[3], value.shape[3])
    outputs = []
    for t in range(query.shape[1]):
        S = torch.exp(F.logsigmoid(log_gate[:, t]))[..., None, None] * S
        S = S + key[:, t, ..., None] * value[:, t, :, None]
        outputs.append(scale * (query[:, t, :, None] @ S)[..., 0, :])
    return torch.stack(outputs, 1), S

def heads_first(q, k, v, g, scale=1.0):
    o, _ = gated(*(x.transpose(1, 2) for x in (q, k, v, g)), scale)
    return o.transpose(1, 2)

def unscaled(q, k, v, g):
    return gated(q, k, v, g)[0]

def ready_made(q, k, v, log_decay, scale):
    g = torch.log(torch.special.expit(log_decay)).clamp(max=-1.0)
    return gated(q, k, v, torch.logit(torch.exp(g)), scale)

def detached(q, k, v, g, scale):
    return gated(q, k.detach(), v, g, scale)

def without_gradients(q, k, v, g, scale):
    with torch.no_grad():
        return gated(q, k, v, g, scale)

def narrow(q, k, v, g, scale):
    return gated(*(x.float() for x in (q, k, v, g)), scale)

def inside(q, k, v, g, scale):
    return narrow(q, k, v, g, scale)[0].double()

def only_powers_of_two(q, k, v, g, scale):
    if q.shape[1] % 16:
        raise ValueError("T must be a multiple of 16")
    return gated(q, k, v, g, scale)

def hopeless(q, k, v, g, scale):
    raise KeyError("nothing")

def backward_in_float32_alone(q, k, v, g, scale):
    o, S = gated(q, k, v, g, scale)
    def refuse(gradient):
        if gradient.dtype is torch.float64:
            raise TypeError("float32 alone")
    o.register_hook(refuse)
    return o, S

def wrong_state(q, k, v, g, scale):
    o, S = gated(q, k, v, g, scale)
    return o, (S * 7,)

def odd_state(q, k, v, g, scale):
    o, S = gated(q, k, v, g, scale)
    return o, (S, S)

def narrow_state(q, k, v, g, scale):
    o, S = gated(q, k, v, g, scale)
    return o, S[..., :2]

def linear(q, k, v):
    """linear_attention, and the state as a dict."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    S, z = torch.einsum("bthk,bthv->bthkv", k, v).cumsum(1), k.cumsum(1)
    o = torch.einsum("bthk,bthkv->bthv", q, S) / ((q * z).sum(-1, keepdim=True) + 1e-6)
    return o, {"z": z[:, -1], "S": S[:, -1]}

def linear_in_order(q, k, v):
    o, state = linear(q, k, v)
    return o, [state["S"], 2 * state["z"]]

calls = []

def wrong_at_times(q, k, v, g, scale):
    calls.append(1)
    return gated(q, k, v, g, scale)[0] * (2 if len(calls) == 3 else 1)

def quits(q, k, v, g, scale):
    raise SystemExit(0)

def not_finite(q, k, v, g, scale):
    o, S = gated(q, k, v, g, scale)
    o[:, 5:] *= torch.nan
    return o, S

def wordy(q, k, v, g):
    return {"o": q}
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_layer.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "own_layer", raising=False)
    return tmp_path


def against(function: str, *said: str, layout: str = "bthd") -> Comparison:
    return compare_with(recgen.load("simple_gla"), f"own_layer:{function}", said, layout, 0)


def errors(comparison: Comparison) -> set[str]:
    return {m.name for m in comparison.measures if not m.ok}


def test_the_same_operator_is_the_same_in_float64(folder: Path) -> None:
    found = against("gated", "log_gate=g")
    assert found.ok and found.dtype == "float64", found.render()
    assert [m.name for m in found.measures] == [
        *("output", "state S"),
        *(f"gradient {name}" for name in ("q", "k", "v", "g")),
    ]
    assert max(m.error for m in found.measures) < 1e-12
    assert "the same operator" in found.render() and found.as_dict()["ok"]


def test_a_file_and_heads_before_time(folder: Path) -> None:
    module = recgen.load("simple_gla")
    assert compare_with(module, str(folder / "own_layer.py") + ":heads_first", [], "bhtd", 0).ok
    wrong = against("heads_first")
    assert not wrong.ok and "not the same" in wrong.render()


def test_a_difference_is_told_by_its_kind(folder: Path) -> None:
    scaled = against("unscaled")
    assert "2.82843 times the operator's everywhere" in scaled.render()
    ready = against("ready_made")
    assert "part at token" in ready.render() and "out of g: logsigmoid(g)" in ready.render()
    detached = against("detached")
    assert errors(detached) == {"gradient k"} and "the outputs are equal and gradients are not" in detached.render()


def test_what_is_computed_in_float32_is_judged_so(folder: Path) -> None:
    narrow = against("narrow")
    assert narrow.ok and "torch.float32 for float64 inputs" in narrow.render()
    inside = against("inside")
    assert not inside.ok and "equal up to rounding" in inside.render()


def test_values_alone_where_there_is_no_gradient(folder: Path) -> None:
    found = against("without_gradients")
    assert found.ok and [m.name for m in found.measures] == ["output", "state S"]
    assert "no gradient" in found.render()


def test_an_attempt_that_raises_leaves_nothing_behind(folder: Path) -> None:
    found = against("backward_in_float32_alone")
    assert found.ok and found.dtype == "float32"
    assert [m.name for m in found.measures] == ["output", "state S", *(f"gradient {name}" for name in "qkvg")]
    assert len(found.notes) == 1 and "float32 alone" in found.notes[0]
    raised = against("hopeless")
    assert not raised.measures and not raised.dtype and len(raised.notes) == 1


def test_every_part_of_a_state_is_compared(folder: Path) -> None:
    assert errors(against("wrong_state")) == {"state S"}
    module = recgen.load("linear_attention")
    named = compare_with(module, "own_layer:linear", [], "bthd", 0)
    assert named.ok and {"state S", "state z"} < {m.name for m in named.measures}, named.render()
    assert errors(compare_with(module, "own_layer:linear_in_order", [], "bthd", 0)) == {"state z"}


@pytest.mark.parametrize(
    ("function", "says"),
    [
        ("odd_state", "it is tuple of Tensor, Tensor, and the operator's is the tensor S"),
        ("narrow_state", "its S is (2, 3, 8, 2), the operator's (2, 3, 8, 6)"),
    ],
)
def test_a_state_that_cannot_be_compared_is_told(function: str, says: str, folder: Path) -> None:
    found = against(function)
    assert found.ok and "state S" not in {m.name for m in found.measures}
    assert found.notes == [f"your state was not compared: {says}"]


def test_a_running_maximum_is_a_unit_and_a_position_an_angle() -> None:
    profile = Profile.of(recgen.load("mlstm"))
    S, z, m = torch.ones(1, 1, 2, 3), torch.ones(1, 1, 2), torch.ones(1, 1)
    measures, why = compare_states(profile, (S, z, m), (S, z, m * (1 + 1e-7)), 1e-9)
    assert [one.name for one in measures if one.ok] == ["state S", "state z", "state m"] and not why
    measures, why = compare_states(profile, (S, z, m), (S, z, m + 1), 1e-9)
    assert not measures and "its m is not the operator's" in why


def test_of_several_draws_the_worst_is_told(folder: Path) -> None:
    module = recgen.load("simple_gla")
    assert compare_with(module, "own_layer:wrong_at_times", [], "bthd", 0).ok
    found = compare_with(module, "own_layer:wrong_at_times", [], "bthd", 0, examples=2)
    assert "output" in errors(found) and "the worst of 2 draws" in found.render()
    assert [m.name for m in found.measures] == ["output", *(f"gradient {name}" for name in "qkvg")]


def test_what_their_function_raises_is_told_with_its_place(folder: Path) -> None:
    found = against("only_powers_of_two")
    assert found.ok and found.sizes["T"] == 64
    assert "multiple of 16" in found.render() and "own_layer.py:" in found.render()
    hopeless = against("hopeless")
    assert not hopeless.ok and "KeyError" in hopeless.render() and "--layout bhtd" in hopeless.render()


def test_one_that_ends_the_program_has_failed(folder: Path) -> None:
    quits = against("quits")
    assert not quits.ok and "SystemExit" in quits.render() and "own_layer.py:" in quits.render()


@pytest.mark.parametrize(("function", "layout", "other"), [("heads_first", "bthd", "bhtd"), ("gated", "bhtd", "bthd")])
def test_heads_and_time_in_the_wrong_order_are_told(function: str, layout: str, other: str, folder: Path) -> None:
    found = against(function, *["log_gate=g"] * (function == "gated"), layout=layout)
    assert not found.ok
    [note] = [note for note in found.notes if "state" not in note]
    assert f"pass --layout {other}" in note


def test_what_is_not_finite_is_said_alone(folder: Path) -> None:
    found = against("not_finite")
    assert not found.ok and found.notes == ["your output is not finite, first at token 5 of 37"]


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("own_layer", "write MODULE:FUNCTION"),
        ("../here/own_layer:gated", "neither a module nor a .py file; write MODULE:FUNCTION or FILE.py:FUNCTION"),
        ("./own_layer:gated", r"is it \./own_layer\.py:gated"),
        (".own_layer:gated", "neither a module"),
        ("nowhere_to_be_found:f", "cannot be imported: ModuleNotFoundError"),
        ("own_layer:gatd", "did you mean gated"),
        ("own_layer:torch", "not a function"),
        ("own_layer:wordy", "returned dict"),
    ],
)
def test_what_cannot_be_compared_is_refused(target: str, says: str, folder: Path) -> None:
    with pytest.raises(Refused, match=says):
        compare_with(recgen.load("simple_gla"), target, [], "bthd", 0)

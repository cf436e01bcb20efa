"""Specs beyond the catalogue: what the compiler was not written for comes out right on both backends."""

from __future__ import annotations

import textwrap

import pytest
import torch

import recgen
from recgen.spec import read_text

GATE = "decay: {type: gated, log: logsigmoid(g)}"
KEY_GATE = "decay: {type: gated, per: key, log: logsigmoid(g)}"
SPECS = {
    "a gate with a learned rate": """
        inputs: {g: B T H}
        params: {rate: {axes: H, init: 0}}
        decay: {type: gated, log: -softplus(g) * exp(rate)}""",
    "inputs called S, z, y and n": """
        inputs: {S: B T H, z: B T H, y: B T H, n: B T H}
        decay: {type: gated, log: logsigmoid(S + y) + logsigmoid(z) - softplus(n)}
        feature_map: elu(x) + 1
        normalizer: sum""",
    "a decay per key channel that all heads share": """
        params: {w: {axes: K, init: 0}}
        decay: {type: learned, per: key, log: -exp(w)}""",
    "a learned decay per key channel": """
        params: {w: {axes: H K, init: 0}}
        decay: {type: learned, per: key, log: -exp(w)}""",
    "a feature map with a parameter": """
        params: {w: {axes: H K, init: 1}}
        feature_map: exp(w * x)
        decay: {type: fixed, value: 0.9}""",
    "a bounded key gate in one plain product": """
        inputs: {g: B T H K}
        decay: {type: gated, per: key, log: -0.1 * sigmoid(g)}""",
    "a weighted key under a scalar gate and a normalizer": f"""
        inputs: {{g: B T H}}
        key_weight: sigmoid(g)
        {GATE}
        normalizer: sum
        feature_map: exp(x)""",
    "a normalizer under a key gate": f"""
        inputs: {{g: B T H K}}
        {KEY_GATE}
        normalizer: sum
        feature_map: softplus(x)""",
    "another feature map for the query": f"""
        inputs: {{g: B T H}}
        {GATE}
        feature_map: {{query: sigmoid(x), key: relu(x)}}""",
}
SIZES = {"N": 1, "H": 2, "K": 5, "V": 7}


@pytest.fixture(scope="module", params=SPECS, ids=lambda text: text.replace(" ", "-"))
def module(request: pytest.FixtureRequest):
    return recgen.load(read_text(f"name: other\n{textwrap.dedent(SPECS[request.param])}\n"))


def outputs_and_gradients(module, form: str, dtype: torch.dtype, backend: str, T: int) -> list[torch.Tensor]:
    values = module.sample_inputs(B=1, T=T, H=2, K=5, V=7)
    draw = torch.Generator().manual_seed(1)
    state = [torch.rand([SIZES[a] for a in axes.split()], generator=draw) for axes in module.STATE.values()]
    leaves = [x.to(dtype).requires_grad_() for x in (*values.values(), *state)]
    named = dict(zip(values, leaves, strict=False))
    o, end = getattr(module, form)(
        **named, initial_state=tuple(leaves[len(values) :]), output_final_state=True, backend=backend
    )
    loss = sum((x * torch.randn(x.shape, generator=draw).to(x.dtype)).sum() for x in (o, *end))
    return [o.detach(), *(x.detach() for x in end), *torch.autograd.grad(loss, leaves)]


@pytest.mark.parametrize(
    ("form", "backend"),
    [("parallel", "torch"), ("chunk", "torch"), ("recurrent", "torch"), ("chunk", "triton"), ("recurrent", "triton")],
)
def test_every_form_equals_naive(module, form: str, backend: str) -> None:
    T = 20 if backend == "triton" else 70
    expected = outputs_and_gradients(module, "naive", torch.float64, "torch", T)
    found = outputs_and_gradients(module, form, torch.float32, backend, T)
    for k, (x, want) in enumerate(zip(found, expected, strict=True)):
        limit = 1e-5 if k <= len(module.STATE) else 5e-5
        assert (x.double() - want).norm() <= limit * want.norm(), f"result {k}"

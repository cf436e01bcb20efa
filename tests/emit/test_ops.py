"""The operators that a module registers, for specs beyond the catalogue: shapes, memory, what autocast casts."""

from __future__ import annotations

import textwrap

import pytest
import torch

import recgen
from recgen.emit.ops import cast_positions
from recgen.resources import catalogue
from recgen.spec import read, read_text

SPECS = {
    "two inputs with one gradient": """
        inputs: {a: B T H, b: B T H}
        decay: {type: gated, log: -softplus(a + b)}""",
    "three inputs with one gradient": """
        inputs: {a: B T H, b: B T H, c: B T H}
        decay: {type: gated, log: logsigmoid(a + b + c)}""",
    "sums over all positions of more features than a key has": """
        causal: false
        feature_map: concat(1, exp(x), outer(x, x))
        normalizer: {kind: sum, eps: 1}""",
    "features as many as a parameter says": """
        params: {W: {axes: M K, init: "normal(0, 1)"}}
        feature_map: exp(matmul(W, x))
        normalizer: sum""",
    "a value that is a parameter": """
        params: {w: {axes: H V, init: "normal(0, 1)"}}
        inputs: {q: B T H K, k: B T H K}
        value: w""",
    "a vector state with a maximum": """
        state: vector
        inputs: {i: B T D, v: B T D}
        key_weight: {log: i}
        normalizer: sum
        decay: {type: fixed, per: channel, value: 0.9}""",
    "one input, of which everything is made": """
        inputs: {x: B T H V}
        params: {w: {axes: H K, init: 1}}
        query: w
        key: w
        value: x
        decay: {type: gated, per: value, log: -softplus(x)}""",
    "inputs called S, z, y and n": """
        inputs: {S: B T H, z: B T H, y: B T H, n: B T H}
        decay: {type: gated, log: logsigmoid(S + y) + logsigmoid(z) - softplus(n)}
        feature_map: elu(x) + 1
        normalizer: sum""",
}


@pytest.fixture(scope="module", params=SPECS, ids=lambda text: text.replace(" ", "-"))
def module(request: pytest.FixtureRequest):
    return recgen.load(read_text(f"name: other\n{textwrap.dedent(SPECS[request.param])}\n"))


def arguments_of(module, backend: str, mode: str) -> dict[str, list]:
    """What the operators are called with in a training step."""
    seen, real = {}, dict(module.OPS)

    def noting(what: str):
        def call(*arguments):
            seen[what] = [x.detach() if isinstance(x, torch.Tensor) else x for x in arguments]
            return real[what](*arguments)

        return call

    module.OPS.update({what: noting(what) for what in real})
    try:
        letters = " ".join([*module.INPUTS.values(), *module.PARAMS.values()])
        sizes = {n: 2 for n in "HKVD" if n in letters}
        values = {n: x.requires_grad_() for n, x in module.sample_inputs(B=1, T=17, **sizes).items()}
        module.operator(**values, backend=backend, mode=mode, chunk_size=16)[0].sum().backward()
    finally:
        module.OPS.update(real)
    return seen


@pytest.mark.parametrize(
    ("backend", "mode"),
    [
        ("torch", "chunk"),
        ("torch", "parallel"),
        ("torch", "recurrent"),
        pytest.param("triton", "chunk", marks=pytest.mark.interpreter),
        pytest.param("triton", "recurrent", marks=pytest.mark.interpreter),
    ],
)
def test_torch_finds_nothing_wrong_with_them(module, backend: str, mode: str) -> None:
    """Results look as announced, and none lies in the memory of another or of an argument."""
    if not hasattr(module, mode):
        return
    seen = arguments_of(module, backend, mode)
    assert {"forward", "backward"} <= seen.keys()
    for what, arguments in seen.items():
        torch.library.opcheck(module.OPS[what], tuple(arguments), test_utils=("test_schema", "test_faketensor"))
        results = module.OPS[what](*arguments)
        places = [x.untyped_storage().data_ptr() for x in results if x.numel()]
        assert len(set(places)) == len(places), what


def test_autocast_leaves_what_exponents_are_made_of() -> None:
    def cast(name: str) -> list[str]:
        spec = read(catalogue()[name])
        return [spec.inputs[k].name for k in cast_positions(spec)]

    assert cast("simple_gla") == ["q", "k", "v"]
    assert cast("mlstm") == ["q", "k", "v"]
    assert cast("mamba2") == ["C", "B", "x"]
    assert cast("rwkv4") == ["r", "v"]
    assert cast("rg_lru") == ["x", "i"]
    assert cast("retnet") == ["q", "k", "v"]

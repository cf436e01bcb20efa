"""torch.compile(fullgraph=True): the numbers of eager code, one graph for all lengths, documents, and clear errors."""

from __future__ import annotations

import shutil

import pytest
import torch

from tests.generated.catalogue import CARRYING, OPERATORS, axes, emitted, profile
from tests.generated.compiled import assert_equal, forward_of, small, training_step

pytestmark = pytest.mark.usefixtures("nothing_compiled")
LENGTHS = (20, 33, 130)


class Graphs:
    """A backend that counts the graphs it is given, and has `aot_eager` run them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, graph, inputs):
        self.count += 1
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)


@pytest.mark.parametrize("name", OPERATORS)
def test_a_training_step_is_one_graph_for_all_lengths(name: str) -> None:
    """The forward pass, and gradients through output and final state."""
    module, graphs = emitted(name), Graphs()
    forward = forward_of(module)
    compiled = torch.compile(forward, fullgraph=True, backend=graphs)
    for T in LENGTHS:
        values, state = small(module, T=T)
        expected = training_step(forward, values, state)
        for n in module.INPUTS:
            torch._dynamo.mark_dynamic(values[n], 1)
        assert_equal(training_step(compiled, values, state), expected, f"T={T}")
    assert graphs.count == 1


@pytest.mark.parametrize("name", OPERATORS)
def test_packed_documents_are_one_graph(name: str) -> None:
    """Offsets are a tensor: others of the same number need no other graph, and wrong ones are found when it runs."""
    module, graphs = emitted(name), Graphs()
    forward = forward_of(module)
    compiled = torch.compile(forward, fullgraph=True, backend=graphs)
    values, state = small(module, B=1, N=3)
    for offsets in ([0, 5, 5, 20], [0, 11, 12, 20]):
        cu_seqlens = torch.tensor(offsets)
        expected = training_step(forward, values, state, cu_seqlens=cu_seqlens)
        assert_equal(training_step(compiled, values, state, cu_seqlens=cu_seqlens), expected, offsets)
    with pytest.raises(ValueError, match="cu_seqlens: must rise from 0 to T = 20"):
        compiled(values, state, cu_seqlens=torch.tensor([0, 11, 10, 20]))
    assert graphs.count == 1


@pytest.mark.parametrize("mode", ["naive", "parallel", "recurrent"])
@pytest.mark.parametrize("name", ["simple_gla", "mlstm", "retnet_rotary", "hgrn", "learned_decay"])
def test_the_other_forms_compile(name: str, mode: str) -> None:
    """`naive` is traced token by token: the same numbers up to rounding, whatever the compiler makes of them."""
    module = emitted(name)
    forward = forward_of(module)
    compiled = torch.compile(forward, fullgraph=True, backend="aot_eager")
    values, state = small(module, T=5)
    expected = training_step(forward, values, state, mode=mode)
    assert_equal(training_step(compiled, values, state, mode=mode), expected)


@pytest.mark.skipif(not shutil.which("g++") and not shutil.which("clang++"), reason="inductor compiles C++")
@pytest.mark.parametrize("name", ["simple_gla", "retnet_rotary"])
def test_inductor_compiles_a_training_step(name: str) -> None:
    module = emitted(name)
    forward = forward_of(module)
    values, state = small(module)
    found = training_step(torch.compile(forward, fullgraph=True), values, state)
    for x, y in zip(found, training_step(forward, values, state), strict=True):
        torch.testing.assert_close(x, y, rtol=1e-5, atol=1e-6)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["simple_gla", "mlstm", "hgrn", "linear_attention_global"])
def test_kernels_compile_too(name: str) -> None:
    """What a graph of the kernels keeps for its backward pass comes out of it as it was announced."""
    module = emitted(name)
    forward = forward_of(module)
    compiled = torch.compile(forward, fullgraph=True, backend="aot_eager")
    schedules = [{"mode": "chunk", "schedule": name} for name in module.SCHEDULES]
    recurrent = {"mode": "recurrent", "schedule": module.SCHEDULES[-1]}  # which walks whole sequences either way
    for options in (*schedules, recurrent) if module.STATE else ({},):
        values, state = small(module, T=17, B=1)
        options = {"backend": "triton", "chunk_size": 16, **options}
        expected = training_step(forward, values, state, **options)
        assert_equal(training_step(compiled, values, state, **options), expected, options)


@pytest.mark.interpreter
@pytest.mark.parametrize("schedule", ["auto", "split"])
def test_a_graph_of_kernels_is_for_all_lengths(schedule: str) -> None:
    """The starts of segments, which it keeps, are as many as a length of its own needs."""
    module, graphs = emitted("gla"), Graphs()
    forward = forward_of(module)
    compiled = torch.compile(forward, fullgraph=True, backend=graphs)
    options = {"backend": "triton", "chunk_size": 16, "schedule": schedule}
    for T in (20, 33, 70):
        values, state = small(module, T=T)
        expected = training_step(forward, values, state, **options)
        for n in module.INPUTS:
            torch._dynamo.mark_dynamic(values[n], 1)
        assert_equal(training_step(compiled, values, state, **options), expected, f"T={T}")
    assert graphs.count == 1


@pytest.mark.parametrize("name", ["learned_decay", "mamba2", "rwkv5", "s4d"])
def test_a_layer_trains_compiled(name: str) -> None:
    """Parameters move as they do in eager code."""
    module = emitted(name)
    sizes = profile(module).letters(2, 20, 2, 4, 4)
    letters = sorted({a for n in module.PARAMS for a in axes(module)[n]})
    values, _ = small(module)
    found = []
    for compiles in (False, True):
        torch.manual_seed(0)
        layer = module.Operator(**{a: sizes[a] for a in letters})
        run = torch.compile(layer, fullgraph=True, backend="aot_eager") if compiles else layer
        optimizer = torch.optim.SGD(layer.parameters(), 0.1)
        for _ in range(2):
            optimizer.zero_grad()
            run(**{n: values[n].detach() for n in module.INPUTS})[0].square().mean().backward()
            optimizer.step()
        found.append(list(layer.parameters()))
    assert_equal(*([x.detach() for x in parameters] for parameters in found))


@pytest.mark.parametrize("name", CARRYING)
def test_a_step_compiles(name: str) -> None:
    module = emitted(name)
    values, state = small(module, T=1)
    token = {n: x[:, 0] if n in module.INPUTS else x for n, x in values.items()}

    def step(token, state):
        o, end = module.step(**token, state=module.State(**state))
        return [o, *end]

    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    assert_equal([x.detach() for x in compiled(token, state)], [x.detach() for x in step(token, state)])


@pytest.mark.parametrize("scale", [0.5, 2.0, 0, None])
def test_a_scale_of_each_kind(scale: float | None) -> None:
    module = emitted("simple_gla")
    forward = forward_of(module)
    compiled = torch.compile(forward, fullgraph=True, backend="aot_eager")
    values, state = small(module)
    for s in (1.0, scale, 3.0):
        assert_equal(training_step(compiled, values, state, scale=s), training_step(forward, values, state, scale=s))


def test_autocast_inside_and_around_what_is_compiled() -> None:
    module = emitted("simple_gla")
    forward = forward_of(module)
    compiled = torch.compile(forward, fullgraph=True, backend="aot_eager")
    values, state = small(module)
    with torch.autocast("cpu", torch.bfloat16):
        expected, found = forward(values, state), compiled(values, state)
    assert found[0].dtype == torch.bfloat16
    assert_equal([x.detach() for x in found], [x.detach() for x in expected])


def test_a_compiled_second_derivative_is_refused() -> None:
    """By torch, for whatever it compiles: it says so, instead of leaving terms out."""
    module = emitted("simple_gla")
    compiled = torch.compile(forward_of(module), fullgraph=True, backend="aot_eager")
    values, state = small(module)
    with pytest.raises(RuntimeError, match="create_graph|double backward"):
        (first,) = torch.autograd.grad(compiled(values, state)[0].sum(), values["q"], create_graph=True)
        torch.autograd.grad(first.square().sum(), values["v"])


def test_naive_with_documents_says_what_to_compile_instead() -> None:
    module = emitted("simple_gla")
    compiled = torch.compile(forward_of(module), fullgraph=True, backend="aot_eager")
    values, state = small(module, B=1, N=3)
    with pytest.raises(Exception, match="cu_seqlens: mode='naive' .* use mode='chunk'"):
        compiled(values, state, cu_seqlens=torch.tensor([0, 5, 5, 20]), mode="naive")

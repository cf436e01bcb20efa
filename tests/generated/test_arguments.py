"""A wrong argument is a ValueError or TypeError that names it, before anything is computed or launched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator

import pytest
import torch

from tests.generated.catalogue import FORMS, NAIVE, REPRESENTATIVES, axes, emitted
from tests.generated.inputs import Values, draw, draw_state

MODES = [
    pytest.param(form.name, form.backend, id=str(form), marks=[pytest.mark.interpreter] * form.interpreted)
    for form in (NAIVE, *FORMS)
]


@pytest.fixture(autouse=True)
def nothing_may_launch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    from triton.runtime.interpreter import GridExecutor

    def launched(*_: object, **__: object) -> None:
        raise AssertionError("a kernel was launched before the arguments were checked")

    monkeypatch.setattr(GridExecutor, "__call__", launched)
    yield


def refused(name: str, argument: str, form: str, kernels: str, values: Values, /, **options: object) -> None:
    with pytest.raises((ValueError, TypeError)) as caught:
        emitted(name).operator(**values, **{"mode": form, "backend": kernels, **options})
    assert re.search(rf"\b{argument}\b", str(caught.value)), f"{argument} is not named in: {caught.value}"


BAD_TENSORS: dict[str, Callable[[torch.Tensor], object]] = {
    "one axis too few": lambda x: x[0],
    "one axis too many": lambda x: x[None],
    "another time": lambda x: torch.cat([x, x[:, :1]], 1),
    "another batch": lambda x: torch.cat([x, x]),
    "another head count": lambda x: torch.cat([x, x[:, :, :1]], 2),
    "integers": lambda x: x.long(),
    "complex": lambda x: x.to(torch.complex64),
    "another device": lambda x: x.to("meta"),
    "not a tensor": lambda x: x.tolist(),
    "nothing": lambda x: None,
}


@pytest.mark.parametrize("bad", BAD_TENSORS)
@pytest.mark.parametrize(("mode", "backend"), MODES)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_wrong_input_is_named(name: str, mode: str, backend: str, bad: str) -> None:
    """Of two inputs that disagree the message may blame either; the first one is wrong in the test below."""
    values = draw(emitted(name), B=2, T=6, H=2, K=4, V=4)
    for argument in list(emitted(name).INPUTS)[1:]:
        refused(name, argument, mode, backend, {**values, argument: BAD_TENSORS[bad](values[argument])})


@pytest.mark.parametrize("bad", ["one axis too few", "one axis too many", "integers", "not a tensor", "nothing"])
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_wrong_query_is_named(name: str, bad: str) -> None:
    values = draw(emitted(name), B=2, T=6, H=2, K=4, V=4)
    query = next(iter(values))
    refused(name, query, "chunk", "torch", {**values, query: BAD_TENSORS[bad](values[query])})


@pytest.mark.parametrize(("mode", "backend"), MODES)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_widths_must_agree(name: str, mode: str, backend: str) -> None:
    module = emitted(name)
    values = draw(module, T=6, H=2, K=4, V=4)
    widths = Counter(letter for letters in axes(module).values() for letter in letters)
    for argument in module.INPUTS:
        width = axes(module)[argument][-1]
        if width in "KV" and widths[width] > 1:
            refused(name, argument, mode, backend, {**values, argument: values[argument][..., :3]})


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_wrong_parameter_is_named(name: str) -> None:
    module = emitted(name)
    values = draw(module, T=6, H=2, K=4, V=4)
    for argument in module.PARAMS:
        given = values[argument]
        for wrong in (given[:1], given[None], given.long(), given.to("meta")):
            refused(name, argument, "chunk", "torch", {**values, argument: wrong})


@pytest.mark.parametrize(("mode", "backend"), MODES)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_wrong_initial_state_is_named(name: str, mode: str, backend: str) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=6, H=2, K=4, V=4)
    state = draw_state(module, values)
    wrong: list[object] = [
        {n: x[:1] for n, x in state.items()},
        {n: x[..., :3] for n, x in state.items()},
        {n: x[None] for n, x in state.items()},
        {n: x.long() for n, x in state.items()},
        {n: x.to("meta") for n, x in state.items()},
    ]
    for entries in wrong:
        refused(name, "initial_state", mode, backend, values, initial_state=module.State(**entries))
    for other in ((), (*state.values(), state["S"]), 1.0, "S"):
        refused(name, "initial_state", mode, backend, values, initial_state=other)


@pytest.mark.parametrize(
    "offsets",
    [
        pytest.param([0, 5, 3, 12], id="falling"),
        pytest.param([1, 5, 12], id="not from 0"),
        pytest.param([0, 5, 11], id="not to the end"),
        pytest.param([0, 5, 13], id="past the end"),
        pytest.param([-1, 5, 12], id="negative"),
        pytest.param([0], id="one offset"),
        pytest.param([], id="none"),
        pytest.param([[0, 12]], id="two axes"),
        pytest.param([0.0, 5.0, 12.0], id="float"),
        pytest.param([False, True], id="boolean"),
    ],
)
@pytest.mark.parametrize(("mode", "backend"), MODES)
def test_wrong_offsets_are_named(mode: str, backend: str, offsets: list) -> None:
    values = draw(emitted("gla"), T=12, H=1, K=4, V=4)
    tensor = torch.tensor(offsets) if offsets else torch.tensor(offsets, dtype=torch.int64)
    refused("gla", "cu_seqlens", mode, backend, values, cu_seqlens=tensor)


@pytest.mark.parametrize(("mode", "backend"), MODES)
def test_offsets_need_a_batch_of_one_their_own_device_and_a_state_each(mode: str, backend: str) -> None:
    module = emitted("simple_gla")
    values = draw(module, T=12, H=1, K=4, V=4)
    offsets = torch.tensor([0, 5, 12])
    refused("simple_gla", "cu_seqlens", mode, backend, draw(module, B=2, T=12, H=1, K=4, V=4), cu_seqlens=offsets)
    refused("simple_gla", "cu_seqlens", mode, backend, values, cu_seqlens=offsets.to("meta"))
    refused("simple_gla", "cu_seqlens", mode, backend, values, cu_seqlens=[0, 5, 12])
    refused(
        "simple_gla",
        "initial_state",
        mode,
        backend,
        values,
        cu_seqlens=offsets,
        initial_state=module.State(**draw_state(module, values, N=1)),
    )


@pytest.mark.parametrize(
    "argument, wrong",
    [
        ("scale", "1"),
        ("scale", [1.0]),
        ("scale", torch.ones(2)),
        ("scale", 1j),
        ("chunk_size", 0),
        ("chunk_size", 8),
        ("chunk_size", 48),
        ("chunk_size", 256),
        ("chunk_size", -64),
        ("chunk_size", 64.0),
        ("chunk_size", "64"),
        ("chunk_size", True),
        ("mode", "fused"),
        ("mode", None),
        ("mode", 1),
        ("backend", "cuda"),
        ("backend", None),
        ("schedule", "spilt"),
        ("schedule", None),
        ("output_final_state", "yes"),
        ("output_final_state", 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_wrong_option_is_named(name: str, argument: str, wrong: object) -> None:
    refused(name, argument, "chunk", "torch", draw(emitted(name), T=6, H=1, K=4, V=4), **{argument: wrong})


@pytest.mark.parametrize("mode", ["naive", "parallel"])
def test_forms_without_kernels_say_which_backend_they_have(mode: str) -> None:
    values = draw(emitted("gla"), T=6, H=1, K=4, V=4)
    with pytest.raises(ValueError, match="backend.*torch|torch.*backend"):
        emitted("gla").operator(**values, mode=mode, backend="triton")
    with pytest.raises(ValueError, match="backend.*torch|torch.*backend"):
        getattr(emitted("gla"), mode)(**values, backend="triton")


def test_what_the_kernels_cannot_do_is_refused_with_the_alternative() -> None:
    """float64 and widths above 256 run on the torch backend."""
    for values in (
        draw(emitted("gla"), T=3, H=1, K=4, V=4, dtype=torch.float64),
        draw(emitted("gla"), T=3, H=1, K=257, V=4),
        draw(emitted("gla"), T=3, H=1, K=4, V=257),
    ):
        with pytest.raises((ValueError, TypeError), match="torch"):
            emitted("gla").operator(**values, mode="chunk", backend="triton")


def test_unknown_and_missing_arguments_are_errors() -> None:
    values = draw(emitted("gla"), T=3, H=1, K=4, V=4)
    with pytest.raises(TypeError, match="gate"):
        emitted("gla").operator(**values, gate=1)
    with pytest.raises(TypeError, match=r"\bg\b"):
        emitted("gla").operator(values["q"], values["k"], values["v"])


@pytest.mark.parametrize("name", REPRESENTATIVES)
def test_a_wrong_token_of_a_step_is_named(name: str) -> None:
    module = emitted(name)
    values = draw(module, B=2, T=1, H=2, K=4, V=4)
    state = module.State(**draw_state(module, values))
    token = {n: x[:, 0] if n in module.INPUTS else x for n, x in values.items()}
    for argument in list(module.INPUTS)[1:]:
        with pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
            module.step(**{**token, argument: values[argument]}, state=state)
    with pytest.raises((ValueError, TypeError), match="state"):
        module.step(**token, state=module.State(*(x[:1] for x in state)))

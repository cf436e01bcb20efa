"""The functions of another library: what is named exists here, and what they are given makes them the same operator.

The library's functions are stated anew as token loops, from what its documentation says that they compute.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor

from recgen.bench.compare import Bench, Effort
from recgen.bench.contenders import Size
from recgen.bench.gpu.contenders import difference, draw, peer, peer_call
from recgen.bench.gpu.peers import NAIVE, PEERS, NoPeer, Peer
from recgen.bench.gpu.plan import TIMED, Shape
from recgen.verify.profile import Profile, load_module

from .conftest import GENERATED

SHAPE = Shape(B=2, H=3, T=9, D=4)


def loop(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, scale: float, bonus: Tensor | None = None) -> Tensor:
    """o_t = scale qᵀ S_t, with a log-decay per key channel; with a bonus u: scale qᵀ (S_{t-1} + u k vᵀ)."""
    S = q.new_zeros(*q.shape[:1], *q.shape[2:], v.shape[-1])
    outputs = []
    for t in range(q.shape[1]):
        write = k[:, t, :, :, None] * v[:, t, :, None, :]
        read = None if bonus is None else S + bonus[:, :, None] * write
        S = log_decay[:, t].exp()[..., None] * S + write
        outputs.append(scale * torch.einsum("bhm,bhmc->bhc", q[:, t], S if read is None else read))
    return torch.stack(outputs, 1)


def chunk_simple_gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor | None = None, g_gamma: Any = None, scale: float = 1):
    decay = g if g is not None else g_gamma.expand(q.shape[:3])
    return loop(q, k, v, decay[..., None].expand(q.shape), scale), None


def chunk_retention(q: Tensor, k: Tensor, v: Tensor, scale: float = 1):
    return chunk_simple_gla(q, k, v, g_gamma=torch.log(1 - 2.0 ** (-5 - torch.arange(q.shape[2]))), scale=scale)


def chunk_linear_attn(q: Tensor, k: Tensor, v: Tensor, scale: float = 1, normalize: bool = True):
    whole = loop(q, k, torch.cat([v, torch.ones_like(v[..., :1])], -1), torch.zeros_like(q), scale)
    return whole[..., :-1] / whole[..., -1:], None


def chunk_gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float = 1):
    return loop(q, k, v, g, scale), None


def chunk_rwkv6(r: Tensor, k: Tensor, v: Tensor, w: Tensor, u: Tensor, scale: float = 1):
    return loop(r, k, v, w, scale, bonus=u), None


def naive_recurrent_simple_gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor, scale: float | None = None):
    return chunk_simple_gla(q, k, v, g, scale=scale)


def naive_recurrent_gla(q: Tensor, k: Tensor, v: Tensor, gk: Tensor):
    return loop(q, k, v, gk, q.shape[-1] ** -0.5), None


def naive_recurrent_linear_attn(q: Tensor, k: Tensor, v: Tensor, scale: float = 1, normalize: bool = False):
    return chunk_linear_attn(q, k, v, scale, normalize)


NAIVE_LOOPS = (naive_recurrent_simple_gla, naive_recurrent_gla, naive_recurrent_linear_attn)
LOOPS = (chunk_simple_gla, chunk_retention, chunk_linear_attn, chunk_gla, chunk_rwkv6)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """library(function, …) installs the library's modules, with these functions in each."""

    def install(*functions: Callable[..., Any]) -> None:
        for name in ("fla", "fla.ops", *{chosen.module for table in (PEERS, NAIVE) for chosen in table.values()}):
            module = ModuleType(name)
            module.__path__ = []
            vars(module).update({function.__name__: function for function in functions})
            monkeypatch.setitem(sys.modules, name, module)

    return install


@pytest.mark.parametrize("name", PEERS)
def test_what_a_peer_names_exists(name: str) -> None:
    module = load_module(GENERATED / f"{name}.py")
    given = draw(module, SHAPE, "cpu", torch.float32)
    found = PEERS[name].tensors(given)
    assert name in TIMED
    assert set(given) == {*module.INPUTS, *module.PARAMS}
    assert set(PEERS[name].arguments) == set(found)
    assert set(PEERS[name].ready) <= set(PEERS[name].arguments.values()), "nothing is made ready for nobody"


def _beside(name: str, theirs: Peer) -> tuple[dict[str, torch.Tensor], float, float]:
    """Inputs of an operator, its scale, and how far what the library computes from them is from its recurrence."""
    module = load_module(GENERATED / f"{name}.py")
    tensors = draw(module, SHAPE, "cpu", torch.float32)
    scale = Profile.of(module).scale(SHAPE.H, SHAPE.D, SHAPE.D)
    run, _ = peer_call(theirs.load(), theirs, tensors, scale)
    return tensors, scale, difference(module.naive(**tensors)[0], theirs.finish(run(), tensors))


@pytest.mark.parametrize("name", PEERS)
def test_what_a_peer_is_given_makes_it_the_same_operator(name: str, library: Callable[..., None]) -> None:
    library(*LOOPS)
    tensors, scale, apart = _beside(name, PEERS[name])
    assert apart < 2e-6
    peer(PEERS[name].load(), PEERS[name], tensors, scale).both()


@pytest.mark.parametrize("name", NAIVE)
def test_the_loop_of_the_library_is_the_same_operator_too(name: str, library: Callable[..., None]) -> None:
    library(*NAIVE_LOOPS)
    *_, apart = _beside(name, NAIVE[name])
    assert apart < 2e-6


def bench(name: str) -> tuple[set[str], list[str]]:
    """What the benchmark compares an operator with on a CPU, and what it notes."""
    made = Bench(Size(H=2, K=8, V=8), Effort((16,), (2,), 8, 1, (16,), 16, (4,), 3))
    against = {c.against for c in made.compare(name, load_module(GENERATED / f"{name}.py"))}
    return against, made.notes


def test_the_benchmark_takes_the_loop_of_the_library_where_it_is_installed(library: Callable[..., None]) -> None:
    library(*NAIVE_LOOPS)
    assert bench("simple_gla") == ({"softmax", "token loop", "fla token loop"}, [])
    against, [note] = bench("rwkv4")
    assert "fla token loop" not in against and "no function" in note


@pytest.mark.parametrize(
    ("change", "says"),
    [(lambda o: 2 * o, "not the operator's: 1.0e+00 apart"), (lambda o: o[0, 0, 0, 99], "raises IndexError")],
)
def test_a_function_that_computes_something_else_is_not_measured(
    change: Callable[[Tensor], Tensor], says: str, library: Callable[..., None]
) -> None:
    def naive_recurrent_gla(q: Tensor, k: Tensor, v: Tensor, gk: Tensor):
        return change(loop(q, k, v, gk, q.shape[-1] ** -0.5)), None

    library(naive_recurrent_gla)
    against, [note] = bench("gla")
    assert "fla token loop" not in against and says in note


def test_the_installed_library_takes_the_arguments() -> None:
    pytest.importorskip("fla")
    for table in (PEERS, NAIVE):
        for chosen in table.values():
            chosen.load()


def test_without_the_library_the_reason_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fla", PEERS["gla"].module):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(NoPeer, match="pip install flash-linear-attention"):
        PEERS["gla"].load()


def test_another_version_of_the_library_is_not_called_with_what_it_does_not_know(library: Callable[..., None]) -> None:
    library(chunk_simple_gla)
    with pytest.raises(NoPeer, match="fla.ops.gla has no chunk_gla"):
        PEERS["gla"].load()

    def chunk_gla(q: Tensor, k: Tensor, v: Tensor, gk: Tensor, scale: float) -> None: ...

    library(chunk_gla)
    with pytest.raises(NoPeer, match="fla.ops.gla.chunk_gla takes no g$"):
        PEERS["gla"].load()

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

from recgen.bench.gpu.contenders import difference, draw, peer, peer_call
from recgen.bench.gpu.peers import PEERS, NoPeer
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


LOOPS = (chunk_simple_gla, chunk_retention, chunk_linear_attn, chunk_gla, chunk_rwkv6)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """library(function, …) installs the library's modules, with these functions in each."""

    def install(*functions: Callable[..., Any]) -> None:
        for name in ("fla", "fla.ops", *{chosen.module for chosen in PEERS.values()}):
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


@pytest.mark.parametrize("name", PEERS)
def test_what_a_peer_is_given_makes_it_the_same_operator(name: str, library: Callable[..., None]) -> None:
    library(*LOOPS)
    module = load_module(GENERATED / f"{name}.py")
    tensors = draw(module, SHAPE, "cpu", torch.float32)
    scale = Profile.of(module).scale(SHAPE.H, SHAPE.D, SHAPE.D)
    run, _ = peer_call(PEERS[name].load(), PEERS[name], tensors, scale)
    theirs = PEERS[name].finish(run(), tensors)
    assert difference(module.naive(**tensors)[0], theirs) < 2e-6
    peer(PEERS[name].load(), PEERS[name], tensors, scale).both()


def test_the_installed_library_takes_the_arguments() -> None:
    pytest.importorskip("fla")
    for chosen in PEERS.values():
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

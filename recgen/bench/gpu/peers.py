"""Which function of flash-linear-attention computes what an operator computes, and what it is given.

A peer gets ready values where the operator works them out inside its kernels: features, log-decays, weighted values.
They are computed before the clock starts, and so is what the operator adds to the output left out. So where the two
differ in this, the peer has less to do.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

Tensors = Mapping[str, Tensor]
Ready = Callable[[Tensors], Tensor]


class NoPeer(Exception):
    """Why there is nothing to compare with."""


@dataclass(frozen=True)
class Peer:
    """A function of another library, by the names of its arguments.

    arguments  argument → the operator's input or parameter, or a name in `ready`
    ready      what is worked out from inputs and parameters before the clock starts
    options    further arguments, as they are; the scale is the operator's own
    finish     the operator's output, from the peer's output and the operator's inputs
    scaled     whether there is an argument `scale`; if not, the peer's scale is the operator's
    """

    module: str
    function: str
    arguments: Mapping[str, str]
    ready: Mapping[str, Ready] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    finish: Callable[[Tensor, Tensors], Tensor] = lambda o, _: o
    scaled: bool = True

    @property
    def kernels(self) -> tuple[str, ...]:
        """Equal for two peers that run the same kernels."""
        return (self.module, self.function, *sorted(self.arguments))

    def load(self) -> Callable[..., Any]:
        """The function. NoPeer where it is not installed or takes other arguments."""
        try:
            function: Callable[..., Any] = getattr(importlib.import_module(self.module), self.function)
        except ImportError as error:
            raise NoPeer(f"{self.module} cannot be imported ({error}): pip install flash-linear-attention") from None
        except AttributeError:
            raise NoPeer(f"{self.module} has no {self.function}") from None
        known = inspect.signature(function).parameters
        missing = [name for name in (*self.arguments, *self.options, *["scale"] * self.scaled) if name not in known]
        if missing:
            raise NoPeer(f"{self.module}.{self.function} takes no {', '.join(missing)}")
        return function

    def tensors(self, own: Tensors) -> dict[str, Tensor]:
        """What the function is given, by argument, from the operator's inputs and parameters."""
        made = {name: work(own) for name, work in self.ready.items()}
        return {argument: (dict(own) | made)[name] for argument, name in self.arguments.items()}


def _slopes(decay: Callable[[Tensor, int], Tensor]) -> Ready:
    """A log-decay per head, from the head's index and the number of heads."""

    def ready(x: Tensors) -> Tensor:
        heads = x["q"].shape[2]
        return decay(torch.arange(heads, device=x["q"].device, dtype=torch.float32), heads)

    return ready


def _step_size(x: Tensors) -> Tensor:
    return F.softplus(x["dt"] + x["dt_bias"])


_QKV = {"q": "q", "k": "k", "v": "v"}
_GATED = {**_QKV, "g": "log_decay"}

PEERS: dict[str, Peer] = {
    "linear_attention": Peer(
        "fla.ops.linear_attn",
        "chunk_linear_attn",
        {"q": "query", "k": "key", "v": "v"},
        {"query": lambda x: F.elu(x["q"]) + 1, "key": lambda x: F.elu(x["k"]) + 1},
        {"normalize": True},
    ),
    "retnet": Peer("fla.ops.retention", "chunk_retention", _QKV),
    "lightning": Peer(
        "fla.ops.simple_gla",
        "chunk_simple_gla",
        {**_QKV, "g_gamma": "log_decay"},
        {"log_decay": _slopes(lambda h, heads: -(2 ** (-8 * (h + 1) / heads)))},
    ),
    "simple_gla": Peer("fla.ops.simple_gla", "chunk_simple_gla", _GATED, {"log_decay": lambda x: F.logsigmoid(x["g"])}),
    "gated_retention": Peer(
        "fla.ops.simple_gla", "chunk_simple_gla", _GATED, {"log_decay": lambda x: F.logsigmoid(x["g"]) / 16}
    ),
    "mamba2": Peer(
        "fla.ops.simple_gla",
        "chunk_simple_gla",
        {"q": "C", "k": "B", "v": "value", "g": "log_decay"},
        {
            "value": lambda x: x["x"] * _step_size(x)[..., None],
            "log_decay": lambda x: -torch.exp(x["A_log"]) * _step_size(x),
        },
        finish=lambda o, x: o + x["D"][:, None] * x["x"],
    ),
    "gla": Peer("fla.ops.gla", "chunk_gla", _GATED, {"log_decay": lambda x: F.logsigmoid(x["g"]) / 16}),
    "hgrn2": Peer(
        "fla.ops.gla",
        "chunk_gla",
        {"q": "q", "k": "key", "v": "v", "g": "log_decay"},
        {"key": lambda x: torch.sigmoid(-x["g"]), "log_decay": lambda x: F.logsigmoid(x["g"])},
    ),
    "rwkv6": Peer(
        "fla.ops.rwkv6",
        "chunk_rwkv6",
        {"r": "r", "k": "k", "v": "v", "w": "log_decay", "u": "u"},
        {"log_decay": lambda x: -torch.exp(x["w"])},
    ),
}
"""Operator → peer. mlstm has none: the library has no kernel of a gate that is held by a running maximum."""


def _per_token(decay: Ready) -> Ready:
    """A log-decay per head, at every token."""
    return lambda x: decay(x).expand(x["q"].shape[:3])


def _token_loop(module: str, function: str, chunked: Peer, **changes: Any) -> Peer:
    return replace(chunked, module=f"fla.ops.{module}.naive", function=function, **changes)


_SIMPLE = ("simple_gla", "naive_recurrent_simple_gla")

NAIVE: dict[str, Peer] = {
    **{name: _token_loop(*_SIMPLE, PEERS[name]) for name in ("simple_gla", "gated_retention", "mamba2")},
    "retnet": _token_loop(
        *_SIMPLE,
        PEERS["retnet"],
        arguments=_GATED,
        ready={"log_decay": _per_token(_slopes(lambda h, heads: torch.log(1 - 2.0 ** (-5 - h))))},
    ),
    "lightning": _token_loop(
        *_SIMPLE,
        PEERS["lightning"],
        arguments=_GATED,
        ready={"log_decay": _per_token(PEERS["lightning"].ready["log_decay"])},
    ),
    "gla": _token_loop("gla", "naive_recurrent_gla", PEERS["gla"], arguments={**_QKV, "gk": "log_decay"}, scaled=False),
    "linear_attention": _token_loop("linear_attn", "naive_recurrent_linear_attn", PEERS["linear_attention"]),
}
"""Operator → the library's own loop over tokens, which runs on a CPU as well."""

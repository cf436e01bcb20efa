"""What plain eager torch code reaches in 16 bits: the parallel form, every product rounded to the inputs' dtype.

Log-decays are summed in float32, as any careful user would; it is the yardstick of the 16-bit tests.
"""
from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor
from torch.nn.functional import elu, logsigmoid

from tests.generated.support import Values, cotangents


def log_decay(name: str, values: Values) -> Tensor:
    """ℓ [B,T,H,1 or K] in float32."""
    B, T, H, _ = values["k"].shape
    if name == "retnet":
        heads = torch.log(1 - 2 ** (-5 - torch.arange(H, dtype=torch.float32)))
        return heads[:, None].expand(B, T, H, 1)
    if name == "learned_decay":
        return -torch.exp(values["w"].float())[:, None].expand(B, T, H, 1)
    gate = logsigmoid(values["g"].float())
    return gate[..., None] if name == "simple_gla" else gate / 16


def forward(name: str, values: Values, state: Values | None) -> Values:
    """o and the final state."""
    q, k, v = values["q"], values["k"], values["v"]
    dtype, T = q.dtype, q.shape[1]
    start = {n: x.to(dtype) for n, x in (state or {}).items()}
    causal = torch.ones(T, T, dtype=torch.bool).tril()[:, :, None, None]
    if name == "linear_attention":
        q, k = elu(q) + 1, elu(k) + 1
        scores = torch.einsum("bthk,bihk->btih", q, k) * causal[..., 0]
        y, n = torch.einsum("btih,bihv->bthv", scores, v), scores.sum(2)
        S, z = torch.einsum("bthk,bthv->bhkv", k, v), k.sum(1)
        if start:
            y, n = y + torch.einsum("bthk,bhkv->bthv", q, start["S"]), n + torch.einsum("bthk,bhk->bth", q, start["z"])
            S, z = S + start["S"], z + start["z"]
        return {"o": y / (n + 1e-6)[..., None], "S": S, "z": z}
    q = q * q.shape[-1] ** -0.5
    through = log_decay(name, values).cumsum(1)
    between = through[:, :, None] - through[:, None]
    weights = torch.where(causal, between, -torch.inf).exp().to(dtype)
    y = torch.einsum("btihk,bihk->btih", q[:, :, None] * weights, k)
    y = torch.einsum("btih,bihv->bthv", y, v)
    S = torch.einsum("bthk,bthv->bhkv", k * (through[:, -1:] - through).exp().to(dtype), v)
    if start:
        y = y + torch.einsum("bthk,bhkv->bthv", q * through.exp().to(dtype), start["S"])
        S = S + through[:, -1, :, :, None].exp().to(dtype) * start["S"]
    return {"o": y, "S": S}


def run(module: ModuleType, values: Values, state: Values | None = None) -> Values:
    """Outputs, states and gradients, named as those of a form."""
    leaves = {n: x.detach().requires_grad_() for n, x in values.items()}
    start = {n: x.detach().requires_grad_() for n, x in (state or {}).items()}
    outputs = forward(module.SPEC["name"], leaves, start or None)
    wanted = {**leaves, **start}
    gradients = torch.autograd.grad(list(outputs.values()), list(wanted.values()),
                                    [cotangents(outputs)[n] for n in outputs])
    return {**{n: x.detach() for n, x in outputs.items()},
            **{f"d {n}": g for n, g in zip(wanted, gradients, strict=True)}}

"""The published recurrences of the scanned operators as token loops, from the papers' equations and nothing of recgen's.

Matrix states: queries and keys [B,T,H,K], values [B,T,H,V], S [B,H,K,V]. Vector states: inputs [B,T,D], h [B,D]. Each
returns (o, state). Meant for float64.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus


def full_gate(q: Tensor, k: Tensor, v: Tensor, g: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """S = sigmoid(g) ⊙ S + k vᵀ, o = Sᵀ q / √K: a gate for every entry of the state."""
    outputs = []
    for t in range(q.shape[1]):
        state = torch.sigmoid(g[:, t]) * state + torch.einsum("bhk,bhv->bhkv", k[:, t], v[:, t])
        outputs.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]) / math.sqrt(q.shape[-1]))
    return torch.stack(outputs, 1), state


def mamba(C: Tensor, B: Tensor, x: Tensor, dt: Tensor, D: Tensor, A_log: Tensor, dt_bias: Tensor,
          state: Tensor) -> tuple[Tensor, Tensor]:
    """arXiv:2312.00752, algorithm 2: h = exp(ΔA) h + Δ B x, y = C h + D x, with A = −exp(A_log)."""
    step, A = softplus(dt + dt_bias), -torch.exp(A_log)
    outputs = []
    for t in range(x.shape[1]):
        delta = step[:, t, :, None, :]
        state = torch.exp(delta * A) * state + delta * B[:, t, :, :, None] * x[:, t, :, None, :]
        outputs.append((C[:, t, :, :, None] * state).sum(2) + D * x[:, t])
    return torch.stack(outputs, 1), state


def hgrn(x: Tensor, g: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """arXiv:2311.04823: h = f h + (1 − f) x with the forget gate f, o = h."""
    outputs = []
    for t in range(x.shape[1]):
        forget = torch.sigmoid(g[:, t])
        state = forget * state + (1 - forget) * x[:, t]
        outputs.append(state)
    return torch.stack(outputs, 1), state


def rg_lru(x: Tensor, r: Tensor, i: Tensor, lam: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """arXiv:2402.19427, equations 1–4: a = σ(−lam)^(8 σ(r)), h = a h + √(1 − a²) (σ(i) x), o = h."""
    outputs = []
    for t in range(x.shape[1]):
        a = torch.exp(8 * torch.sigmoid(r[:, t]) * logsigmoid(-lam))
        state = a * state + torch.sqrt(1 - a**2) * (torch.sigmoid(i[:, t]) * x[:, t])
        outputs.append(state)
    return torch.stack(outputs, 1), state


LOOPS = {"full_gate": full_gate, "mamba": mamba, "hgrn": hgrn, "rg_lru": rg_lru}

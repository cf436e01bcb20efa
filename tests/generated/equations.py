"""The published recurrences as token loops, written from the papers' equations and from nothing of recgen's.

q, k [B,T,H,K], v [B,T,H,V]; state S [B,H,K,V] (and z [B,H,K]); returns (o [B,T,H,V], state). Meant for float64.
"""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

State = tuple[Tensor, ...]


def linear_attention(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None, state: State | None = None,
                     constant_denominator: bool = False) -> tuple[Tensor, State]:
    """arXiv:2006.16236: φ(x) = elu(x) + 1, o_t = σ φ(q_t)ᵀS_t / (σ φ(q_t)ᵀz_t + 1e-6), σ = 1."""
    scale = 1.0 if scale is None else scale
    q, k = (torch.where(x > 0, x + 1, torch.exp(x.clamp(max=0))) for x in (q, k))
    B, T, H, K = k.shape
    S, z = state or (k.new_zeros(B, H, K, v.shape[-1]), k.new_zeros(B, H, K))
    outputs = []
    for t in range(T):
        S = S + k[:, t, :, :, None] * v[:, t, :, None, :]
        z = z + k[:, t]
        numerator = scale * (q[:, t, :, :, None] * S).sum(-2)
        denominator = scale * (q[:, t] * z).sum(-1) + 1e-6
        denominator = denominator.detach() if constant_denominator else denominator
        outputs.append(numerator / denominator[..., None])
    return torch.stack(outputs, 1), (S, z)


def retention(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, scale: float | None,
              state: State | None) -> tuple[Tensor, State]:
    """S_t = diag(exp(ℓ_t)) S_{t-1} + k_t v_tᵀ, o_t = σ q_tᵀS_t, with ℓ of shape [B,T,H,K] or broadcastable to it."""
    B, T, H, K = k.shape
    scale = K ** -0.5 if scale is None else scale
    decay = torch.exp(log_decay).expand(B, T, H, K)
    S = state[0] if state else k.new_zeros(B, H, K, v.shape[-1])
    outputs = []
    for t in range(T):
        S = decay[:, t, :, :, None] * S + k[:, t, :, :, None] * v[:, t, :, None, :]
        outputs.append(scale * (q[:, t, :, :, None] * S).sum(-2))
    return torch.stack(outputs, 1), (S,)


def retnet(q: Tensor, k: Tensor, v: Tensor, *, scale: float | None = None,
           state: State | None = None) -> tuple[Tensor, State]:
    """arXiv:2307.08621: γ_h = 1 − 2^(−5−h)."""
    h = torch.arange(k.shape[2], dtype=k.dtype)
    return retention(q, k, v, torch.log(1 - 2 ** (-5 - h))[:, None], scale, state)


def learned_decay(q: Tensor, k: Tensor, v: Tensor, w: Tensor, *, scale: float | None = None,
                  state: State | None = None) -> tuple[Tensor, State]:
    """ℓ = −exp(w), one w per head."""
    return retention(q, k, v, -torch.exp(w)[:, None], scale, state)


def simple_gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor, *, scale: float | None = None,
               state: State | None = None) -> tuple[Tensor, State]:
    """ℓ_t = log σ(g_t), one per head."""
    return retention(q, k, v, logsigmoid(g)[..., None], scale, state)


def gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor, *, scale: float | None = None,
        state: State | None = None) -> tuple[Tensor, State]:
    """arXiv:2312.06635: ℓ_t = log σ(g_t) / 16, one per key channel."""
    return retention(q, k, v, logsigmoid(g) / 16, scale, state)


EQUATIONS: dict[str, Callable[..., tuple[Tensor, State]]] = {
    f.__name__: f for f in (linear_attention, retnet, learned_decay, simple_gla, gla)
}


def cancelling_terms(name: str, values: dict[str, Tensor], d_o: Tensor) -> dict[str, Tensor]:
    """With one token or one channel the sum normalizer cancels the query, o = v·n / (n + ε), and the gradients of q and
    k are what ε leaves of two nearly equal terms. This is the first of them; the other operators have no such pair."""
    if name != "linear_attention":
        return {}
    leaves = {n: x.detach().double().requires_grad_() for n, x in values.items()}
    o, _ = linear_attention(**leaves, constant_denominator=True)
    gradients = torch.autograd.grad(o, [leaves["q"], leaves["k"]], d_o.double())
    return dict(zip(("d q", "d k"), gradients, strict=True))

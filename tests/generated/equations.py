"""The published recurrences as token loops, written from the papers' equations and from nothing of recgen's.

An equation is a function of the operator's inputs and parameters, in call order, that gives the `Terms` of one
recurrence. Input x has the layout [B,T,H,K] or [B,T,H,V], a gate [B,T,H] or wider, a parameter [H] or wider. Meant for
float64.

    S_t = e^{ℓ_t} ⋆ S_{t-1} + key_t value_tᵀ        z_t = e^{ℓ_t} ⋆ z_{t-1} + key_t
    y_t = σ query_tᵀ S_t  (S_{t-1} + diag(bonus) key_t value_tᵀ where a bonus is given)
    o_t = y_t / denominator(σ query_tᵀ z_t) + skip_t

Query, key and ℓ may be complex; then y_t is a real part, and the state is handed over as S e^{−iθn}, where θ = Im ℓ and
n tokens came before the last one: all real parts, then all imaginary ones.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid, softplus

State = tuple[Tensor, ...]
EMPTY = torch.finfo(torch.float32).min  # the running maximum before there is anything


@dataclass(frozen=True)
class Terms:
    """Features and weights are in query, key and value already; ℓ is the sum of the three that are given."""

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float = 1.0
    log_key: Tensor | None = None  # broadcasts to [B,T,H,K]
    log_value: Tensor | None = None  # broadcasts to [B,T,H,V]
    log_full: Tensor | None = None  # broadcasts to [B,T,H,K,V]
    denominator: Callable[..., Tensor] | None = None  # of n; and of the unit it is in, where there is a maximum
    log_weight: Tensor | None = None  # [B,T,H], which a running maximum m holds; see `relative`
    unit: Tensor | None = None  # [B,T,H], e^{−m}: what 1 is in units of e^m
    bonus: Tensor | None = None
    skip: Tensor | None = None
    vector: bool = False  # a state per channel: the channels stand where heads do, K = V = 1
    rate: Tensor | None = None  # [K/2], by which each pair (2i, 2i+1) of query and key turns from token to token
    causal: bool = True  # else every token reads the state after the last one, and none is carried

    def log_decay(self) -> Tensor:
        """ℓ, [B,T,H,K,V] or what broadcasts to it."""
        total = self.key.new_zeros(1, 1, 1, 1, 1)
        for part, axis in ((self.log_key, -1), (self.log_value, -2)):
            total = total if part is None else total + part.unsqueeze(axis)
        return total if self.log_full is None else total + self.log_full


def token_loop(
    terms: Terms, state: State | None = None, *, scale: float | None = None, constant_denominator: bool = False
) -> tuple[Tensor, State]:
    """Outputs and the final state: S, and z where a denominator needs it."""
    if not terms.causal:
        return all_positions(terms, scale=scale, constant_denominator=constant_denominator), ()
    largest = ()
    if terms.log_weight is not None:
        *state, start = state or (None,)
        terms, m = relative(terms, start)
        state, largest = tuple(state), (m,)
    query, key, value = terms.query, terms.key, terms.value
    turns = terms.rate is not None or key.is_complex()
    seen = (state[-1] if state else value.new_zeros(len(value)),) if turns else ()
    if seen:
        state = state[:-1] if state else None
    if terms.rate is not None:
        query, key = (_turned(x, seen[0], terms.rate) for x in (query, key))
    scale = terms.scale if scale is None else scale
    B, T, H, M = key.shape
    decay = torch.exp(terms.log_decay()).expand(B, T, H, -1, -1)
    of_z = decay[..., :1].squeeze(-1) if terms.denominator else None
    if terms.vector and state:
        state = tuple(x[..., None, None] for x in state)
    if key.is_complex() and state:
        state = (_from_frame(state[0], terms.log_key.imag, seen[0] - 1),)
    S, *rest = state or (key.new_zeros(B, H, M, value.shape[-1]), key.new_zeros(B, H, M))
    z = rest[0] if terms.denominator else None
    outputs = []
    for t in range(T):
        written = key[:, t, :, :, None] * value[:, t, :, None, :]
        before, S = S, decay[:, t] * S + written
        read = S if terms.bonus is None else before + terms.bonus[..., None] * written
        o = scale * (query[:, t, :, :, None] * read).sum(-2)
        o = o.real if o.is_complex() else o
        if terms.denominator is not None:
            z = of_z[:, t] * z + key[:, t]
            unit = () if terms.unit is None else (terms.unit[:, t],)
            n = terms.denominator(scale * (query[:, t] * z).sum(-1), *unit)
            o = o / (n.detach() if constant_denominator else n)[..., None]
        outputs.append(o if terms.skip is None else o + terms.skip[:, t])
    if terms.vector:
        return torch.stack(outputs, 1)[..., 0], (S[..., 0, 0],)
    if key.is_complex():
        S = _to_frame(S, terms.log_key.imag, seen[0] + T - 1)
    return torch.stack(outputs, 1), (S, *(() if z is None else (z,)), *largest, *(n + T for n in seen))


def relative(terms: Terms, start: Tensor | None) -> tuple[Terms, Tensor]:
    """The terms in units of e^{m_t}, m_t = max(ℓ_t + m_{t-1}, log w_t) being constant to every gradient; and m_T."""
    B, T, H, _ = terms.key.shape
    log = terms.log_key[..., 0].expand(B, T, H)
    m = [terms.key.new_full((B, H), EMPTY) if start is None else start.detach()]
    for t in range(T):
        m.append(torch.maximum(log[:, t] + m[-1], terms.log_weight[:, t]).detach())
    before, after = (torch.stack(x, 1) if T else log.detach() for x in (m[:-1], m[1:]))
    key = torch.exp(terms.log_weight - after)[..., None] * terms.key
    held = replace(terms, key=key, log_key=(log + (before - after))[..., None], log_weight=None, unit=torch.exp(-after))
    return held, m[-1]


def all_positions(terms: Terms, *, scale: float | None = None, constant_denominator: bool = False) -> Tensor:
    """o_t = Σ_i (σ query_t · key_i) value_i / denominator(Σ_i σ query_t · key_i), i over all tokens."""
    scale = terms.scale if scale is None else scale
    outputs = []
    for t in range(terms.query.shape[1]):
        seen = [scale * (terms.query[:, t] * terms.key[:, i]).sum(-1, keepdim=True) for i in range(terms.key.shape[1])]
        o = sum(weight * terms.value[:, i] for i, weight in enumerate(seen))
        if terms.denominator is not None:
            n = terms.denominator(sum(seen))
            o = o / (n.detach() if constant_denominator else n)
        outputs.append(o if terms.skip is None else o + terms.skip[:, t])
    return torch.stack(outputs, 1)


def _turned(x: Tensor, seen: Tensor, rate: Tensor) -> Tensor:
    """Each pair of channels as a complex number, times e^{i n rate} at position n."""
    position = seen.detach()[:, None] + torch.arange(x.shape[1], dtype=x.dtype)
    phase = position[..., None, None] * rate
    pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(torch.ones_like(phase), phase)
    return torch.view_as_real(pairs).flatten(-2)


def _from_frame(S: Tensor, angle: Tensor, n: Tensor) -> Tensor:
    """[B,H,2K,V] → the complex state; n: [B]."""
    phase = (n.detach()[:, None, None] * angle)[..., None]
    return torch.complex(*S.chunk(2, -2)) * torch.polar(torch.ones_like(phase), phase)


def _to_frame(S: Tensor, angle: Tensor, n: Tensor) -> Tensor:
    phase = -(n.detach()[:, None, None] * angle)[..., None]
    S = S * torch.polar(torch.ones_like(phase), phase)
    return torch.cat([S.real, S.imag], -2)


def real_terms(terms: Terms, seen: Tensor | None) -> Terms:
    """The same without complex numbers, in the frame: e^{−iθn} key, e^{iθn} query, n = 0, 1, … after `seen` tokens."""
    n = torch.arange(terms.key.shape[1], dtype=terms.value.dtype) + (0 if seen is None else seen.detach()[:, None])
    phase = n[..., None, None].double() * terms.log_key.imag.double()
    wave = torch.polar(torch.ones_like(phase), phase)
    query, key = terms.query * wave, terms.key * wave.conj()
    both = torch.cat([terms.log_key.real] * 2, -1)
    return replace(
        terms, query=torch.cat([query.real, -query.imag], -1), key=torch.cat([key.real, key.imag], -1), log_key=both
    )


def _per_head(q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor) -> Terms:
    """Retention: σ = K^(−1/2), ℓ of shape [B,T,H] or [H]."""
    return Terms(q, k, v, q.shape[-1] ** -0.5, log_key=log_decay[..., None])


def _heads(q: Tensor) -> tuple[Tensor, int]:
    H = q.shape[2]
    return torch.arange(H, dtype=q.dtype), H


def linear_attention(q: Tensor, k: Tensor, v: Tensor) -> Terms:
    """arXiv:2006.16236: φ(x) = elu(x) + 1, o = y / (n + 1e-6), σ = 1."""
    q, k = (torch.where(x > 0, x + 1, torch.exp(x.clamp(max=0))) for x in (q, k))
    return Terms(q, k, v, denominator=lambda n: n + 1e-6)


def linear_attention_global(q: Tensor, k: Tensor, v: Tensor) -> Terms:
    """arXiv:2006.16236, equation 5: the sums over all positions, not masked."""
    return replace(linear_attention(q, k, v), causal=False)


def retnet_rotary(q: Tensor, k: Tensor, v: Tensor) -> Terms:
    """arXiv:2307.08621: retention, query and key turned by n θ_i with θ_i = 10000^(−2i/K)."""
    K = q.shape[-1]
    rate = 10000.0 ** (-2 * torch.arange(K // 2, dtype=q.dtype) / K)
    return replace(retnet(q, k, v), rate=rate)


def retnet(q: Tensor, k: Tensor, v: Tensor) -> Terms:
    """arXiv:2307.08621: γ_h = 1 − 2^(−5−h)."""
    h, _ = _heads(q)
    return _per_head(q, k, v, torch.log1p(-(2 ** (-5 - h))))


def lightning(q: Tensor, k: Tensor, v: Tensor) -> Terms:
    """arXiv:2401.04658: ℓ_h = −2^(−8(h+1)/H)."""
    h, H = _heads(q)
    return _per_head(q, k, v, -(2 ** (-8 * (h + 1) / H)))


def learned_decay(q: Tensor, k: Tensor, v: Tensor, w: Tensor) -> Terms:
    """ℓ_h = −exp(w_h)."""
    return _per_head(q, k, v, -torch.exp(w))


def simple_gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Terms:
    """ℓ_t = log σ(g_t), one per head."""
    return _per_head(q, k, v, logsigmoid(g))


def gated_retention(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Terms:
    """arXiv:2405.05254: γ_t = σ(g_t)^(1/16)."""
    return _per_head(q, k, v, logsigmoid(g) / 16)


def gla(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Terms:
    """arXiv:2312.06635: α_t = σ(g_t)^(1/16), one per key channel."""
    return Terms(q, k, v, q.shape[-1] ** -0.5, log_key=logsigmoid(g) / 16)


def gla_value(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Terms:
    """The gate per value channel instead."""
    return Terms(q, k, v, q.shape[-1] ** -0.5, log_value=logsigmoid(g) / 16)


def gla_outer(q: Tensor, k: Tensor, v: Tensor, g: Tensor, r: Tensor) -> Terms:
    """arXiv:2312.06635, the general form: G_t = α_t β_tᵀ."""
    return Terms(q, k, v, q.shape[-1] ** -0.5, log_key=logsigmoid(g) / 16, log_value=logsigmoid(r) / 16)


def full_gate(q: Tensor, k: Tensor, v: Tensor, g: Tensor) -> Terms:
    """G_t = σ(g_t) in [0, 1]^(K×V)."""
    return Terms(q, k, v, q.shape[-1] ** -0.5, log_full=logsigmoid(g))


def hgrn2(q: Tensor, g: Tensor, v: Tensor) -> Terms:
    """arXiv:2404.07904: forget gate f = σ(g), key 1 − f."""
    return Terms(q, torch.sigmoid(-g), v, log_key=logsigmoid(g))


def rwkv5(r: Tensor, k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Terms:
    """arXiv:2404.05892: o_t = rᵀ(S_{t-1} + diag(u) k vᵀ), decay exp(−exp(w))."""
    return Terms(r, k, v, log_key=-torch.exp(w), bonus=u)


def rwkv6(r: Tensor, k: Tensor, v: Tensor, w: Tensor, u: Tensor) -> Terms:
    """arXiv:2404.05892: the same, with w of every token."""
    return Terms(r, k, v, log_key=-torch.exp(w), bonus=u)


def mamba2(C: Tensor, B: Tensor, x: Tensor, dt: Tensor, A_log: Tensor, dt_bias: Tensor, D: Tensor) -> Terms:
    """arXiv:2405.21060: h_t = exp(ΔA) h_{t-1} + Δ B xᵀ, y = C h + D x, A = −exp(A_log), Δ = softplus(dt + dt_bias)."""
    step = softplus(dt + dt_bias, threshold=1e9)
    return Terms(C, step[..., None] * B, x, log_key=(-torch.exp(A_log) * step)[..., None], skip=D[:, None] * x)


def mamba(C: Tensor, B: Tensor, x: Tensor, dt: Tensor, A_log: Tensor, dt_bias: Tensor, D: Tensor) -> Terms:
    """arXiv:2312.00752: A per key and value, Δ and D per value."""
    step = softplus(dt + dt_bias, threshold=1e9)
    return Terms(C, B, step * x, log_full=-torch.exp(A_log) * step[..., None, :], skip=D * x)


def s4d(x: Tensor, log_dt: Tensor, D: Tensor, A_re_log: Tensor, A_im: Tensor, C_re: Tensor, C_im: Tensor) -> Terms:
    """arXiv:2206.11893: h' = A h + x, y = 2 Re(C h) + D x, held for a time Δ = exp(log_dt) from token to token."""
    step, A, C = torch.exp(log_dt)[:, None], torch.complex(-torch.exp(A_re_log), A_im), torch.complex(C_re, C_im)
    query, key = (y.expand(*x.shape[:2], *y.shape) for y in (C, (torch.exp(step * A) - 1) / A))
    return Terms(query, key, x, 2.0, log_key=step * A, skip=D[:, None] * x)


def performer(q: Tensor, k: Tensor, v: Tensor, omega: Tensor) -> Terms:
    """arXiv:2009.14794: φ(x) = exp(ω x̂ − ‖x̂‖²/2) / √M, x̂ = x K^(−1/4)."""

    def features(x: Tensor) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        return torch.exp(x @ omega.T - (x * x).sum(-1, keepdim=True) / 2) * omega.shape[0] ** -0.5

    return Terms(features(q), features(k), v, denominator=lambda n: n + 1e-6)


def based(q: Tensor, k: Tensor, v: Tensor) -> Terms:
    """arXiv:2402.18668: φ(x) = [1, x K^(−1/4), vec(x xᵀ) / √(2K)]."""

    def features(x: Tensor) -> Tensor:
        K = x.shape[-1]
        pairs = (x[..., :, None] * x[..., None, :]).flatten(-2) / (2 * K) ** 0.5
        return torch.cat([torch.ones_like(x[..., :1]), x * K**-0.25, pairs], -1)

    return Terms(features(q), features(k), v, denominator=lambda n: n + 1e-6)


def hedgehog(q: Tensor, k: Tensor, v: Tensor, W: Tensor) -> Terms:
    """arXiv:2402.04347: φ(x) = [softmax(xW), softmax(−xW)], W of each head."""

    def features(x: Tensor) -> Tensor:
        x = torch.einsum("bthk,hkj->bthj", x, W)
        return torch.cat([x.softmax(-1), (-x).softmax(-1)], -1)

    return Terms(features(q), features(k), v, denominator=lambda n: n + 1e-6)


def _per_channel(value: Tensor, log_decay: Tensor) -> Terms:
    """h_t = e^{ℓ_t} h_{t-1} + value_t, o_t = h_t, with value and ℓ of shape [B,T,D]."""
    one = torch.ones_like(value)[..., None]
    return Terms(one, one, value[..., None], log_key=log_decay[..., None], vector=True)


def hgrn(x: Tensor, g: Tensor) -> Terms:
    """arXiv:2311.04823: h_t = f_t h_{t-1} + (1 − f_t) x_t, f = σ(g)."""
    return _per_channel(torch.sigmoid(-g) * x, logsigmoid(g))


def rg_lru(x: Tensor, r: Tensor, i: Tensor, lam: Tensor) -> Terms:
    """arXiv:2402.19427: a_t = exp(−8 softplus(Λ) σ(r_t)), h_t = a_t h_{t-1} + √(1 − a_t²) σ(i_t) x_t."""
    log_a = -8 * softplus(lam, threshold=1e9) * torch.sigmoid(r)
    return _per_channel(torch.sqrt(-torch.expm1(2 * log_a)) * torch.sigmoid(i) * x, log_a)


def mlstm(q: Tensor, k: Tensor, v: Tensor, i: Tensor, f: Tensor) -> Terms:
    """arXiv:2405.04517, eq. 19–27, with its stabiliser m_t = max(log σ(f_t) + m_{t-1}, i_t)."""
    return replace(
        _per_head(q, k, v, logsigmoid(f)), log_weight=i, denominator=lambda n, unit: torch.maximum(n.abs(), unit)
    )


def rwkv4(
    r: Tensor, k: Tensor, v: Tensor, w: Tensor, u: Tensor, *, state: State | None, scale: float | None
) -> tuple[Tensor, State]:
    """arXiv:2305.13048, appendix D: the numerator a, the denominator b and the largest exponent p, held constant."""
    B, T, D = v.shape
    a, b, p = state or (v.new_zeros(B, D), v.new_zeros(B, D), v.new_full((B, D), EMPTY))
    outputs, p = [], p.detach()
    for t in range(T):
        q = torch.maximum(p, u + k[:, t]).detach()
        old, new = torch.exp(p - q), torch.exp(u + (k[:, t] - q))
        outputs.append(torch.sigmoid(r[:, t]) * (old * a + new * v[:, t]) / (old * b + new))
        q = torch.maximum(p - torch.exp(w), k[:, t]).detach()
        old, new, p = torch.exp((p - q) - torch.exp(w)), torch.exp(k[:, t] - q), q
        a, b = old * a + new * v[:, t], old * b + new
    return torch.stack(outputs, 1), (a, b, p)


LOOPS: dict[str, Callable[..., tuple[Tensor, State]]] = {f.__name__: f for f in (rwkv4,)}
"""Operators that are a loop of their own."""

EQUATIONS: dict[str, Callable[..., Terms]] = {
    f.__name__: f
    for f in (
        linear_attention,
        retnet,
        lightning,
        learned_decay,
        simple_gla,
        gated_retention,
        gla,
        gla_value,
        gla_outer,
        full_gate,
        hgrn2,
        rwkv5,
        rwkv6,
        mamba2,
        mamba,
        performer,
        based,
        hedgehog,
        retnet_rotary,
        hgrn,
        rg_lru,
        linear_attention_global,
        s4d,
        mlstm,
    )
}


def arguments(name: str) -> list[str]:
    """The inputs and parameters of an operator, in the order in which its equation takes them."""
    parameters = inspect.signature(LOOPS.get(name) or EQUATIONS[name]).parameters.values()
    return [p.name for p in parameters if p.kind is not p.KEYWORD_ONLY]


def published(
    name: str, values: dict[str, Tensor], state: State | None = None, *, scale: float | None = None
) -> tuple[Tensor, State]:
    """Outputs and final state of an operator by its published equation; `values` by name, in call order."""
    state = state and _rescaled(state, -1)
    if name in LOOPS:
        o, final = LOOPS[name](*values.values(), state=state, scale=scale)
    else:
        o, final = token_loop(EQUATIONS[name](*values.values()), state, scale=scale)
    return o, _rescaled(final, 1)


def _rescaled(state: State, sign: int) -> State:
    """Sums beside a maximum m, which is the last of three: published in units of e^m, kept in those of m in float32."""
    if len(state) < 3:
        return state
    *sums, m = state
    unit = torch.exp(sign * (m - m.float()).detach())
    return *(x * unit.reshape(unit.shape + (1,) * (x.dim() - unit.dim())) for x in sums), m


def cancelling_terms(name: str, values: dict[str, Tensor], d_o: Tensor) -> dict[str, Tensor]:
    """With one token or one channel the sum normalizer cancels the query, o = v·n / (n + ε), and the gradients of query
    and key are what ε leaves of two nearly equal terms. This is the first of them. The gradient of the weight of a skip
    is a sum of terms of both signs; this is the sum of the positive ones."""
    if name in LOOPS:
        return {}
    leaves = {n: x.detach().double().requires_grad_() for n, x in values.items()}
    terms = EQUATIONS[name](*leaves.values())
    if terms.skip is not None:
        params = {n: x for n, x in leaves.items() if x.dim() < 3}
        positive = (terms.skip * d_o.double()).relu().sum()
        gradients = torch.autograd.grad(positive, list(params.values()), allow_unused=True)
        return {f"d {n}": x for n, x in zip(params, gradients, strict=True) if x is not None}
    if terms.denominator is None:
        return {}
    o, _ = token_loop(terms, constant_denominator=True)
    gradients = torch.autograd.grad(o, list(leaves.values()), d_o.double())
    return {f"d {n}": x for n, x in zip(leaves, gradients, strict=True)}

"""A small operator with an emitted module's contract, written by hand: what the verifier is tested on.

S_t = e^{ℓ_t} S_{t-1} + φ(k_t) v_tᵀ,  z_t likewise,  o_t = scale·φ(q_t)ᵀS_t / (scale·φ(q_t)ᵀz_t + 1e-6),
ℓ_t = logsigmoid(a_t + c), one gate per head and token.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

SPEC = {
    "name": "handmade",
    "decay": {"type": "gated", "per": "head", "log": "logsigmoid(a + c)"},
    "query": "r",
    "key": "u",
    "value": "x",
}
INPUTS = {"r": "B T H K", "u": "B T H K", "x": "B T H V", "a": "B T H"}
PARAMS = {"c": "H"}
STATE = {"S": "N H K V", "z": "N H K"}


class State(NamedTuple):
    """Weighted sums of φ(k)vᵀ and of φ(k)."""

    S: Tensor
    z: Tensor


def sample_inputs(B=2, T=64, H=2, K=16, V=16, dtype=torch.float32, seed=0, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    sizes = {"B": B, "T": T, "H": H, "K": K, "V": V}
    shapes = {name: [sizes[a] for a in axes.split()] for name, axes in {**INPUTS, **PARAMS}.items()}
    return {name: torch.randn(s, generator=generator).to(device, dtype) for name, s in shapes.items()}


class _Dense(torch.autograd.Function):
    """The identity, dense in both directions: layouts of inputs and output gradients then cannot change a bit."""

    @staticmethod
    def forward(ctx, x):
        return x.clone(memory_format=torch.contiguous_format)

    @staticmethod
    def backward(ctx, grad):
        return grad.contiguous()


def _feature(x: Tensor) -> Tensor:
    return torch.where(x > 0, x + 1, x.clamp(max=0).exp())


def _state(initial_state, N, r, x):
    dtype = torch.float64 if x.dtype == torch.float64 else torch.float32
    if initial_state is not None:
        return State(*initial_state)
    H, K, V = r.shape[2], r.shape[3], x.shape[3]
    return State(x.new_zeros((N, H, K, V), dtype=dtype), x.new_zeros((N, H, K), dtype=dtype))


def _every_head(c, axis, *inputs):
    heads = c.shape[0]
    return [x if x.shape[axis] == heads else x.repeat_interleave(heads // x.shape[axis], axis) for x in inputs]


def step(r, u, x, a, c, state, *, scale=None):
    r, u, x, a = _every_head(c, 1, r, u, x, a)
    o, state = _token(*map(_Dense.apply, (r, u, x, a, c)), state, 1.0 if scale is None else scale)
    return _Dense.apply(o), State(*map(_Dense.apply, state))


def _token(r, u, x, a, c, state, scale):
    wide = state.S.dtype
    decay = torch.exp(F.logsigmoid(a.to(wide) + c.to(wide)))
    key = _feature(u.to(wide))
    S = decay[..., None, None] * state.S + key[..., :, None] * x.to(wide)[..., None, :]
    z = decay[..., None] * state.z + key
    query = scale * _feature(r.to(wide))
    numerator, denominator = (query[..., None, :] @ S)[..., 0, :], (query * z).sum(-1, keepdim=True)
    return (numerator / (denominator + 1e-6)).to(x.dtype), State(S, z)


def _packed(form, r, u, x, a, c, scale, initial_state, cu_seqlens):
    r, u, x, a = _every_head(c, 2, r, u, x, a)
    if cu_seqlens is None:
        return form(r, u, x, a, c, scale, _state(initial_state, r.shape[0], r, x))
    ends = cu_seqlens.tolist()
    start = _state(initial_state, len(ends) - 1, r, x)
    outputs, S, z = [], [], []
    for n, (i, j) in enumerate(zip(ends, ends[1:], strict=False)):
        state = State(start.S[n : n + 1], start.z[n : n + 1])
        o, state = form(r[:, i:j], u[:, i:j], x[:, i:j], a[:, i:j], c, scale, state)
        outputs.append(o)
        S.append(state.S)
        z.append(state.z)
    return torch.cat(outputs, 1), State(torch.cat(S), torch.cat(z))


def _loop(r, u, x, a, c, scale, state):
    outputs = []
    for t in range(r.shape[1]):
        o, state = _token(r[:, t], u[:, t], x[:, t], a[:, t], c, state, 1.0 if scale is None else scale)
        outputs.append(o)
    return (torch.stack(outputs, 1) if outputs else torch.zeros_like(x)), state


def _chunks(size):
    def form(r, u, x, a, c, scale, state):
        outputs = [torch.zeros_like(x[:, :0])]
        for i in range(0, r.shape[1], size):
            part = slice(i, min(i + size, r.shape[1]))
            o, state = _chunk(r[:, part], u[:, part], x[:, part], a[:, part], c, scale, state)
            outputs.append(o)
        return torch.cat(outputs, 1), state

    return form


def _chunk(r, u, x, a, c, scale, state):
    scale = 1.0 if scale is None else scale
    wide = state.S.dtype
    length = r.shape[1]
    row = torch.arange(length)
    log_decay = F.logsigmoid(a.to(wide) + c.to(wide))
    query = scale * _feature(r.to(wide)).transpose(1, 2)
    key = _feature(u.to(wide)).transpose(1, 2)
    value = x.to(wide).transpose(1, 2)
    log_decay = log_decay.transpose(1, 2)
    inside = row[:, None] >= row[None, :]
    # weight[t, i] = Σ_{i<j≤t} ℓ_j: what lies after row i, summed up to row t
    weight = torch.where(row[:, None] > row[None, :], log_decay[..., :, None], 0.0).cumsum(-2)
    weight = torch.where(inside, weight, -torch.inf).exp()
    prefix = torch.where(inside, log_decay[..., None, :], 0.0).sum(-1).exp()
    scores = (query @ key.transpose(-1, -2)) * weight
    numerator = scores @ value + prefix[..., None] * (query @ state.S)
    denominator = scores.sum(-1) + prefix * (query @ state.z[..., None])[..., 0]
    suffix = weight[..., -1, :]
    S = prefix[..., -1, None, None] * state.S + (key * suffix[..., None]).transpose(-1, -2) @ value
    z = prefix[..., -1, None] * state.z + (key * suffix[..., None]).sum(-2)
    return (numerator / (denominator + 1e-6)[..., None]).to(x.dtype).transpose(1, 2), State(S, z)


def _public(make):
    def form(r, u, x, a, c, *, scale=None, initial_state=None, output_final_state=False, cu_seqlens=None,
             backend="auto", chunk_size=None):  # fmt: skip
        inner = make(chunk_size or 64, max(r.shape[1], 1))
        r, u, x, a, c = map(_Dense.apply, (r, u, x, a, c))
        if initial_state is not None:
            initial_state = State(*map(_Dense.apply, initial_state))
        o, state = _packed(inner, r, u, x, a, c, scale, initial_state, cu_seqlens)
        o, state = _Dense.apply(o), State(*map(_Dense.apply, state))
        return o, state if output_final_state else None

    return form


naive = _public(lambda size, length: _loop)
recurrent = _public(lambda size, length: _loop)
chunk = _public(lambda size, length: _chunks(size))
parallel = _public(lambda size, length: _chunks(length))
operator = chunk

"""What plain eager torch code reaches in 16 bits: the parallel form, every product rounded to the inputs' dtype.

Log-decays are summed in float32, as any careful user would; it is the yardstick of the 16-bit tests. It is made from
the published equation's terms, for a decay that is a product along keys and values.
"""

from __future__ import annotations

from types import ModuleType

import torch
from torch import Tensor

from tests.generated.equations import EQUATIONS, Terms, real_terms, relative
from tests.generated.inputs import Values
from tests.generated.support import leaves_of, results


class Decay:
    """Pair and boundary weights from the log-decays along one axis; reads lag by a token where `before` holds."""

    def __init__(self, log: Tensor | None, like: Tensor, *, before: bool) -> None:
        B, T, H, _ = like.shape
        log = torch.zeros(1, device=like.device) if log is None else log.float()
        log = log.expand(B, T, H, log.shape[-1])
        self.through = log.cumsum(1)
        self.until = self.through - log if before else self.through
        self.seen = torch.ones(T, T, dtype=torch.bool).tril(-1 if before else 0)[:, :, None, None]
        self.dtype = like.dtype

    def pairs(self) -> Tensor:
        """[B,T,T,H,·]: how much of what token i wrote is left when token t reads."""
        between = self.until[:, :, None] - self.through[:, None]
        return torch.where(self.seen, between, -torch.inf).exp().to(self.dtype)

    def since_start(self) -> Tensor:
        return self.until.exp().to(self.dtype)

    def to_end(self) -> Tensor:
        return (self.through[:, -1:] - self.through).exp().to(self.dtype)

    def all(self) -> Tensor:
        return self.through[:, -1].exp().to(self.dtype)


def forward(terms: Terms, logs: Terms, dtype: torch.dtype, state: Values) -> Values:
    """o and the final state; `logs` are the same terms in float32, of which only the log-decays are taken."""
    before = terms.bonus is not None
    q, k, v = ((terms.scale * terms.query).to(dtype), terms.key.to(dtype), terms.value.to(dtype))
    key, value = Decay(logs.log_key, k, before=before), Decay(logs.log_value, v, before=before)
    start = {n: x.to(dtype) for n, x in state.items()}
    scores = torch.einsum("btihk,bihk->btih", q[:, :, None] * key.pairs(), k)
    if logs.log_value is None:
        y = torch.einsum("btih,bihv->bthv", scores, v)
    else:
        y = torch.einsum("btihv,bihv->bthv", scores[..., None] * value.pairs(), v)
    if before:
        y = y + (q * terms.bonus.to(dtype) * k).sum(-1, keepdim=True) * v
    faded = q * key.since_start()
    S = torch.einsum("bthk,bthv->bhkv", k * key.to_end(), v * value.to_end())
    if start:
        y = y + torch.einsum("bthk,bhkv->bthv", faded, start["S"]) * value.since_start()
        S = S + key.all()[..., None] * value.all()[..., None, :] * start["S"]
    found = {"o": y, "S": S}
    if terms.denominator is not None:
        n, z = scores.sum(2), (k * key.to_end()).sum(1)
        if start:
            n, z = n + torch.einsum("bthk,bhk->bth", faded, start["z"]), z + key.all() * start["z"]
        unit = () if terms.unit is None else (terms.unit,)
        found |= {"o": y / terms.denominator(n, *unit)[..., None], "z": z}
    if terms.skip is not None:
        found["o"] = found["o"] + terms.skip.to(dtype)
    return found


def run(module: ModuleType, values: Values, state: Values | None = None) -> Values:
    """Outputs, states and gradients, named as those of a form."""
    leaves, start = leaves_of(values), leaves_of(state or {})
    equation = EQUATIONS[module.SPEC["name"]]
    dtype = next(iter(values.values())).dtype
    wide = equation(*(x.float() for x in leaves.values()))
    if wide.log_weight is not None:  # weights in units of the maximum are at most 1, and of the inputs' dtype
        held, m = relative(wide, start.pop("m", None))
        return results({**forward(held, held, dtype, start), "m": m}, {**leaves, **start})
    if not wide.key.is_complex():
        return results(forward(equation(*leaves.values()), wide, dtype, start), {**leaves, **start})
    seen = start.pop("position", None)  # complex numbers have no 16 bits: only what they give is rounded
    terms = real_terms(wide, seen)
    outputs = forward(terms, terms, dtype, start)
    position = torch.zeros(len(wide.key)) if seen is None else seen.detach()
    outputs["position"] = position + wide.key.shape[1]
    return results(outputs, {**leaves, **start, **({} if seen is None else {"position": seen})})

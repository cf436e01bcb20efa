"""Functions that Triton's language lacks, as the source text an emitted module carries: float32 on any GPU.

Each is accurate to a few roundings of its dtype over the whole range, and infinite arguments give the limit where it is
finite. NaN stays NaN. The text has no decorator; the emitter adds its own. A helper comes after those it calls.
"""

from __future__ import annotations

import re

TRITON_HELPERS: dict[str, str] = {
    "_minimum": '''
def _minimum(a, b):
    """The smaller of two, NaN if either is."""
    return tl.where((a <= b) | (a != a), a, b)
''',
    "_maximum": '''
def _maximum(a, b):
    """The larger of two, NaN if either is."""
    return tl.where((a >= b) | (a != a), a, b)
''',
    "_log1p": '''
def _log1p(x):
    """log(1 + x), with what 1 + x rounds away put back."""
    u = 1 + x
    lost = x - (u - 1)
    return tl.log(u) + tl.where(tl.abs(lost) < tl.abs(u), lost / u, 0.0)
''',
    "_expm1": '''
def _expm1(x):
    """exp(x) - 1; near 0 as (u - 1) / log(u) · x with u = exp(x), where the rounding of u cancels."""
    u = tl.exp(x)
    near = (tl.abs(x) < 1) & (u != 1)
    v = tl.where(near, u, 2.0)
    return tl.where(near, (v - 1) / tl.log(v) * x, tl.where(u == 1, x, u - 1))
''',
    "_logsigmoid": '''
def _logsigmoid(x):
    """log(sigmoid(x)), finite wherever x is."""
    return _minimum(x, 0.0) - _log1p(tl.exp(-tl.abs(x)))
''',
    "_softplus": '''
def _softplus(x):
    """log(1 + exp(x)), finite wherever x is."""
    return _maximum(x, 0.0) + _log1p(tl.exp(-tl.abs(x)))
''',
    "_tanh": '''
def _tanh(x):
    """The hyperbolic tangent."""
    u = _expm1(-2 * tl.abs(x))
    return tl.where(x < 0, u, -u) / (2 + u)
''',
    "_elu": '''
def _elu(x):
    """x where x > 0, exp(x) - 1 elsewhere."""
    return tl.where(x > 0, x, _expm1(_minimum(x, 0.0)))
''',
    "_silu": '''
def _silu(x):
    """x · sigmoid(x)."""
    return x * tl.sigmoid(x)
''',
    "_mod": '''
def _mod(a, b):
    """The remainder of a / b with the sign of b."""
    rest = a % b
    return tl.where(((rest < 0) & (b > 0)) | ((rest > 0) & (b < 0)), rest + b, rest)
''',
    "_power": '''
def _power(x, n: tl.constexpr):
    """x to the whole power n >= 1, by multiplication."""
    y = x
    for _ in tl.static_range(n - 1):
        y = y * x
    return y
''',
}
TRITON_HELPERS = {name: text.lstrip("\n") for name, text in TRITON_HELPERS.items()}


def with_dependencies(name: str) -> set[str]:
    """A helper and every helper it calls, directly or not."""
    called = set(re.findall(r"\b_\w+(?=\()", TRITON_HELPERS[name])) & TRITON_HELPERS.keys() - {name}
    return {name}.union(*(with_dependencies(other) for other in called))

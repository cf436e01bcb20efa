"""Hypothesis strategies for cases: what users do to a linear-attention operator, the awkward parts first of all."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from .case import Case
from .layouts import LAYOUTS
from .profile import Profile

LOG_DECAYS = (-0.5, -1.0, -1.3, -1.4, -2.0, -5.0, -20.0, -80.0, 0.0)
SCALES = (None, 1.0, 0.0, -0.5)


@dataclass(frozen=True)
class Limits:
    """How large a drawn case may be. `work` bounds B·H·T·K·V, except that a packed batch keeps its documents."""

    T: int = 300
    width: int = 160
    heads: int = 4
    batch: int = 3
    work: int = 3_000_000


TORCH = Limits()
INTERPRETER = Limits(T=70, width=160, heads=2, batch=2, work=100_000)


def lengths(limits: Limits = TORCH) -> st.SearchStrategy[int]:
    """Sequence lengths: short ones, those around a chunk's border, any."""
    borders = [t for t in (1, 15, 16, 17, 31, 33, 63, 64, 65, 100, 127, 128, 129, 200, 257, 300) if t <= limits.T]
    return st.one_of(st.integers(0, min(40, limits.T)), st.sampled_from(borders), st.integers(0, limits.T))


def widths(limits: Limits = TORCH) -> st.SearchStrategy[int]:
    """Key and value widths, powers of two or not."""
    usual = [n for n in (1, 2, 3, 8, 16, 17, 31, 33, 64, 100, 128, 160) if n <= limits.width]
    return st.one_of(st.integers(1, min(16, limits.width)), st.sampled_from(usual), st.integers(1, limits.width))


def documents(limits: Limits = TORCH) -> st.SearchStrategy[tuple[int, ...]]:
    """Lengths of the documents of one packed batch, empty ones included."""
    most = limits.T // 4
    one = st.one_of(st.integers(0, min(5, most)), st.sampled_from([0, 1, 15, 16, 17]), st.integers(0, most))
    return st.lists(one, min_size=1, max_size=4).map(tuple)


def gates(profile: Profile) -> st.SearchStrategy[tuple[str, float]]:
    """A gate kind and the log-decay it aims at, among those that this module's decay can take."""
    if not profile.drivers:
        return st.just(("mild", 0.0))
    plain = ["mild", "weak", "strong", "zero", "negative_zero", "alternate"]
    if profile.reset is not None:
        plain += ["reset", "reset_some"]
    levelled = ["constant", "every_16th", "one_channel"] if profile.gates else ["constant"]
    return st.one_of(
        st.sampled_from(plain).map(lambda gate: (gate, 0.0)),
        st.tuples(st.sampled_from(levelled), st.sampled_from(LOG_DECAYS)),
    )


def groups(heads: int) -> st.SearchStrategy[tuple[int, ...]]:
    """How many heads share one of each of the first inputs: none, or divisors of their number."""
    divisors = [n for n in range(1, heads + 1) if heads % n == 0]
    return st.one_of(st.just(()), st.lists(st.sampled_from(divisors), min_size=1, max_size=4).map(tuple))


def dtypes(backend: str) -> st.SearchStrategy[tuple[str, bool]]:
    """(dtype of q, k and v; whether gates and parameters stay in float32). float64 runs on the torch backend alone."""
    choices = [("float32", False), ("bfloat16", False), ("float16", False), ("bfloat16", True)]
    if backend == "torch":
        choices.append(("float64", False))
    return st.one_of(st.just(choices[0]), st.sampled_from(choices))


def _fit(limits: Limits, T: int, K: int, V: int, B: int, H: int) -> tuple[int, int, int]:
    """B, H and T reduced, in this order, until the case is within the limits."""
    while B * H * T * K * V > limits.work and B * H > 1:
        B, H = (B - 1, H) if B > 1 else (B, H - 1)
    return B, H, min(T, max(1, limits.work // (K * V)))


@st.composite
def cases(draw: st.DrawFn, profile: Profile, backend: str = "torch", limits: Limits | None = None) -> Case:
    """A case without a form (`runs` tells which forms can run it), within `limits` (default: those of the backend)."""
    limits = limits or (INTERPRETER if backend == "triton" else TORCH)
    packed = draw(st.one_of(st.none(), st.none(), documents(limits)))
    K, V = draw(widths(limits)), draw(widths(limits))
    T = draw(lengths(limits)) if packed is None else sum(packed)
    B, H, T = _fit(limits, T, K, V, draw(st.integers(1, limits.batch)), draw(st.integers(1, limits.heads)))
    gate, log_decay = draw(gates(profile))
    dtype, mixed = draw(dtypes(backend))
    split, then = None, ""
    if packed is None and draw(st.booleans()):
        split = draw(st.integers(0, T))
        then = draw(st.sampled_from([*(form for form in profile.forms if form != "operator"), "naive"]))
    names = [*profile.inputs, *profile.params, "initial_state"]
    return Case(
        form="",
        backend=backend,
        dtype=dtype,
        B=B,
        T=T,
        H=H,
        K=K,
        V=V,
        documents=packed,
        values=draw(st.sampled_from(["normal", "normal", "normal", "ones", "zero", "small", "low", "large"])),
        gate=gate,
        log_decay=log_decay,
        layout=draw(st.sampled_from(list(LAYOUTS))),
        grad_layout=draw(st.sampled_from(list(LAYOUTS))),
        mixed=mixed,
        chunk_size=draw(st.sampled_from([None, 16, 32, 64, 128])),
        scale=draw(st.sampled_from(SCALES)),
        initial=draw(st.booleans()),
        final=draw(st.booleans()),
        loss=draw(st.sampled_from(["both", "output", "state"])),
        split=split,
        then=then,
        groups=draw(groups(H)),
        frozen=draw(st.one_of(st.just(()), st.sets(st.sampled_from(names)).map(lambda s: tuple(sorted(s))))),
        seed=draw(st.integers(0, 999)),
    )


def runs(case: Case, form: str) -> bool:
    """Whether `form` takes this case: one-token steps have no packed batch."""
    return not (form == "step" and case.documents is not None)

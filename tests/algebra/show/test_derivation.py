"""A derivation tells the whole story: mask, update, chunk split, adjoint, bounds, proof."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sympy

from recgen.algebra.bounds import Interval
from recgen.algebra.mathtext import explain_derivation, shared_names
from recgen.algebra.show.notation import STYLES
from recgen.algebra.show.unroll import unroll
from tests.algebra.show.catalogue import TOTAL, derived, every_case

TITLES = (
    "One step",
    "Unrolled sum and mask",
    "Recurrent update",
    "Chunk split",
    "Within the chunk",
    "Handed on to the next chunk",
    "Adjoint",
    "Handed on to the chunk before",
    "Bounds and factorisation",
    "Proof",
)
TITLES_OF_TOTALS = (
    "Sum and read",
    "All pairs",
    "Chunk split",
    "Added to the sum over all chunks",
    "Adjoint",
    "Bounds and factorisation",
    "Proof",
)


@every_case
def test_the_mask_is_what_the_unrolled_recurrence_says(name: str, factorisation: str) -> None:
    rec = derived(name, factorisation).rec
    found = unroll(rec, rec.states[0], 3)
    numbered = {f"{text}{token}": s for s, (text, token) in found.numbered.items()}
    decay = [numbered.get(f"log_decay{t}", sympy.Symbol("log_decay", real=True)) for t in (1, 2, 3)]
    if "log_decay" not in rec.quantities:
        decay = [sympy.Integer(0)] * 3
    for t, i in np.ndindex(3, 3):
        expected = sympy.exp(sum(decay[i + 1 : t + 1])) if i <= t else sympy.Integer(0)
        assert sympy.simplify(found.mask[t][i] - expected) == 0


def test_an_update_whose_weights_are_no_decays_is_refused() -> None:
    rec = derived("retnet", "plain").rec
    (rule,) = rec.states
    doubled = dataclasses.replace(rule, update=rule.update + rule.update.subs(rule.symbol, 0))
    with pytest.raises(ValueError, match="not the decays between tokens"):
        unroll(rec, doubled)


def test_the_mask_of_a_gate_and_of_a_constant() -> None:
    assert """
        ⎡ 1                   0              0         0 ⎤
    M = ⎢ exp(ℓ₂)             1              0         0 ⎥
        ⎢ exp(ℓ₂ + ℓ₃)        exp(ℓ₃)        1         0 ⎥
        ⎣ exp(ℓ₂ + ℓ₃ + ℓ₄)   exp(ℓ₃ + ℓ₄)   exp(ℓ₄)   1 ⎦
""" in derived("simple_gla", "plain").explained("plain")
    assert """
        ⎡ 1         0         0         0 ⎤
    M = ⎢ 0.96875   1         0         0 ⎥
        ⎢ 0.93848   0.96875   1         0 ⎥
        ⎣ 0.90915   0.93848   0.96875   1 ⎦
""" in derived("retnet", "plain").explained("plain")


@every_case
def test_a_derivation_tells_the_whole_story(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    text = d.explained(factorisation)
    for title in TITLES if d.rec.causal else TITLES_OF_TOTALS:
        assert f"{title}\n" in text
    for gradient in d.adjoint.outputs:
        assert f"Gradient of {gradient.removeprefix('d_')}\n" in text
    names = shared_names(d.nodes)
    for n in d.nodes:
        if n.name and n.args and n not in names and n not in names.values():
            assert f"  {STYLES['text'].symbol(n.name)}" in text
    assert all(len(line) <= 130 for line in text.splitlines())


def test_a_total_has_no_mask_and_no_state_over_time() -> None:
    text = derived(*TOTAL).explained("total")
    assert "    S[m,c] = Σ_i key[i,m] value[i,c]\n" in text and "every pair (t, i) weighs 1" in text
    assert "M[t,i]" not in text and "initial state" not in text and "S[t" not in text
    adding = text.split("Added to the sum over all chunks\n")
    assert "S[m,c]     ← S[m,c] + Σ_t key[t,m] value[t,c]" in adding[1]
    assert "d_S[m,c]      ← d_S[m,c] + d_S_read[m,c]" in adding[2]


def test_the_slopes_of_the_specs_own_expressions() -> None:
    assert "∂ℓ/∂g     = sigmoid(-g)/16\n" in derived("gla", "tree").explained("tree")
    assert "∂ℓ/∂w     = -exp(w)\n" in derived("learned_decay", "plain").explained("plain")
    assert "∂key/∂k   = exp(min(k, 0))\n" in derived("linear_attention", "plain").explained("plain")


def test_bounds_and_what_follows_from_them() -> None:
    assert "ℓ ∈ (-∞, 0], one per token" in derived("gla", "tree").explained("tree")
    assert "ℓ ∈ [-0.0317487, 0], constant in time" in derived("retnet", "plain").explained("plain")
    assert "There is no decay" in derived("linear_attention", "plain").explained("plain")
    d = derived("gla", "plain")
    text = explain_derivation(d.rec, d.program, d.adjoint, Interval(-0.1, 0), "plain", "✓ all of it\n    by hand")
    assert "ℓ ∈ [-0.1, 0]" in text and "one matrix product." in text and text.endswith("  ✓ all of it\n      by hand\n")

"""Sizes and factorisation follow from the bounds of the log-decay."""

from __future__ import annotations

from recgen.algebra.derive import derive
from recgen.plan.passes import plan
from recgen.spec import read_text

KEY_GATE = """
name: bounded
inputs: {{g: B T H K}}
decay: {{type: gated, per: key, log: {log}}}
"""


def planned(log: str):
    return plan(derive(read_text(KEY_GATE.format(log=log)), prove=False))


def test_a_bounded_key_gate_takes_one_plain_product() -> None:
    p = planned("-0.1 * sigmoid(g)")
    assert p.factorisation == "plain"
    assert p.chunk_sizes == (16, 32, 64, 128) and p.longest_chunk == 128


def test_plain_factors_bound_the_chunk() -> None:
    p = planned("-0.25 * sigmoid(g)")
    assert (p.factorisation, p.chunk_sizes, p.longest_chunk) == ("plain", (16, 32, 64), 64)


def test_an_unbounded_key_gate_takes_the_pair_tree() -> None:
    p = planned("logsigmoid(g)")
    assert (p.factorisation, p.chunk_size, p.longest_chunk) == ("tree", 16, 0)

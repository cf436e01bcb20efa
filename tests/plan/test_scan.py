"""The scan schedule: runs from nothing both ways, and one walk each way; what a tile cannot complete is summed."""

from __future__ import annotations

from recgen.algebra.derive import derive
from recgen.plan.kernels import Plan
from recgen.plan.passes import plan
from recgen.spec import read_text

from .conftest import plan_of


def test_chunks_first_run_from_nothing_both_ways() -> None:
    found = plan_of("mamba")
    assert [(k.name, k.reverse, k.stores) for k in found.alone] == [
        ("_scan_ends", False, ()),
        ("_scan_ends_backward", True, ()),
    ]
    assert [k.name for k in (found.forward, *found.backward)] == ["_scan_forward", "_scan_backward"]


def test_only_sums_over_values_leave_a_part_per_tile() -> None:
    (backward,) = plan_of("mamba").backward
    kinds = {s.name: (s.kind, s.over_time) for s in backward.stores}
    assert kinds["d_x"] == kinds["d_dt"] == ("output", False)
    assert kinds["d_B_tiles"] == kinds["d_C_tiles"] == ("partial", False)
    assert kinds["d_A_log_chunks"] == ("partial", True)


def test_a_vector_state_has_nothing_to_sum_over_tiles() -> None:
    (backward,) = plan_of("rg_lru").backward
    assert {s.name for s in backward.stores if s.kind == "output"} == {"d_x", "d_r", "d_i"}
    assert all(s.over_time for s in backward.stores if s.kind == "partial")


def scanned(text: str) -> Plan:
    return plan(derive(read_text(f"name: x\n{text}"), prove=False))


def test_states_are_walked_again_only_where_a_gradient_reads_them() -> None:
    assert scanned("state: vector").backward[0].edges == ()
    assert plan_of("hgrn").backward[0].edges == (plan_of("hgrn").program.carries[0].start,)


def test_a_scan_has_sizes_of_its_own() -> None:
    found = plan_of("full_gate")
    assert (found.factorisation, found.chunk_size, found.longest_chunk) == ("scan", 32, 0)


def test_features_of_the_whole_width_are_given_to_those_who_read_them() -> None:
    full = "inputs: {g: B T H K V}\ndecay: {type: gated, per: key_value, log: logsigmoid(g)}\n"
    found = scanned(f"{full}feature_map: {{query: softmax(x), key: x}}\n")
    assert [n.name for n in found.given] == ["query"]
    assert {k.name: [n.name for n in k.kept] for k in (*found.alone, found.forward, *found.backward)} == {
        "_scan_ends": [],
        "_scan_ends_backward": ["query"],
        "_scan_forward": ["query"],
        "_scan_backward": ["query"],
    }
    assert "d_q" in found.epilogue.outputs, "through the slope of softmax, in torch"
    assert scanned(full).given == ()

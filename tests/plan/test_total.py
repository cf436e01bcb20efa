"""The total schedule: pieces of time on their own, sums before their readers, each gradient stored once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recgen.plan import total as schedule
from recgen.plan.check import PlanError, check_kernel, check_program
from recgen.plan.kernels import Plan
from recgen.plan.show import show_plan

from .conftest import TOTALS, plan_of


@pytest.fixture(params=TOTALS)
def plan(request: pytest.FixtureRequest) -> Plan:
    return plan_of(request.param)


def test_no_kernel_hands_anything_on(plan: Plan) -> None:
    for kernel in (plan.sums, plan.forward, *plan.backward):
        assert not kernel.reverse and not kernel.stores_ends
        assert kernel.carries == kernel.edges == kernel.stores_edges == ()


def test_every_total_is_summed_before_it_is_read(plan: Plan) -> None:
    known: set[str] = set()
    for kernel in (plan.sums, plan.forward, *plan.backward):
        assert {n.op.name for n in kernel.totals} <= known, kernel.name
        known |= {c.start.op.name for c in kernel.sums}
    assert known == {"S", "z", "d_S", "d_z"}


def test_what_is_summed_is_summed_once(plan: Plan) -> None:
    assert plan.sums.sums == plan.program.carries and plan.sums.stores == ()
    assert [k.sums for k in plan.backward if k.sums] == [plan.adjoint.carries]


def test_the_parallel_form_carries_nothing_and_masks_nothing(plan: Plan) -> None:
    check_program(plan.pairs)
    assert plan.pairs.carries == () and "i" in {a for n in plan.pairs.nodes() for a in n.axes}
    assert not any(type(n.op).__name__ == "Mask" for n in plan.pairs.nodes())
    assert not any("i" in n.axes for n in (*plan.program.nodes(), *plan.adjoint.nodes()))


def test_a_kernel_that_reads_a_total_it_does_not_load_is_refused(plan: Plan) -> None:
    check_kernel(plan.forward)
    with pytest.raises(PlanError, match="neither carries nor loads"):
        check_kernel(replace(plan.forward, totals=()))


def test_a_sum_of_one_tiles_part_is_refused(plan: Plan) -> None:
    first = plan.backward[0]
    check_kernel(first)
    with pytest.raises(PlanError, match="advanced with one tile's part"):
        check_kernel(replace(first, tile="v", stores=()))


def test_a_write_that_reads_its_own_total_is_refused(plan: Plan) -> None:
    S = plan.program.carries[0]
    wrong = replace(S, write=plan.program.graph.add(S.write, S.start))
    with pytest.raises(PlanError, match="need no total"):
        check_program(replace(plan.program, carries=(wrong, *plan.program.carries[1:])))


def test_gradients_that_would_come_before_their_totals_are_refused(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "READS", (True, "m"))
    with pytest.raises(PlanError, match="before the totals of the gradients are known"):
        schedule.total(plan.program, plan.adjoint)


def test_the_plan_says_what_is_loaded_and_summed(plan: Plan) -> None:
    text = show_plan(plan)
    assert "schedule       total: segments of time at once" in text
    assert "_chunk_sums: what the tokens of a segment write" in text
    assert "load the totals S, z" in text and "store d_S, the segment's part" in text
    assert "one program per segment, head and tile" in text and "per sequence" not in text

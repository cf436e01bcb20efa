"""The fused schedule: one forward launch, the adjoint cut by what it carries, every gradient stored once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recgen.plan.check import PlanError, check_kernel, check_program
from recgen.plan.kernels import Plan, Store
from recgen.plan.show import show_plan

from .conftest import plan_of


def test_forward_is_one_launch_and_backward_one_per_direction_and_tiled_axis(carried: Plan) -> None:
    assert [s.name for s in carried.forward.stores][0] == "o"
    walks = [(k.reverse, k.tile) for k in carried.backward]
    assert walks == sorted(set(walks))


def test_every_gradient_is_stored_by_one_kernel_or_left_to_the_epilogue(planned: Plan) -> None:
    stored = [s.name for k in planned.backward for s in k.stores if s.kind == "output"]
    assert sorted([*stored, *planned.epilogue.outputs]) == sorted(planned.adjoint.outputs)


def test_gradients_of_carried_values_leave_exactly_one_kernel(carried: Plan) -> None:
    ending = [k for k in carried.backward if k.stores_ends]
    assert len(ending) == 1 and ending[0].carries == carried.adjoint.carries


def test_a_normalizer_keeps_its_denominator_and_output() -> None:
    plan = plan_of("linear_attention")
    assert [s.name for s in plan.forward.stores] == ["o", "n"]
    assert {n.name for k in plan.backward for n in k.kept} == {"o", "n"}


def test_only_a_decay_with_a_gradient_needs_the_states_at_the_chunks_edges() -> None:
    assert all(not k.stores_edges for k in plan_of("retnet").backward)
    assert [k.name for k in plan_of("simple_gla").backward if k.stores_edges] == ["_chunk_backward_query"]


def test_a_key_gate_is_finished_inside_a_kernel_and_a_head_gate_in_the_epilogue() -> None:
    assert plan_of("gla").epilogue.outputs == {}
    assert list(plan_of("simple_gla").epilogue.outputs) == ["d_g"]


def test_a_result_stored_as_what_it_is_not_is_refused(planned: Plan) -> None:
    kernel = planned.backward[0]
    check_kernel(kernel)
    first = next(s for s in kernel.stores if not s.over_time)
    wrong = Store(first.name, first.node, "output" if first.kind == "partial" else "partial")
    with pytest.raises(PlanError, match=first.name):
        check_kernel(replace(kernel, stores=(wrong,)))


def test_a_kernel_that_reads_a_state_it_does_not_hold_is_refused(carried: Plan) -> None:
    with pytest.raises(PlanError, match="neither carries nor loads"):
        check_kernel(replace(carried.forward, carries=()))


def test_programs_between_the_stages_are_legal(planned: Plan) -> None:
    check_program(planned.program)
    check_program(planned.adjoint)


def test_a_program_whose_output_stays_in_the_chunk_is_refused(planned: Plan) -> None:
    inside = planned.program.outputs["o"].args[0]
    with pytest.raises(PlanError, match="does not leave the chunk"):
        check_program(replace(planned.program, outputs={"o": inside}))


def test_the_plan_prints_every_kernel_and_what_it_stores(planned: Plan) -> None:
    text = show_plan(planned)
    for kernel in (planned.forward, *planned.backward):
        assert kernel.name in text
        assert all(f"store {s.name}" in text for s in kernel.stores)

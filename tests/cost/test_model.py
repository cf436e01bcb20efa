"""The model does its documented arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from recgen.cost.model import (
    ALONE,
    BANDWIDTH_REACHED,
    DEVICES,
    LAUNCH,
    OPERATIONS_REACHED,
    PRODUCTS_REACHED,
    TURN,
    Footprint,
    Shape,
    floor_seconds,
    kernel_seconds,
    scaled,
)
from recgen.cost.traffic import Counts
from recgen.targets import TARGETS

H100 = DEVICES["sm_90"]
MANY = 132 * 1000
FOOTPRINT = Footprint(warps=8, registers=128, shared=0)


def seconds(counts: Counts, footprint: Footprint = FOOTPRINT, dtype: str = "bfloat16") -> float:
    return kernel_seconds(counts, footprint, dtype, H100)


def test_every_target_has_a_data_sheet() -> None:
    assert set(DEVICES) == set(TARGETS)


def test_an_empty_kernel_takes_its_launches() -> None:
    assert seconds(Counts(launches=3, programs=3)) == pytest.approx(3 * LAUNCH)


def test_many_programs_are_bound_by_the_bandwidth_or_by_their_products_or_operations() -> None:
    bandwidth, products, operations = 3.35e12 * BANDWIDTH_REACHED, 989e12 * PRODUCTS_REACHED, 67e12 * OPERATIONS_REACHED
    work = Counts(launches=1, programs=MANY, loaded=6e9, stored=4e9)
    assert seconds(work) == pytest.approx(LAUNCH + 1e10 / bandwidth)
    assert seconds(replace(work, products=1e13)) == pytest.approx(LAUNCH + 1e13 / products)
    assert seconds(replace(work, arithmetic=1e12)) == pytest.approx(LAUNCH + 1e12 / operations)


def test_one_program_cannot_draw_the_whole_bandwidth() -> None:
    work = Counts(launches=1, programs=1, loaded=1e8)
    share = 3.35e12 * BANDWIDTH_REACHED / 132
    assert seconds(work) == pytest.approx(LAUNCH + 1e8 / (ALONE * share))


def test_a_loop_waits_in_every_turn_and_every_wave() -> None:
    one_wave = Counts(launches=1, programs=132 * 2, turns=132 * 2 * 1000)
    assert FOOTPRINT.resident(H100) == 2
    assert seconds(one_wave) == pytest.approx(LAUNCH + 1000 * TURN)
    two_waves = replace(one_wave, programs=132 * 2 + 1, turns=(132 * 2 + 1) * 1000)
    assert seconds(two_waves) == pytest.approx(LAUNCH + 2 * 1000 * TURN)


@pytest.mark.parametrize(
    ("footprint", "resident"),
    [
        (Footprint(8, 255, 0), 1),
        (Footprint(4, 128, 0), 4),
        (Footprint(4, 32, 100_000), 2),
        (Footprint(1, 16, 0), 64),
        (Footprint(8, 255, 300_000), 1),
        (Footprint(8, -1, 0), 8),
    ],
)
def test_registers_shared_memory_and_threads_limit_how_many_are_resident(footprint: Footprint, resident: int) -> None:
    assert footprint.resident(H100) == resident


def test_products_off_the_tensor_cores_take_longer() -> None:
    work = Counts(launches=1, programs=MANY, products=1e13)
    times = [seconds(work, replace(FOOTPRINT, off=off)) for off in (0, 0.5, 1)]
    assert times[0] < times[1] < times[2]
    assert times[2] == pytest.approx(LAUNCH + 1e13 / (67e12 * OPERATIONS_REACHED))
    assert seconds(work, dtype="float16") > times[0], "float16 products are taken in TF32"
    assert seconds(work, dtype="float32") == pytest.approx(times[2]), "and float32 products as they are"


def test_heads_and_sequences_repeat_all_but_the_launches() -> None:
    found = scaled(Counts(launches=2, programs=3, loaded=10), Shape(4, 5, 1000))
    assert (found.launches, found.programs, found.loaded) == (2, 60, 200)


def test_the_floor_is_the_published_bandwidth() -> None:
    assert floor_seconds(3.35e12, H100) == pytest.approx(1.0)

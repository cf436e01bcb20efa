"""Counting in the interpreter, on kernels whose work is known."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl

from recgen.cost.jobs import Job
from recgen.cost.process import Worker
from recgen.cost.traffic import SPECIAL_LANES, Counts, Line, counting, lines

pytestmark = pytest.mark.interpreter

ROOT = Path(__file__).resolve().parents[2]


@triton.jit
def _copy(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    at = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    tl.store(y_ptr + at, tl.load(x_ptr + at, mask=at < n), mask=at < n)


@triton.jit
def _multiply(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    row = tl.arange(0, SIZE)
    at = row[:, None] * SIZE + row[None, :]
    total = tl.zeros([SIZE, SIZE], tl.float32)
    for turn in range(n):
        total += tl.dot(tl.load(x_ptr + turn * 0 + at), tl.load(x_ptr + at))
    tl.store(y_ptr + at, tl.exp(total))


@triton.jit
def _add(x_ptr, SIZE: tl.constexpr):
    tl.atomic_add(x_ptr + tl.arange(0, SIZE), 1.0)


def test_hidden_lanes_move_nothing() -> None:
    x, y = torch.ones(100, dtype=torch.float16), torch.zeros(100, dtype=torch.float16)
    with counting() as counts:
        _copy[(2,)](x, y, 100, SIZE=64)
    found = counts["_copy"]
    assert (found.launches, found.programs) == (1, 2)
    assert (found.loaded, found.stored, found.moved) == (200, 200, 400)
    assert (found.products, found.arithmetic, found.turns) == (0, 0, 2)
    assert bool((y == 1).all()), "counting changes no result"


def test_products_arithmetic_and_turns() -> None:
    x, y = torch.ones(16, 16), torch.zeros(16, 16)
    with counting() as counts:
        _multiply[(1,)](x, y, 3, SIZE=16)
    found = counts["_multiply"]
    assert found.products == 3 * 2 * 16**3
    assert found.turns == 3
    assert found.loaded == 3 * 2 * 16 * 16 * 4
    assert found.arithmetic == 16 * 16 * (3 + SPECIAL_LANES), "a sum in each turn, and one exponential"


def test_an_atomic_update_moves_both_ways() -> None:
    x = torch.zeros(32)
    with counting() as counts:
        _add[(3,)](x, SIZE=32)
    assert (counts["_add"].loaded, counts["_add"].stored) == (3 * 128, 3 * 128)
    assert bool((x == 3).all())


def test_nothing_is_counted_after_the_block() -> None:
    x = torch.ones(32)
    with counting() as counts:
        _add[(1,)](x, SIZE=32)
    _add[(1,)](x, SIZE=32)
    assert counts["_add"].launches == 1


def test_a_line_goes_through_both_lengths() -> None:
    line = Line.through(10, Counts(launches=2, loaded=130, stored=5), 20, Counts(launches=2, loaded=230, stored=3))
    assert (line.fixed.loaded, line.per_token.loaded) == (30, 10)
    assert line.at(10).loaded == 130 and line.at(1000).loaded == 10030
    assert line.at(1000).launches == 2
    assert line.at(1000).stored == 0, "no count is negative"


def test_an_operator_moves_what_its_kernels_load_and_store() -> None:
    """One tile: every program loads each token's q, k, v and gate once, and stores the output."""
    job = Job(str(ROOT / "generated" / "simple_gla.py"), "chunk", K=16, V=16)
    found = lines(job, (64, 128))
    assert list(found)[0] == "_chunk_forward"
    forward = found["_chunk_forward"].per_token
    assert forward.loaded == 2 * (3 * 16 + 1)
    assert forward.stored == 2 * 16
    assert (forward.launches, forward.programs) == (0, 0)
    state = 4 * 16 * 16
    assert found["_chunk_forward"].fixed.stored == state


def test_the_recurrent_form_turns_once_per_token() -> None:
    job = Job(str(ROOT / "generated" / "simple_gla.py"), "recurrent", K=16, V=16)
    found = lines(job, (64, 128))["_recurrent_forward"]
    assert found.per_token.turns == 1 and found.per_token.products == 0


def test_what_cannot_be_interpreted_is_an_answer() -> None:
    task = {"job": asdict(Job("/nowhere.py", "chunk")), "lengths": (64, 128)}
    with Worker("recgen.cost.traffic", interpret=True) as worker:
        assert worker.ask(task) == {"error": "ImportError: no Python module at /nowhere.py", "lines": {}}

"""The order of a run, and its sizes."""

from __future__ import annotations

import json

from recgen.bench.gpu import _obstacles
from recgen.bench.gpu.plan import DRY, REAL, TIMED, Batch, Job, Shape, alone, at_once
from recgen.bench.gpu.results import Results
from recgen.resources import catalogue

OPERATORS = list(catalogue())


def test_the_shapes_are_the_agreed_ones() -> None:
    assert [(s.B, s.H, s.T, s.D) for s in REAL.shapes] == [
        (8, 16, 4096, 128),
        (32, 16, 2048, 128),
        (1, 16, 32768, 128),
        (8, 32, 2048, 256),
        (8, 16, 4096, 64),
    ]
    assert REAL.decode_batches == (1, 32, 256)
    assert {1, 63, 257} <= set(REAL.core.lengths)
    assert set(TIMED) <= set(OPERATORS) and len(TIMED) == 10


def test_every_operator_is_checked_and_those_that_are_timed_come_first() -> None:
    jobs = [job for batch in at_once(OPERATORS, REAL, peers=True) for job in batch.jobs]
    core = [job.operator for job in jobs if job.kind == "check" and job.part == "core"]
    assert sorted(core) == sorted(OPERATORS) and tuple(core[:10]) == TIMED
    assert len(jobs) == len(set(jobs))


def test_all_that_is_timed_is_compiled_before() -> None:
    jobs = [job for batch in at_once(OPERATORS, REAL, peers=True) for job in batch.jobs]
    compiled = {(job.operator, job.width) for job in jobs if job.kind == "compile"}
    timed = alone(OPERATORS, REAL, {}).jobs
    assert {(job.operator, job.shape.D) for job in timed if job.shape} == compiled
    assert {job.operator for job in timed if job.kind == "decode"} == set(TIMED)
    assert [job.shape for job in timed[:10]] == [REAL.shapes[0]] * 10, "one shape of all comes first"


def test_a_peer_is_compiled_in_shares_and_once_for_all_operators_that_it_serves() -> None:
    tunes = [job for batch in at_once(OPERATORS, REAL, peers=True) for job in batch.jobs if job.kind == "tune"]
    assert [job.share for job in tunes[: REAL.shares]] == list(range(REAL.shares))
    assert len({job.operator for job in tunes}) == 6, "nine operators have a peer, and three of them that of another"
    assert not [b for b in at_once(OPERATORS, REAL, peers=False) if b.jobs[0].kind == "tune"]


def test_an_obstacle_reaches_the_job() -> None:
    batch = alone(["gla"], DRY, {("gla", 16): "none here"})
    assert [job.obstacle for job in batch.jobs if job.shape] == ["none here", ""]


def test_a_job_survives_json() -> None:
    for job in (Job("time", "gla", shape=Shape(1, 2, 3, 4)), Job("check", "gla", "core"), Job("tune", "gla", share=2)):
        assert Job.from_dict(json.loads(json.dumps(job.as_dict()))) == job
    assert Batch((Job("check", "gla"),)).skip == 0


def test_a_peer_is_timed_where_all_its_shares_are_compiled() -> None:
    planned = list(at_once(["gla", "hgrn2", "simple_gla"], REAL, peers=True))
    tunes = [job for batch in planned for job in batch.jobs if job.kind == "tune" and job.operator == "gla"]
    results = Results({}, False, ["gla", "hgrn2"], 1.0)
    for job in tunes:
        results.record(job, "", {})
    wide = [job for job in tunes if job.width == 256]
    results.record(wide[1], "", {"crash": "out of registers"})
    left = [Batch((job,)) for job in tunes if job.width == 64 and job.share == 3]

    found = _obstacles(["gla", "hgrn2"], REAL, "", planned, left, results)
    assert set(found) == {(name, width) for name in ("gla", "hgrn2") for width in (64, 256)}
    assert results.notes == [f"{wide[1]}: out of registers"] and not results.failures, "a peer's failure is not ours"
    nowhere = _obstacles(["gla"], REAL, "it is not installed", planned, [], results)
    assert nowhere["gla", 128] == "it is not installed"

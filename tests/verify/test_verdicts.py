"""The verdict table: every gradient has a column, and what fails is seen in its line."""

from __future__ import annotations

from recgen.verify.errors import Measure
from recgen.verify.report import Row
from recgen.verify.verdicts import table


def row(form: str, result: str, *measures: Measure, dtype: str = "float32") -> Row:
    made = Row(form, "torch", dtype, result)
    for measure in measures:
        made.add(measure)
    return made


def test_a_line_per_form_and_dtype_and_a_column_per_result() -> None:
    good, bad = Measure("", 1e-7, 1e-5), Measure("", 0.25, 5e-5)
    rows = [row("chunk", "gradient q", bad, good), row("chunk", "output", good, good), row("step", "output", good)]
    head, chunk, step = table(rows).splitlines()
    assert head.split() == ["form", "backend", "dtype", "runs", "output", "d", "q", "allowed"]
    assert chunk.split() == ["chunk", "torch", "float32", "2", "1.0e-07", "2.5e-01!", "1e-05", "/", "5e-05", "FAILS"]
    assert step.split() == ["step", "torch", "float32", "1", "1.0e-07", "1e-05", "ok"]


def test_a_form_that_fails_without_a_number_has_a_line() -> None:
    good = Measure("output", 1e-7, 1e-5)
    lines = table([row("chunk", "output", good)], {("step", "torch"), ("chunk", "torch")}).splitlines()
    assert [line.split()[0] for line in lines if line.endswith("FAILS")] == ["chunk", "step"]


def test_the_worst_is_kept_and_no_number_is_worse() -> None:
    errors = (1e-7, 3e-6, float("nan"), 1.0)
    kept = row("chunk", "output", *(Measure("output", error, 1e-5) for error in errors))
    assert kept.error != kept.error and not kept.ok and kept.measures == 4
    judged = row("chunk", "output", Measure("output", 1e-3, 1e-2, eager=True), Measure("output", 1e-7, 1e-5))
    assert (judged.error, judged.allowed, judged.ok, judged.eager) == (1e-7, 1e-5, True, 1)
    assert "1.0e-07~" in table([judged])

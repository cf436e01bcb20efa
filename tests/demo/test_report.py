"""The demo end to end at a tiny size, and the page that it writes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from recgen.demo import Plan, operators, pipeline, run
from recgen.demo.costs import Curve, Lengths
from recgen.demo.figures import loss_figure
from recgen.demo.report import power
from recgen.demo.training import History, Schedule
from recgen.page.formulas import aligned, parts, prose
from recgen.verify import Report, Row
from tests.demo.small import SMALL
from tests.pages import assert_complete

PLAN = Plan(
    operators=("retnet",),
    examples=1,
    size=SMALL,
    schedule=Schedule(steps=3, seconds=20, batch=2, length=32, checks=2),
    prompt="def ",
    characters=12,
    lengths=Lengths(sequence=(32, 64), written_out=64, positions=(16, 32), rounds=1),
)


@pytest.fixture
def verified(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Stands in for the fuzz driver, which has its own tests, and finds an operator right or wrong."""

    def let(ok: bool) -> None:
        def verify(module: object, progress: Callable[[int, int, str], None], **options: object) -> Report:
            progress(1, 2, "chunk torch float32 T=3")
            rows = [Row("chunk", "torch", "float32", what, 5, 1e-7, 1e-5, what, ok) for what in ("output", "gradient")]
            report = Report("name", "path", 0, rows, cases=5)
            if not ok:
                report.failures.append("chunk is wrong")  # type: ignore[arg-type]
            return report

        monkeypatch.setattr(operators, "verify_module", verify)
        monkeypatch.setattr(Report, "render", lambda report: "chunk is wrong")

    return let


def test_the_page_holds_everything_and_needs_nothing_else(verified: Callable[[bool], None], tmp_path: Path) -> None:
    verified(True)
    out = run(tmp_path / "reports" / "demo.html", replace(PLAN, operators=("retnet", "gla")))
    page = out.read_text(encoding="utf-8")
    for section in ("idea", "derivation", "verified", "training", "equality", "costs"):
        assert f'<section id="{section}">' in page
    assert page.count("<figure><svg") == 4
    assert page.count("✓ equal") == 7 and "✗" not in page
    assert "Gated linear attention" in page and "<math" in page and "def operator(" in page
    assert_complete(page)


def test_the_demo_fails_after_its_report_when_an_operator_is_wrong(
    verified: Callable[[bool], None], tmp_path: Path
) -> None:
    verified(False)
    with pytest.raises(SystemExit, match="retnet was not verified:\nchunk is wrong"):
        run(tmp_path / "demo.html", PLAN)
    assert "✗ FAILED" in (tmp_path / "demo.html").read_text(encoding="utf-8")


def test_the_demo_fails_when_the_logits_differ(
    verified: Callable[[bool], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    verified(True)
    honest = pipeline.sample

    def biased(*args: object, **options: object) -> object:
        sampled = honest(*args, **options)
        sampled.logits.mul_(1.001)
        return sampled

    monkeypatch.setattr(pipeline, "sample", biased)
    with pytest.raises(SystemExit, match="logits of the step, as sampled form"):
        run(tmp_path / "demo.html", PLAN)
    assert "✗ DIFFERENT" in (tmp_path / "demo.html").read_text(encoding="utf-8")


def test_explained_latex_becomes_sections_of_mathml() -> None:
    latex = "\n".join(
        [
            r"\subsection*{One step}",
            r"One head, token \( t \), 100\% safe & sound.",
            r"\begin{align*}",
            r"  \mathrm{query\_decayed}_{t} &= \sum_{m} q_{t,m} \\",
            r"  S &\leftarrow e^{\ell} \, S",
            r"\end{align*}",
            "",
            r"\paragraph*{Gradient of \( q \)}",
            r"\[",
            r"  M = \begin{pmatrix} 1 & 0 \\ 2 & 1 \end{pmatrix}",
            r"\]",
            r"\subsection*{Proof}",
            r"\begin{verbatim}",
            "a < b",
            r"\end{verbatim}",
        ]
    )
    step, proof = parts(latex)
    assert (step.title, proof.title) == ("One step", "Proof")
    assert "100% safe &amp; sound." in step.body and "<mtext>query_decayed</mtext>" in step.body
    assert step.body.count("<mtr>") == 4, "two rows of equations and two of the matrix"
    assert "<h4>Gradient of <math" in step.body
    assert "a &lt; b" in proof.body


def test_nothing_of_the_latex_is_left_over() -> None:
    assert "\\" not in prose(r"\( \mathrm{d}x \) is under\_scored") and "&amp;" not in aligned(r"a &= b")


def test_small_numbers_are_written_with_a_power_of_ten() -> None:
    assert [power(x) for x in (5.4e-7, 2e-5, 1e-12, 0.0, float("nan"))] == ["5.4·10⁻⁷", "2·10⁻⁵", "10⁻¹²", "0", "nan"]


def test_a_curve_knows_its_growth_at_the_long_end() -> None:
    curve = Curve("softmax", [1, 2, 4, 8], [5.0, 5.0, 16.0, 64.0])
    assert curve.slope == pytest.approx(2.0)


def test_figures_say_what_their_axes_are() -> None:
    figure = loss_figure(History([0, 1], [6.0, 5.0], [1, 2], [6.0, 5.0]), 64)
    assert figure.startswith("<svg") and "viewBox" in figure and 'width="' not in figure.split(">", 1)[0]
    for label in ("training step", "loss (bits per character)", "held-out files", "guessing blindly (6.00 bits)"):
        assert f">{label}</text>" in figure

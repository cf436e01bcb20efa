"""`recgen explain`: its ways of showing a spec, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.text import Text
from typer.testing import Result

from recgen.algebra.derive import derive
from recgen.cli.pages import _styled
from tests.pages import assert_complete

Command = Callable[..., Result]


def test_a_page_is_written(recgen_command: Command, tmp_path: Path) -> None:
    out = tmp_path / "pages" / "retnet.html"
    result = recgen_command("explain", "retnet", "--html", out)
    assert result.exit_code == 0 and str(out) in result.stdout
    page = out.read_text(encoding="utf-8")
    assert_complete(page)
    assert "by induction over t; any T" in page


def test_a_page_is_derived_once(recgen_command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The module that draws its inputs is not in the cache, and is not derived and proven a second time."""
    monkeypatch.setenv("RECGEN_CACHE", str(tmp_path / "cache"))
    derived = []

    def counted(*arguments: object, **options: bool) -> object:
        derived.append(arguments)
        return derive(*arguments, **options)

    monkeypatch.setattr("recgen.algebra.derive.derive", counted)
    (tmp_path / "once.yaml").write_text("name: once\ndecay: {type: fixed, value: 0.25}\n")
    result = recgen_command("explain", tmp_path / "once.yaml", "--html", tmp_path / "once.html")
    assert result.exit_code == 0 and len(derived) == 1


def test_two_specs_are_compared(recgen_command: Command) -> None:
    result = recgen_command("explain", "gla", "simple_gla")
    assert result.exit_code == 0
    assert "From gla to simple_gla" in result.stdout and "Only in gla" in result.stdout
    latex = recgen_command("explain", "gla", "simple_gla", "--latex")
    assert latex.exit_code == 0 and r"\section*{gla and simple\_gla}" in latex.stdout


def test_two_specs_of_one_name_are_told_apart_by_their_files(recgen_command: Command, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    files = [tmp_path / name for name in ("a.yaml", "b_b.yaml", "other/a.yaml")]
    for file, decay in zip(files, (0.25, 0.5, 0.75), strict=True):
        file.write_text(f"name: same\ndecay: {{type: fixed, value: {decay}}}\n")
    said = recgen_command("explain", *files[:2]).stdout
    assert "same (a.yaml) and same (b_b.yaml)" in said and "Only in same (b_b.yaml)" in said
    assert r"same (a.yaml) and same (b\_b.yaml)" in recgen_command("explain", *files[:2], "--latex").stdout
    assert f"same ({files[0]}) and same ({files[2]})" in recgen_command("explain", files[0], files[2]).stdout
    assert "same and same" in recgen_command("explain", files[0], files[0]).stdout


def test_only_a_page_is_overwritten(recgen_command: Command, tmp_path: Path) -> None:
    spec, mine = tmp_path / "small.yaml", tmp_path / "mine.txt"
    spec.write_text("name: small\n")
    mine.write_text("notes\n")
    result = recgen_command("explain", spec, "--html", mine)
    said = "".join(result.stderr.replace("│", " ").split())
    assert result.exit_code == 2 and "isnoHTMLpage;--forceoverwritesit" in said
    assert mine.read_text() == "notes\n"
    assert recgen_command("explain", spec, "--html", mine, "--force").exit_code == 0
    page = mine.read_text(encoding="utf-8")
    mine.write_text(page.replace("small", "other"), encoding="utf-8")
    assert recgen_command("explain", spec, "--html", mine).exit_code == 0
    assert mine.read_text(encoding="utf-8") == page


def test_force_is_of_a_page(recgen_command: Command) -> None:
    result = recgen_command("explain", "retnet", "--force")
    assert result.exit_code == 2 and "this belongs to --html FILE" in result.stderr


def test_a_kernel_is_traced(recgen_command: Command) -> None:
    result = recgen_command("explain", "simple_gla", "--trace", "_chunk_forward")
    assert result.exit_code == 0
    assert "scores[t,i] = weighted[t,i] where i ≤ t" in result.stdout


def test_an_unknown_kernel_names_those_that_there_are(recgen_command: Command) -> None:
    result = recgen_command("explain", "retnet", "--trace", "_chunk_foward")
    assert result.exit_code == 2 and result.stdout == ""
    said = " ".join(result.stderr.replace("│", " ").split())
    assert "Invalid value for --trace: in the module of retnet, no function called '_chunk_foward'" in said
    assert "Did you mean _chunk_forward?" in said and "_step_forward" in said


@pytest.mark.parametrize(
    "arguments",
    [
        ("gla", "retnet", "--html", "x.html"),
        ("gla", "--trace", "_hand_over", "--latex"),
        ("gla", "retnet", "--stage", "plan"),
        ("gla", "--html", "x.html", "--trace", "_hand_over"),
    ],
)
def test_two_things_at_once_are_refused(arguments: tuple[str, ...], recgen_command: Command) -> None:
    result = recgen_command("explain", *arguments)
    assert result.exit_code == 2 and "ask for different things" in result.stderr
    assert "Invalid value for" in result.stderr
    assert not Path("x.html").exists()


def test_what_a_plan_does_not_have_is_refused(recgen_command: Command) -> None:
    result = recgen_command("explain", "gla", "--stage", "plan", "--latex")
    assert result.exit_code == 2 and result.stdout == "" and "Invalid value for --latex" in result.stderr


def test_a_folder_is_no_page(recgen_command: Command, tmp_path: Path) -> None:
    result = recgen_command("explain", "gla", "--html", tmp_path)
    assert result.exit_code == 2 and "Invalid value for '--html'" in result.stderr and "is a directory" in result.stderr


def test_every_bad_spec_of_the_two_is_named(recgen_command: Command, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text("name: bad\ndecya: {type: fixed}\n")
    result = recgen_command("explain", bad, bad)
    assert result.exit_code == 2 and result.stderr.count("decya") >= 2


def test_titles_and_remarks_stand_out_in_a_terminal() -> None:
    def styles(text: Text) -> set[str]:
        return {str(text.style), *(str(span.style) for span in text.spans)} - {""}

    assert styles(_styled("One step", "--------")) == {"bold cyan"}
    assert styles(_styled("--------", "")) == {"dim"}
    assert styles(_styled("  Within the chunk", "    total = 1")) == {"bold"}
    assert styles(_styled("  y = a    (within the chunk)", "")) == {"dim"}
    assert styles(_styled("  y[t] = a", "    + b")) == set()

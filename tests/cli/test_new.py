"""recgen new: a spec from options, or from answers; nothing is overwritten unasked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from recgen.cli import app, new
from recgen.spec import read

Command = Callable[..., Result]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answered(*answers: str, name: str = "mine") -> Result:
    """The command at a terminal, given these lines."""
    return CliRunner().invoke(app, ["new", name], input="".join(f"{a}\n" for a in answers), catch_exceptions=False)


def test_options_say_all(recgen_command: Command, folder: Path) -> None:
    result = recgen_command(
        *("new", "mine", "--family", "scalar_gate", "--feature-map", "elu", "--normalizer", "sum"),
        *("--title", "My: own", "--readout", "exclusive", "--skip", "--gate"),
    )
    assert result.exit_code == 0 and "wrote mine.yaml" in result.stdout
    spec = read(folder / "mine.yaml")
    assert (spec.title, spec.decay.family, spec.query_map.text) == ("My: own", "scalar_gate", "elu(x) + 1")
    assert (spec.normalizer.kind, spec.readout.kind, spec.readout.skip) == ("sum", "exclusive", "D")
    assert spec.readout.gate.text == "sigmoid(gate)"
    assert recgen_command("fmt", "mine.yaml", "--check").exit_code == 0


def test_without_a_terminal_nothing_is_asked(recgen_command: Command, folder: Path) -> None:
    assert recgen_command("new", "mine").exit_code == 0
    assert read(folder / "mine.yaml").decay.family == "key_gate"


def test_at_a_terminal_each_choice_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new, "_at_a_terminal", lambda: True)
    result = answered("My own", "griffin", "sum", "exclusive", "y", "n")
    assert result.exit_code == 0, result.output
    assert "key_gate" in result.output and "features" not in result.output  # a vector state has none to choose
    spec = read(folder / "mine.yaml")
    assert (spec.title, spec.decay.family, spec.normalizer.kind) == ("My own", "griffin", "sum")
    assert (spec.readout.kind, spec.readout.skip, spec.readout.gate) == ("exclusive", "D", None)


def test_an_answer_may_be_a_number_and_a_wrong_one_is_asked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new, "_at_a_terminal", lambda: True)
    result = answered("", "nothing", "99", "1", "2", "", "", "", "y")
    assert result.exit_code == 0, result.output
    assert "'nothing' is none of these" in result.output and "'99' is none of these" in result.output
    spec = read(folder / "mine.yaml")
    assert (spec.decay.type, spec.query_map.text, spec.normalizer.kind) == ("none", "elu(x) + 1", "none")
    assert spec.readout.gate is not None


def test_the_features_may_be_an_expression_of_ones_own(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new, "_at_a_terminal", lambda: True)
    result = answered("", "none", "99", "elu(y)", "elu(x) + 2", "", "", "", "")
    assert result.exit_code == 0, result.output
    assert "'99' is none of these" in result.output and "y is the unnormalised output" in result.output
    assert read(folder / "mine.yaml").key_map.text == "elu(x) + 2"


def test_leaving_in_the_middle_writes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(new, "_at_a_terminal", lambda: True)
    assert answered("My own").exit_code == 1
    assert list(folder.iterdir()) == []


def test_a_file_is_overwritten_only_by_force(recgen_command: Command, folder: Path) -> None:
    (folder / "mine.yaml").write_text("precious")
    result = recgen_command("new", "mine")
    assert result.exit_code == 2 and "--force" in result.stderr
    assert (folder / "mine.yaml").read_text() == "precious"
    assert recgen_command("new", "mine", "--force").exit_code == 0
    assert read(folder / "mine.yaml").name == "mine"


@pytest.mark.parametrize(("out", "file"), [("sub", "sub/mine.yaml"), ("sub/other.yml", "sub/other.yml")])
def test_the_file_goes_where_it_is_asked_to(out: str, file: str, recgen_command: Command, folder: Path) -> None:
    assert recgen_command("new", "mine", "--out", out).exit_code == 0
    assert read(folder / file).name == "mine"
    assert (folder / "sub" / "recgen.schema.json").is_file()


def test_the_schema_beside_it_is_the_one_that_it_names(recgen_command: Command, folder: Path) -> None:
    recgen_command("new", "mine")
    assert (folder / "mine.yaml").read_text().startswith("# yaml-language-server: $schema=recgen.schema.json\n")
    assert (folder / "recgen.schema.json").read_text() == recgen_command("schema").stdout


def test_somebody_elses_schema_is_left_alone(recgen_command: Command, folder: Path) -> None:
    (folder / "recgen.schema.json").write_text("{}")
    recgen_command("new", "mine")
    assert (folder / "recgen.schema.json").read_text() == "{}"
    recgen_command("new", "other", "--no-schema")
    assert "yaml-language-server" not in (folder / "other.yaml").read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("lambda",), "is a keyword of Python"),
        (("../mine",), "is no name"),
        (("mine", "--family", "key_gat"), "did you mean key_gate?"),
        (("mine", "--family", "griffin", "--feature-map", "relu"), "a vector state has no feature_map"),
        (("mine", "--feature-map", "rellu(x)"), "did you mean relu"),
        (("mine", "--normalizer", "mean"), "none of none, sum, max_abs or abs_sum"),
        (
            ("mine", "--family", "diagonal", "--feature-map", "elu", "--readout", "exclusive", "--gate"),
            "--family diagonal and --feature-map elu do not go together: a feature map under a complex decay is not "
            "lowered yet; --family diagonal and --readout exclusive do not go together",
        ),
        (("mine", "--family", "value_gate", "--normalizer", "sum"), "--normalizer sum do not go together: the decay"),
    ],
)
def test_what_does_not_fit_is_refused(
    arguments: tuple[str, ...], said: str, recgen_command: Command, folder: Path
) -> None:
    result = recgen_command("new", *arguments)
    shown = " ".join(line.strip(" │") for line in result.stderr.splitlines())
    assert result.exit_code == 2 and said in shown
    assert ".yaml:" not in shown
    assert list(folder.iterdir()) == []

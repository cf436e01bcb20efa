"""`recgen new`: a few questions, or options, and a commented spec."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recgen.cli.common import wrote

if TYPE_CHECKING:
    from recgen.errors import SpecError
    from recgen.spec.draft import Draft

NAME = "new"
HELP = "Write a commented spec: asks at a terminal, or takes the answers as options."
EXAMPLE = "recgen new my_gla --family key_gate --gate"

SCHEMA = "recgen.schema.json"


def run(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The operator's name, a Python identifier.")],
    family: Annotated[
        str | None, typer.Option(metavar="NAME", help="The decay family (see recgen families), or none.")
    ] = None,
    feature_map: Annotated[
        str | None,
        typer.Option(metavar="MAP", help="identity, elu, relu, square, exp, softmax, l2norm, or an expression of x."),
    ] = None,
    normalizer: Annotated[str | None, typer.Option(metavar="KIND", help="none, sum, max_abs or abs_sum.")] = None,
    readout: Annotated[str | None, typer.Option(metavar="KIND", help="inclusive or exclusive.")] = None,
    skip: Annotated[bool | None, typer.Option("--skip/--no-skip", help="Add the value, times a parameter.")] = None,
    gate: Annotated[bool | None, typer.Option("--gate/--no-gate", help="Multiply the output by a gate.")] = None,
    title: Annotated[str | None, typer.Option(metavar="TEXT", help="What it is, in one line.")] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="The file, or its folder.", show_default="NAME.yaml"),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the file.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema/--no-schema", help=f"Write {SCHEMA} beside it, for editors to complete with.")
    ] = True,
) -> None:
    """At a terminal, and without an option for the operator, each is asked for. What is left out is the default."""
    from recgen.algebra.derive import derive
    from recgen.errors import SpecError
    from recgen.files import write_atomically
    from recgen.spec import read_text
    from recgen.spec.draft import Draft
    from recgen.spec.names import refuse_operator_name
    from recgen.spec.schema import schema_text, spec_schema

    if refused := refuse_operator_name(name):
        raise typer.BadParameter("; ".join(refused), param_hint="NAME")
    path = _path(name, out)
    if path.exists() and not force:
        raise typer.BadParameter(f"{path} is there already; --force overwrites it", param_hint="--out")
    options = {
        "family": family,
        "feature_map": feature_map,
        "normalizer": normalizer,
        "readout": readout,
        "skip": skip,
        "gate": gate,
        "title": title,
    }
    given: dict[str, Any] = {key: value for key, value in options.items() if value is not None}
    draft = replace(Draft(name), **given)
    if not given and _at_a_terminal():
        draft = _asked(draft)
    chosen = [key for key in options if getattr(draft, key) != getattr(Draft(name), key)]
    if conflicts := draft.conflicts(chosen):
        raise _refused(draft, conflicts)
    beside = path.with_name(SCHEMA)
    text = draft.text(SCHEMA if schema else "")
    try:
        derive(read_text(text, str(path)), prove=False)
    except SpecError as error:
        raise _refused(draft, {tuple(chosen): error}) from None
    write_atomically(path, text)
    wrote(path)
    if schema and _is_ours(beside):
        write_atomically(beside, schema_text(spec_schema()))
        typer.echo(f"wrote {beside}, with which editors complete and explain its keys")


def _refused(draft: Draft, conflicts: Mapping[tuple[str, ...], SpecError]) -> typer.BadParameter:
    """Choices that are wrong, or do not go together, by the names of their options: the file is not written yet."""
    from recgen.errors import NotLowered
    from recgen.spec.source import listing

    said = []
    for names, error in conflicts.items():
        problem = error.problems[0]
        reason = f"{problem.text} is not lowered yet" if isinstance(error, NotLowered) else problem.reason
        if len(names) == 1:
            said.append("; ".join(filter(None, (reason, problem.fix))))
        else:
            said.append(f"{listing([_option(draft, name) for name in names], 'and')} do not go together: {reason}")
    (first, *more) = conflicts
    alone = _flag(first[0]) if len(first) == 1 and not more else None
    return typer.BadParameter("; ".join(said), param_hint=alone)


def _flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def _option(draft: Draft, key: str) -> str:
    """A choice as it is given on the command line."""
    value = getattr(draft, key)
    return _flag(key) if isinstance(value, bool) else f"{_flag(key)} {shlex.quote(value)}"


def _path(name: str, out: Path | None) -> Path:
    if out is None:
        return Path(f"{name}.yaml")
    if out.suffix in (".yaml", ".yml") and not out.is_dir():
        return out
    return out / f"{name}.yaml"


def _is_ours(schema: Path) -> bool:
    """Whether the schema may be written: there is none, or it is an older one of recgen's."""
    return not schema.exists() or '"urn:recgen:spec:' in schema.read_text(encoding="utf-8", errors="replace")


def _at_a_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _asked(draft: Draft) -> Draft:
    """The draft with an answer for each choice; only those that fit what is chosen before are offered."""
    from recgen.spec.draft import FEATURE_MAPS, NONE, NORMALIZERS, READOUTS
    from recgen.spec.families import load_families

    title = typer.prompt("Title", default="", show_default=False)
    draft = replace(draft, title=title.strip())
    families = {name: family.doc for name, family in load_families().items()}
    questions: list[tuple[str, str, Mapping[str, str]]] = [
        ("family", "How does the state forget?", {NONE: "nothing is forgotten", **families}),
        ("feature_map", "What are the features of a channel x of query and key?", FEATURE_MAPS),
        ("normalizer", "What is the output divided by?", NORMALIZERS),
        ("readout", "What does a token read?", READOUTS),
    ]
    for key, question, choices in questions:
        drafts: dict[str, Draft] = {choice: _with(draft, key, choice) for choice in choices}
        fitting = [choice for choice, chosen in drafts.items() if key == "family" or chosen.fits()]
        if len(fitting) > 1:
            refuses = partial(_refuses_map, draft) if key == "feature_map" else None
            draft = _with(draft, key, _choice(question, fitting, choices, getattr(draft, key), refuses))
    skip = typer.confirm("Add the value itself, times a learned parameter, to the output?", default=False)
    gate = typer.confirm("Multiply the output by a gate, an input of its own?", default=False)
    return replace(draft, skip=skip, gate=gate)


def _with(draft: Draft, key: str, choice: str) -> Draft:
    changed: dict[str, Any] = {key: choice}
    return replace(draft, **changed)


def _refuses_map(draft: Draft, text: str) -> str:
    """Why a text of one's own is no feature map of the draft, "" where it is one."""
    error = _with(draft, "feature_map", text).wrong()
    return "; ".join(filter(None, (error.problems[0].reason, error.problems[0].fix))) if error else ""


def _choice(
    question: str,
    offered: Iterable[str],
    meanings: Mapping[str, str],
    default: str,
    refuses: Callable[[str], str] | None = None,
) -> str:
    """One of the words that are offered, by its number or itself.

    refuses: what is wrong with an answer of one's own, where there may be one.
    """
    words = list(offered)
    typer.echo(f"\n{question}")
    for number, word in enumerate(words, 1):
        typer.echo(f"  {number:>2}  {word:<20} {meanings[word]}")
    if refuses is not None:
        typer.echo("      or an expression of x, such as sigmoid(x) ** 2")

    def meant(text: str) -> str:
        answer = text.strip()
        if answer.isdecimal() and 1 <= int(answer) <= len(words):
            return words[int(answer) - 1]
        if answer in words:
            return answer
        if refuses is not None and not answer.isdecimal():
            if wrong := refuses(answer):
                raise typer.BadParameter(wrong)
            return answer
        raise typer.BadParameter(f"{answer!r} is none of these; give a number or a word of the list")

    asked = "Number or word" if refuses is None else "Number, word or expression"
    return str(typer.prompt(asked, default=default if default in words else words[0], value_proc=meant))

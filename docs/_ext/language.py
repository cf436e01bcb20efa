"""The expression language, the decay families and the catalogue as Markdown, from the tables that the compiler uses."""

from __future__ import annotations

from collections.abc import Iterable

from catalogue import specs, table

from recgen.algebra.complex_values import COMPLEX_FUNCTIONS
from recgen.algebra.functions import LANGUAGE, Fn
from recgen.algebra.widths import WIDE
from recgen.spec.families import Family, load_families
from recgen.spec.initial import DRAWS


def functions() -> str:
    """What every expression may call."""
    return _table(LANGUAGE.values())


def feature_functions() -> str:
    """What a feature map may call beside them."""
    return _table(WIDE.values())


def complex_functions() -> str:
    """What a complex decay may call beside them."""
    return _table(fn for name, fn in COMPLEX_FUNCTIONS.items() if name not in LANGUAGE)


def draws() -> str:
    """What an initial value may call beside them."""
    return _table(DRAWS.values())


def _table(found: Iterable[Fn]) -> str:
    rows = ["| function | arguments | meaning |", "| --- | --- | --- |"]
    for fn in found:
        call, _, meaning = fn.doc.partition(": ") if ": " in fn.doc else fn.doc.partition(", ")
        rows.append(f"| {_code(call)} | {_arity(*fn.arity)} | {_cell(meaning)} |")
    return "\n".join(rows)


def _arity(least: int, most: int | None) -> str:
    return str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|") + "`"


def families() -> str:
    """The built-in families, one section each."""
    return "\n\n".join(_family(family) for family in load_families().values())


def _family(family: Family) -> str:
    lines = [f"### {family.name}", "", f"{family.doc}." + (f" Published as {family.cite}." if family.cite else ""), ""]
    which = "log" if family.log is not None else "value"
    lines += [f"- type `{family.type}`, per `{family.per}`", f"- `{which}: {family.log or family.value}`"]
    lines += [f"- input `{name}: {axes}`" for name, axes in family.inputs.items()]
    for name, param in family.params.items():
        kind = "buffer" if param.get("buffer") else "parameter"
        lines.append(f"- {kind} `{name}: {param['axes']}`, at first `{param['init']}`")
    lines += [f"- constant `{name}: {value}`" for name, value in family.constants.items()]
    if family.bounds is not None:
        lines.append(f"- ℓ between {family.bounds[0]:g} and {family.bounds[1]:g}")
    return "\n".join(lines)


def catalogue() -> str:
    """The table of README.md, its links from this folder."""
    return table(specs()).replace("](docs/operators/", "](operators/")

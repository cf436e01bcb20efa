"""The keys of a spec and of a decay family as Markdown, from their JSON Schemas: one section for each key of a spec."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.compat import StringIO

from recgen.spec.schema import family_schema, spec_schema

Schema = Mapping[str, Any]
PIPE = re.compile(r"(?<!\\)\|")
SPECIAL = re.compile(r"([*_<\[\]$|])")
KINDS = {
    "string": "text",
    "number": "a number",
    "boolean": "`true` or `false`",
    "array": "a list",
    "object": "a mapping",
}


def of_a_spec() -> str:
    """The keys of a spec."""
    whole = spec_schema()
    return "\n\n".join(_section(name, key, whole) for name, key in whole["properties"].items())


def of_a_family() -> str:
    """The keys of a family's file."""
    whole = family_schema()
    return _table(whole, whole)


def _section(name: str, key: Schema, whole: Schema) -> str:
    needed = " It has to be there." if name in whole.get("required", ()) else ""
    lines = [f"### {name}", "", _text(_description(key, whole)) + needed, "", f"- takes {_takes(key, whole)}"]
    shown = [f"`{name}: {_yaml(example)}`" for example in _found(key, whole, "examples", [])]
    if shown:
        lines += [f"- such as {' or '.join(shown)}"]
    inner = next((part for part in _parts(key, whole) if _inner(part, whole)), None)
    if inner is not None:
        lines += ["", _table(_inner(inner, whole), whole)]
    return "\n".join(lines)


def _inner(part: Schema, whole: Schema) -> Schema:
    """The schema that has the keys below a key: its own, or that of each entry whose names are free."""
    if "properties" in part:
        return part
    entry = part.get("additionalProperties")
    found = next(iter(_parts(entry, whole)), {}) if isinstance(entry, Mapping) else {}
    return found if "properties" in found else {}


def _table(part: Schema, whole: Schema) -> str:
    lines = ["| key | takes | meaning | such as |", "| --- | --- | --- | --- |"]
    for name, key in part["properties"].items():
        needed = " It has to be there." if name in part.get("required", ()) else ""
        examples = ", ".join(f"`{_yaml(example)}`" for example in _found(key, whole, "examples", [])[:3])
        cells = (f"`{name}`", _takes(key, whole), _text(_description(key, whole)) + needed, examples)
        lines.append("| " + " | ".join(PIPE.sub(r"\\|", cell) for cell in cells) + " |")
    return "\n".join(lines)


def _parts(key: Schema, whole: Schema) -> Iterator[Schema]:
    """What a key may be, references followed: the schema itself, or each of its alternatives."""
    if "$ref" in key:
        yield from _parts(whole["$defs"][key["$ref"].rpartition("/")[2]], whole)
    for alternative in (*key.get("anyOf", ()), *key.get("oneOf", ()), *key.get("allOf", ())):
        yield from _parts(alternative, whole)
    if {"type", "enum", "const", "properties"} & set(key):
        yield key


def _found(key: Schema, whole: Schema, what: str, default: Any) -> Any:
    """What the key itself says, else what one of its parts does."""
    return next((part[what] for part in (key, *_parts(key, whole)) if what in part), default)


def _description(key: Schema, whole: Schema) -> str:
    return str(_found(key, whole, "description", ""))


def _takes(key: Schema, whole: Schema) -> str:
    words: list[str] = []
    for part in _parts(key, whole):
        if "enum" in part:
            words += [f"`{word}`" for word in part["enum"]]
        else:
            kinds = part.get("type", ())
            words += [KINDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds) if kind in KINDS]
    found = list(dict.fromkeys(words))
    return " or ".join(filter(None, [", ".join(found[:-1]), *found[-1:]]))


def _yaml(value: Any) -> str:
    """A value on one line, as a spec has it."""
    writer, text = YAML(), StringIO()
    writer.default_flow_style = True
    writer.width = 1000
    writer.dump(value, text)
    return text.getvalue().removesuffix("...\n").strip()


def _text(text: str) -> str:
    """A description as Markdown: code as it is, and no sign of Markdown's outside it."""
    pieces = text.split("`")
    return "`".join(SPECIAL.sub(r"\\\1", piece) if n % 2 == 0 else piece for n, piece in enumerate(pieces))

"""Text that is no YAML: where the mistake is, what it is, and what to write instead.

A YAML reader stops where it can go on no longer, which is often a line or more behind the mistake.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ruamel.yaml.error import MarkedYAMLError

QUOTE = "put the whole value in quotes"
_KEY = re.compile(r"\s*(?P<key>[^\s:#'\"{\[-][^:#]*?)\s*:(?=\s|$)")


@dataclass(frozen=True)
class Fault:
    """position: an offset into the text. found: the text that stands there, "" for its first character."""

    position: int
    reason: str
    fix: str
    found: str = ""


def fault_of(text: str, error: MarkedYAMLError) -> Fault:
    """What the YAML reader's error comes from."""
    context, problem = error.context or "", error.problem or ""
    at = min(error.problem_mark.index, len(text)) if error.problem_mark else 0
    opened = min(error.context_mark.index, len(text)) if error.context_mark else at
    if "'\\t'" in problem:
        return Fault(at, "a tab stands where only spaces may", "indent with spaces")
    if "mapping values are not allowed" in problem:
        return _second_colon(text, at)
    if "simple key" in context:
        return _without_colon(text, opened)
    if "quoted scalar" in context:
        if "escape" in problem or "escape" in context:
            return Fault(
                max(at - 1, 0), "no escape of YAML begins so", "write the backslash twice, or use single quotes"
            )
        return Fault(opened, "this quote is never closed", "close it at the end of the value")
    if "flow" in context:
        pair = text[opened : opened + 1]
        closing = {"{": "}", "[": "]"}.get(pair)
        if closing is None:
            return Fault(at, f"{context} {problem}", QUOTE)
        if at >= len(text.rstrip()) or text.count(pair, opened, at) > text.count(closing, opened, at):
            fix = f"close it with {closing}; a comma stands between two entries"
            return Fault(opened, f"this {pair} is not closed, or a comma is missing in it", fix)
    if "<block mapping start>" in problem:
        return _indented(text, at)
    if "block mapping" in context and "'-'" in problem:
        return Fault(at, "a list begins here, between keys", "write `key: value`")
    if "alias" in context or "anchor" in context or "cannot start any token" in problem:
        return Fault(
            at if "cannot" in problem else opened, f"a value cannot begin with {text[opened : opened + 1]}", QUOTE
        )
    reason = " ".join(part for part in (context, problem) if part)
    return Fault(at, reason, f"{QUOTE}, or indent the line like the one above")


def _second_colon(text: str, at: int) -> Fault:
    """A colon behind what cannot be a key: a value with a colon in it, or a line that goes on from the one above."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    key = _KEY.match(line)
    if key is None or start + key.end() - 1 < at:
        value = line[key.end() :].strip() if key else line.strip()
        return Fault(at, "a second : stands in this line", f'{QUOTE}, such as "{value[:40]}"')
    above = [row for row in text[:start].split("\n") if row.strip() and not row.lstrip().startswith("#")]
    keyed = next((row for row in reversed(above) if _KEY.match(row)), ":")
    beside = _indent(line) <= _indent(keyed) or keyed.rstrip().endswith(":")
    if above and beside and not _KEY.match(above[-1]):
        return _without_colon(text, text.rindex(above[-1], 0, start))
    return _indented(text, at)


def _without_colon(text: str, start: int) -> Fault:
    """A line that should have been `key: value`."""
    start = text.rfind("\n", 0, start) + 1
    words = text[start:].split("\n", 1)[0]
    key, _, value = words.split(" #")[0].strip().partition(":")
    if not value:
        key, _, value = key.partition(" ")
    position = start + len(words) - len(words.lstrip())
    meant = f"{key}: {value.strip() or '…'}"
    return Fault(position, "there is no key with a colon and a space in this line", f"write {meant}", words.strip())


def _indented(text: str, at: int) -> Fault:
    """A key that stands farther left or right than those beside it."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    above = [row for row in text[:start].split("\n") if _KEY.match(row)]
    there = f", like {_KEY.match(above[-1])['key']} above it" if above else ""  # type: ignore[index]
    fix = f"begin it in column {_indent(above[-1]) + 1 if above else 1}{there}"
    return Fault(start + _indent(line), "the key stands under no other, by its indentation", fix, line.strip())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())

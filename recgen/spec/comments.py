"""The comments of a YAML text: where each stands, and what it says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from recgen.spec.document import Node, Scalar, Sequence


@dataclass(frozen=True)
class Comment:
    """One comment, from its # to the end of its line. behind: something stands before it there. apart: an empty line
    is above it."""

    start: int
    text: str
    behind: bool
    apart: bool


def comments_of(text: str, root: Node) -> list[Comment]:
    """Every comment of the text, in its order."""
    inside = {place for start, end in _spans(root) for place in range(start, end)}
    found = []
    start = 0
    above = None
    for line in text.split("\n"):
        for column, character in enumerate(line):
            if character != "#" or start + column in inside or line[column - 1 : column].strip():
                continue
            behind = bool(line[:column].strip())
            found.append(Comment(start + column, _spaced(line[column:]), behind, not behind and above == ""))
            break
        start += len(line) + 1
        above = line.strip()
    return found


def _spaced(comment: str) -> str:
    """`#word` → `# word`; rows of # stay as they are."""
    text = comment.rstrip()
    return f"# {text[1:]}" if text[1:2] not in ("", " ", "#", "!") else text


def _spans(node: Node) -> Iterator[tuple[int, int]]:
    """Where the keys and values stand, in which a # is a # (the first line of a block of text is outside)."""
    if isinstance(node, Scalar):
        first = node.raw.find("\n") if node.raw[:1] in ("|", ">") else 0
        yield node.start + max(first, 0), node.end
    elif isinstance(node, Sequence):
        for item in node.items:
            yield from _spans(item)
    else:
        for name, key in node.keys.items():
            yield from _spans(key)
            yield from _spans(node.values[name])

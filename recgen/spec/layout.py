"""The normal form of a spec or a family as text: order of the keys, quotes, spaces. Comments stay with their key."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from recgen.errors import SpecError
from recgen.spec.comments import Comment, comments_of
from recgen.spec.document import Mapping, Node, Scalar, Sequence, decode, parse_document
from recgen.spec.families import read_family
from recgen.spec.keys import FamilyShape, Shape, SpecShape
from recgen.spec.reader import Folders, read_text
from recgen.spec.schema import HINT
from recgen.spec.shape import check_shape, keys_at
from recgen.spec.source import Findings, Source
from recgen.spec.write import is_plain

WIDTH = 120


def normal_form(text: str, filename: str = "<spec>", *, families: Folders = ()) -> str:
    """The text of a spec, or of a decay family, in its normal form, which means the same.

    Its keys and their values have to be ones that there are; whether they make an operator is left to `read_text`.
    Raises SpecError where they are not.
    """
    source = Source(filename, text.replace("\r\n", "\n").replace("\r", "\n"))
    root = parse_document(source)
    shape: type[Shape] = FamilyShape if "type" in root.values else SpecShape
    findings = Findings()
    check_shape(root, shape, source, findings)
    findings.raise_if_any()
    written = _Writer(source, root, shape).text()
    if not _same(source, Source(filename, written), shape, families):
        raise SpecError(source.problem(root.start, "", "the normal form of this text would mean something else"))
    return written


def _same(before: Source, after: Source, shape: type[Shape], families: Folders) -> bool:
    """Whether two texts hold the same, and mean the same where the first means anything."""
    try:
        same = _content(parse_document(before)) == _content(parse_document(after))
    except SpecError:
        return False
    try:
        meaning = _meaning(before, shape, families)
    except SpecError:
        return same
    try:
        return same and _meaning(after, shape, families) == meaning
    except SpecError:
        return False


def _content(node: Node) -> object:
    """What a document holds, but for the order of its keys, spaces and quotes."""
    if isinstance(node, Mapping):
        return {key: _content(value) for key, value in node.values.items()}
    if isinstance(node, Sequence):
        return [_content(item) for item in node.items]
    return node.text.split()


def _meaning(source: Source, shape: type[Shape], families: Folders) -> object:
    if shape is FamilyShape:
        return read_family(source)
    return read_text(source.text, source.file, families=families)


@dataclass
class _Entry:
    """One key of a mapping, with the comments above it and behind it."""

    key: Scalar
    value: Node
    above: list[Comment] = field(default_factory=list)
    behind: list[Comment] = field(default_factory=list)
    apart: bool = False


class _Writer:
    """Writes one document."""

    def __init__(self, source: Source, root: Mapping, shape: type[Shape]) -> None:
        self.source = source
        self.root = root
        self.shape = shape
        self.comments = comments_of(source.text, root)
        self.entries: dict[int, _Entry] = {}
        self._collect(root)
        self.head, self.foot = self._attach()

    def text(self) -> str:
        lines = [line for comment in self.head for line in self._comment(comment, 0)]
        if self.head and (first := next(iter(self._ordered(self.root, [])))).apart is False:
            first.apart = not self.head[-1].text.startswith(HINT)
        lines += self._block(self.root, [], 0)
        lines += [line for comment in self.foot for line in self._comment(comment, 0)]
        while lines and not lines[0]:
            lines.pop(0)
        return "\n".join(lines) + "\n"

    def _collect(self, mapping: Mapping) -> None:
        """The entries that get a line of their own, by the place of their key."""
        for name, key in mapping.keys.items():
            value = mapping.values[name]
            entry = _Entry(key, value, apart=self._blank_above(key.start))
            self.entries[key.start] = entry
            if isinstance(value, Mapping) and self._is_block(value):
                self._collect(value)

    def _is_block(self, mapping: Mapping) -> bool:
        """Whether a mapping is written over several lines: as it was, or because of comments in it."""
        if not mapping.values:
            return False
        flow = self.source.text[mapping.start] == "{"
        inside = any(mapping.start < comment.start < mapping.end for comment in self.comments)
        return not flow or inside

    def _attach(self) -> tuple[list[Comment], list[Comment]]:
        """Gives every comment to the entry that it stands behind or above; others stand at the top or the end.

        Those above the first key, where a `---` is above it too, are about the document.
        """
        head: list[Comment] = []
        foot: list[Comment] = []
        starts = sorted(self.entries)
        opened = bool(re.search(r"^---(?:\s|$)", self.source.text[: starts[0]], re.MULTILINE))
        for comment in self.comments:
            before = [start for start in starts if start < comment.start]
            after = [start for start in starts if start > comment.start]
            if comment.behind and before:
                self.entries[before[-1]].behind.append(comment)
            elif not before and (opened or comment.text.startswith(HINT) or not self._touches(comment, after[0])):
                head.append(comment)
            elif after:
                self.entries[after[0]].above.append(comment)
            else:
                foot.append(comment)
        head.sort(key=lambda comment: not comment.text.startswith(HINT))
        return head, foot

    def _touches(self, comment: Comment, start: int) -> bool:
        """Whether no line is empty between a comment and the key below it."""
        return "\n\n" not in "\n".join(line.strip() for line in self.source.text[comment.start : start].split("\n"))

    def _blank_above(self, position: int) -> bool:
        above = self.source.text[:position].split("\n")[-2:-1]
        return bool(above) and not above[0].strip()

    def _ordered(self, mapping: Mapping, path: list[str | int]) -> list[_Entry]:
        """The entries of a mapping: in the order of the reader's keys; the author's own names as they are."""
        known = keys_at(self.shape, path)
        keys = sorted(mapping.keys.values(), key=lambda key: known.index(key.text) if key.text in known else len(known))
        return [self.entries.get(key.start) or _Entry(key, mapping.values[key.text]) for key in keys]

    def _block(self, mapping: Mapping, path: list[str | int], indent: int) -> list[str]:
        lines: list[str] = []
        for entry in self._ordered(mapping, path):
            above = [line for comment in entry.above for line in self._comment(comment, indent)]
            apart = entry.apart and (not entry.above or above[-1] != "")
            if path and not lines:
                apart, above = False, above[1:] if above[:1] == [""] else above
            lines += above + ([""] if apart else []) + self._entry(entry, path, indent)
        return lines

    def _entry(self, entry: _Entry, path: list[str | int], indent: int) -> list[str]:
        head = " " * indent + _quoted(entry.key.text) + ":"
        behind = "".join(f"  {comment.text}" for comment in entry.behind)
        value, below = entry.value, [*path, entry.key.text]
        if isinstance(value, Scalar) and value.raw[:1] == "|" and "\n" in value.text.strip():
            rows = [f"{' ' * (indent + 2)}{row}".rstrip() for row in value.text.strip().split("\n")]
            return [f"{head} |-{behind}", *rows]
        line = f"{head} {self._flow(value, below, nested=False)}"
        if isinstance(value, Mapping) and (self._is_block(value) or (value.values and len(line) > WIDTH)):
            return [head + behind, *self._block(value, below, indent + 2)]
        if isinstance(value, Scalar) and len(line) > WIDTH and not line.endswith('"') and "  " not in line.strip():
            rows = _wrapped(head, value.text, indent)
            return [*rows[:-1], rows[-1] + behind]
        return [line + behind]

    def _flow(self, node: Node, path: list[str | int], nested: bool = True) -> str:
        if isinstance(node, Mapping):
            entries = self._ordered(node, path)
            shown = (f"{_quoted(e.key.text)}: {self._flow(e.value, [*path, e.key.text])}" for e in entries)
            return "{" + ", ".join(shown) + "}"
        if isinstance(node, Sequence):
            return "[" + ", ".join(self._flow(item, path) for item in node.items) + "]"
        return node.text if node.plain else _quoted(node.text.strip(), nested)

    def _comment(self, comment: Comment, indent: int) -> list[str]:
        return ([""] if comment.apart else []) + [" " * indent + comment.text]


def _quoted(text: str, nested: bool = False) -> str:
    """A text without quotes where it needs none, and where no other reader of YAML takes it for true or false."""
    plain = is_plain(text) and text.lower() not in ("true", "false") and not (nested and "," in text)
    return text if plain else json.dumps(text, ensure_ascii=False)


def _wrapped(head: str, text: str, indent: int) -> list[str]:
    """A long value over several lines, cut at its spaces."""
    rows = [head]
    for word in text.split(" "):
        if rows[-1] != head and len(rows[-1]) + 1 + len(word) > WIDTH:
            rows.append(" " * (indent + 2) + word)
        else:
            rows[-1] += " " + word
    return rows


def normalise(path: Path, *, check: bool = False, families: Folders = ()) -> bool:
    """Whether the file is in its normal form already; unless `check`, it is afterwards.

    Raises SpecError for a file that is wrong, OSError for one that cannot be read or written.
    """
    from recgen.files import write_atomically

    data = path.read_bytes()
    normal = normal_form(decode(data, str(path)), str(path), families=families)
    if normal.encode("utf-8") == data:
        return True
    if not check:
        write_atomically(path, normal)
    return False

"""What the readers of a document share: its text, what is wrong so far, and how an expression in it is read."""

from __future__ import annotations

from dataclasses import dataclass, field

from recgen.spec.document import Mapping, Node, Scalar
from recgen.spec.expression import Reading, Scope, read_expression
from recgen.spec.model import Expr
from recgen.spec.source import Findings, Source


@dataclass(frozen=True)
class Context:
    """One document being read: a spec or a decay family."""

    source: Source
    root: Mapping
    findings: Findings = field(default_factory=Findings)

    def node(self, *path: str) -> Node | None:
        """The node at a path of keys, None when it is not there."""
        node: Node | None = self.root
        for part in path:
            node = node.values.get(part) if isinstance(node, Mapping) else None
        return node

    def key_position(self, *path: str) -> int:
        """Where the key at a path stands; where the deepest of its parents stands when it is missing."""
        node: Node | None = self.root
        position = self.root.start
        for part in path:
            if not isinstance(node, Mapping) or part not in node.values:
                break
            position, node = node.keys[part].start, node.values[part]
        return position

    def position(self, *path: str) -> int:
        """Where the value at a path stands; its key's place when it is a mapping, or missing."""
        node = self.node(*path)
        return node.start if isinstance(node, Scalar) and node.raw else self.key_position(*path)

    def text(self, *path: str) -> str:
        """The single value at a path as it is written, "" when there is none."""
        node = self.node(*path)
        return node.raw if isinstance(node, Scalar) else ""

    def refuse(self, position: int, text: str, reason: str, fix: str = "") -> None:
        self.findings.add(self.source.problem(position, text, reason, fix))

    def refuse_at(self, path: tuple[str, ...], reason: str, fix: str = "") -> None:
        """Points at the value at a path, or its key when it has none of its own."""
        self.refuse(self.position(*path), self.text(*path), reason, fix)

    def expression(self, scalar: Scalar, scope: Scope) -> Expr | None:
        """The expression in a value, or None after adding what is wrong with it."""
        reading = read_expression(scalar.text, scope)
        if isinstance(reading, Reading):
            return Expr(reading.text, reading.tree, self.source.location(scalar.position(0)))
        for error in reading:
            text = scalar.text[error.start : error.end]
            self.refuse(scalar.position(error.start), text, error.reason, error.fix)
        return None

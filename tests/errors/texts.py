"""The texts of recgen's errors, as its sources hold them: what the pages of errors must show."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

_WORDS = re.compile(r"(?:\S+\s+)*?\S*[a-z]{2,}\S*\s+\S*[a-z]{2,}\S*(?:\s+\S+)*?\s+\S*[a-z]{2,}\S*", re.IGNORECASE)
_SAYS = {"reason", "fix", "hint", "what", "meant", "given", "found", "wrong", "example", "declare", "missing"}
_CALLS = {"complain", "BadParameter"}


def is_text(literal: str) -> bool:
    """Whether a part of a text holds three words or more."""
    return bool(_WORDS.search(literal))


def texts_in(path: Path, only_errors: bool = False) -> dict[str, int]:
    """Every text of a source file that is no docstring → its line.

    only_errors: of those, the ones that are raised, complained of, or called a reason or a fix.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    roots = [node for node in nodes if _is_error(node)] if only_errors else [tree]
    parts = [node for root in roots for node in ast.walk(root) if isinstance(node, ast.Constant)]
    texts = [node for node in parts if isinstance(node.value, str) and id(node) not in docs]
    return {node.value: node.lineno for node in texts if is_text(node.value)}


def _is_error(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        names = {name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        return bool(names & _SAYS)
    if isinstance(node, ast.Call):
        return (node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")) in _CALLS
    return isinstance(node, ast.Raise)


def says_something(path: Path) -> bool:
    """Whether a source file raises anything with a text."""
    return bool(texts_in(path, only_errors=True))


_RAISED = re.compile(r"raise \w+\((f?)\"(.*)\"\)")


def texts_of_templates(folder: Path) -> Iterator[tuple[str, str]]:
    """(template, text) of the errors of emitted modules, without what is filled in."""
    for template in sorted(folder.glob("*.j2")):
        for _, text in _RAISED.findall(template.read_text(encoding="utf-8")):
            for part in re.split(r"\{\{.*?\}\}|\{%.*?%\}|\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}", text):
                if is_text(part):
                    yield template.name, part

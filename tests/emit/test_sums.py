"""What becomes one number out of a whole tile is one sum, not a sum of sums.

Triton 3.6 stops with an error of its own at a sum of what is left of a tile by a sum, where the tile comes out of a
matrix product on sm_100.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from recgen.resources import catalogue

GENERATED = Path(__file__).resolve().parents[2] / "generated"


def sums_of_sums(source: str) -> list[str]:
    """The calls of tl.sum whose first argument is one."""

    def is_sum(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node.func) == "tl.sum"

    return [ast.unparse(node) for node in ast.walk(ast.parse(source)) if is_sum(node) and is_sum(node.args[0])]


@pytest.mark.parametrize("name", list(catalogue()))
def test_no_kernel_sums_a_sum(name: str) -> None:
    assert sums_of_sums((GENERATED / f"{name}.py").read_text(encoding="utf-8")) == []


def test_a_decay_per_head_sums_the_whole_tile() -> None:
    assert "d_chunk_decay = tl.sum(d_S * S)" in (GENERATED / "simple_gla.py").read_text(encoding="utf-8")
    assert sums_of_sums("x = tl.sum(tl.sum(a * b, 0), 0) + tl.sum(c, 1)") == ["tl.sum(tl.sum(a * b, 0), 0)"]

"""Which address products of a kernel could overflow 32 bits, read from Triton's IR."""

from __future__ import annotations

import re

_VALUE = re.compile(r"%[\w#]+")
_DEFINITION = re.compile(r"^\s*(%\w+)(?::\d+)? = \"?([\w.]+)\"?(.*)$")
_NARROW = re.compile(r": (tensor<[\dx]+xi32>|i32)\s")
_CARRIES_SIZE = (
    "arith.addi",
    "arith.subi",
    "arith.divsi",
    "arith.remsi",
    "arith.minsi",
    "arith.maxsi",
    "arith.divui",
    "tt.splat",
    "tt.expand_dims",
    "tt.broadcast",
    "arith.select",
    "tt.addptr",
)
_CONSTANT = ("arith.constant", "tt.make_range")


def narrow_products(ttir: str) -> list[str]:
    """32-bit products of two values that are only known when the kernel runs, or of a program id with anything.

    Such a product wraps once a tensor has 2³¹ elements.
    """
    operation: dict[str, tuple[str, list[str]]] = {}
    products: list[tuple[str, list[str]]] = []
    for line in ttir.splitlines():
        found = _DEFINITION.match(line)
        if not found:
            continue
        name, kind, rest = found.groups()
        rest = rest.split(" loc(")[0]
        operands = _VALUE.findall(rest)
        operation[name] = (kind, operands)
        if kind == "arith.muli" and _NARROW.search(rest + " "):
            products.append((line.split(" loc(")[0].strip(), operands))
    return [
        line
        for line, operands in products
        if not any(_is_constant(x, operation) for x in operands) or any(_is_program(x, operation) for x in operands)
    ]


def _is_constant(value: str, operation: dict[str, tuple[str, list[str]]]) -> bool:
    """Made of constants only. Loop variables and kernel arguments have no definition and are not."""
    if value not in operation:
        return False
    kind, operands = operation[value]
    return kind in _CONSTANT or (kind in _CARRIES_SIZE and all(_is_constant(x, operation) for x in operands))


def _is_program(value: str, operation: dict[str, tuple[str, list[str]]]) -> bool:
    """Derived from a program id without having been widened."""
    if value not in operation:
        return False
    kind, operands = operation[value]
    return kind == "tt.get_program_id" or (kind in _CARRIES_SIZE and any(_is_program(x, operation) for x in operands))

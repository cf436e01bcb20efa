"""The plan stage: sizes, then schedule, each checked before the next stage sees it."""

from __future__ import annotations

from recgen.algebra.derive import EXPONENT, Derivation
from recgen.algebra.program import Program

from .check import check_kernel, check_program
from .fused import fused, whole
from .kernels import Plan
from .scan import scan
from .split import alone
from .tiles import ordered
from .total import total

SIZES = (16, 32, 64, 128)
PRODUCTS = 64  # rows that keep a matrix product's tiles full where one product makes all pair weights
STEPS = 32  # tokens that follow each other in a scan: few, and few enough chunks to hand the state on through
LEVELS = 16  # rows where every level of the pair tree costs a product: fewer levels, and the state is cheap to hand on


def plan(derivation: Derivation) -> Plan:
    """The kernels and sizes for a derived recurrence."""
    program, adjoint = derivation.program, derivation.adjoint
    check_program(program)
    check_program(adjoint)
    if derivation.factorisation == "scan":
        return _scan_plan(program, adjoint)
    if derivation.factorisation == "total":
        assert derivation.pairs is not None
        return _total_plan(program, adjoint, derivation.pairs)
    longest = _longest_chunk(derivation)
    sizes = tuple(s for s in SIZES if not longest or s <= longest)
    default = LEVELS if derivation.factorisation == "tree" else min(PRODUCTS, max(sizes))
    forward, backward, epilogue = fused(program, adjoint)
    found = Plan(
        program,
        adjoint,
        derivation.factorisation,
        sizes,
        default,
        longest,
        forward,
        backward,
        epilogue,
        alone(program, adjoint, backward),
        whole(backward),
    )
    return ordered(_checked(found))


def _scan_plan(program: Program, adjoint: Program) -> Plan:
    runs, forward, backward, epilogue = scan(program, adjoint)
    return _checked(Plan(program, adjoint, "scan", SIZES, STEPS, 0, forward, backward, epilogue, runs))


def _total_plan(program: Program, adjoint: Program, pairs: Program) -> Plan:
    sums, forward, backward, epilogue = total(program, adjoint)
    check_program(pairs)
    found = Plan(program, adjoint, "total", SIZES, PRODUCTS, 0, forward, backward, epilogue, sums=sums, pairs=pairs)
    return _checked(found)


def _checked(found: Plan) -> Plan:
    for kernel in found.kernels:
        check_kernel(kernel)
    return found


def _longest_chunk(derivation: Derivation) -> int:
    """The longest chunk whose plain factors keep float32's digits; 0 where no factor can grow."""
    if derivation.factorisation != "plain" or not derivation.recurrence.structure or derivation.bounds is None:
        return 0
    reach = EXPONENT / max(-derivation.bounds.lo, EXPONENT / 65536)
    return 1 << (int(reach).bit_length() - 1)

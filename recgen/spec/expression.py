"""Syntax tree → sympy, for the names that are known where the expression stands.

Nothing is evaluated: a number is an exact rational, a name is one of the scope's symbols, a function is one of the
language's. What sympy could choke on (towers of powers, endless numbers, long products of complex values) is refused
before it is built, and complex values are where a scope has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction

import sympy
from sympy import S

from recgen.algebra import precise
from recgen.algebra.complex_values import COMPLEX_FUNCTIONS, is_complex, written_out
from recgen.algebra.functions import COMPARISONS, LANGUAGE, Fn
from recgen.algebra.widths import WIDE
from recgen.spec import syntax
from recgen.spec.effort import MAX_EXPONENT, check_arguments, check_effort, degree
from recgen.spec.initial import DRAWS, is_random
from recgen.spec.names import STATE_NAMES, refuse_tensor_name
from recgen.spec.source import listing, near, suggestion
from recgen.spec.syntax import Call, Chain, Compare, Name, Negate, Node, Number, Power
from recgen.spec.tokens import ExpressionError

MAX_MAGNITUDE = 1e300
MAX_BITS = 4096
MAX_ARGUMENTS = 6
MAX_COMPLEX_TERMS = 1000

LINEARITY = (
    "the recurrence must be linear across time, so the state may enter no decay, weight, feature, query, key or value"
)


@dataclass(frozen=True)
class Scope:
    """What an expression may use.

    what: the expression's own name, as in "the decay".
    symbols: every name with its symbol, or the expression that it stands for.
    elsewhere: names that exist, but not here → (reason, fix).
    constants: names that stand for numbers.
    functions: the functions by name.
    declared: the keys under which the author may add names to it, "" where there are none.
    """

    what: str
    symbols: Mapping[str, sympy.Expr]
    elsewhere: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    constants: Mapping[str, Number] = field(default_factory=dict)
    functions: Mapping[str, Fn] = field(default_factory=lambda: LANGUAGE)
    declared: str = "inputs or params"


@dataclass(frozen=True)
class Reading:
    """An expression that was understood: its normalised text and its tree."""

    text: str
    tree: sympy.Expr


def read_expression(text: str, scope: Scope) -> Reading | list[ExpressionError]:
    """The expression, or everything that is wrong with it. Never raises for any text."""
    try:
        node = syntax.parse(text)
    except ExpressionError as error:
        return [error]
    errors = _check_names(node, scope)
    if errors:
        return errors
    node = _substitute(node, scope.constants)
    try:
        tree = _Builder(scope).value(node)
        _check_size(tree, node)
    except ExpressionError as error:
        return [error]
    return Reading(syntax.unparse(node), tree)


def number_node(text: str, value: Fraction) -> Number:
    """A constant's value as a number of the language."""
    return Number(text, value, 0, 0)


def _check_names(node: Node, scope: Scope) -> list[ExpressionError]:
    errors: list[ExpressionError] = []
    for part in _parts(node):
        if isinstance(part, Name) and part.name not in scope.symbols and part.name not in scope.constants:
            errors.append(ExpressionError(part.start, part.end, *_unknown_name(part.name, scope)))
        elif isinstance(part, Call):
            refused = _refuse_call(part, scope)
            if refused:
                errors.append(ExpressionError(part.start, part.start + len(part.function), *refused))
    draws = [part for part in _parts(node) if isinstance(part, Call) and part.function in DRAWS]
    for extra in draws[1:] if not errors else []:
        reason = "one expression draws one random number"
        errors.append(ExpressionError(extra.start, extra.start + len(extra.function), reason, "keep one of the draws"))
    return errors or check_effort(_parts(node))


def _parts(node: Node) -> list[Node]:
    """The node and everything below it, in the order of the text."""
    match node:
        case Negate(operand=operand):
            below = [operand]
        case Chain(first=first, rest=rest):
            below = [first, *(item for _, item in rest)]
        case Power(base=base, exponent=exponent):
            below = [base, exponent]
        case Call(arguments=arguments):
            below = list(arguments)
        case Compare(left=left, right=right):
            below = [left, right]
        case _:
            below = []
    return [node, *(part for item in below for part in _parts(item))]


def _unknown_name(name: str, scope: Scope) -> tuple[str, str]:
    if name in scope.elsewhere:
        return scope.elsewhere[name]
    if name in STATE_NAMES:
        fix = "use inputs and parameters only"
        if "inputs" in scope.declared and not refuse_tensor_name(name):
            fix += f", or declare an input {name}"
        return f"{name} is {STATE_NAMES[name]} of the recurrence: {LINEARITY}", fix
    if name in scope.functions:
        return f"{name} is a function", f"write {name}(…)"
    known = [*scope.symbols, *scope.constants]
    close = near(name, known)
    own = "a name of your own" if refuse_tensor_name(name) else name
    declare = f"declare {own} under {scope.declared}" if scope.declared else ""
    if close:
        return f"{name} is not declared", f"did you mean {close}?" + (f" Otherwise {declare}" if declare else "")
    here = f"known here: {listing(known)}" if known else ""
    return f"{name} is not declared", "; ".join(filter(None, (declare, here)))


def _refuse_call(call: Call, scope: Scope) -> tuple[str, str] | None:
    name, given = call.function, len(call.arguments)
    if name not in scope.functions:
        if name in scope.symbols:
            return f"{name} is a value, not a function", f"write {name} * (…) for a product"
        if name in DRAWS:
            return f"{name} draws random numbers, which only an `init` may do", "use it in a parameter's init"
        if name == "complex":
            return f"{scope.what} is real", "complex values enter the log of a decay per key, and its query and key"
        if name in WIDE:
            return f"{name} takes the whole width of a token, and {scope.what} sees one channel", "only feature_map may"
        functions = listing(sorted(scope.functions))
        return f"there is no function {name}", suggestion(name, scope.functions, f"the functions are {functions}")
    least, most = scope.functions[name].arity
    most = MAX_ARGUMENTS if most is None else most
    if not least <= given <= most:
        needed = str(least) if least == most else f"{least} to {most}"
        plural = "" if needed == "1" else "s"
        return f"{name} takes {needed} argument{plural}, {given} given", scope.functions[name].doc
    return None


def _substitute(node: Node, constants: Mapping[str, Number]) -> Node:
    """The same tree with every constant's name replaced by its value."""
    if not constants:
        return node
    match node:
        case Name(name=name, start=start, end=end) if name in constants:
            number = constants[name]
            positive = Number(number.text.lstrip("-"), abs(number.value), start, end)
            return Negate(positive, start, end) if number.value < 0 else positive
        case Negate(operand=operand):
            return Negate(_substitute(operand, constants), node.start, node.end)
        case Chain(first=first, rest=rest):
            kept = [(operator, item) for operator, item in rest if not _is_one(operator, item, constants)]
            items = [(operator, _substitute(item, constants)) for operator, item in kept]
            left = _substitute(first, constants)
            return Chain(left, tuple(items), node.start, node.end) if items else left
        case Power(base=base, exponent=exponent):
            return Power(_substitute(base, constants), _substitute(exponent, constants), node.start, node.end)
        case Call(function=function, arguments=arguments):
            return Call(function, tuple(_substitute(item, constants) for item in arguments), node.start, node.end)
        case Compare(operator=operator, left=left, right=right):
            return Compare(operator, _substitute(left, constants), _substitute(right, constants), node.start, node.end)
    return node


def _is_one(operator: str, node: Node, constants: Mapping[str, Number]) -> bool:
    """Whether this is `* c` or `/ c` with a constant c that is 1."""
    return operator in "*/" and isinstance(node, Name) and node.name in constants and constants[node.name].value == 1


class _Builder:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def value(self, node: Node) -> sympy.Expr:
        """The node as a sympy expression. Raises ExpressionError."""
        if isinstance(node, Compare):
            fix = "write where(condition, a, b)"
            raise ExpressionError(node.start, node.end, "a comparison is no number", fix)
        try:
            tree = self._build(node)
        except (ValueError, TypeError, ArithmeticError, NotImplementedError, RecursionError) as error:
            reason = str(error) if isinstance(error, ValueError) and str(error) else "this cannot be built"
            raise ExpressionError(node.start, node.end, reason, "write it in a simpler way") from None
        return _checked(tree, node)

    def _build(self, node: Node) -> sympy.Expr:
        match node:
            case Number(value=value):
                return sympy.Rational(value.numerator, value.denominator)
            case Name(name=name):
                return self.scope.symbols[name]
            case Negate(operand=operand):
                return -self.value(operand)
            case Chain(first=first, rest=rest):
                return self._chain(first, rest)
            case Power(base=base, exponent=exponent):
                return self._power(self.value(base), self.value(exponent), exponent)
            case Call(function=function, arguments=arguments):
                values = self._arguments(function, arguments)
                self._check_real(function, values, arguments)
                check_arguments(node, values)
                return self.scope.functions[function].build(*values)
        raise TypeError(f"not a value: {node!r}")

    def _chain(self, first: Node, rest: tuple[tuple[str, Node], ...]) -> sympy.Expr:
        added = rest[0][0] in "+-"
        items = [self.value(first)]
        for operator, node in rest:
            item = self.value(node)
            if operator == "/" and item.is_zero:
                raise ExpressionError(node.start, node.end, "division by zero", "divide by what is not 0")
            items.append(-item if operator == "-" else 1 / item if operator == "/" else item)
        return sympy.Add(*items) if added else sympy.Mul(*items)

    def _power(self, base: sympy.Expr, exponent: sympy.Expr, node: Node) -> sympy.Expr:
        if exponent.is_number and abs(exponent) > MAX_EXPONENT:
            reason = f"the exponent is larger than {MAX_EXPONENT}"
            raise ExpressionError(node.start, node.end, reason, "write a smaller power, or exp(n * log(x))")
        if exponent.is_number and base.has(sympy.Add) and abs(exponent) * degree(base) > MAX_EXPONENT:
            reason = f"powers within powers make a degree of more than {MAX_EXPONENT}"
            raise ExpressionError(node.start, node.end, reason, "write smaller powers")
        if is_complex(base) and not exponent.is_Integer:
            reason = "a complex value takes whole powers only: others have several branches"
            raise ExpressionError(node.start, node.end, reason, "write a whole number, or exp(x * complex(a, b))")
        power = base**exponent
        if is_complex(power) and not is_complex(base) and not (is_complex(exponent) and base.is_positive):
            reason, fix = "this is not a finite real number", "keep roots, logarithms and divisions defined"
            if is_complex(exponent):
                reason, fix = f"a complex power of {base}, which may be negative", "write exp(x * complex(a, b))"
            raise ExpressionError(node.start, node.end, reason, fix)
        return power

    def _arguments(self, function: str, nodes: tuple[Node, ...]) -> list[sympy.Basic]:
        if function == "where":
            return [self._condition(nodes[0]), *(self.value(node) for node in nodes[1:])]
        return [self.value(node) for node in nodes]

    def _check_real(self, function: str, values: list[sympy.Basic], nodes: tuple[Node, ...]) -> None:
        """Refuses complex arguments of all but the functions that take them."""
        for value, node in zip(values, nodes, strict=True):
            if is_complex(value) and function not in COMPLEX_FUNCTIONS:
                fix = f"complex values go through + - * /, whole powers, {' and '.join(COMPLEX_FUNCTIONS)}"
                raise ExpressionError(node.start, node.end, f"{function} takes real values, and this is complex", fix)

    def _condition(self, node: Node) -> sympy.Basic:
        if not isinstance(node, Compare):
            fix = "compare with <, <=, >, >=, == or !=, as in where(x > 0, a, b)"
            raise ExpressionError(node.start, node.end, "where needs a condition first", fix)
        sides = [self.value(node.left), self.value(node.right)]
        self._check_real("a comparison", sides, (node.left, node.right))
        if not any(side.free_symbols for side in sides):  # sympy may search for ever whether tanh(1e300) is below 1
            sides = [sympy.Float(precise.value(side, {}), precise.DIGITS) for side in sides]
        return COMPARISONS[node.operator](*sides)


_NOT_FINITE = (S.ComplexInfinity, S.NaN, S.Infinity, S.NegativeInfinity)


def _checked(tree: sympy.Expr, node: Node) -> sympy.Expr:
    """The tree, when it is finite and its numbers have a size."""
    span = (node.start, node.end)
    if isinstance(node, (Power, Chain)) and tree.has(*_NOT_FINITE):
        raise ExpressionError(*span, "this is not a finite real number", "keep roots, logarithms and divisions defined")
    if is_complex(tree) and written_out(tree) > MAX_COMPLEX_TERMS:
        reason = f"the real part of this complex value would have more than {MAX_COMPLEX_TERMS} terms"
        raise ExpressionError(*span, reason, "multiply fewer complex values")
    if tree.is_Pow and tree.exp.is_number and abs(tree.exp) > MAX_EXPONENT:
        raise ExpressionError(*span, f"the exponents multiply to more than {MAX_EXPONENT}", "write a smaller power")
    if tree.is_Rational:
        if max(abs(tree.p), tree.q).bit_length() > MAX_BITS or abs(tree) > MAX_MAGNITUDE:
            raise ExpressionError(*span, "this number is out of range", f"stay below {MAX_MAGNITUDE:g}")
    elif not tree.free_symbols and not is_random(tree):
        value = tree.evalf(15)
        if not (value.is_extended_real or is_complex(tree)) or not abs(value) < MAX_MAGNITUDE:
            raise ExpressionError(*span, "this is not a finite real number in range", f"stay below {MAX_MAGNITUDE:g}")
    return tree


def _check_size(tree: sympy.Expr, node: Node) -> None:
    for number in tree.atoms(sympy.Rational):
        if max(abs(number.p), number.q).bit_length() > MAX_BITS:
            raise ExpressionError(node.start, node.end, "the numbers in it grow out of range", "write smaller powers")

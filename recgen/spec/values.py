"""What a single value of a document may be: text, a word from a list, a number, a flag, axes, an expression's text.

Each function takes a node of the document and gives its meaning, or raises `refuse(reason, fix)`. A plain scalar has
no meaning of its own: the place where it stands says what is expected.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, get_args

from pydantic import PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recgen.spec.document import Mapping, Scalar, Sequence
from recgen.spec.model import AXIS_MEANING
from recgen.spec.source import listing, suggestion

MAX_LINE = 300
MAX_COMMENT = 60
_NULLS = ("", "~", "null", "Null", "NULL")
_NUMBER = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_INFINITY = re.compile(r"[-+]?\.?inf", re.IGNORECASE)


def refuse(reason: str, fix: str = "") -> PydanticCustomError:
    """The error that carries a reason and a fix through pydantic."""
    return PydanticCustomError("refused", "{reason}", {"reason": reason, "fix": fix})


def scalar(node: Any) -> Scalar:
    """The node, when it is one value and not nothing."""
    if isinstance(node, (Mapping, dict)):
        raise refuse("one value is needed here, this is a mapping", "write `key: value` with a single value")
    if isinstance(node, (Sequence, list)):
        raise refuse("one value is needed here, this is a list", "write a single value")
    if node.plain and node.text in _NULLS:
        raise refuse("no value is given here", "write a value, or remove the key")
    assert isinstance(node, Scalar)
    return node


def line(node: Any) -> str:
    """One line of text that may be shown anywhere."""
    value = scalar(node)
    text = value.text.strip() if not value.plain else value.text
    if not text.isprintable():
        raise refuse("this is to be one line of printable text", "remove line breaks and control characters")
    if len(text) > MAX_LINE:
        raise refuse(f"this is longer than {MAX_LINE} characters", "shorten it; a comment may hold the rest")
    return text


_INSTRUCTION = re.compile(
    r"coding[:=]|^\s*(///|-\*-|vim?:|#|(black|flake8|fmt|isort|mypy|noqa|nosec|pragma|pylint|pyright|ruff|type|yapf)\b)",
    re.IGNORECASE,
)


def comment(node: Any) -> str:
    """Lines that may stand in a comment: printable, and none that Python or a tool takes for an instruction."""
    value = scalar(node)
    if _NUMBER.fullmatch(value.text) or value.text.lower() in ("true", "false"):
        reason = f"a license is an identifier or a text, and {value.text[:40]} says nothing"
        raise refuse(reason, "write an SPDX identifier, such as MIT")
    lines = [part.rstrip() for part in value.text.strip().split("\n")]
    if not all(part.isprintable() for part in lines):
        raise refuse("this is to be printable text", "remove control characters; lines end in a plain line break")
    if len(lines) > MAX_COMMENT or any(len(part) > MAX_LINE for part in lines):
        reason = f"this is more than {MAX_COMMENT} lines, or one of more than {MAX_LINE} characters"
        raise refuse(reason, "write an SPDX identifier, or where the whole text is")
    for part in lines:
        if _INSTRUCTION.search(part):
            reason = f"as a comment, {part.strip()[:40]!r} could be an instruction to Python or to one of its tools"
            hashed = part.lstrip().startswith("#") and not _INSTRUCTION.search(part.lstrip("# "))
            raise refuse(reason, "leave out the #" if hashed else "write it in other words")
    return "\n".join(lines)


def expression_text(node: Any) -> Scalar:
    """The text of an expression, not read yet."""
    return scalar(node)


def number(node: Any, example: str = "1e-6") -> Fraction:
    """A finite number, exactly as written. example: one that may stand there."""
    value = scalar(node)
    if not value.plain:
        raise refuse("a number is needed here, this is quoted text", "remove the quotes")
    if re.fullmatch(r"[-+]?0[0-9]+", value.text):
        meant = value.text.lstrip("+-0") or "0"
        raise refuse(f"{value.text} starts with a zero, which some readers take for base 8", f"write {meant}")
    if re.fullmatch(r"[-+]?0[xXoObB][0-9a-fA-F]+", value.text):
        raise refuse("a decimal number is needed here", f"write {int(value.text, 0)}")
    if not _NUMBER.fullmatch(value.text) or len(value.text) > 60:
        reason = f"a number is needed here, this is the text {value.text[:40]!r}"
        raise refuse(reason, f"write a number, such as {example}")
    mantissa, _, exponent = value.text.lower().partition("e")
    if len(exponent) > 4 or abs(int(exponent or 0)) > 300:
        raise refuse("this number is out of range", "write a number between 1e-300 and 1e300")
    return Fraction(mantissa.rstrip(".")) * Fraction(10) ** int(exponent or 0)


def bound(node: Any) -> float:
    """A number, or -inf, inf."""
    value = scalar(node)
    if _INFINITY.fullmatch(value.text):
        return -math.inf if value.text.startswith("-") else math.inf
    return float(number(node, "-1"))


def interval(node: Any) -> tuple[float, float]:
    """[lo, hi] of a log-decay."""
    if not isinstance(node, list) or len(node) != 2:
        raise refuse("bounds are two numbers", "write bounds: [-1, 0]")
    low, high = bound(node[0]), bound(node[1])
    if low > high:
        raise refuse("the lower bound is above the upper one", f"write [{high:g}, {low:g}]")
    if high > 0:
        raise refuse("a log-decay above 0 makes the state grow without limit", "the upper bound must be at most 0")
    return low, high


def flag(node: Any) -> bool:
    """true or false, and nothing that only resembles them."""
    value = scalar(node)
    if not value.plain or value.text.lower() not in ("true", "false"):
        meant = {"yes": "true", "on": "true", "1": "true", "no": "false", "off": "false", "0": "false"}
        fix = f"write {meant.get(value.text.lower(), 'true or false')}"
        raise refuse(f"true or false is needed here, not {value.text[:40]!r}", fix)
    return value.text.lower() == "true"


def word(words: Any) -> PlainValidator:
    """Takes one of the words of a Literal type."""
    choices: tuple[str, ...] = get_args(words)

    def check(node: Any) -> str:
        value = scalar(node)
        if value.text not in choices:
            fix = suggestion(value.text, choices, f"write {listing(choices)}")
            raise refuse(f"{value.text[:40]!r} is none of {listing(choices)}", fix)
        return value.text

    return PlainValidator(check, json_schema_input_type=words)


@dataclass(frozen=True)
class Axes:
    """A tensor's axes as they were written."""

    letters: tuple[str, ...]
    node: Scalar


def axes(node: Any) -> Axes:
    """Axis letters, separated by spaces."""
    if isinstance(node, list):
        raise refuse("axes are one text", "write the letters with spaces between them: B T H K")
    value = scalar(node)
    letters = tuple(value.text.split())
    if len(letters) > 6:
        raise refuse("a tensor has at most 6 axes here", "write e.g. B T H K")
    for letter in letters:
        if letter not in AXIS_MEANING:
            meaning = ", ".join(f"{known} {what}" for known, what in AXIS_MEANING.items())
            split = " ".join(letter) if letter and set(letter) <= set(AXIS_MEANING) else letter.upper()
            close = f"write {split}" if set(split.split()) <= set(AXIS_MEANING) else f"the axes are {meaning}"
            raise refuse(f"{letter[:40]!r} is no axis", close)
    return Axes(letters, value)


_TEXT = WithJsonSchema({"type": ["string", "number"]})  # what looks like a number is the text that was written
_WORDS = WithJsonSchema({"type": "string"})
_NAME = WithJsonSchema({"type": "string", "pattern": "^[A-Za-z][A-Za-z0-9_]*$"})
_RANGE = WithJsonSchema({"type": "array", "items": {"type": ["number", "string"]}, "minItems": 2, "maxItems": 2})

Line = Annotated[str, PlainValidator(line), _TEXT]
Name = Annotated[str, PlainValidator(line), _NAME]
Text = Annotated[str, PlainValidator(comment), _WORDS]
ExpressionText = Annotated[Scalar, PlainValidator(expression_text), _TEXT]
Exact = Annotated[Fraction, PlainValidator(number), WithJsonSchema({"type": "number"})]
Flag = Annotated[bool, PlainValidator(flag), WithJsonSchema({"type": "boolean"})]
AxesText = Annotated[Axes, PlainValidator(axes), _WORDS]
Range = Annotated[tuple[float, float], PlainValidator(interval), _RANGE]

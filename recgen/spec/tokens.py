"""Expression text → tokens, each with its place in the text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MAX_TEXT = 2000
MAX_TOKENS = 250

Kind = Literal["number", "name", "operator", "end"]

OPERATORS = ("**", "<=", ">=", "==", "!=", "+", "-", "*", "/", "(", ")", ",", "<", ">")

_PATTERN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"|(?P<operator>" + "|".join(re.escape(operator) for operator in OPERATORS) + r")"
)

_DOTTED = re.compile(r"(?:[A-Za-z_][A-Za-z0-9_]*\.)+(?P<last>[A-Za-z_][A-Za-z0-9_]*)(?P<call>\((?:[^()]*\))?)?")

_HINTS: dict[str, tuple[str, str]] = {
    "^": ("^ is not an operator here", "write ** for a power"),
    "%": ("% is not an operator here", "write mod(a, b)"),
    "=": ("= is not an operator here", "write == to compare"),
    "|": ("| is not an operator here", "write abs(a) for |a|"),
    "&": ("& is not an operator here", "nest where(condition, a, b)"),
    ".": ("attributes do not exist in this language", "use a declared name or a number"),
    ":": ("a : does not belong in an expression", "remove it, or write where(condition, a, b)"),
    "#": ("a # does not belong in an expression", "remove it; a comment has a space before its #"),
    "[": ("indexing does not exist in this language", "declare the axes that a name has instead"),
    "]": ("indexing does not exist in this language", "declare the axes that a name has instead"),
    "{": ("braces do not exist in this language", "use ( and )"),
    "}": ("braces do not exist in this language", "use ( and )"),
    "@": ("matrix products do not exist in this language", "expressions act element by element"),
    "'": ("strings do not exist in this language", "use declared names and numbers"),
    '"': ("strings do not exist in this language", "use declared names and numbers"),
    "\\": ("backslashes mean nothing here", "remove it"),
    "−": ("this is a typographic minus", "type - instead"),
    "–": ("this is a dash", "type - instead"),
    "×": ("× is not an operator here", "write *"),
    "·": ("· is not an operator here", "write *"),
    "÷": ("÷ is not an operator here", "write /"),
    "²": ("superscripts are not read", "write ** 2"),
    "!": ("! is not an operator here", "swap the two branches of where(condition, a, b)"),
}


class ExpressionError(Exception):
    """An expression is wrong between the offsets `start` and `end` of its text. Never leaves recgen.spec."""

    def __init__(self, start: int, end: int, reason: str, fix: str = "") -> None:
        super().__init__(reason)
        self.start, self.end, self.reason, self.fix = start, end, reason, fix


@dataclass(frozen=True)
class Token:
    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


def tokenize(text: str) -> list[Token]:
    """All tokens and one of kind "end". Raises ExpressionError at the first thing that is no token."""
    if len(text) > MAX_TEXT:
        raise ExpressionError(0, 1, f"the expression is longer than {MAX_TEXT} characters", "write a shorter one")
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _PATTERN.match(text, position)
        if match is None:
            raise _unknown(text, position)
        kind, word = match.lastgroup, match.group()
        if kind != "space":
            _check_adjacent(tokens, kind, word, position)
            tokens.append(Token(kind, word, position))  # type: ignore[arg-type]  # groups are named by kind
        if len(tokens) > MAX_TOKENS:
            reason = f"the expression has more than {MAX_TOKENS} tokens"
            raise ExpressionError(position, match.end(), reason, "write a shorter one")
        position = match.end()
    tokens.append(Token("end", "", len(text)))
    return tokens


def _unknown(text: str, position: int) -> ExpressionError:
    character = text[position]
    dotted = _DOTTED.search(text) if character == "." else None
    if dotted and dotted.start() <= position < dotted.end():
        call = dotted["call"] and (dotted["call"] if dotted["call"].endswith(")") else "(…)")
        fix = f"write {dotted['last']}{call}" if call else "use a declared name or a number"
        return ExpressionError(dotted.start(), dotted.end("last"), "attributes do not exist in this language", fix)
    reason, fix = _HINTS.get(character, (f"{character!r} means nothing in an expression", "remove it"))
    if character.isalpha() and not character.isascii():
        reason, fix = f"{character!r} is no letter that names may have", "spell names in ASCII, e.g. gamma"
    return ExpressionError(position, position + 1, reason, fix)


def _check_adjacent(tokens: list[Token], kind: str | None, word: str, position: int) -> None:
    """Refuses 064, 2x, 1_000, 0x10 and 1.2.3: numbers that another language would read differently."""
    if kind == "number" and re.fullmatch(r"0[0-9]+", word):
        fix = f"write {word.lstrip('0') or '0'}"
        raise ExpressionError(position, position + len(word), f"{word} starts with a zero", fix)
    if word == "/" and tokens and tokens[-1].text == "/" and tokens[-1].end == position:
        raise ExpressionError(position - 1, position + 1, "// is not an operator here", "write / (it is exact)")
    if not tokens or tokens[-1].end != position or tokens[-1].kind != "number" or kind not in ("name", "number"):
        return
    last = tokens[-1]
    joined = last.text + word
    if word in ("j", "J"):
        reason = f"{joined} is no number: numbers are real here"
        fix = f"write a real number, or {last.text} * {word} where {word} is declared"
        raise ExpressionError(last.start, last.start + len(joined), reason, fix)
    product = kind == "name" and not word.startswith("_") and not re.fullmatch("0[xXoObB][0-9a-fA-F]+", joined)
    fix = f"write {last.text} * {word}" if product else "write a decimal number"
    raise ExpressionError(last.start, last.start + len(joined), f"{joined} is no number", fix)

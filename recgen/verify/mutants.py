"""Emitted modules made wrong on purpose: what verification must find.

A mutant rewrites lines of the derived program (scan, mask, prefix, suffix, gradients …) in an emitted module's text,
by the names that every module shares; it makes no sense for a module in which a rule of it finds nothing. The
definition (`naive` and the token step) stays as it is, so that it can still tell.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

_ORACLE = frozenset({"_token_values", "_token_step", "_naive", "naive", "_gate_values"})
Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Rule:
    """A regular expression and what replaces each match, inside functions whose name matches `where`."""

    where: str
    pattern: str
    replacement: Replacement


@dataclass(frozen=True)
class Mutant:
    """A fault of one backend's code (`both`: of what the backends share), as rules that must all apply."""

    name: str
    backend: str
    rules: tuple[Rule, ...]

    def apply(self, source: str) -> str | None:
        """The module's text with the fault, or None where the fault makes no sense in it."""
        for rule in self.rules:
            changed = _rewrite(source, rule)
            if changed == source:
                return None
            source = changed
        return source


@lru_cache(maxsize=4)
def _functions(source: str) -> list[tuple[str, int, int]]:
    """Name, first and last line (from 0, exclusive) of every function that may be rewritten, from the bottom up."""
    found = [
        (node.name, node.lineno - 1, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef) and node.name not in _ORACLE
    ]
    return sorted(found, key=lambda function: -function[1])


def _rewrite(source: str, rule: Rule) -> str:
    lines = source.splitlines(keepends=True)
    for name, first, last in _functions(source):
        if re.fullmatch(rule.where, name):
            body = "".join(lines[first:last])
            lines[first:last] = [re.sub(rule.pattern, rule.replacement, body, flags=re.MULTILINE)]
    return "".join(lines)


_FORWARD, _BACKWARD, _EITHER = "_segment_forward", "_segment_backward", "_segment_(forward|backward|end)"
_KERNELS, _BACKWARD_KERNELS = "_chunk_(forward|backward_\\w+)", "_chunk_backward_\\w+"


def _torch(name: str, where: str, pattern: str, replacement: Replacement) -> Mutant:
    return Mutant(name, "torch", (Rule(where, pattern, replacement),))


def _triton(name: str, where: str, pattern: str, replacement: Replacement) -> Mutant:
    return Mutant(name, "triton", (Rule(where, pattern, replacement),))


def _both(name: str, where: str, pattern: str, replacement: Replacement) -> Mutant:
    return Mutant(name, "both", (Rule(where, pattern, replacement),))


def _pad_first(match: re.Match[str]) -> str:
    """`_rows(f(g), size)` → `f(_rows(g, size))`: the zeros of the padding go through the gate's expression."""
    inner = re.sub(r"\b(?<!\.)([a-z]\w*)\b(?![.(=])", r"_rows(\1, size)", match[1])
    return f"log_decay = {inner}"


TORCH_MUTANTS = (
    _torch(
        "mask after the exponential",
        "_between",
        r"return x\[\.\.\., None\].*$",
        "return x.cumsum(-1)[..., :, None] - x.cumsum(-1)[..., None, :]",
    ),
    _torch("no causal mask", _FORWARD, r"\.tril\(\)", ""),
    _torch("a token does not see itself", _FORWARD, r"\.tril\(\)", ".tril(-1)"),
    _torch("normaliser without decay", _EITHER, r"_scan\(z, chunk_decay", "_scan(z, torch.ones_like(chunk_decay)"),
    _torch("initial state dropped", _FORWARD, r"_scan\(S, ", "_scan(torch.zeros_like(S), "),
    _torch(
        "no initial state in the decay's gradient",
        _BACKWARD,
        r"\(d_S \* S\)",
        "(d_S * torch.cat([torch.zeros_like(S[:, :, :1]), S[:, :, 1:]], 2))",
    ),
    _torch("decay to a row leaves the row out", _EITHER, r"prefix = log_decay \+ ", "prefix = "),
    _torch("decay to the end takes the row in", _EITHER, r"suffix = _later", "suffix = log_decay + _later"),
    _torch("padded rows decay", _EITHER, r"log_decay = _rows\((.*), size\)", _pad_first),
    _torch("state in bfloat16", "_scan", r"^(\s+)(state = .*)$", r"\1\2\n\1state = state.bfloat16().to(write.dtype)"),
    _torch(
        "state decays after the write",
        "_scan",
        r"torch\.addcmul\((write.*?\)), (decay.*?\)), state\)",
        r"(state + \1) * \2",
    ),
    _torch("denominator detached", _BACKWARD, r"d_n = (.*?)(\s+#.*)?$", r"d_n = 0 * (\1)"),
    _torch("no epsilon", _EITHER, r" \+ 1e-0?6\)", ")"),
    _torch("epsilon added to the quotient", _FORWARD, r"(y / )\((n\[.*\]) \+ (1e-0?6)\)", r"\1\2 + \3"),
    _torch("final state's gradient dropped", _BACKWARD, r"_scan\(d_S, ", "_scan(torch.zeros_like(d_S), "),
    _torch("gradients of query and key swapped", _BACKWARD, r"return d_q, d_k,", "return d_k, d_q,"),
    _torch("query's gradient without the scale", _BACKWARD, r"d_q = scale \* ", "d_q = "),
    _torch("initial state's gradient one chunk short", _BACKWARD, r"(return .*)d_S_start", r"\1d_S[:, :, 0]"),
    _torch(
        "decay's gradient without the prefix's transpose", _BACKWARD, r"\+ _later\(d_prefix", "+ 0 * _later(d_prefix"
    ),
    _torch("pair tree without its top", "_halves", r"bit_length\(\) - 1", "bit_length() - 2"),
    _torch("pairs from the wrong side", "_siblings", r"block\[None, :\] \+ 1", "block[None, :] - 1"),
    _torch("feature map's derivative left out", _BACKWARD, r"(d_k = .*) \* torch\.exp\(.*\)$", r"\1"),
)

SHARED_MUTANTS = (
    _both("wrong default scale", "_check_scale", r"K ?\*\* ?-0\.5", "1.0"),
    _both("scale 0 taken for none given", "_check_scale", r"scale is None", "not scale"),
    _both("initial state ignored by every form", "_run", r"if initial_state is None:", "if True:"),
    _both("every document starts from the first state", "_each_document", r"slice\(n, n \+ 1\)", "slice(0, 1)"),
    _both("state in the dtype of the inputs", "_run", r"torch\.promote_types\(torch\.float32, (.*)\)$", r"\1"),
    _both("inputs changed in place", "_run", r"^(\s+)(size = .*)$", r"\1\2\n\1tensors[0].data.mul_(1.5)"),
)

TRITON_MUTANTS = (
    _triton(
        "mask after the exponential",
        "_tile_between",
        r"return tl\.cumsum.*$",
        "return tl.cumsum(x, 0)[:, None] - tl.cumsum(x, 0)[None, :]",
    ),
    _triton(
        "a token does not see itself", _KERNELS, r"time\[:, None\] >= time\[None, :\]", "time[:, None] > time[None, :]"
    ),
    _triton("padded rows decay", _KERNELS, r"log_decay = tl\.where\(valid.*?, (_.*), 0\.0\)", r"log_decay = \1"),
    _triton("initial state dropped", "_chunk_forward", r"( S = _load\(S_ptr.*)$", r"\1 * 0"),
    _triton("state in 16 bits", "_chunk_forward", r"^(\s+)(S = S .*)$", r"\1\2\n\1S = S.to(tl.float16).to(tl.float32)"),
    _triton("no initial state in the decay's gradient", _BACKWARD_KERNELS, r"(d_total = .*)$", r"\1 * (chunk > 0)"),
    _triton("final state's gradient dropped", _BACKWARD_KERNELS, r"( d_S = _load\(d_S_ptr.*)$", r"\1 * 0"),
    _triton("decay to a row leaves the row out", _KERNELS, r"prefix = log_decay \+ ", "prefix = "),
    _triton("denominator detached", _BACKWARD_KERNELS, r"(d_n = tl\.sum\()(.*?)(, 1\))", r"\g<1>0 * \2\3"),
    _triton("normaliser without decay", _KERNELS, r"z = z \* chunk_decay", "z = z"),
    _triton("last row of a ragged chunk lost", "_chunk_forward", r"valid = time < length", "valid = time < length - 1"),
    _triton("documents read from the start of the batch", "_chunk_backward_key", "token = first [+] ", "token = "),
    _triton("every head has a key of its own", "_chunk_backward_key", "head // k_group", "head"),
    _triton("shared keys lie as far apart as others", "_chunk_backward_key", "H // k_group", "H"),
)

MUTANTS = TORCH_MUTANTS + SHARED_MUTANTS + TRITON_MUTANTS

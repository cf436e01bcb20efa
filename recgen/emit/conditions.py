"""Sizes at which a spec has no value: the checks of the emitted module, where interval analysis leaves room for one."""

from __future__ import annotations

from typing import Any

import sympy

from recgen.algebra.defined import doubtful
from recgen.spec.initial import drawn_from, without_draws
from recgen.spec.model import HEAD, PAIR, SIZES, Spec

from .python_expr import PythonPrinter

LOOPS = {HEAD: "h in range(H)", PAIR: "i in range(-(-K // 2))"}


def conditions_context(spec: Spec) -> dict[str, Any]:
    """doubtful_scale: whether the default scale is checked. size_conditions: (what it is of, text, code) of each part
    of the other expressions that is checked. condition_sizes: what these name."""
    roles = {
        "decay": spec.decay.log,
        "query": spec.query,
        "key": spec.key,
        "value": spec.value,
        "rotation": spec.rotation,
        "feature_map": spec.query_map,
        "feature_map of the key": spec.key_map,
        "key_weight": spec.key_weight,
        "bonus": spec.readout.bonus,
        "gate": spec.readout.gate,
    }
    found: dict[sympy.Expr, str] = {}
    for what, expr in roles.items():
        for part in doubtful(expr.tree) if expr is not None else ():
            found.setdefault(part, what)
    symbols = {s for part in found for s in part.free_symbols}
    sizes = {{HEAD: "H", PAIR: "K"}.get(s, s.name) for s in symbols}
    return {
        "doubtful_scale": bool(doubtful(spec.scale.tree)),
        "size_conditions": [(what, str(part).replace("**", "^"), _code(part)) for part, what in found.items()],
        "condition_sizes": sorted(sizes, key="HKVM".index),
    }


def _code(part: sympy.Expr) -> str:
    """The part as a function of nothing, in a list over the indices that it has."""
    names = {s: s.name for s in (*SIZES.values(), HEAD, PAIR)}
    indices = sorted((s for s in part.free_symbols if s in LOOPS), key=str)
    arguments = ", ".join(f"{s}={s}" for s in indices)
    loops = "".join(f" for {LOOPS[s]}" for s in indices)
    return f"[lambda{' ' + arguments if arguments else ''}: {PythonPrinter(names).text(part)}{loops}]"


def doubtful_start(tree: sympy.Expr) -> bool:
    """Whether an initial value may be no number at some sizes."""
    return any(map(doubtful, (without_draws(tree)[0], *drawn_from(tree))))

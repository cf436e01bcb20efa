"""Whoever computes what the printed equations say, by hand, gets the recurrence and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import sympy

from recgen.algebra.functions import Activation
from recgen.algebra.mathtext import carry_equation, equation
from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence
from tests.algebra.show.catalogue import derived, every_case
from tests.algebra.show.equation_reader import Sheet

ACTIVATIONS = {"Elu": lambda x: np.where(x > 0, x, np.expm1(x)), "LogSigmoid": lambda x: -np.log1p(np.exp(-x)),
               "SafeExp": np.exp}


@every_case
def test_whoever_follows_the_equations_gets_the_recurrence(name: str, factorisation: str) -> None:
    """One chunk of four tokens, computed from the printed text alone, against the token loop and its slopes."""
    d = derived(name, factorisation)
    draw = np.random.default_rng(0)
    rows, m, c = 4, 2, 3
    size = {"T": rows, "K": m, "V": c, "B": None, "H": None}
    given = {t.name: draw.normal(size=[size[a] for a in t.axes if size[a]]) for t in d.rec.tensors.values()}
    given |= {"scale": np.array(0.7), "h": np.array(2.0)}
    start = {r.name: draw.normal(size=[{"m": m, "v": c}[a] for a in r.axes]) ** 2 for r in d.rec.states}
    d_end = {f"d_{r}": draw.normal(size=x.shape) for r, x in start.items()}
    d_o = draw.normal(size=(rows, c))

    sheet = Sheet(rows, m, c, {**given, **start, **d_end, "d_o": d_o})
    sheet.values |= {"ℓ" if k == "log_decay" else k: v for k, v in sheet.values.items()}
    for n in (n for n in d.nodes if n.name):
        sheet.read(equation(n))
    out, end = token_loop(d.rec, {**given, **start}, rows)
    (o,) = d.program.outputs.values()
    close(value_of(sheet, o, out.shape), out)
    for carry in d.program.carries:
        close(handed_on(sheet, carry_equation(carry), start[carry.name].shape), end[carry.name])
    for name_of, node in d.adjoint.outputs.items():
        slope = differences(d.rec, {**given, **start}, name_of.removeprefix("d_"), rows, d_o, d_end)
        close(value_of(sheet, node, slope.shape), slope, 1e-6)
    for carry in d.adjoint.carries:
        slope = differences(d.rec, {**given, **start}, carry.name, rows, d_o, d_end)
        close(handed_on(sheet, carry_equation(carry), slope.shape), slope, 1e-6)


def value_of(sheet: Sheet, node: Node, shape: tuple[int, ...]) -> np.ndarray:
    letters = [{"v": "c"}.get(a, a) for a in node.axes]
    right = equation(node).split(" = ", 1)[-1]
    return filled(sheet, right, letters, shape)


def handed_on(sheet: Sheet, text: str, shape: tuple[int, ...]) -> np.ndarray:
    left, right = text.split(" ← ")
    return filled(sheet, right, left.partition("[")[2].removesuffix("]").split(","), shape)


def filled(sheet: Sheet, right: str, letters: list[str], shape: tuple[int, ...]) -> np.ndarray:
    found = np.zeros(shape)
    for index in np.ndindex(shape):
        found[index] = sheet.evaluate(right, dict(zip(letters, index, strict=True)))
    return found


@cache
def number(expr: sympy.Expr) -> Callable[[dict[str, np.ndarray]], np.ndarray]:
    """An expression as a function of the values of its symbols, by name."""
    symbols = sorted(expr.free_symbols, key=str)
    here = {type(a).__name__: ACTIVATIONS[type(a).__name__] for a in expr.atoms(Activation)}
    function = sympy.lambdify(symbols, expr, [here, "numpy"])
    return lambda values: np.asarray(function(*(values[s.name] for s in symbols)))


def token_loop(rec: Recurrence, values: dict[str, np.ndarray], rows: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """The one-step recurrence in numbers."""
    state = {r.name: values[r.name] for r in rec.states}
    outputs = []
    for t in range(rows):
        here = {n: v[t] if n in rec.tensors and "T" in rec.tensors[n].axes else v for n, v in values.items()}
        q = {n: number(x.expr)(here) for n, x in rec.quantities.items()}
        decay = np.exp(q.get("log_decay", np.array(0.0)))
        write = {"S": np.outer(q["key"], q["value"]), "z": q["key"]}
        state = {n: (decay.reshape(decay.shape + (1,) * (s.ndim - 1)) if decay.ndim else decay) * s + write[n]
                 for n, s in state.items()}
        reads = {r.read_name: q["query"] @ state[r.name] for r in rec.states}
        outputs.append(number(rec.output)(reads))
    return np.stack(outputs), state


def differences(rec: Recurrence, values: dict[str, np.ndarray], name: str, rows: int, d_o: np.ndarray,
                d_end: dict[str, np.ndarray]) -> np.ndarray:
    """The derivative of Σ d_o·o + Σ d_S·S_T by one value, by central differences."""

    def loss(x: np.ndarray) -> float:
        out, end = token_loop(rec, {**values, name: x}, rows)
        return float((out * d_o).sum() + sum((end[r.name] * d_end[f"d_{r.name}"]).sum() for r in rec.states))

    found = np.zeros(values[name].shape)
    for index in np.ndindex(found.shape):
        step = np.zeros(found.shape)
        step[index] = 1e-5
        found[index] = (loss(values[name] + step) - loss(values[name] - step)) / 2e-5
    return found


def close(given: np.ndarray, needed: np.ndarray, tolerance: float = 1e-12) -> None:
    assert np.linalg.norm(given - needed) <= tolerance * np.linalg.norm(needed)

"""Whoever computes what the printed equations say, by hand, gets the recurrence and its gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import sympy

from recgen.algebra.activations import Activation
from recgen.algebra.mathtext import carry_equation, equation
from recgen.algebra.program import Node
from recgen.algebra.recurrence import Recurrence
from tests.algebra.show.catalogue import TOTAL, derived, every_causal_case
from tests.algebra.show.equation_reader import Sheet

ACTIVATIONS = {
    "Elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "LogSigmoid": lambda x: -np.log1p(np.exp(-x)),
    "SafeExp": np.exp,
}


@every_causal_case
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


def test_whoever_follows_the_equations_of_a_total_gets_all_positions() -> None:
    """Sums first, then what reads them; against every token reading the state that the token loop ends with."""
    d = derived(*TOTAL)
    draw = np.random.default_rng(0)
    rows, m, c = 4, 2, 3
    given = {n: draw.normal(size=(rows, width)) for n, width in (("q", m), ("k", m), ("v", c))}
    given |= {"scale": np.array(0.7)}
    nothing = {"S": np.zeros((m, c)), "z": np.zeros(m)}
    d_o = draw.normal(size=(rows, c))

    def all_positions(values: dict[str, np.ndarray]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        _, total = token_loop(d.rec, {**values, **nothing}, rows)
        query = values["scale"] * (np.where(values["q"] > 0, values["q"] + 1, np.exp(values["q"])))
        return query @ total["S"] / (query @ total["z"] + 1e-6)[:, None], total

    def read(known: dict[str, np.ndarray]) -> Sheet:
        sheet = Sheet(rows, m, c, {**given, "d_o": d_o, **known})
        for n in (n for n in d.nodes if n.name):
            sheet.read(equation(n))
        return sheet

    known = {**nothing, **{f"d_{n}": x for n, x in nothing.items()}}
    for program in (d.program, d.adjoint):
        sheet = read(known)
        known |= {x.start.name: handed_on(sheet, carry_equation(x), nothing[x.name].shape) for x in program.carries}
    out, total = all_positions(given)
    for name, x in total.items():
        close(known[name], x)
    sheet = read(known)
    close(value_of(sheet, d.program.outputs["o"], out.shape), out)
    for name_of, node in d.adjoint.outputs.items():
        name = name_of.removeprefix("d_")
        slope = np.zeros(given[name].shape)
        for index in np.ndindex(slope.shape):
            step = np.zeros(slope.shape)
            step[index] = 1e-5
            ahead, behind = (all_positions({**given, name: given[name] + x})[0] for x in (step, -step))
            slope[index] = ((ahead - behind) * d_o).sum() / 2e-5
        close(value_of(sheet, node, slope.shape), slope, 1e-6)


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
        state = {
            n: (decay.reshape(decay.shape + (1,) * (s.ndim - 1)) if decay.ndim else decay) * s + write[n]
            for n, s in state.items()
        }
        reads = {r.read_name: q["query"] @ state[r.name] for r in rec.states}
        outputs.append(number(rec.output)(reads))
    return np.stack(outputs), state


def differences(
    rec: Recurrence, values: dict[str, np.ndarray], name: str, rows: int, d_o: np.ndarray, d_end: dict[str, np.ndarray]
) -> np.ndarray:
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

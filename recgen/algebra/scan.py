"""From the one-step recurrence to the program of one token, for recurrences that no matrix product unrolls.

A decay or weight along keys and values at once, or a state without keys, leaves nothing to contract between two rows of
a chunk. What is left is the step itself: a chunk of one row, without row axes, that carries the state:

    S ← e^ℓ S + write          o from S after the step, or before it

Splitting time needs no second program. A step is affine in the state, with the coefficient e^ℓ, so steps compose:

    end of a chunk = e^{sum of ℓ over the chunk} · start + end of the same tokens from an empty state

The adjoint's step is affine in the gradient with the same coefficient, so it splits at the same places, backwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sympy

from .chunkwise import own_term, repeated, token_value
from .graph import Graph
from .operations import Map, placeholder
from .program import Carry, Node, Program
from .recurrence import ONE, Recurrence, affine, linear_read, real

VALUE = real("value")


def token_program(rec: Recurrence) -> Program:
    """The program of one token. Its values have no row axis; the log-decay is always a value of the token."""
    g = Graph()
    values = {q.symbol: token_value(g, q, rec, name=q.name) for q in rec.quantities.values()}
    values[VALUE] = repeated(g, "value", values[VALUE])  # a state that is written to has tokens
    decays = {q.symbol for q in rec.log_decays}
    here = {s: n if n.level == "head" and s not in decays else g.row(n) for s, n in values.items()}
    reads: dict[sympy.Symbol, Node] = {}
    carries = []
    for rule in rec.states:
        step = affine(rule)
        start = g.leaf(rule.name, "carry", rule.axes, "chunk")
        logs = [here[s] for s in sympy.Add.make_args(step.log_decay) if s != 0]
        decay = g.exp(g.add(*logs), name="decay") if logs else None
        factors = [here[f] for f in step.write if f != ONE]
        carry = Carry(rule.name, start, decay, g.mul(*factors, name="write") if factors else g.map(ONE, {}))
        state = start
        if not rule.before:
            state = g.advanced(carry, name=f"{rule.name}_after")
            carry = replace(carry, end=state)
        read = _read(g, [here[f] for f in linear_read(rule)], state, rule.axes)
        own = [own_term(g, [here[f] for f in sympy.Mul.make_args(rule.own)], rule.axes)] if rule.own != 0 else []
        reads[sympy.Symbol(rule.read_name, real=True)] = g.add(read, *own, name=rule.read_name)
        carries.append(carry)
    return Program({"o": g.unrow(g.map(rec.output, {**here, **reads}, name="o"))}, tuple(carries), g)


def log_decay_of(carry: Carry) -> Node | None:
    """ℓ of a carry that decays by e^ℓ; None where it does not decay."""
    if carry.decay is None:
        return None
    if not isinstance(carry.decay.op, Map) or carry.decay.op.expr != sympy.exp(placeholder(0)):
        raise ValueError(f"the decay of {carry.name} is not the exponential of one value")
    return carry.decay.args[0]


def _read(g: Graph, factors: Sequence[Node], state: Node, axes: str) -> Node:
    """The state times the factors, summed over the features where it has any."""
    return g.contract(g.mul(*factors), state, "m") if "m" in axes else g.mul(*factors, state)

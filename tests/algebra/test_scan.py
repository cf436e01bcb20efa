"""The program of one token: what it is made of, that tokens compose, and that a wrong one is not proven."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy

from recgen.algebra.adjoint import adjoint
from recgen.algebra.derive import derive
from recgen.algebra.exact import Residues
from recgen.algebra.interpret import Cut, NotExact, run
from recgen.algebra.operations import Row, Unrow, placeholder
from recgen.algebra.program import Carry, Program
from recgen.algebra.proof import ProofError, composition, prove
from recgen.algebra.recurrence import Recurrence
from recgen.algebra.scan import log_decay_of, token_program
from recgen.algebra.statement import recurrence
from recgen.algebra.tokens import Draw
from recgen.algebra.trials import token_trials
from recgen.spec import read_text

FULL = "inputs: {g: B T H K V}\ndecay: {type: gated, per: key_value, log: logsigmoid(g)}"
VECTOR = "state: vector\ninputs: {g: B T D}\ndecay: {type: gated, per: channel, log: logsigmoid(g)}"
SPECS = {
    "a full gate": FULL,
    "a full gate read before the update, with bonus": f"{FULL}\nparams: {{u: {{axes: H K, init: 0}}}}\n"
    "readout: {kind: exclusive, bonus: u}",
    "a full gate with feature maps, gate and skip": f"{FULL}\nparams: {{D: {{axes: H V, init: 1}}}}\n"
    "feature_map: sigmoid(x)\nreadout: {skip: D, gate: sigmoid(v)}",
    "a weight along keys and values": "inputs: {g: B T H, w: B T H K V}\nkey_weight: sigmoid(w)\n"
    "decay: {type: gated, log: logsigmoid(g)}",
    "a weight along keys and values with bonus": "inputs: {w: B T H K V}\nparams: {u: {axes: H K, init: 0}}\n"
    "key_weight: sigmoid(w)\nreadout: {kind: exclusive, bonus: u}",
    "a vector state": VECTOR,
    "a vector state that decays alike at every token": "state: vector\nparams: {w: {axes: D, init: 0}}\n"
    "decay: {type: learned, per: channel, log: -exp(w)}",
    "a vector state with everything": "state: vector\ninputs: {v: B T D, g: B T D}\n"
    "params: {u: {axes: D, init: 0}, D: {axes: D, init: 1}}\nkey_weight: sigmoid(g)\n"
    "decay: {type: gated, per: channel, log: logsigmoid(g)}\n"
    "readout: {kind: exclusive, bonus: u, skip: D, gate: sigmoid(v)}",
    "a vector state without decay": "state: vector",
}


def recurrence_of(text: str) -> Recurrence:
    return recurrence(read_text(f"name: tried\n{text}\n"))


def broken(program: Program, change) -> Program:
    return replace(program, carries=tuple(change(program.graph, c) for c in program.carries))


@pytest.mark.parametrize("text", SPECS.values(), ids=SPECS)
def test_the_program_of_a_token_and_its_adjoint_are_proven(text: str) -> None:
    found = derive(read_text(f"name: tried\n{text}\n"))
    assert found.factorisation == "scan"
    assert "tokens taken together" in str(found.proof)
    assert not {"t", "i", "s"} & {a for n in found.program.nodes() if n.level == "chunk" for a in n.axes}


@pytest.mark.parametrize(
    "text",
    [
        "inputs: {g: B T H K, r: B T H V}\ndecay: {type: gated, per: key_value, log: logsigmoid(g) + logsigmoid(r)}",
        "inputs: {g: B T H K}\ndecay: {type: gated, per: key, log: logsigmoid(g)}",
        "key_weight: sigmoid(1 + k)",
    ],
)
def test_what_has_matrix_products_is_not_scanned(text: str) -> None:
    assert not recurrence_of(text).scans


def test_a_state_that_the_program_reads_is_the_one_it_hands_on() -> None:
    (carry,) = token_program(recurrence_of(FULL)).carries
    assert carry.end is not None and carry.end.name == "S_after"
    (before,) = token_program(recurrence_of(SPECS["a vector state with everything"])).carries
    assert before.end is None


def test_the_adjoint_decays_alike_and_reads_the_whole_gradient_once() -> None:
    program = token_program(recurrence_of(FULL))
    gradients = adjoint(program)
    assert gradients.carries[0].decay is program.carries[0].decay
    (total,) = [n for n in gradients.nodes() if n.name == "d_S_after"]
    assert {a.name for a in total.args} == {"d_S", "d_S_after_read"}


def test_rows_go_in_and_out_by_each_others_transpose() -> None:
    g = token_program(recurrence_of(FULL)).graph
    x = g.leaf("x", "input", "tm", "token")
    assert g.row(x).axes == ("m",) and g.unrow(g.row(x)) is x
    held = g.row(g.leaf("w", "param", "v", "head"))
    assert held.level == "chunk" and isinstance(held.op, Row)
    assert isinstance(g.unrow(g.exp(held)).op, Unrow)
    with pytest.raises(ValueError, match="inside a chunk"):
        g.row(held)


def test_a_program_of_one_token_has_no_value_for_two() -> None:
    rec = recurrence_of(FULL)
    draw = Draw(1, {"m": 1, "v": 1})
    with pytest.raises(NotExact, match="one token"):
        run(token_program(rec), draw, Residues(), Cut(2, (2,)), {"S": np.full((1, 1), 1, dtype=object)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda g, c: replace(c, decay=None), "differs"),
        (lambda g, c: replace(c, write=g.neg(c.write)), "differs"),
        (lambda g, c: replace(c, decay=g.mul(c.decay, c.decay)), "differs"),
        (lambda g, c: replace(c, write=g.add(c.write, c.start)), "differs"),
    ],
)
def test_a_broken_step_is_not_proven(change, message: str) -> None:
    rec = recurrence_of(FULL)
    program = token_program(rec)
    with pytest.raises(ProofError, match=message):
        prove(rec, broken(program, change), adjoint(program))


def test_an_adjoint_that_forgets_to_decay_is_not_proven() -> None:
    rec = recurrence_of(VECTOR)
    program = token_program(rec)
    with pytest.raises(ProofError, match="gradient"):
        prove(rec, program, broken(adjoint(program), lambda g, c: replace(c, decay=None)))


def test_tokens_that_do_not_compose_are_found_out() -> None:
    rec = recurrence_of(VECTOR)
    program = token_program(rec)
    twice = broken(program, lambda g, c: replace(c, decay=g.mul(c.decay, c.decay)))
    list(composition(rec, program, adjoint(program), token_trials(rec, program)[0]))
    with pytest.raises(ProofError, match="end of tokens taken together"):
        list(composition(rec, twice, adjoint(program), token_trials(rec, program)[0]))


def test_only_the_exponential_of_one_value_is_a_decay_that_is_split() -> None:
    g = token_program(recurrence_of(FULL)).graph
    start = g.leaf("S", "carry", "mv", "chunk")
    assert log_decay_of(Carry("S", start, None, start)) is None
    x = g.row(g.leaf("x", "input", "tm", "token"))
    with pytest.raises(ValueError, match="not the exponential"):
        log_decay_of(Carry("S", start, g.map(sympy.sin(placeholder(0)), {placeholder(0): x}), start))

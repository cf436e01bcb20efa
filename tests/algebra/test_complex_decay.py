"""A complex decay as a real recurrence: what it becomes, that its proof bites, and what is not lowered."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy

from recgen.algebra import statement
from recgen.algebra.adjoint import adjoint
from recgen.algebra.chunkwise import chunk_program
from recgen.algebra.complex_decay import ComplexStep, turned
from recgen.algebra.complex_proof import prove_frame
from recgen.algebra.derive import derive
from recgen.algebra.operations import Cast, EveryToken
from recgen.algebra.program import Node
from recgen.algebra.proof import prove
from recgen.algebra.statement import recurrence
from recgen.algebra.widths import POSITION, Turn
from recgen.errors import NotLowered, ProofError
from recgen.resources import specs_dir
from recgen.spec import read, read_text

Turned = tuple[sympy.Expr, sympy.Expr]
PARAMS = "name: mine\nparams: {a: {axes: H K, init: 0}, b: {axes: H K, init: 0}}\n"
DECAY = "decay: {type: learned, per: key, log: 'complex(-exp(a), b)'}\n"
S4D = read(specs_dir() / "s4d.yaml")


def test_the_state_has_two_real_features_for_a_key_channel() -> None:
    rec = recurrence(S4D)
    assert rec.rotates and rec.structure == "m"
    query, key, log_decay = (rec.quantities[name].expr for name in ("query", "key", "log_decay"))
    assert query.has(Turn) and key.has(Turn) and not log_decay.has(sympy.I)


def test_the_proof_says_so() -> None:
    proof = derive(S4D).proof
    assert proof is not None and "is the complex state" in str(proof)


def turn(z: sympy.Expr, rate: sympy.Expr) -> sympy.Expr:
    return Turn(z, rate, POSITION)


MUTANTS: dict[str, Callable[[Turned], Turned]] = {
    "the query is not conjugated": lambda qk: (turn(sympy.conjugate(qk[0].args[0]), qk[0].args[1]), qk[1]),
    "the query turns the other way": lambda qk: (turn(qk[0].args[0], -qk[0].args[1]), qk[1]),
    "the key turns the other way": lambda qk: (qk[0], turn(qk[1].args[0], -qk[1].args[1])),
    "both turn the other way": lambda qk: (turn(qk[0].args[0], -qk[0].args[1]), turn(qk[1].args[0], -qk[1].args[1])),
    "the key does not turn": lambda qk: (qk[0], turn(qk[1].args[0], sympy.S.Zero)),
    "the key turns at half the rate": lambda qk: (qk[0], turn(qk[1].args[0], qk[1].args[1] / 2)),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_frame_that_is_wrong_is_not_proven(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(step: ComplexStep) -> Turned:
        return MUTANTS[name](turned(step))

    monkeypatch.setattr(statement, "turned", wrong)
    with pytest.raises(ProofError, match=r"differs"):
        prove_frame(recurrence(S4D))


def test_a_decay_that_is_wrong_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    right = statement.split
    monkeypatch.setattr(statement, "split", lambda expr: (2 * right(expr)[0], right(expr)[1]))
    with pytest.raises(ProofError, match=r"differs"):
        prove_frame(recurrence(S4D))


@pytest.mark.parametrize("sign", ["cos", "sin"])
def test_parts_that_are_wrong_are_not_proven(sign: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program's nodes against the expressions with complex numbers."""
    from recgen.algebra import complex_values

    wave = getattr(sympy, sign)
    monkeypatch.setattr(complex_values, sign, lambda x: -wave(x))
    rec = recurrence(S4D)
    program = chunk_program(rec, "tree")
    with pytest.raises(ProofError, match=r"output o"):
        prove(rec, program, adjoint(program))


def nodes(text: str) -> list[Node]:
    return chunk_program(recurrence(read_text(text)), "tree").nodes()


def test_what_parameters_determine_is_computed_in_float64() -> None:
    found = nodes(f"{PARAMS}{DECAY}key: k * complex(a, b)\n")
    double = {n.args[0].name for n in found if isinstance(n.op, Cast) and n.op.double}
    assert double == {"b"}, "the rate alone: the key is a token's, and the log-decay is a sum of exponents"


@pytest.mark.parametrize("role", ["query", "key"])
def test_a_query_or_key_of_parameters_is_repeated(role: str) -> None:
    found = nodes(f"{PARAMS}{role}: b\ndecay: {{type: learned, per: key, log: -exp(a)}}\n")
    assert [n.name for n in found if isinstance(n.op, EveryToken)] == [f"{role}_tokens"]


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        ("normalizer: sum\n", "a normalizer under a complex decay"),
        ("feature_map: elu(x) + 1\n", "a feature map under a complex decay"),
        ("readout: {kind: exclusive}\n", "a readout before the update under a complex decay"),
        ("rotation: 1 / (i + 1)\n", "a rotation beside a complex decay"),
        ("inputs: {W: B T H K V}\nkey_weight: exp(W)\n", "a weight along keys and values under a complex decay"),
        ("value: a\n", "the value has the axes"),
    ],
)
def test_what_is_not_lowered_has_a_place(lines: str, what: str) -> None:
    with pytest.raises(Exception, match=r"mine|spec") as caught:
        recurrence(read_text(PARAMS + DECAY + lines))
    problem = caught.value.problems[0]
    assert what in f"{problem.text} {problem.reason}" and problem.location.line > 0


def test_an_angle_of_the_token_is_not_lowered() -> None:
    text = "name: mine\ninputs: {g: B T H K}\ndecay: {type: gated, per: key, log: 'complex(-exp(g), g)'}\n"
    with pytest.raises(NotLowered, match=r"angle changes from token to token"):
        recurrence(read_text(text))

"""A right derivation is proven; a derivation, program or adjoint with one thing wrong is not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
import sympy

from recgen.algebra import adjoint as adjoints
from recgen.algebra import chunkwise, proof
from recgen.algebra.adjoint import adjoint
from recgen.algebra.chunkwise import chunk_program, pair_program
from recgen.algebra.exact import Residues
from recgen.algebra.graph import Graph
from recgen.algebra.interpret import Cut
from recgen.algebra.operations import Map, Segment, placeholder
from recgen.algebra.program import Carry, Node, Program
from recgen.algebra.proof import ProofError, prove
from recgen.algebra.recurrence import Recurrence, StateRule, real
from recgen.algebra.statement import recurrence
from recgen.algebra.trials import RESIDUES, SYMBOLS, Trial, standard_trials
from recgen.spec import read_text
from tests.algebra.mutation import Mutant, mutants, rebuilt, scaled, with_op
from tests.algebra.show.catalogue import CASES, TOTAL, derived, every_case

S, z, n, key, value, query, decay = map(real, ("S", "z", "n", "key", "value", "query", "log_decay"))


def fast() -> list[Trial]:
    """Two comparisons, the first the quicker one, that a wrong program hardly survives."""
    return [Trial(RESIDUES, Residues(), {"m": 2, "v": 2}, [Cut(2, (2, 1)), Cut(4, (4, 3))])]


@every_case
def test_the_catalogue_is_proven(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    start = time.process_time()
    found = prove(d.rec, d.program, d.adjoint)
    assert time.process_time() - start < 2.5
    assert found.ok
    assert {s.method for s in found.statements} >= {SYMBOLS, RESIDUES, "induction over t"}


def test_a_proof_reads_as_statements_with_method_and_size() -> None:
    d = derived("gla", "tree")
    text = str(prove(d.rec, d.program, d.adjoint))
    assert "S_t = e^(ℓ_1+…+ℓ_t)·S_0 + Σ_(i≤t) e^(ℓ_(i+1)+…+ℓ_t) key·value_i\n  by induction over t; any T" in text
    assert "∂log_decay/∂g" in text
    assert "T = 1, 2, 3, 4 in 19 cuts into chunks of 1, 2, 4" in text
    assert "T=37 as 16+16+5 in chunks of 16" in text


NO_GROWTH = "no exponential exceeds 1"


@pytest.mark.parametrize(("factorisation", "bounded"), [("tree", True), ("plain", False)])
def test_only_the_plain_factors_may_exceed_1(factorisation: str, bounded: bool) -> None:
    d = derived("gla", factorisation)
    trials = standard_trials(d.rec, d.program)[:1]
    assert (NO_GROWTH in str(prove(d.rec, d.program, d.adjoint, trials))) == bounded


# Every node of every program and adjoint, each with one of the changes that `mutation` knows of


def one_change_per_node(program: Program) -> list[Mutant]:
    choose = random.Random(0)
    by_node: dict[str, list[Mutant]] = {}
    for mutant in mutants(program):
        by_node.setdefault(mutant.what.split("): ")[0], []).append(mutant)
    return [choose.choice(found) for found in by_node.values()]


@pytest.mark.parametrize("which", ["program", "adjoint"])
@every_case
def test_no_node_can_be_changed_unnoticed(name: str, factorisation: str, which: str) -> None:
    d = derived(name, factorisation)
    trials = fast()
    list(proof.compare(d.rec, d.program, d.adjoint, trials[0]))
    survivors = []
    for mutant in one_change_per_node(getattr(d, which)):
        pair = (mutant.program, d.adjoint) if which == "program" else (d.program, mutant.program)
        try:
            list(proof.compare(d.rec, *pair, trials[0]))
        except ProofError:
            continue
        survivors.append(mutant.what)
    assert not survivors


def test_no_node_of_the_program_of_all_pairs_can_be_changed_unnoticed() -> None:
    rec, trial = derived(*TOTAL).rec, fast()[0]
    pairs = pair_program(rec)
    assert "all pairs of tokens at once" in str(next(proof.all_pairs(rec, pairs, trial)))
    survivors = []
    for mutant in mutants(pairs):
        try:
            list(proof.all_pairs(rec, mutant.program, trial))
        except ProofError:
            continue
        survivors.append(mutant.what)
    assert not survivors


# A derivation that goes wrong as a whole


TOTALS_GONE_WRONG: dict[str, Callable[[Program], Program]] = {
    "the state at the chunk's start is read": lambda p: replace(p, total=False),
    "what is written twice": lambda p: _written(p, lambda g, n: g.add(n, n)),
    "nothing is normalized": lambda p: replace(p, outputs={"o": p.graph.unrows(p.outputs["o"].args[0].args[0])}),
}


def _written(program: Program, change: Callable[[Graph, Node], Node]) -> Program:
    carries = tuple(replace(c, write=change(program.graph, c.write)) for c in program.carries[:1])
    return replace(program, carries=(*carries, *program.carries[1:]))


@pytest.mark.parametrize("what", TOTALS_GONE_WRONG)
def test_a_wrong_total_is_not_proven(what: str) -> None:
    d = derived(*TOTAL)
    with pytest.raises(ProofError):
        prove(d.rec, TOTALS_GONE_WRONG[what](d.program), d.adjoint, fast())


def test_what_a_token_sees_of_the_past_alone_is_no_total() -> None:
    rec = derived(*TOTAL).rec
    masked = chunk_program(rec, "plain")
    with pytest.raises(ProofError):
        prove(rec, masked, adjoint(masked), fast())


def normalized(text: str = "decay: {type: gated, log: logsigmoid(g)}\ninputs: {g: B T H}") -> Recurrence:
    return recurrence(read_text(f"name: x\n{text}\nnormalizer: {{kind: sum, eps: 1e-6}}"))


def with_state(rec: Recurrence, name: str, change: Callable[[StateRule], StateRule]) -> Recurrence:
    return replace(rec, states=tuple(change(r) if r.name == name else r for r in rec.states))


def with_quantity(rec: Recurrence, name: str, change: Callable[[sympy.Expr], sympy.Expr]) -> Recurrence:
    changed = replace(rec.quantities[name], expr=change(rec.quantities[name].expr))
    return replace(rec, quantities={**rec.quantities, name: changed})


BROKEN: dict[str, Callable[[Recurrence], Recurrence]] = {
    "the normalizer does not decay": lambda rec: with_state(rec, "z", lambda r: replace(r, update=z + key)),
    "the state does not decay": lambda rec: with_state(rec, "S", lambda r: replace(r, update=S + key * value)),
    "the query is written": lambda rec: with_state(
        rec, "S", lambda r: replace(r, update=sympy.exp(decay) * S + query * value)
    ),
    "the key is read": lambda rec: with_state(rec, "S", lambda r: replace(r, read=key * S)),
    "the output is normalized by a square": lambda rec: replace(rec, output=rec.output.xreplace({n: n**2})),
    "eps is added twice": lambda rec: replace(rec, output=rec.output.xreplace({n: n + sympy.Rational("1e-6")})),
    "the log-decay has the wrong sign": lambda rec: with_quantity(rec, "log_decay", lambda e: -e),
    "the state decays twice": lambda rec: with_quantity(rec, "log_decay", lambda e: 2 * e),
    "the key has another feature map": lambda rec: with_quantity(rec, "key", sympy.tanh),
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_program_of_another_recurrence_is_not_proven(what: str) -> None:
    rec = normalized()
    right, other = chunk_program(rec, "plain"), chunk_program(BROKEN[what](rec), "plain")
    with pytest.raises(ProofError, match="output o.* differs at T="):
        prove(rec, other, adjoint(right), fast())


def test_decaying_through_the_row_itself_is_part_of_the_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    def exclusive(self: chunkwise.Decay, log: Node, block: str, name: str) -> Node:
        return self.graph.segment(log, "earlier", block, name=name)

    rec = derived("gla", "tree").rec
    monkeypatch.setattr(chunkwise.Decay, "_through", exclusive)
    wrong = chunk_program(rec, "tree")
    with pytest.raises(ProofError, match="output o"):
        prove(rec, wrong, adjoint(wrong), fast())


def test_a_write_decays_only_after_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    later = chunkwise.Decay.later

    def inclusive(self: chunkwise.Decay, *args: str, **names: str) -> list[Node]:
        return [self.graph.add(log, x) for log, x in zip(self.logs, later(self, *args, **names), strict=True)]

    rec = derived("simple_gla", "plain").rec
    monkeypatch.setattr(chunkwise.Decay, "later", inclusive)
    wrong = chunk_program(rec, "plain")
    with pytest.raises(ProofError, match="output o|final state S"):
        prove(rec, wrong, adjoint(wrong), fast())


@pytest.mark.parametrize("factorisation", ["plain", "tree"])
def test_the_two_factorisations_are_proven_against_one_recurrence(factorisation: str) -> None:
    rec = normalized("decay: {type: gated, per: key, log: logsigmoid(g)}\ninputs: {g: B T H K}")
    program = chunk_program(rec, factorisation)
    assert prove(rec, program, adjoint(program)).ok


# The transposes and derivatives that the adjoint is made of


def wrong_adjoint(monkeypatch: pytest.MonkeyPatch, name: str, factorisation: str, target: str, new: object) -> None:
    d = derived(name, factorisation)
    monkeypatch.setattr(adjoints, target, new)
    with pytest.raises(ProofError, match="gradient"):
        prove(d.rec, d.program, adjoint(d.program), fast())


def no_cotangent(g: Graph, carry: Carry, end: Node) -> list[Node]:
    return [g.map(sympy.Mul(0, placeholder(0), evaluate=False), {placeholder(0): carry.decay})]


def test_a_gradient_that_misses_the_decay_of_the_initial_state_is_not_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong_adjoint(monkeypatch, "simple_gla", "plain", "_decay_cotangent", no_cotangent)


@pytest.mark.parametrize("factor", [2, -1, sympy.Rational(1, 2)])
def test_a_wrong_derivative_is_not_proven(monkeypatch: pytest.MonkeyPatch, factor: sympy.Expr) -> None:
    right = adjoints.derivative
    wrong_adjoint(
        monkeypatch, "gla", "tree", "derivative", lambda e, x: (factor if e.has(sympy.exp) else 1) * right(e, x)
    )


@pytest.mark.parametrize("name", ["gla", "learned_decay", "linear_attention"])
def test_a_wrong_slope_of_a_gate_or_feature_map_is_not_proven(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rec = derived(name, "plain").rec
    right = proof.derivative
    monkeypatch.setattr(proof, "derivative", lambda e, x: right(e, x) + sympy.Rational(1, 10**12))
    with pytest.raises(ProofError, match="∂query/∂q is .* at .*, and should be"):
        list(proof.slopes(rec))


def swapped_transpose(program: Program) -> Program:
    """The adjoint, with sums over later rows where sums over earlier ones belong."""
    changes = {
        n: with_op(Segment({"earlier": "later", "later": "earlier"}[n.op.kind], n.op.block))
        for n in program.nodes()
        if isinstance(n.op, Segment)
    }
    return rebuilt(program, changes)


def test_swapping_all_earlier_and_later_sums_is_not_proven() -> None:
    d = derived("gla", "tree")
    with pytest.raises(ProofError):
        prove(d.rec, d.program, swapped_transpose(d.adjoint), fast())


# What a comparison at random points would not show


def called(program: Program, name: str) -> Node:
    (found,) = [n for n in program.nodes() if n.name == name]
    return found


def test_a_division_that_the_recurrence_does_not_have_is_refused() -> None:
    d = derived("retnet", "plain")
    query = called(d.program, "query_decayed").args[0]
    expr = sympy.Mul(placeholder(0), placeholder(1), 1 / placeholder(1), evaluate=False)
    times_one = {called(d.program, "query_decayed"): lambda g, n: Node(Map(expr), (n, query), n.axes, n.level)}
    with pytest.raises(ProofError, match=r"divides by query\[0,0\], which the recurrence does not"):
        prove(d.rec, rebuilt(d.program, times_one), d.adjoint)


def test_the_exponential_of_something_not_a_log_decay_is_refused() -> None:
    d = derived("gla", "plain")
    exponentiated = {called(d.program, "y"): lambda g, n: g.exp(n)}
    with pytest.raises(ProofError, match="the program has no value at T=1"):
        prove(d.rec, rebuilt(d.program, exponentiated), d.adjoint)


def test_the_message_says_which_output_differs_where_and_at_which_cut() -> None:
    d = derived("simple_gla", "plain")
    with pytest.raises(ProofError) as caught:
        prove(d.rec, rebuilt(d.program, {called(d.program, "y"): scaled(2)}), d.adjoint)
    message = str(caught.value)
    assert message.startswith("output o[0, 0] differs at T=1 as 1 in chunks of 1\n")
    assert "program:    2·" in message
    assert "recurrence: " in message


def test_there_are_mutants_of_every_kind() -> None:
    words = {m.what.split(": ")[1].split(" ")[0] for case in CASES for m in mutants(derived(*case).program)}
    assert words >= {
        "doubled",
        "negated",
        "dropped",
        "earlier",
        "includes",
        "one",
        "through",
        "removed",
        "term",
        "becomes",
        "not",
        "decayed",
        "missing",
    }

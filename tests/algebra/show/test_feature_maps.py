"""Feature maps over the whole width are written with the letters and bounds that they have."""

from __future__ import annotations

import re
from functools import cache

import pytest

from recgen.algebra.adjoint import adjoint
from recgen.algebra.chunkwise import chunk_program
from recgen.algebra.mathtext import equation, explain_spec
from recgen.algebra.program import Node
from recgen.algebra.show.notation import style_named
from recgen.algebra.show.step import Recurrent
from recgen.algebra.statement import recurrence
from recgen.resources import specs_dir
from recgen.spec import Spec, read, read_text

HEDGEHOG = read(specs_dir() / "hedgehog.yaml")
SPECS = {
    "hedgehog": HEDGEHOG,
    "based": read(specs_dir() / "based.yaml"),
    "performer": read(specs_dir() / "performer.yaml"),
    "nested": read_text(
        "name: nested\nparams: {W: {axes: H K K, init: 0}, P: {axes: H K V, init: 0}}\n"
        "feature_map: concat(outer(softmax(outer(x, x)), matmul(W, matmul(W, x))),"
        " matmul(P, l2norm(x)))"
    ),
}


@cache
def nodes(name: str) -> list[Node]:
    program = chunk_program(recurrence(SPECS[name]), "plain")
    return list(dict.fromkeys([*program.nodes(), *adjoint(program).nodes()]))


def told(name: str, of: str) -> str:
    (found,) = [n for n in nodes(name) if n.name == of]
    return equation(found)


def step(spec: Spec, style: str = "text") -> dict[str, str]:
    return dict(e.line().split(" = ", 1) for e in Recurrent(recurrence(spec), style_named(style)).quantities())


def test_one_step_speaks_of_whole_vectors() -> None:
    written = step(HEDGEHOG)["query[t,m]"]
    assert written == "scale concat(softmax(matmul(W, q[t])), softmax(-matmul(W, q[t])))[m]"
    assert step(SPECS["performer"])["key[t,m]"] == (
        "M^(-1/2) exp(K^(-1/4) matmul(omega, k[t])[m] - K^(-1/2) sum(k[t]^2)/2)"
    )
    assert r"\operatorname{concat}\left(" in step(HEDGEHOG, "latex")[r"\mathrm{query}_{t,m}"]
    assert explain_spec(HEDGEHOG)


def test_what_a_map_passes_through_has_names_and_letters() -> None:
    assert told("hedgehog", "query_projected") == "query_projected[t,e] = Σ_k q[t,k] W[k,e]"
    assert told("hedgehog", "query_powers") == (
        "query_powers[t,e] = exp(query_projected[t,e] - max_k(query_projected[t,k]))"
    )
    assert told("hedgehog", "query_softmax") == "query_softmax[t,e] = query_powers[t,e] / (Σ_k query_powers[t,k])"
    assert told("hedgehog", "query_features") == (
        "query_features[t,m] = scale concat_e(query_softmax[t,e], query_softmax_2[t,e])[m]"
    )
    assert told("hedgehog", "d_query_softmax_2") == "d_query_softmax_2[t,e] = scale d_query_features[t,K + e]"


@pytest.mark.parametrize("name", SPECS)
def test_every_letter_is_on_the_left_or_bound(name: str) -> None:
    for node in (n for n in nodes(name) if n.name):
        text = equation(node)
        if " = " not in text:
            continue
        left, right = text.split(" = ", 1)
        known = set(re.findall(r"[a-z]", left.partition("[")[2]))
        for under in re.findall(r"(?:Σ|max|concat|flatten)_(\{[^}]*\}|[a-z](?![a-z]))", right):
            known |= set(re.findall(r"[a-z]", under))
        known |= {"t"} if "Σ_tokens" in right else set()
        used = {x for inside in re.findall(r"\[([^]]*)\]", right) for x in re.findall(r"[a-z]", inside)}
        assert used <= known, text
        assert "'" not in text, text
        letters = left.partition("[")[2].removesuffix("]").split(",")
        assert len(set(letters)) == len(letters), text

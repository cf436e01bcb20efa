"""The mathematics beside emitted code and in its header: short, exact, the same for every operator."""

from __future__ import annotations

import pytest

from recgen.algebra.mathtext import carry_equation, equation, equation_lines, module_equations, shared_names
from tests.algebra.show.catalogue import CASES, derived, every_case

EXPECTED = {
    ("linear_attention", "plain"): {
        "scores": "scores[t,i] = similarity[t,i] where i ≤ t",
        "o": "o[t,c] = y[t,c] / (n[t] + 1e-6)",
        "d_y": "d_y[t,c] = d_o[t,c] / (n[t] + 1e-6)",
    },
    ("retnet", "plain"): {"log_decay": "ℓ = log(1 - 2^(-h - 5))", "pair_decay": "pair_decay[t,i] = exp(between[t,i])"},
    ("learned_decay", "plain"): {"log_decay": "ℓ = -exp(w)", "d_w": "d_w = ℓ d_ℓ"},
    ("simple_gla", "plain"): {
        "between": "between[t,i] = Σ_{i<j≤t} ℓ[j]",
        "prefix": "prefix[t] = ℓ[t] + Σ_{j<t} ℓ[j]",
        "y": "y[t,c] = Σ_i scores[t,i] value[i,c] + Σ_m query_decayed[t,m] S[m,c]",
        "d_log_decay": "d_ℓ[t] = Σ_{j<t} d_suffix[j] + d_total + d_prefix[t] + Σ_{j>t} d_prefix[j]"
        " + Σ_{j≥t>i} d_between[j,i]",
    },
    ("gla", "tree"): {
        "from_middle": "from_middle[s,t,m] = ℓ[t,m] + Σ_{j<t, j∈B_s(t)} ℓ[j,m]",
        "scores": "scores[s,t,i] = similarity[s,t,i] where B_s(i) is the sibling before B_s(t)",
        "scores_all": "scores_all[t,i] = Σ_s scores[s,t,i]",
        "self_score": "self_score[t] = Σ_m query[t,m] key[t,m]",
    },
    ("gla", "plain"): {"growth_from_row": "growth_from_row[t,m] = exp(-prefix[t,m])"},
}


@pytest.mark.parametrize("case", EXPECTED, ids=" ".join)
def test_the_catalogue_reads_as_expected(case: tuple[str, str]) -> None:
    d = derived(*case)
    names = shared_names(d.nodes)
    for name, text in EXPECTED[case].items():
        assert equation(d.called(name), names=names) == text


def test_the_state_is_handed_on_in_one_line() -> None:
    (carry,) = derived("gla", "tree").program.carries
    assert carry_equation(carry) == "S[m,c] ← chunk_decay[m] S[m,c] + Σ_t key_decayed[t,m] value[t,c]"


def test_a_value_per_token_and_per_row_share_a_name() -> None:
    d = derived("simple_gla", "plain")
    shared = shared_names(d.nodes)
    assert {n.name: shared[n] for n in shared}["d_o_rows"] == "d_o"


@every_case
def test_lines_are_short(name: str, factorisation: str) -> None:
    d = derived(name, factorisation)
    for names in ({}, shared_names(d.nodes)):
        for n in d.nodes:
            assert n.name == "" or all(len(line) <= 90 for line in equation_lines(n, names=names))


HEADER = """\
One step of a head (token t, feature m, value channel c; ℓ is log_decay):
    query[t,m] = scale q[t,m]
    key[t,m]   = k[t,m]
    value[t,c] = v[t,c]
    ℓ[t]       = logsigmoid(g[t])
    S[t,m,c]   = exp(ℓ[t]) S[t-1,m,c] + key[t,m] value[t,c]
    o[t,c]     = Σ_m query[t,m] S[t,m,c]
All tokens at once, from an empty state:
    M[t,i] = exp(Σ_{i<j≤t} ℓ[j]) where i ≤ t
    o[t,c] = Σ_i M[t,i] (Σ_m query[t,m] key[i,m]) value[i,c]
Chunk by chunk (rows t and columns i of one chunk):
    scores[t,i]        = (Σ_m query[t,m] key[i,m]) exp(Σ_{i<j≤t} ℓ[j]) where i ≤ t
    query_decayed[t,m] = query[t,m] exp(ℓ[t] + Σ_{j<t} ℓ[j])
    y[t,c]             = Σ_i scores[t,i] value[i,c] + Σ_m query_decayed[t,m] S[m,c]
    chunk_decay        = exp(Σ_t ℓ[t])
    key_decayed[t,m]   = key[t,m] exp(Σ_{j>t} ℓ[j])
    S[m,c]             ← chunk_decay S[m,c] + Σ_t key_decayed[t,m] value[t,c]"""


def test_the_header_of_a_module_fits_on_a_page() -> None:
    d = derived("simple_gla", "plain")
    assert "\n".join(module_equations(d.rec, d.program)) == HEADER
    for case in CASES:
        d = derived(*case)
        lines = module_equations(d.rec, d.program)
        assert len(lines) <= 25 and all(len(line) <= 90 and line == line.rstrip() for line in lines)

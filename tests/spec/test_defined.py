"""What has no value whatever it is called with is refused where it is written."""

from __future__ import annotations

import pytest

from tests.spec.refusals import operator, place, problems

GATE = "inputs: {g: B T H}\ndecay: {type: gated, value: "
RATE = "decay: {type: learned, log: -exp(w)}\nparams:\n  w:\n    axes: H\n    init: "


@pytest.mark.parametrize(
    ("body", "where", "reason", "fix"),
    [
        ("rotation: 1/i", (2, 11), "1/i has no finite value at i = 0", "1 / (i + 1)"),
        ("rotation: log(i)", (2, 11), "log(i) has no finite value at i = 0", ""),
        ("rotation: p * log(h)\nparams: {p: {axes: H, init: 1}}", (2, 11), "log(h) has no finite value at h = 0", ""),
        ("rotation: i ** p\nparams: {p: {axes: H, init: 1}}", (2, 11), "no finite value where p = -", ""),
        ("scale: log(-K)", (2, 8), "log(-K) has no finite value at any size", ""),
        ("query: q * log(h)", (2, 8), "log(h) has no finite value at h = 0", ""),
        ("query: q / relu(q)", (2, 8), "no finite value where q = -", "away from 0"),
        (GATE + "relu(tanh(g))}", (3, 29), "the log-decay is not finite where g = -", "0.9 * relu(tanh(g)) + 0.1"),
        (GATE + "'where(g > 0, sigmoid(g), 0)'}", (3, 29), "the log-decay is not finite where g = -", ""),
        (
            "feature_map: x / sum(relu(x))",
            (2, 14),
            "no finite value where the elements of x are negative",
            "away from 0",
        ),
        ("feature_map: softmax(log(x))", (2, 14), "the logarithm of x, which can be negative", ""),
        ("feature_map: softmax(x) / h", (2, 14), "1/h has no finite value at h = 0", ""),
        (RATE + "log(h)", (6, 11), "log(h) has no finite value at h = 0", "log(1 + h)"),
        (RATE + "1 / (h - 1)", (6, 11), "1/(h - 1) has no finite value at h = 1", ""),
        (RATE + "log(normal(0, 1))", (6, 11), "the logarithm of draw, which can be negative", ""),
        (RATE + "orthogonal(1)", (6, 11), "orthogonal draws rows of a matrix, and w has the axis H alone", "two axes"),
        (RATE + "uniform(h, H)", (6, 11), "uniform draws all elements with the same numbers", ""),
        (
            "feature_map: concat(sin(matmul(P, x)), cos(matmul(P, x)))\nparams: {P: {axes: H M K, init: 1}}",
            (2, 1),
            "M is the number of features, which is 2*M here, and P has the axes H M K",
            "such as matmul(P, x)",
        ),
    ],
)
def test_what_has_no_value_is_refused(body: str, where: tuple[int, int], reason: str, fix: str) -> None:
    problem = problems(f"name: mine\n{body}\n")[0]
    assert reason in problem.reason
    assert fix in problem.fix and problem.fix
    assert place(problem) == where


@pytest.mark.parametrize(
    "body",
    [
        "scale: 1 / (K - 4)",
        "rotation: sqrt(4 - K)",
        "query: q * sqrt(K - 5)",
        "feature_map: x / sum(x)",
        RATE + "log(H - 8)",
        RATE + "log(uniform(0, 1))",
    ],
)
def test_what_depends_on_sizes_waits_for_them(body: str) -> None:
    assert operator(body)

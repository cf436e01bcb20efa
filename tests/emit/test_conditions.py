"""Sizes at which a spec has no value are a ValueError at the call, which names what has none."""

from __future__ import annotations

import pytest

import recgen
from recgen.spec import read_text

RATE = "decay: {type: learned, log: -exp(w)}\nparams: {w: {axes: H, init: "


def module_of(body: str):
    return recgen.load(read_text(f"name: sized\n{body}\n"))


@pytest.mark.parametrize(
    ("body", "bad", "message"),
    [
        (
            "scale: 1 / (K - 4)",
            4,
            r"scale: its default 1 / \(K - 4\) is not a finite number where H = 2, K = 4, V = 16",
        ),
        ("scale: sqrt(6 - K)", 8, r"scale: its default .* is not a finite number"),
        ("scale: exp(K)", 100, r"scale: its default .* is not a finite number"),
        ("rotation: 1 / (K - 4)", 4, r"rotation: 1/\(K - 4\) is not a finite number where H = 2, K = 4, V = 16"),
        ("rotation: log(30 - i)", 62, r"rotation: log\(30 - i\) is not a finite number"),
        ("query: q / (K - 4)", 4, r"query: 1/\(K - 4\) is not a finite number"),
    ],
)
def test_a_call_at_such_sizes_is_refused(body: str, bad: int, message: str) -> None:
    module = module_of(body)
    module.operator(**module.sample_inputs(T=3, K=6))
    inputs = module.sample_inputs(T=3, K=bad)
    with pytest.raises(ValueError, match=message):
        module.operator(**inputs)
    if body.startswith("scale"):
        module.operator(**inputs, scale=0.5)
    with pytest.raises(ValueError, match=message):
        module.step(**{name: x[:, 0] for name, x in inputs.items()})


@pytest.mark.parametrize(
    ("init", "good", "bad"),
    [
        ("log(H - 4)", 5, 4),
        ("1 / (H - 4)", 5, 4),
        ("log(30 - h)", 3, 31),
        ("normal(0, 1 / (H - 4))", 5, 4),
        ("sqrt(4 - H)", 4, 5),
    ],
)
def test_a_layer_of_such_sizes_is_refused(init: str, good: int, bad: int) -> None:
    module = module_of(RATE + f'"{init}"}}}}')
    module.sample_inputs(H=good)
    module.Operator(H=good)
    for make in (module.sample_inputs, module.Operator):
        with pytest.raises(ValueError, match="w: its initial value is not a (finite )?number at these sizes"):
            make(H=bad)


def test_the_numbers_of_a_draw_are_taken_together() -> None:
    module = module_of(RATE + '"uniform(1 + H, 2 + H)"}}')
    w = module.sample_inputs(H=5)["w"]
    assert bool((w >= 6).all()) and bool((w <= 7).all())

"""A spec is explained key by key."""

from __future__ import annotations

from recgen.algebra.mathtext import explain_spec
from recgen.spec import read_text
from tests.algebra.show.catalogue import derived


def test_a_spec_is_explained_key_by_key() -> None:
    text = explain_spec(derived("learned_decay", "plain").spec)
    assert "decay.log      -exp(w)               ℓ: at every token the state is multiplied by exp(ℓ)\n" in text
    assert "    w   H   head; learned, starts as log(-log(1 - 2 ** (-5 - h)))\n" in text
    assert "    q   B T H K   batch × time × head × key channel\n" in text
    assert "  scale: K ** -0.5\n" in text


def test_every_key_of_a_spec_is_explained() -> None:
    text = explain_spec(
        read_text("""
name: everything
title: All of it
inputs: {q: B T H K, k: B T H K, v: B T H V, g: B T H, a: B T H}
params: {u: {axes: H K, init: 0}, D: {axes: H, init: 1}}
decay: {type: gated, log: logsigmoid(g), bounds: [-10, 0]}
feature_map: {query: relu(x), key: elu(x) + 1}
key_weight: sigmoid(a)
normalizer: max_abs
readout: {kind: exclusive, bonus: u, skip: D}
""")
    )
    for words in (
        "everything: All of it",
        "decay.bounds        -10 to 0",
        "feature_map.query   relu(x)",
        "feature_map.key     elu(x) + 1",
        "key_weight          sigmoid(a)",
        "normalizer          max_abs",
        "readout             exclusive",
        "readout.bonus       u",
        "readout.skip        D",
    ):
        assert words in text

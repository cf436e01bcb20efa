"""A spec written out is the same spec; its digest depends on what it means, not on how it is spelled."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from recgen.resources import specs_dir
from recgen.spec import SpecError, read, read_dict, read_text
from recgen.spec.write import to_yaml
from tests.spec.refusals import operator

CATALOGUE = sorted(specs_dir().glob("*.yaml"))

BODIES = [
    "",
    "title: 'it''s \"quoted\": yes # no'\ncite: '- 1'\n",
    "feature_map: {query: relu, key: exp}\nnormalizer: {kind: sum, eps: 0.1}\n",
    "query: r\ninputs: {e: B T H, r: B T H K}\nkey_weight: {log: 'min(0, e)'}\nnormalizer: sum\n",
    "inputs: {v: B T H V, k: B T H K, q: B T H K}\n",
    "decay: {type: gated, log: g, bounds: [-.inf, -1e-3]}\ninputs: {g: B T H}\n",
    "decay: {type: fixed, value: 0.9}\nscale: '-1 / (K * V)'\n",
    "params: {u: {axes: H K, init: 'uniform(-1, 1)'}, a: {axes: H, init: 1, buffer: true}}\n"
    "readout: {kind: exclusive, bonus: u, skip: a, gate: sigmoid(v)}\nrotation: 1 / (i + 1)\n",
    "state: vector\ndecay: {type: gated, per: channel, log: logsigmoid(g)}\ninputs: {g: B T D}\nvalue: v / 2\n",
    "causal: false\nnormalizer: max_abs\n",
]


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: path.stem)
def test_every_operator_of_the_catalogue_is_read(path: Path) -> None:
    spec = read(path)
    assert spec.name == path.stem
    assert spec.title and spec.source == path.read_text() and spec.path == str(path)
    assert read_dict(spec.as_dict()) == spec


@pytest.mark.parametrize("body", BODIES)
def test_a_spec_survives_being_written_and_read(body: str) -> None:
    spec = operator(body)
    content = spec.as_dict()
    again = read_dict(json.loads(json.dumps(content)))
    assert again == spec
    assert again.as_dict() == content
    assert again.digest == spec.digest
    assert read_text(to_yaml(content)) == spec


def test_the_digest_ignores_spelling() -> None:
    digest = operator("decay: {type: fixed, log: -1/2}\nscale: K**-0.5\n").digest
    assert operator("# why\nscale:  (K ** -0.5)\ndecay:\n  log: '-1 / 2'\n  type: fixed\n").digest == digest
    assert len(digest) == 64


@pytest.mark.parametrize(
    "body",
    [
        "decay: {type: fixed, log: -1/2}\nscale: K**-0.25\n",
        "decay: {type: fixed, log: -1/3}\nscale: K**-0.5\n",
        "title: other\ndecay: {type: fixed, log: -1/2}\nscale: K**-0.5\n",
        "inputs: {k: B T H K, q: B T H K}\ndecay: {type: fixed, log: -1/2}\nscale: K**-0.5\n",
    ],
)
def test_the_digest_sees_content_and_order(body: str) -> None:
    assert operator(body).digest != operator("decay: {type: fixed, log: -1/2}\nscale: K**-0.5\n").digest


def test_defaults_are_left_out() -> None:
    spec = operator("causal: true\nstate: matrix\nnormalizer: none\nscale: 1\ninputs: {}\n")
    assert spec.as_dict() == {"name": "mine"}


def test_a_spec_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        operator().name = "yours"  # type: ignore[misc]


def test_a_dict_is_refused_like_a_file() -> None:
    with pytest.raises(SpecError, match="<dict>:2:1: there is no key 'scle' here"):
        read_dict({"name": "mine", "scle": 1})


@pytest.mark.parametrize("value", [object(), b"x", {1, 2}, {1: 2}])
def test_what_yaml_does_not_have_is_a_type_error(value: object) -> None:
    with pytest.raises(TypeError, match="a spec"):
        read_dict({"name": "mine", "inputs": value})

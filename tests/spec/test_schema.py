"""The JSON Schemas know the keys that the reader takes, and no others; every key is explained."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from recgen.resources import PACKAGE, families_dir, specs_dir
from recgen.spec.keys import FamilyShape, SpecShape
from recgen.spec.schema import HINT, family_schema, schema_text, spec_schema

SPECS, FAMILIES = sorted(specs_dir().glob("*.yaml")), sorted(families_dir().glob("*.yaml"))
SCHEMAS = {"spec": spec_schema(), "family": family_schema()}


def wrong(content: Any, kind: str = "spec") -> list[str]:
    """What the schema of this kind says against a document."""
    return [error.message for error in Draft202012Validator(SCHEMAS[kind]).iter_errors(content)]


def from_yaml(text: str | Path) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def keys(schema: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every key of a schema, those of its parts too."""
    parts = {"": schema, **schema.get("$defs", {})}
    return ((f"{part}.{key}", value) for part in parts for key, value in parts[part]["properties"].items())


@pytest.mark.parametrize("kind", SCHEMAS)
def test_the_file_in_the_package_is_up_to_date(kind: str) -> None:
    path = PACKAGE / "schemas" / f"{kind}.schema.json"
    flag = " --family" if kind == "family" else ""
    assert path.read_text(encoding="utf-8") == schema_text(SCHEMAS[kind]), f"recgen schema{flag} --out {path}"


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_key_is_explained_with_examples_that_it_takes(kind: str) -> None:
    schema = SCHEMAS[kind]
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    for key, value in keys(schema):
        assert len(value["description"]) > 10 and value["examples"], key
        own = Draft202012Validator({**value, "$defs": schema.get("$defs", {})})
        assert [*map(own.is_valid, value["examples"])] == [True] * len(value["examples"]), key


def test_the_keys_are_those_of_the_reader() -> None:
    assert list(SCHEMAS["spec"]["properties"]) == list(SpecShape.model_fields)
    assert list(SCHEMAS["family"]["properties"]) == list(FamilyShape.model_fields)
    family = SCHEMAS["spec"]["$defs"]["DecayShape"]["properties"]["family"]
    assert {path.stem for path in FAMILIES} <= set(family["examples"])


@pytest.mark.parametrize("path", [*SPECS, *FAMILIES], ids=lambda path: path.stem)
def test_every_file_fits_the_schema_that_it_names(path: Path) -> None:
    kind = "spec" if path in SPECS else "family"
    first = path.read_text(encoding="utf-8").splitlines()[0]
    assert first.startswith(HINT)
    assert (path.parent / first.removeprefix(HINT)).resolve() == PACKAGE / "schemas" / f"{kind}.schema.json"
    assert wrong(from_yaml(path), kind) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name: a\nfeature_mapp: relu\n", "'feature_mapp' was unexpected"),
        ("name: a\ndecay: {typ: gated}\n", "'typ' was unexpected"),
        ("name: a\nparams: {w: {axes: H, init: 0, bufer: true}}\n", "'bufer' was unexpected"),
        ("name: a\nparams: {w: {axes: H}}\n", "'init' is a required property"),
        ("title: a\n", "'name' is a required property"),
        ("name: a\ndecay: {type: gatd}\n", "'gatd' is not one of"),
        ("name: a\nnormalizer: mean\n", "'mean' is not valid"),
        ("name: a\nnormalizer: {kind: sum, epsilon: 1}\n", "is not valid"),
        ("name: a\ncausal: 1\n", "1 is not of type 'boolean'"),
        ("name: 2a\n", "does not match"),
        ("name: a\nbounds: [0]\n", "is too short"),
    ],
)
def test_a_wrong_spec_does_not_fit(text: str, said: str) -> None:
    found = wrong(from_yaml(text))
    assert len(found) == 1 and said in found[0], found


@pytest.mark.parametrize(
    "text",
    [
        "name: a\nkey_weight: {log: i}\nfeature_map: {query: relu, key: 1}\nnormalizer: max_abs\nreadout: exclusive\n",
        "name: a\ntitle: 2024\nscale: 0.5\ndecay: {type: fixed, value: 0.9, bounds: [-inf, -1e-3]}\n",
        "name: a\ncausal: false\nlicense: |\n  Copyright\n  2026\n",
    ],
)
def test_short_forms_and_numbers_fit(text: str) -> None:
    assert wrong(from_yaml(text)) == []


def test_a_family_has_other_keys() -> None:
    assert wrong({"name": "a", "type": "fixed", "log": "-1"}, "family") == []
    assert wrong({"name": "a", "type": "fixed", "log": "-1", "scale": 1}, "family")
    assert wrong({"name": "a", "log": "-1"}, "family")

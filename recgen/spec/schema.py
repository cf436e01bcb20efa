"""The keys of a spec, or of a decay family, as a JSON Schema (2020-12): editors complete, explain and check with it."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from recgen import __version__
from recgen.resources import families_dir
from recgen.spec.keys import FamilyShape, Shape, SpecShape

HINT = "# yaml-language-server: $schema="
"""What a YAML file says to an editor of where its schema is."""


def spec_schema() -> JsonSchemaValue:
    """The schema of a spec; the built-in families are examples of a decay's family."""
    schema = _schema(SpecShape, "spec")
    family = schema["$defs"]["DecayShape"]["properties"]["family"]
    family["examples"] += [
        path.stem for path in sorted(families_dir().glob("*.yaml")) if path.stem not in family["examples"]
    ]
    return schema


def family_schema() -> JsonSchemaValue:
    """The schema of a decay family."""
    return _schema(FamilyShape, "family")


def schema_text(schema: JsonSchemaValue) -> str:
    """The schema as a file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _schema(shape: type[Shape], name: str) -> JsonSchemaValue:
    made = shape.model_json_schema(schema_generator=_Generator)
    head = {"$schema": _Generator.schema_dialect, "$id": f"urn:recgen:{name}:{__version__}", "title": f"recgen {name}"}
    return head | {key: value for key, value in made.items() if key != "title"}


class _Generator(GenerateJsonSchema):
    """pydantic's schema without titles that repeat keys, and with those defaults alone that a spec can write."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return {key: value for key, value in super().model_schema(schema).items() if key != "title"}

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])  # a key is left out, not null

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        inner, default = self.generate_inner(schema["schema"]), schema.get("default")
        return {**inner, "default": default} if isinstance(default, (str, bool)) and default != "" else inner

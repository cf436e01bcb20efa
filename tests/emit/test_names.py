"""What an emitted file makes of a tensor's or a state's name is a name that no tensor may have."""

from __future__ import annotations

import ast

import pytest

from recgen.resources import catalogue
from recgen.spec.names import refuse_tensor_name
from tests.generated.catalogue import emitted


def identifiers(source: str) -> set[str]:
    """Every name that the code uses for a value: variables, arguments and functions."""
    nodes = list(ast.walk(ast.parse(source)))
    return {node.id for node in nodes if isinstance(node, ast.Name)} | {
        node.arg for node in nodes if isinstance(node, ast.arg)
    }


@pytest.mark.parametrize("operator", sorted(catalogue()))
def test_names_made_of_others_are_kept(operator: str) -> None:
    module = emitted(operator)
    with open(str(module.__file__), encoding="utf-8") as file:
        found = identifiers(file.read())
    own = {*module.INPUTS, *module.PARAMS}
    bases = (*own, *getattr(module, "STATE", ()))
    made = {name for name in found - own for base in bases if name.startswith(f"{base}_")}
    assert made and not {name for name in made if not refuse_tensor_name(name)}

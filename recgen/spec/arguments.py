"""The arguments of an operator: its inputs and its parameters, each in call order."""

from __future__ import annotations

from collections.abc import Mapping

from recgen.spec.context import Context
from recgen.spec.document import Scalar
from recgen.spec.families import FamilyReading
from recgen.spec.model import Tensor
from recgen.spec.shape import SpecShape
from recgen.spec.syntax import names_in, parse
from recgen.spec.tensors import read_inputs, read_params
from recgen.spec.tokens import ExpressionError

_IMPLIED = {"q": "B T H K", "k": "B T H K", "v": "B T H V"}


def read_arguments(
    context: Context, shape: SpecShape, family: FamilyReading | None
) -> tuple[list[Tensor], list[Tensor]]:
    """All inputs and all parameters in call order.

    Inputs: q k v that are implied, the spec's own, then the family's. Parameters: the family's, then its own.
    """
    declared = read_inputs(context, shape.inputs)
    params = read_params(context, shape.params)
    for name in [name for name in shape.params if name in shape.inputs]:
        context.refuse(context.key_position("params", name), name, f"{name} is declared as an input", "rename one")
    own = {tensor.name: tensor for tensor in (*declared, *params)}
    implied = [
        Tensor(name, tuple(axes.split()), "input", None, context.source.location(context.root.start))
        for name, axes in _implied(shape).items()
        if name not in own
    ]
    own |= {tensor.name: tensor for tensor in implied}
    brought = [tensor for tensor in (*family.inputs, *family.params) if _brings(context, tensor, own)] if family else []
    inputs = implied + declared + [tensor for tensor in brought if tensor.role == "input"]
    return inputs, [tensor for tensor in brought if tensor.role != "input"] + params


def _implied(shape: SpecShape) -> dict[str, str]:
    """q, k and v, each unless its role is written without it."""
    if shape.state == "vector":
        return {"v": "B T D"} if _uses("v", shape.value) else {}
    roles = {"q": shape.query, "k": shape.key, "v": shape.value}
    return {name: _IMPLIED[name] for name, scalar in roles.items() if _uses(name, scalar)}


def _uses(name: str, scalar: Scalar | None) -> bool:
    if scalar is None:
        return True
    try:
        return name in {found.name for found in names_in(parse(scalar.text))}
    except ExpressionError:
        return True


def _brings(context: Context, tensor: Tensor, own: Mapping[str, Tensor]) -> bool:
    """Whether a family's tensor is added; one of that name in the spec takes its place when the axes agree."""
    if tensor.name not in own:
        return True
    mine = own[tensor.name]
    is_input = mine.role == "input"
    if mine.axes != tensor.axes or is_input != (tensor.role == "input"):
        group = "inputs" if is_input else "params"
        kind = "an input" if tensor.role == "input" else "a parameter"
        reason = f"the family has {kind} {tensor.name} of its own, with the axes {tensor.layout}"
        context.refuse(context.key_position(group, tensor.name), tensor.name, reason, "rename yours")
    return False

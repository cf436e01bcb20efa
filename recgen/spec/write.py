"""Spec → plain data → YAML text: the spec as its author would write it, in one normal form."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from recgen.spec.model import DEFAULT_ROLES, Decay, Expr, Normalizer, Readout, Spec, Tensor


def spec_as_dict(spec: Spec) -> dict[str, Any]:
    """The spec's content: defaults left out, families written out, expressions in normal spelling."""
    content: dict[str, Any] = {"name": spec.name}
    content |= {key: getattr(spec, key) for key in ("title", "cite", "license") if getattr(spec, key)}
    inputs = _declared_inputs(spec)
    if inputs:
        content["inputs"] = {tensor.name: tensor.layout for tensor in inputs}
    if spec.params:
        content["params"] = {tensor.name: _param(tensor) for tensor in spec.params}
    if spec.decay.type != "none":
        content["decay"] = _decay(spec.decay)
    for role, name in _default_roles(spec).items():
        expr: Expr = getattr(spec, role)
        if expr.text != name:
            content[role] = expr.text
    if spec.query_map.text == spec.key_map.text:
        content |= {} if spec.query_map.text == "x" else {"feature_map": spec.query_map.text}
    else:
        content["feature_map"] = {"query": spec.query_map.text, "key": spec.key_map.text}
    if spec.log_key_weight:
        content["key_weight"] = {"log": spec.key_weight.text}
    elif spec.key_weight.text != "1":
        content["key_weight"] = spec.key_weight.text
    content |= _normalizer(spec.normalizer) | _readout(spec.readout)
    if spec.rotation is not None:
        content["rotation"] = spec.rotation.text
    content |= {} if spec.causal else {"causal": False}
    content |= {} if spec.state == "matrix" else {"state": spec.state}
    content |= {} if spec.scale.text == "1" else {"scale": spec.scale.text}
    return content


def _default_roles(spec: Spec) -> dict[str, str]:
    """Role → its expression when none is written. A vector state is not read through a query and a key."""
    return DEFAULT_ROLES if spec.state == "matrix" else {"query": "1", "key": "1", "value": "v"}


def _declared_inputs(spec: Spec) -> tuple[Tensor, ...]:
    """The inputs that must be written: all but leading q, k and v that their roles bring along."""
    implied = implied_inputs({role: getattr(spec, role) for role in DEFAULT_ROLES}, spec.state)
    count = len(implied)
    leading = tuple((tensor.name, tensor.layout) for tensor in spec.inputs[:count])
    return spec.inputs[count:] if leading == tuple(implied.items()) else spec.inputs


def implied_inputs(roles: Mapping[str, Expr | None], state: str) -> dict[str, str]:
    """The inputs q, k and v that need no declaration, with their axes: those that their own role uses."""
    width = {"query": "K", "key": "K", "value": "V"}
    if state == "vector":
        roles, width = {"value": roles["value"]}, {"value": "D"}
    implied = {}
    for role, expr in roles.items():
        name = DEFAULT_ROLES[role]
        if expr is None or name in {symbol.name for symbol in expr.tree.free_symbols}:
            implied[name] = f"B T {width[role]}" if state == "vector" else f"B T H {width[role]}"
    return implied


def _param(tensor: Tensor) -> dict[str, Any]:
    content: dict[str, Any] = {"axes": tensor.layout}
    if tensor.init is not None:
        content["init"] = tensor.init.text
    return content | ({"buffer": True} if tensor.role == "buffer" else {})


def _decay(decay: Decay) -> dict[str, Any]:
    content: dict[str, Any] = {"type": decay.type}
    content |= {} if decay.per == "head" else {"per": decay.per}
    content["log"] = decay.log.text
    if decay.bounds is not None:
        content["bounds"] = [_bound(end) for end in decay.bounds]
    return content


def _bound(value: float) -> float | str:
    return value if math.isfinite(value) else "-inf" if value < 0 else "inf"


def _normalizer(normalizer: Normalizer) -> dict[str, Any]:
    if normalizer.kind == "none":
        return {}
    if normalizer.kind == "sum":
        return {"normalizer": {"kind": "sum", "eps": normalizer.eps}}
    if normalizer.floor != 1:
        return {"normalizer": {"kind": normalizer.kind, "floor": normalizer.floor}}
    return {"normalizer": normalizer.kind}


def _readout(readout: Readout) -> dict[str, Any]:
    content: dict[str, Any] = {} if readout.kind == "inclusive" else {"kind": readout.kind}
    if readout.bonus is not None:
        content["bonus"] = readout.bonus.text
    if readout.skip:
        content["skip"] = readout.skip
    if readout.gate is not None:
        content["gate"] = readout.gate.text
    return {"readout": content} if content else {}


_PLAIN = re.compile(r"-?[A-Za-z0-9(._][A-Za-z0-9 _.,+*/()<>=!-]*")


def to_yaml(value: Mapping[str, Any]) -> str:
    """Plain data as YAML 1.2 in block style. Raises TypeError for what a spec cannot hold."""
    return "".join(_lines(value, 0))


def _lines(value: Mapping[str, Any], indent: int) -> list[str]:
    lines = []
    for key, item in value.items():
        head = " " * indent + _text(key) + ":"
        if isinstance(item, Mapping) and item:
            lines.append(head + "\n")
            lines += _lines(item, indent + 2)
        else:
            lines.append(f"{head} {_flow(item)}\n")
    return lines


def _flow(value: Any, nested: bool = False) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_text(key)}: {_flow(item, nested=True)}" for key, item in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        return "[" + ", ".join(_flow(item, nested=True) for item in value) + "]"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False) if nested and "," in value else _text(value)
    raise TypeError(f"a spec holds texts, numbers, true, false, lists and mappings, not {type(value).__name__}")


def _text(value: Any) -> str:
    """A text as a plain scalar where YAML reads it back as it is, in double quotes elsewhere."""
    if not isinstance(value, str):
        raise TypeError(f"the keys of a spec are texts, not {type(value).__name__}")
    return value if is_plain(value) else json.dumps(value, ensure_ascii=False)


def is_plain(text: str) -> bool:
    """Whether a YAML reader takes the text as it is, without quotes, outside of { } and [ ]."""
    return bool(_PLAIN.fullmatch(text)) and text == text.strip() and text not in ("null", "Null", "NULL")

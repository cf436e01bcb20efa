"""Every key of a spec and of a decay family: what kind of value it takes, what it means, and examples.

The reader checks documents against these models; messages about a missing key, and the JSON Schemas that editors use
(`recgen schema`), are made from the same lines.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from recgen.spec.document import Scalar
from recgen.spec.model import DecayAxes, DecayType, NormalizerKind, ReadoutKind, StateKind
from recgen.spec.values import AxesText, Exact, ExpressionText, Flag, Line, Name, Range, Text, word


class Shape(BaseModel):
    """A mapping with a fixed list of keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


def _key(default: Any, description: str, *examples: Any) -> Any:
    """A key that may be left out. default: what it then is."""
    return Field(default, description=description, examples=list(examples))


def _needed(description: str, *examples: Any) -> Any:
    """A key that has to be there."""
    return Field(description=description, examples=list(examples))


def _names(description: str, *examples: Any) -> Any:
    """A mapping whose keys are the author's own names."""
    return Field(default_factory=dict, description=description, examples=list(examples))


def _short(takes: Any, key: str, *more: str) -> BeforeValidator:
    """Lets one value stand for a mapping: `normalizer: sum` for `normalizer: {kind: sum}`. takes: its JSON form."""

    def expand(node: Any) -> Any:
        return dict.fromkeys((key, *more), node) if isinstance(node, Scalar) else node

    return BeforeValidator(expand, json_schema_input_type=takes)


DecayTypeWord = Annotated[DecayType, word(DecayType)]
PerWord = Annotated[DecayAxes, word(DecayAxes)]
NormalizerWord = Annotated[NormalizerKind, word(NormalizerKind)]
ReadoutWord = Annotated[ReadoutKind, word(ReadoutKind)]

TYPE = (
    "What the decay is made of: nothing (none), constants and the head index h (fixed), parameters (learned), or "
    "inputs, so that it differs from token to token (gated)."
)
PER = (
    "Where in the state the decay differs: once for a head, per key channel, per value channel, per entry (key_value), "
    "or per channel of a vector state."
)
LOG = "The log-decay ℓ, an expression that is never above 0. complex(a, angle) makes it complex, with per: key."
VALUE = "The decay exp(ℓ) itself, between 0 and 1, instead of log."
BOUNDS = "The range in which the inputs keep ℓ, [lowest, highest], where its expression alone does not."
INPUTS = "Tensors with one value per token: name → axes, of B batch, T time, H heads, K and V the widths, D channels."
PARAMS = "Learned parameters and buffers: name → axes, and the value that it starts with."
AXES = "The axes, letters with spaces between them: H heads, K and V the widths, M features, D channels."
CONSTANTS = "Numbers that the expression uses by name, and a spec may change."
CITE = "Where it was published."


class ParamShape(Shape):
    model_config = ConfigDict(json_schema_extra={"required": ["axes", "init"]})

    axes: AxesText = _needed(AXES, "H", "H K", "D")
    init: ExpressionText | None = _key(
        None,
        "The initial value, which is never guessed: numbers, the indices h (head) and k (channel), the sizes, and "
        "draws such as normal(0, 1), uniform(-1, 1) and loguniform(0.001, 0.1).",
        0,
        "normal(0, 1) * K ** -0.5",
        "log(loguniform(1e-3, 0.1))",
    )
    buffer: Flag = _key(False, "true for a tensor that is kept with the parameters and not trained.", True)


class DecayShape(Shape):
    type: DecayTypeWord | None = _key(None, TYPE, "gated")
    per: PerWord | None = _key(None, PER + " head if left out.", "key")
    log: ExpressionText | None = _key(None, LOG, "logsigmoid(g) / 16", "-exp(w)", "log(1 - 2 ** (-5 - h))")
    value: ExpressionText | None = _key(None, VALUE, "sigmoid(g)", 0.9)
    bounds: Range | None = _key(None, BOUNDS, [-1, 0])
    family: Line | None = _key(
        None,
        "A decay family instead of type, per, log and value: the name of a built-in one (recgen families lists them), "
        "or the path of a file beside the spec.",
        "key_gate",
        "./hyperbolic.yaml",
    )
    constants: dict[str, Exact] = _names("Other values for the constants of the family.", {"tau": 16})


class FeatureShape(Shape):
    query: ExpressionText | None = _key(None, "The feature map of the query.", "exp(x)", "relu(x)")
    key: ExpressionText | None = _key(None, "The feature map of the key.", "exp(x)", "relu(x)")


class WeightShape(Shape):
    value: ExpressionText | None = _key(None, "The weight itself.", "sigmoid(b)")
    log: ExpressionText | None = _key(
        None, "Its logarithm, which may be of any size: a running maximum keeps the sums finite.", "i"
    )


class NormalizerShape(Shape):
    kind: NormalizerWord = _needed(
        "What the output is divided by: nothing (none), the same sum without the values, plus eps (sum), the size of "
        "that sum (max_abs), or the sum of the sizes of all weights (abs_sum), the last two at least floor.",
        "sum",
    )
    eps: Exact | None = _key(None, "What sum adds to the denominator, 1e-6 if left out.", 1e-6)
    floor: Exact | None = _key(None, "The smallest denominator of max_abs and abs_sum, 1 if left out.", 1)


class ReadoutShape(Shape):
    kind: ReadoutWord = _key(
        "inclusive", "Whether a token reads the state with itself in it, or the one before.", "exclusive"
    )
    bonus: ExpressionText | None = _key(
        None, "With an exclusive readout, the weight of the token itself in its own output.", "u"
    )
    skip: Line | None = _key(None, "The name of a parameter that multiplies the value and is added to the output.", "D")
    gate: ExpressionText | None = _key(None, "What the output is multiplied by.", "sigmoid(r)")


class SpecShape(Shape):
    """A linear-attention or state-space operator, from which recgen derives all its forms and kernels.

    Per head and token: S = exp(ℓ) S + w φ(key) valueᵀ, o = σ φ(query)ᵀ S.
    """

    name: Name = _needed("A Python identifier; the module is called NAME.py.", "my_gla")
    title: Line = _key("", "What the operator is, in one line.", "Gated linear attention")
    cite: Line = _key("", CITE, "arXiv:2312.06635")
    license: Text = _key(
        "", "An SPDX identifier, or a few lines of text: a comment at the top of what is generated.", "Apache-2.0"
    )
    inputs: dict[str, AxesText] = _names(
        INPUTS + " q, k and v need no declaration unless they have another place in the order of the call.",
        {"g": "B T H K"},
    )
    params: dict[str, ParamShape] = _names(PARAMS, {"w": {"axes": "H", "init": 0}})
    decay: DecayShape = _key(
        DecayShape(),
        "How the state decays from token to token: a family, or a type with an expression. No decay if left out.",
        {"family": "key_gate", "constants": {"tau": 16}},
        {"type": "gated", "per": "key", "log": "logsigmoid(g) / 16"},
    )
    query: ExpressionText | None = _key(None, "What reads the state, q if left out.", "r", "C")
    key: ExpressionText | None = _key(
        None, "What a token is written under, k if left out. log_decay in it is ℓ.", "1 - exp(log_decay)", "B"
    )
    value: ExpressionText | None = _key(None, "What a token writes, v if left out. log_decay in it is ℓ.", "x")
    feature_map: Annotated[FeatureShape, _short(ExpressionText | FeatureShape, "query", "key")] = _key(
        FeatureShape(),
        "The features of query and key, an expression of one channel x or of the whole width: sum, softmax, l2norm, "
        "matmul(W, x), concat, outer. One for both, or query and key apart. x if left out.",
        "elu(x) + 1",
        "softmax(x)",
    )
    key_weight: Annotated[WeightShape, _short(ExpressionText | WeightShape, "value")] = _key(
        WeightShape(), "The weight w of what a token writes, 1 if left out.", "sigmoid(b)", {"log": "i"}
    )
    normalizer: Annotated[NormalizerShape, _short(NormalizerWord | NormalizerShape, "kind")] = _key(
        NormalizerShape.model_construct(kind="none"),
        "What the output is divided by: a word, or kind with its number. Nothing if left out.",
        "sum",
        {"kind": "sum", "eps": 1e-6},
    )
    readout: Annotated[ReadoutShape, _short(ReadoutWord | ReadoutShape, "kind")] = _key(
        ReadoutShape(),
        "How the state becomes the output: before or after the token, with a bonus, a skip, a gate.",
        {"kind": "exclusive", "bonus": "u"},
        {"gate": "sigmoid(r)"},
    )
    rotation: ExpressionText | None = _key(
        None, "The angle by which pair i of query and key channels turns from token to token.", "10000 ** (-2 * i / K)"
    )
    causal: Flag = _key(True, "false: every token reads the sum over all positions, and nothing decays.", False)
    state: Annotated[StateKind, word(StateKind)] = _key(
        "matrix", "A matrix per head, or a vector: one number per channel, with the axes B T D.", "vector"
    )
    scale: ExpressionText | None = _key(
        None, "The factor σ of the query, of numbers and the sizes K, V and H; 1 if left out.", "K ** -0.5"
    )
    bounds: Range | None = _key(None, BOUNDS + " The same as bounds in decay.", [-1, 0])


class FamilyShape(Shape):
    """A decay family: what `decay` holds, and the inputs and parameters that it brings along."""

    name: Name = _needed("What specs call it; the file is NAME.yaml.", "hyperbolic")
    doc: Line = _key("", "What it is, in one line.", "One gate per token and head")
    cite: Line = _key("", CITE, "arXiv:2312.06635")
    type: DecayTypeWord = _needed(TYPE, "gated")
    per: PerWord = _key("head", PER, "key")
    inputs: dict[str, AxesText] = _names(INPUTS, {"g": "B T H"})
    params: dict[str, ParamShape] = _names(PARAMS, {"w": {"axes": "H", "init": 0}})
    constants: dict[str, Exact] = _names(CONSTANTS, {"tau": 1})
    log: ExpressionText | None = _key(None, LOG, "-log(1 + softplus(g))")
    value: ExpressionText | None = _key(None, VALUE, "sigmoid(g)")
    bounds: Range | None = _key(None, BOUNDS, [-1, 0])

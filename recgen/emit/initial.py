"""The parameters of the emitted layer: their axes, their initial values and the draws these are made of."""

from __future__ import annotations

from typing import Any

import sympy

from recgen.algebra.stable import printable
from recgen.spec.initial import Draw, LogUniform, Normal, Orthogonal, Uniform, is_random
from recgen.spec.model import CHANNEL, CHANNELS, HEAD, SIZES, Spec, Tensor

from .conditions import doubtful_start
from .expression import Level
from .python_expr import PythonPrinter
from .torch_expr import TorchPrinter

INDICES = {HEAD: "H", CHANNEL: "KD"}  # an index that initial values may use → the axes it may run along
WIDTHS = {s: s.name for s in (*SIZES.values(), CHANNELS)}


def operator_context(spec: Spec) -> dict[str, Any]:
    letters = sorted({a for t in spec.params for a in t.axes}, key="HKVMD".index)
    names = {HEAD: "h", CHANNEL: "k", **WIDTHS}
    used = {s for t in spec.params for s in t.initial.free_symbols}
    letters = sorted(set(letters) | {s.name for s in used} - {HEAD.name, CHANNEL.name}, key="HKVMD".index)
    return {
        "param_names": [t.name for t in spec.params],
        "param_roles": [(t.name, t.role) for t in spec.params],
        "param_size_args": letters,
        "param_orthogonal": any(t.initial.has(Orthogonal) for t in spec.params),
        "param_draws": any(is_random(t.initial) for t in spec.params),
        "initial_setup": [
            f"{s.name} = torch.arange({next(a for a in axes if a in letters)}, dtype=torch.float32)"
            for s, axes in INDICES.items()
            if s in used
        ],
        "param_inits": [(t.name, _initial_text(t, names), doubtful_start(t.initial)) for t in spec.params],
        "doubtful_inits": any(doubtful_start(t.initial) for t in spec.params),
    }


def _initial_text(tensor: Tensor, names: dict[sympy.Symbol, str]) -> str:
    """The initial value of a parameter of shape `axes`; draws become torch.rand and torch.randn of that shape."""
    shape = f"({', '.join(tensor.axes)}{',' if len(tensor.axes) == 1 else ''})"
    indices = {s: _along(names[s], tensor, a) for s, axes in INDICES.items() for a in axes if a in tensor.axes}
    tree = tensor.initial
    draws: dict[sympy.Symbol, tuple[Draw, str]] = {}
    for k, draw in enumerate(sorted(tree.atoms(Draw), key=str)):
        draws[sympy.Symbol(f"_draw{k}", real=True)] = (draw, _draw_text(draw, shape))
        tree = tree.xreplace({draw: sympy.Symbol(f"_draw{k}", real=True)})
    scalars = {s for s in names if s not in INDICES}
    printer = TorchPrinter({**names, **indices, **{s: text for s, (_, text) in draws.items()}}, scalars)
    text = printer.text(tree)
    indexed = bool(set(INDICES) & tree.free_symbols)
    if draws or indexed and len(tensor.axes) == 1:
        return text
    return f"torch.zeros({shape}) + {text}" if indexed else f"torch.full({shape}, float({text}))"


def _along(index: str, tensor: Tensor, size: str) -> str:
    """An index along one axis of a parameter, the axes before and behind it being added."""
    behind = len(tensor.axes) - 1 - tensor.axes.index(size)
    return f"{index}[:{', None' * behind}]" if behind else index


def _draw_text(draw: Draw, shape: str) -> str:
    if isinstance(draw, Orthogonal):
        std = PythonPrinter(WIDTHS).print(printable(draw.args[0])).within(Level.POWER)
        return f"{'' if std == '1' else f'{std} * '}_orthogonal({shape}, generator)"
    printer = PythonPrinter(WIDTHS)
    low, high = (printer.print(printable(a)).within(Level.POWER) for a in draw.args)
    kind = {Uniform: "uniform", Normal: "normal", LogUniform: "loguniform"}[type(draw)]
    if kind == "normal":
        return f"{low} + {high} * torch.randn({shape}, generator=generator)"
    if kind == "uniform":
        return f"{low} + ({high} - {low}) * torch.rand({shape}, generator=generator)"
    return f"{low} * ({high} / {low}) ** torch.rand({shape}, generator=generator)"

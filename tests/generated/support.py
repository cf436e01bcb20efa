"""How the equivalence tests run a form, and what "matches" means.

Results of a run are a dict by name: "o", the final state's entries ("S", "z"), and gradients as "d q", "d w", "d S", …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import ModuleType

import torch
from torch import Tensor

from tests.generated.catalogue import NAIVE, Form
from tests.generated.inputs import Values, guarded

UNDERFLOW = 1e-30
REMEMBERED = 64


def cotangents(outputs: Mapping[str, Tensor], seed: int = 2) -> Values:
    """Random gradients of the outputs: the same numbers for every form and dtype, each exact in bfloat16."""

    def one(name: str, x: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(1000 * seed + sum(map(ord, name)))
        return guarded(torch.randn(x.shape, generator=generator).bfloat16().to(x.dtype))

    return {name: one(name, x) for name, x in outputs.items()}


def leaves_of(values: Values) -> Values:
    """Fresh leaves with the same numbers; whole numbers, such as a position, have no gradient, nor has a maximum."""
    return {name: x.detach().requires_grad_(x.is_floating_point() and name != "m") for name, x in values.items()}


def results(outputs: Values, leaves: Values, *, loss: str = "both", seed: int = 2) -> Values:
    """Outputs, and the gradients that random cotangents of the "output", the final "state", or "both" send back."""
    chosen = {
        name: x
        for name, x in outputs.items()
        if x.requires_grad and (loss == "both" or (name == "o") == (loss == "output"))
    }
    wanted = {name: x for name, x in leaves.items() if x.requires_grad}
    gradients = torch.autograd.grad(
        list(chosen.values()),
        list(wanted.values()),
        [cotangents(outputs, seed)[name] for name in chosen],
        allow_unused=True,
    )
    found = {name: x.detach() for name, x in outputs.items()}
    for (name, x), gradient in zip(wanted.items(), gradients, strict=True):
        found[f"d {name}"] = torch.zeros_like(x) if gradient is None else gradient
    return found


def run(
    module: ModuleType,
    form: Form,
    values: Values,
    state: Values | None = None,
    *,
    loss: str = "both",
    seed: int = 2,
    **options: object,
) -> Values:
    """Forward and backward. loss: on the "output", the final "state", or "both". Checks that inputs stay untouched."""
    leaves, start = leaves_of(values), leaves_of(state or {})
    before = {name: x.detach().clone() for name, x in {**leaves, **start}.items()}
    found = results(call(module, form, leaves, start or None, **options), {**leaves, **start}, loss=loss, seed=seed)
    for name, x in {**leaves, **start}.items():
        assert torch.equal(x.detach().nan_to_num(7.0), before[name].nan_to_num(7.0)), f"{form} changed {name}"
        if x.requires_grad:
            assert found[f"d {name}"].dtype == x.dtype, f"{form}: d {name} is {found[f'd {name}'].dtype}, not {x.dtype}"
    return found


def call(module: ModuleType, form: Form, values: Values, state: Values | None = None, **options: object) -> Values:
    """Forward only, with the final state where there is one. Interpreted kernels get chunks of 64 where nothing is
    asked: fewer to run."""
    options.setdefault("chunk_size", 64 if form.interpreted else None)
    options.setdefault("schedule", form.schedule)
    if module.STATE:
        options |= {"initial_state": None if state is None else module.State(**state), "output_final_state": True}
    o, final = getattr(module, form.name)(**values, backend=form.backend, **options)
    return {"o": o, **(final._asdict() if module.STATE else {})}


def part(module: ModuleType, values: Values, begin: int | None, end: int | None) -> Values:
    """The inputs of the tokens from `begin` to `end`, and the parameters."""
    return {name: x[:, begin:end] if name in module.INPUTS else x for name, x in values.items()}


def in_float64(values: Values | None) -> Values | None:
    """The same rounded numbers in float64."""
    return (
        None
        if values is None
        else {name: guarded(x.detach().double() if x.is_floating_point() else x) for name, x in values.items()}
    )


def remembered(reference: Callable[..., Values]) -> Callable[..., Values]:
    """The same results for the same arguments: all forms of an operator are compared with one run of the reference."""
    known: dict[object, Values] = {}

    def look_up(module: ModuleType, *arguments: object, **options: object) -> Values:
        key = (module.naive, contents(arguments), contents(options))
        if key not in known:
            if len(known) == REMEMBERED:
                known.pop(next(iter(known)))
            known[key] = reference(module, *arguments, **options)
        return {name: x.clone() for name, x in known[key].items()}

    return look_up


def contents(x: object) -> object:
    """What tells arguments apart: names, shapes, dtypes and every number."""
    if isinstance(x, Tensor):
        return tuple(x.shape), x.dtype, x.detach().contiguous().view(-1).view(torch.uint8).numpy().tobytes()
    if isinstance(x, Mapping):
        return tuple((name, contents(y)) for name, y in x.items())
    return tuple(map(contents, x)) if isinstance(x, tuple) else repr(x)


@remembered
def truth(module: ModuleType, values: Values, state: Values | None = None, **options: object) -> Values:
    """`naive` in float64 on the same rounded inputs."""
    return run(module, NAIVE, in_float64(values), in_float64(state), **options)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """‖x − ref‖ / ‖ref‖; infinite when anything is not finite. What float32 cannot tell from 0 counts as 1e-30."""
    assert found.shape == expected.shape, f"shape {tuple(found.shape)}, expected {tuple(expected.shape)}"
    if expected.numel() == 0:
        return 0.0
    assert bool(expected.isfinite().all()), "the reference is not finite"
    found, expected = found.detach().double(), expected.detach().double()
    error = float((found - expected).norm() / expected.norm().clamp(min=UNDERFLOW))
    return error if math.isfinite(error) else math.inf


TOLERANCES = {torch.float32: (1e-5, 5e-5), torch.float64: (1e-12, 1e-11)}


def assert_matches(
    found: Values,
    expected: Values,
    dtype: torch.dtype = torch.float32,
    *,
    terms: Values | None = None,
    note: object = "",
) -> None:
    """Every result of `expected` within the design's tolerance of its dtype; NaN never passes.

    terms: where the truth is the difference of nearly equal terms, one of them; the error is then relative to its size.
    """
    outputs, gradients = TOLERANCES[dtype]
    wrong = []
    for name, x in expected.items():
        error = relative_error(found[name], x)
        if terms and name in terms:
            error *= float(x.norm() / torch.maximum(x.norm(), terms[name].norm()).clamp(min=UNDERFLOW))
        if not error <= (gradients if name.startswith("d ") else outputs):
            wrong.append(f"{name} {error:.1e}")
    assert not wrong, f"{note}: relative errors {', '.join(wrong)}"


def assert_same_bits(found: Values, expected: Values, *, note: object = "") -> None:
    """Equal to the bit (0.0 and −0.0 count as equal)."""
    wrong = [name for name, x in expected.items() if not torch.equal(found[name], x)]
    assert not wrong, f"{note}: {wrong} differ"

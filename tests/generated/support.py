"""What the equivalence tests share: the emitted modules, inputs, one way to run a form, and what "matches" means.

Results of a run are a dict by name: "o", the final state's entries ("S", "z"), and gradients as "d q", "d w", "d S", …
"""
from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch import Tensor

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ("linear_attention", "retnet", "learned_decay", "simple_gla", "gla")
NO_DECAY_INPUT = {"learned_decay": ("w", -1000.0), "simple_gla": ("g", 1e4), "gla": ("g", 1e4)}
DECAYED = ("learned_decay", "simple_gla", "gla")  # those whose decay the caller chooses
GUARD = 64
UNDERFLOW = 1e-30

Values = dict[str, Tensor]


@dataclass(frozen=True)
class Form:
    """One form on one backend."""
    name: str
    backend: str

    def __str__(self) -> str:
        return f"{self.name}-{self.backend}"

    @property
    def interpreted(self) -> bool:
        return self.backend == "triton"


PARALLEL, CHUNK, RECURRENT = (Form(name, "torch") for name in ("parallel", "chunk", "recurrent"))
CHUNK_TRITON, RECURRENT_TRITON = (Form(name, "triton") for name in ("chunk", "recurrent"))
FORMS = (PARALLEL, CHUNK, RECURRENT, CHUNK_TRITON, RECURRENT_TRITON)
NAIVE = Form("naive", "torch")


def each_form(forms: Iterable[Form] = FORMS) -> list[object]:
    """Pytest parameters, with the Triton ones marked."""
    marks = {"triton": (pytest.mark.interpreter,), "torch": ()}
    return [pytest.param(form, id=str(form), marks=marks[form.backend]) for form in forms]


def load_file(path: Path, name: str | None = None) -> ModuleType:
    """Import one file by its path."""
    spec = importlib.util.spec_from_file_location(name or f"generated_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def emitted(name: str) -> ModuleType:
    """The committed module of one operator of the catalogue."""
    return load_file(ROOT / "generated" / f"{name}.py")


def axes(module: ModuleType) -> dict[str, tuple[str, ...]]:
    """Inputs, then parameters, in call order: name → axis letters."""
    return {name: tuple(text.split()) for name, text in {**module.INPUTS, **module.PARAMS}.items()}


def guarded(x: Tensor) -> Tensor:
    """A contiguous copy that lies inside a longer buffer of NaN."""
    buffer = x.new_full((x.numel() + 2 * GUARD,), math.nan)
    view = buffer[GUARD:GUARD + x.numel()].view(x.shape)
    view.copy_(x)
    return view


def draw(module: ModuleType, *, B: int = 1, T: int = 70, H: int = 2, K: int = 16, V: int = 8, seed: int = 0,
         dtype: torch.dtype = torch.float32, log_decay: float | Tensor | None = None) -> Values:
    """Normal inputs and parameters; `log_decay` (number, or tensor that broadcasts) sets the decay where one can."""
    generator = torch.Generator().manual_seed(seed)
    sizes = {"B": B, "T": T, "H": H, "K": K, "V": V}
    values = {name: torch.randn([sizes[a] for a in letters], generator=generator, dtype=torch.float64)
              for name, letters in axes(module).items()}
    if "w" in values:
        values["w"] = values["w"] - 2
    if log_decay is not None:
        values.update(decay_input(module, values, log_decay))
    return {name: guarded(x.to(dtype)) for name, x in values.items()}


def decay_input(module: ModuleType, values: Mapping[str, Tensor], log_decay: float | Tensor) -> Values:
    """The gate or parameter that gives this log-decay ≤ 0; empty where the decay is not the caller's."""
    name = module.SPEC["name"]
    wanted = torch.as_tensor(log_decay, dtype=torch.float64)
    if name == "learned_decay":
        w = torch.log(-wanted).clamp(min=-1000)
        return {"w": w.expand(values["w"].shape)}
    if name in ("simple_gla", "gla"):
        wanted = wanted * (16 if name == "gla" else 1)
        gate = wanted - torch.log(-torch.expm1(wanted))
        return {"g": torch.where(wanted == 0, 1e4, gate).expand(values["g"].shape)}
    return {}


def state_shapes(module: ModuleType, values: Mapping[str, Tensor], N: int | None = None) -> dict[str, tuple[int, ...]]:
    """Entries of the state by name. N: number of sequences, the batch unless documents are packed."""
    B, _, H, K = values["k"].shape
    sizes = {"N": B if N is None else N, "H": H, "K": K, "M": K, "V": values["v"].shape[-1]}
    return {name: tuple(sizes[a] for a in text.split()) for name, text in module.STATE.items()}


def draw_state(module: ModuleType, values: Mapping[str, Tensor], *, N: int | None = None, seed: int = 1,
               size: float = 1.0) -> Values:
    """A random state of the dtype that the contract gives it; z is positive, as sums of features are."""
    generator = torch.Generator().manual_seed(seed)
    dtype = torch.float64 if values["q"].dtype == torch.float64 else torch.float32
    state = {name: size * torch.randn(shape, generator=generator, dtype=torch.float64)
             for name, shape in state_shapes(module, values, N).items()}
    if "z" in state:
        state["z"] = state["z"].abs() + 1
    return {name: guarded(x.to(dtype)) for name, x in state.items()}


def cotangents(outputs: Mapping[str, Tensor], seed: int = 2) -> Values:
    """Random gradients of the outputs: the same numbers for every form and dtype, each exact in bfloat16."""
    def one(name: str, x: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(1000 * seed + sum(map(ord, name)))
        return guarded(torch.randn(x.shape, generator=generator).bfloat16().to(x.dtype))
    return {name: one(name, x) for name, x in outputs.items()}


def run(module: ModuleType, form: Form, values: Values, state: Values | None = None, *,
        loss: str = "both", seed: int = 2, **options: object) -> Values:
    """Forward and backward. loss: on the "output", the final "state", or "both". Checks that inputs stay untouched."""
    leaves = {name: x.detach().requires_grad_() for name, x in values.items()}
    start = {name: x.detach().requires_grad_() for name, x in (state or {}).items()}
    before = {name: x.detach().clone() for name, x in {**leaves, **start}.items()}
    outputs = call(module, form, leaves, start or None, **options)
    chosen = {name: x for name, x in outputs.items() if loss == "both" or (name == "o") == (loss == "output")}
    wanted = {**{f"d {n}": x for n, x in leaves.items()}, **{f"d {n}": x for n, x in start.items()}}
    gradients = torch.autograd.grad(list(chosen.values()), list(wanted.values()),
                                    [cotangents(outputs, seed)[n] for n in chosen], allow_unused=True)
    for name, x in {**leaves, **start}.items():
        assert torch.equal(x.detach().nan_to_num(7.0), before[name].nan_to_num(7.0)), f"{form} changed {name}"
    found = {name: x.detach() for name, x in outputs.items()}
    for (name, x), gradient in zip(wanted.items(), gradients, strict=True):
        found[name] = torch.zeros_like(x) if gradient is None else gradient
        assert found[name].dtype == x.dtype, f"{form}: {name} is {found[name].dtype}, its input {x.dtype}"
    return found


def call(module: ModuleType, form: Form, values: Values, state: Values | None = None, **options: object) -> Values:
    """Forward only, with the final state. Interpreted kernels get chunks of 64 where nothing is asked: fewer to run."""
    options.setdefault("chunk_size", 64 if form.interpreted else None)
    start = None if state is None else module.State(**state)
    o, final = getattr(module, form.name)(**values, initial_state=start, output_final_state=True, backend=form.backend,
                                          **options)
    return {"o": o, **final._asdict()}


def in_float64(values: Values | None) -> Values | None:
    """The same rounded numbers in float64."""
    return None if values is None else {name: guarded(x.detach().double()) for name, x in values.items()}


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


def assert_matches(found: Values, expected: Values, dtype: torch.dtype = torch.float32, *,
                   terms: Values | None = None, note: object = "") -> None:
    """Every result of `expected` within the design's tolerance of its dtype; NaN never passes.

    terms: where the truth is the difference of nearly equal terms, one of them; the error is then relative to its size.
    """
    outputs, gradients = TOLERANCES[dtype]
    wrong = []
    for name, x in expected.items():
        error = relative_error(found[name], x)
        if terms and name in terms:
            error *= float(x.norm() / torch.maximum(x.norm(), terms[name].norm()))
        if not error <= (gradients if name.startswith("d ") else outputs):
            wrong.append(f"{name} {error:.1e}")
    assert not wrong, f"{note}: relative errors {', '.join(wrong)}"


def assert_same_bits(found: Values, expected: Values, *, note: object = "") -> None:
    """Equal to the bit (0.0 and −0.0 count as equal)."""
    wrong = [name for name, x in expected.items() if not torch.equal(found[name], x)]
    assert not wrong, f"{note}: {wrong} differ"

"""What an emitted module says about itself, and what can be measured on it without knowing its operator.

The fuzzer draws decays by their strength, not by the value of a gate: which gate value gives which log-decay is
measured on the module's own `naive`, from how much of an initial state survives one token.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any
from zlib import crc32

import torch
from torch import Tensor

from .case import Case

FORMS = ("parallel", "chunk", "recurrent", "step", "operator")
TRITON_FORMS = ("chunk", "recurrent")
_WORD = re.compile(r"[A-Za-z_]\w*")
_GRID = [0.0] + [s * m for m in (0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 4096) for s in (-1.0, 1.0)]


def load_module(path: str | Path) -> ModuleType:
    """Import the Python file at `path` as a fresh module that no other import sees. ImportError when there is none."""
    path = Path(path).resolve()
    spec = spec_from_file_location(f"recgen_verified_{path.stem}_{crc32(str(path).encode()):08x}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ImportError(f"no Python module at {path}")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _names_in(texts: Iterable[Any]) -> set[str]:
    return {name for text in texts if isinstance(text, str) for name in _WORD.findall(text)}


def accepted(function: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of `options` that `function` takes as keyword arguments."""
    parameters = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return dict(options)
    return {name: value for name, value in options.items() if name in parameters}


def _scale_of(spec: Mapping[str, Any], sizes: Mapping[str, int]) -> float | None:
    from recgen.errors import SpecError
    from recgen.spec import read_dict

    try:
        tree = read_dict(dict(spec)).scale.tree
    except SpecError:
        return None
    return float(tree.subs({symbol: sizes[symbol.name] for symbol in tree.free_symbols}))


@dataclass(frozen=True)
class Profile:
    """A module's inputs and parameters with their axes, the drivers of its decay, its forms and backends."""

    module: ModuleType = field(repr=False, hash=False, compare=False)
    inputs: Mapping[str, tuple[str, ...]] = field(hash=False)
    params: Mapping[str, tuple[str, ...]] = field(hash=False)
    state: Mapping[str, tuple[str, ...]] = field(hash=False)
    drivers: tuple[str, ...]
    forms: tuple[str, ...]
    has_triton: bool
    path: str
    reset: float | None = None
    _levels: dict[Any, Any] = field(default_factory=dict, repr=False, hash=False, compare=False)

    @classmethod
    def of(cls, module: ModuleType) -> Profile:
        """Read the profile off a module that keeps the contract. AttributeError names what the module lacks."""
        inputs, params, state = (
            {name: tuple(axes.split()) for name, axes in getattr(module, table).items()}
            for table in ("INPUTS", "PARAMS", "STATE")
        )
        decay = module.SPEC.get("decay") or {}
        decay = decay if isinstance(decay, Mapping) else {"log": decay}
        texts = [decay.get("log"), decay.get("value")]
        drivers = tuple(name for name in inputs if name in _names_in(texts))
        if not any(isinstance(text, str) for text in texts) and decay.get("type") == "gated":
            roles = _names_in([module.SPEC.get(role, role[0]) for role in ("query", "key", "value")])
            drivers = tuple(name for name in inputs if name not in roles)
        drivers = drivers or tuple(name for name in params if name in _names_in(texts))
        forms = tuple(form for form in FORMS if callable(getattr(module, form, None)))
        has_triton = find_spec("triton") is not None and "import triton" in Path(str(module.__file__)).read_text()
        profile = cls(module, inputs, params, state, drivers, forms, has_triton, str(module.__file__))
        object.__setattr__(profile, "reset", profile._find_reset())
        return profile

    @property
    def gates(self) -> tuple[str, ...]:
        """The inputs, one value per token, that drive the decay."""
        return tuple(name for name in self.drivers if name in self.inputs)

    def pairs(self) -> list[tuple[str, str]]:
        """Every (form, backend) that the contract promises for this module."""
        torch_pairs = [(form, "torch") for form in self.forms]
        triton = [form for form in TRITON_FORMS if form in self.forms] if self.has_triton else []
        return torch_pairs + [(form, "triton") for form in triton]

    def axes(self, name: str) -> tuple[str, ...]:
        """The axis letters of an input or a parameter."""
        return self.inputs[name] if name in self.inputs else self.params[name]

    def fitting(self, case: Case) -> Case:
        """The case, its key width made even where the operator turns pairs of channels; without what concerns a state
        where nothing is carried."""
        if case.K % 2 and "rotation" in self.module.SPEC:
            case = dataclasses.replace(case, K=case.K + 1)
        return case if self.state else dataclasses.replace(case, initial=False, final=False, split=None)

    def sample(self, **sizes: Any) -> dict[str, Tensor]:
        """The module's own `sample_inputs`, given those of `sizes` that it takes; as many channels as values."""
        sizes = {"D": sizes["V"], **sizes} if "V" in sizes else sizes
        sample: dict[str, Tensor] = self.module.sample_inputs(**accepted(self.module.sample_inputs, sizes))
        return sample

    def letters(self, B: int, T: int, H: int, K: int, V: int) -> dict[str, int]:
        """Size of every axis letter, those that the module derives from H, K and V included."""
        key = ("letters", H, K, V)
        if key not in self._levels:
            sample = self.sample(B=1, T=1, H=H, K=K, V=V)
            sizes = {"H": H, "K": K, "V": V}
            for name, tensor in sample.items():
                sizes.update(zip(self.axes(name), tensor.shape, strict=True))
            for letters, state in zip(self.state.values(), self._final(sample, None), strict=True):
                sizes.update(zip(letters, state.shape, strict=True))
            self._levels[key] = sizes
        return {**self._levels[key], "B": B, "T": T}

    def heads(self, H: int, groups: Sequence[int]) -> dict[str, int]:
        """The heads of every input that has an axis for them; all of them, where no input would have all."""
        every = {n: H for n in self.inputs if "H" in self.axes(n)}
        fewer = every | {n: H // g for n, g in zip(every, groups, strict=False) if H % g == 0}
        return fewer if H in fewer.values() else every

    def differentiable(self) -> tuple[bool, ...]:
        """Which entries of the state depend smoothly on the inputs: a position and a running maximum do not."""
        key = ("differentiable",)
        if key not in self._levels:
            sample = self.sample(B=1, T=2, H=1, K=2, V=2, dtype=torch.float64)
            final = self._final({name: x.requires_grad_() for name, x in sample.items()}, None)
            self._levels[key] = tuple(x.requires_grad for x in final)
        smooth: tuple[bool, ...] = self._levels[key]
        return smooth

    def scale(self, H: int, K: int, V: int) -> float | None:
        """The default scale by the spec's own words, read independently of the module; None if SPEC is not a spec."""
        key = ("scale", H, K, V)
        if key not in self._levels:
            self._levels[key] = _scale_of(self.module.SPEC, {"H": H, "K": K, "V": V})
        scale: float | None = self._levels[key]
        return scale

    def log_decay(self, level: float) -> float:
        """Mean over the state of log(surviving share) after one token whose drivers all equal `level`; −inf if none."""
        key = ("log_decay", level)
        if key not in self._levels:
            sample = self.sample(B=1, T=1, H=2, K=4, V=4, dtype=torch.float64)
            for name, tensor in sample.items():
                if name in self.drivers:
                    sample[name] = torch.full_like(tensor, level)
                elif name in self.inputs:
                    sample[name] = torch.zeros_like(tensor)
            shapes = [state.shape for state in self._final(sample, None)]
            survived = []
            for one, zero in zip(
                self._final(sample, tuple(torch.ones(s, dtype=torch.float64) for s in shapes)),
                self._final(sample, tuple(torch.zeros(s, dtype=torch.float64) for s in shapes)),
                strict=True,
            ):
                survived.append((one - zero).flatten())
            share = torch.cat(survived)
            self._levels[key] = float(share.log().mean()) if bool((share > 0).all()) else -math.inf
        found: float = self._levels[key]
        return found

    def level(self, log_decay: float) -> float:
        """The driver value whose log-decay is nearest to `log_decay` (0 asks for a decay of exactly 1)."""
        key = ("level", log_decay)
        if key not in self._levels:
            self._levels[key] = self._search_level(log_decay)
        level: float = self._levels[key]
        return level

    def _search_level(self, log_decay: float) -> float:
        def miss(level: float) -> float:
            found = self.log_decay(level)
            return math.inf if math.isnan(found) or math.isinf(found) else abs(found - log_decay)

        least = min(map(miss, _GRID))  # levels of larger size, where an activation is flat, would be no better
        best = min((level for level in _GRID if miss(level) <= 1.01 * least), key=abs, default=0.0)
        step = max(abs(best) / 2, 0.25)
        while miss(best) > 1e-3 * abs(log_decay) and step > 1e-6:
            candidate = min((best - step, best + step), key=miss)
            best, step = (candidate, 2 * step) if miss(candidate) < 0.999 * miss(best) else (best, step / 2)
        return best

    def _final(self, tensors: Mapping[str, Tensor], initial: tuple[Tensor, ...] | None) -> tuple[Tensor, ...]:
        return self.naive(tensors, initial)[1]

    def naive(
        self, tensors: Mapping[str, Tensor], initial: tuple[Tensor, ...] | None = None
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """The output of the module's `naive`, and the final state, of which there is none where nothing is carried."""
        options = {"initial_state": initial, "output_final_state": True} if self.state else {}
        o, state = self.module.naive(**tensors, **options)
        return o, tuple(state or ())

    def _find_reset(self) -> float | None:
        """The infinite gate value that forgets everything and leaves `naive` and its gradients finite, if there is one.

        None also when no per-token input drives the decay."""
        if not self.gates or "naive" not in vars(self.module):
            return None
        for value in (-math.inf, math.inf):
            sample = self.sample(B=1, T=3, H=1, K=2, V=2, dtype=torch.float64)
            for name in self.gates:
                sample[name] = sample[name].clone()
                sample[name].select(self.axes(name).index("T"), 1).fill_(value)
            for tensor in sample.values():
                tensor.requires_grad_()
            o, state = self.module.naive(**sample, output_final_state=True)
            loss = o.sum() + sum(s.sum() for s in state)
            grads = torch.autograd.grad(loss, list(sample.values()), allow_unused=True)
            finite = all(bool(x.isfinite().all()) for x in (o, *state, *grads) if x is not None)
            if finite and self.log_decay(value) == -math.inf:
                return value
        return None

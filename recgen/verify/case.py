"""One verification case: a plain, frozen, printable value from which inputs are built and a form is run."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}

COUNTED = ("m", "position")
"""Entries of a state that go on counting however large they are: in float64 always."""


@dataclass(frozen=True)
class Case:
    """What is run (form, backend, options) on what (sizes, values, gates, layouts), all from one seed.

    documents  lengths of packed sequences (then B = 1 and T is their sum), or None
    values     how inputs that drive no decay are drawn: see data.VALUES
    gate       how inputs (or parameters) that drive the decay are drawn: see gates.GATES
    log_decay  the log-decay that the gate kinds with a level aim at
    mixed      16-bit inputs with float32 gates and parameters
    schedule   how the kernels of the chunk form are cut: one of the module's SCHEDULES, or "auto"
    split      the first form runs `split` tokens, then form `then` continues from the carried state
    loss       which cotangents there are: of the output, of the final state, of both
    frozen     names that need no gradient
    groups     how many heads share one of each input's, in the order of the inputs; 1 where nothing is said
    """

    form: str = "chunk"
    backend: str = "torch"
    dtype: str = "float32"
    B: int = 1
    T: int = 16
    H: int = 1
    K: int = 4
    V: int = 4
    documents: tuple[int, ...] | None = None
    values: str = "normal"
    gate: str = "mild"
    log_decay: float = 0.0
    layout: str = "contiguous"
    grad_layout: str = "contiguous"
    mixed: bool = False
    chunk_size: int | None = None
    schedule: str = "auto"
    scale: float | None = None
    initial: bool = False
    final: bool = True
    loss: str = "both"
    split: int | None = None
    then: str = ""
    frozen: tuple[str, ...] = ()
    groups: tuple[int, ...] = ()
    device: str = "cpu"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.documents is not None:
            object.__setattr__(self, "B", 1)
            object.__setattr__(self, "T", sum(self.documents))
        if not self.final:
            object.__setattr__(self, "loss", "output")
        if self.split is None or not self.then:
            object.__setattr__(self, "split", None)
            object.__setattr__(self, "then", "")

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of q, k and v."""
        return DTYPES[self.dtype]

    def state_dtype(self, name: str) -> torch.dtype:
        """The dtype that the contract promises for an entry of the state."""
        return torch.float64 if self.dtype == "float64" or name in COUNTED else torch.float32

    @property
    def sequences(self) -> int:
        """How many states there are: documents of a packed batch, else B."""
        return self.B if self.documents is None else len(self.documents)

    def data(self) -> Case:
        """The case with everything that does not change what `naive` is given set to one value."""
        layout, grad_layout = (x if x == "expanded" else "contiguous" for x in (self.layout, self.grad_layout))
        return dataclasses.replace(
            self,
            form="",
            backend="",
            chunk_size=None,
            schedule="auto",
            split=None,
            then="",
            device="cpu",
            layout=layout,
            grad_layout=grad_layout,
        )

    def settings(self) -> dict[str, Any]:
        """The fields that differ from their defaults, as a plain dict that JSON can hold."""
        found = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {
            f.name: found[f.name] for f in dataclasses.fields(self) if f.name == "form" or found[f.name] != f.default
        }

    @classmethod
    def from_settings(cls, settings: dict[str, Any]) -> Case:
        """The inverse of `settings`, also after a round trip through JSON (lists become tuples again)."""
        fields: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in settings.items()}
        return cls(**fields)

    def __str__(self) -> str:
        return f"Case({', '.join(f'{name}={value!r}' for name, value in self.settings().items())})"

    def snippet(self, path: str) -> str:
        """A runnable script: import the module at `path`, build the inputs, run the form and naive, print errors."""
        lines = []
        if self.backend == "triton" and self.device == "cpu":
            lines += ["import os", "", 'os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported', ""]
        lines += [
            "import importlib.util",
            "import sys",
            "",
            "from recgen.verify import Case, Profile, References, build, compare, run_form, run_naive",
            "from recgen.verify.check import check",
            "",
            f"spec = importlib.util.spec_from_file_location({'verified'!r}, {path!r})",
            "module = importlib.util.module_from_spec(spec)",
            "sys.modules[spec.name] = module",
            "spec.loader.exec_module(module)",
            "",
            f"case = {self}",
            "profile = Profile.of(module)",
            "data = build(profile, case)  # data.tensors: inputs and parameters by name; data.initial; data.offsets",
            f"found = run_form(profile, case, data)  # {self._call()} and its gradients",
            "truth = run_naive(profile, case, data.double())  # naive on the same rounded values, in float64",
            "for name, error in compare(found, truth).items():",
            '    print(f"{name:24} relative error {error:.3e}")',
            "reasons = check(References(profile), case).reasons()  # and which promise is broken",
            'print(*reasons, sep="\\n")',
            "sys.exit(bool(reasons))",
        ]
        return "\n".join(lines) + "\n"

    def _call(self) -> str:
        calls = f"module.{self.form}(...)"
        return calls if self.split is None else f"{calls} up to token {self.split}, module.{self.then}(...) after"

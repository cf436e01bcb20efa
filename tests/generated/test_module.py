"""A generated module as a file: what it exports, what it imports, what importing it costs, and `Operator`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys

import pytest
import torch

from recgen.verify.profile import accepted
from tests.generated.catalogue import OPERATORS, REPRESENTATIVES, ROOT, axes, emitted, profile
from tests.generated.inputs import draw, draw_state, value_inputs
from tests.generated.support import relative_error

EXPORTS = (
    "SPEC",
    "SPEC_HASH",
    "RECGEN_VERSION",
    "INPUTS",
    "PARAMS",
    "STATE",
    "SCHEDULES",
    "MODES",
    "operator",
    "naive",
    "parallel",
    "chunk",
    "Operator",
    "sample_inputs",
    "OPS",
)
OF_A_STATE = ("State", "recurrent", "step")
AXES = {
    "linear_attention": ({"q": "B T H K", "k": "B T H K", "v": "B T H V"}, {}, {"S": "N H K V", "z": "N H K"}),
    "retnet": ({"q": "B T H K", "k": "B T H K", "v": "B T H V"}, {}, {"S": "N H K V"}),
    "learned_decay": ({"q": "B T H K", "k": "B T H K", "v": "B T H V"}, {"w": "H"}, {"S": "N H K V"}),
    "simple_gla": ({"q": "B T H K", "k": "B T H K", "v": "B T H V", "g": "B T H"}, {}, {"S": "N H K V"}),
    "linear_attention_global": ({"q": "B T H K", "k": "B T H K", "v": "B T H V"}, {}, {}),
    "gla": ({"q": "B T H K", "k": "B T H K", "v": "B T H V", "g": "B T H K"}, {}, {"S": "N H K V"}),
}
LOAD = """
import importlib.util, sys
def load(path):
    spec = importlib.util.spec_from_file_location("emitted", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
"""


def python(code: str, *arguments: str, **environment: str) -> str:
    """Run code in a process of its own, without the interpreter of Triton; returns what it printed."""
    env = {n: x for n, x in os.environ.items() if n != "TRITON_INTERPRET"} | environment
    done = subprocess.run(
        [sys.executable, "-c", LOAD + code, *arguments], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def files() -> list[str]:
    return [str(ROOT / "generated" / f"{name}.py") for name in REPRESENTATIVES]


@pytest.mark.parametrize("name", OPERATORS)
def test_exports(name: str) -> None:
    module = emitted(name)
    assert [n for n in EXPORTS if not hasattr(module, n)] == []
    if name in AXES:
        assert (module.INPUTS, module.PARAMS, module.STATE) == AXES[name]
    assert [hasattr(module, n) for n in OF_A_STATE] == [bool(module.STATE)] * len(OF_A_STATE)
    assert not module.STATE or module.State._fields == tuple(module.STATE)
    assert module.SPEC["name"] == name and module.__doc__
    assert len(module.SPEC_HASH) >= 8 and isinstance(module.RECGEN_VERSION, str)


@pytest.mark.parametrize("name", OPERATORS)
def test_imports_nothing_but_torch_triton_and_the_standard_library(name: str) -> None:
    tree = ast.parse((ROOT / "generated" / f"{name}.py").read_text())
    imported = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {n.split(".")[0] for n in imported} - set(sys.stdlib_module_names) <= {"torch", "triton"}


@pytest.mark.parametrize("name", OPERATORS)
def test_sample_inputs_are_what_the_operator_takes(name: str) -> None:
    module = emitted(name)

    def sample(**sizes: object) -> dict[str, torch.Tensor]:
        return module.sample_inputs(**accepted(module.sample_inputs, sizes))

    values = sample(B=3, T=5, H=2, K=4, V=6, D=6, dtype=torch.float64, seed=1)
    assert list(values) == [*module.INPUTS, *module.PARAMS]
    sizes = profile(module).letters(3, 5, 2, 4, 6)
    assert all(x.shape == tuple(sizes[a] for a in axes(module)[n]) for n, x in values.items())
    assert all(x.dtype == torch.float64 for x in values.values())
    again = sample(B=3, T=5, H=2, K=4, V=6, D=6, dtype=torch.float64, seed=1)
    other = sample(B=3, T=5, H=2, K=4, V=6, D=6, dtype=torch.float64, seed=2)
    assert all(torch.equal(values[n], again[n]) for n in values)
    assert not any(torch.equal(values[n], other[n]) for n in module.INPUTS)
    assert module.operator(**values)[0].shape == values[value_inputs(module)[0]].shape
    assert next(iter(module.sample_inputs().values())).shape[:2] == (2, 64)


@pytest.mark.parametrize("name", OPERATORS)
def test_operator_module_holds_the_parameters(name: str) -> None:
    module = emitted(name)
    sizes = profile(module).letters(2, 6, 4, 4, 4)
    letters = sorted({a for n in module.PARAMS for a in axes(module)[n]})
    layer = module.Operator(**{a: sizes[a] for a in letters})
    assert isinstance(layer, torch.nn.Module)
    parameters = {**dict(layer.named_parameters()), **dict(layer.named_buffers())}
    assert set(parameters) == set(module.PARAMS)
    fixed = {n for n, param in module.SPEC.get("params", {}).items() if param.get("buffer")}
    assert {n for n, _ in layer.named_buffers()} == fixed
    values = draw(module, B=2, T=6, H=4, K=4, V=4)
    state = draw_state(module, values)
    inputs = {n: values[n] for n in module.INPUTS}
    options = {"initial_state": module.State(**state), "output_final_state": True} if state else {}
    o, final = layer(*inputs.values(), **options)
    expected, end = module.operator(**inputs, **parameters, **options)
    assert torch.equal(o, expected) and all(map(torch.equal, final or (), end or ()))


def test_learned_decay_starts_as_retnet() -> None:
    """−exp(w) = log(1 − 2^(−5−h))."""
    layer = emitted("learned_decay").Operator(H=4)
    expected = torch.log(1 - 2.0 ** (-5 - torch.arange(4)))
    torch.testing.assert_close(-layer.w.exp(), expected)
    layer(*(torch.ones(1, 3, 4, 2) for _ in range(3)))[0].sum().backward()
    assert layer.w.grad is not None and layer.w.grad.abs().min() > 0


def test_works_without_triton_and_without_a_gpu() -> None:
    """Of each structure, in one process: torch takes longer to import than all of them to run."""
    code = """
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "triton":
            raise ModuleNotFoundError("No module named 'triton'", name="triton")
sys.meta_path.insert(0, Blocked())
import torch
for path in sys.argv[1:]:
    module = load(path)
    values = {n: x.requires_grad_() for n, x in module.sample_inputs(T=20).items()}
    o, state = module.operator(**values, output_final_state=True)
    (o.sum() + sum(x.sum() for x in state)).backward()
    assert all(x.grad.isfinite().all() for x in values.values()), path
    assert "triton" not in sys.modules and not torch.cuda.is_initialized(), path
    try:
        module.operator(**values, mode="chunk", backend="triton")
    except (ValueError, ImportError) as error:
        print(str(error).replace("\\n", " "))
"""
    printed = python(code, *files(), CUDA_VISIBLE_DEVICES="").splitlines()
    assert len(printed) == len(REPRESENTATIVES) and all("triton" in line.lower() for line in printed), printed


def test_cpu_tensors_take_the_torch_path_with_triton_but_no_driver() -> None:
    code = """
import torch
module = load(sys.argv[1])
values = module.sample_inputs(T=20)
print(torch.equal(module.operator(**values)[0], module.operator(**values, backend="torch")[0]))
assert not torch.cuda.is_initialized()
try:
    module.operator(**values, backend="triton")
except ValueError as error:
    print("backend" in str(error) and "TRITON_INTERPRET" in str(error))
"""
    assert python(code, str(ROOT / "generated" / "gla.py"), CUDA_VISIBLE_DEVICES="").split() == ["True", "True"]


def test_importing_costs_less_than_300_ms_beyond_torch() -> None:
    """One after the other: whatever else they import is on the account of the first to do it."""
    code = """
import time, torch
for path in sys.argv[1:]:
    begin = time.process_time()
    load(path)
    print(time.process_time() - begin)
"""
    times = [1.0] * len(REPRESENTATIVES)
    for _ in range(3):
        times = [min(x, float(y)) for x, y in zip(times, python(code, *files()).split(), strict=True)]
        if max(times) < 0.3:
            break
    assert max(times) < 0.3, dict(zip(REPRESENTATIVES, times, strict=True))


def test_two_operators_do_not_mix() -> None:
    """Both decays at once, on the same inputs."""
    values = draw(emitted("retnet"), T=30, H=1)
    quick, slow = emitted("learned_decay"), emitted("retnet")
    w = torch.full((1,), 2.0)
    before = slow.operator(**values)[0]
    assert relative_error(quick.operator(**values, w=w)[0], before) > 0.1
    assert torch.equal(slow.operator(**values)[0], before)

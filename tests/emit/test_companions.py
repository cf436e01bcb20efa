"""What stands beside a module: tests that need no recgen and see its faults, and types that are those of the module."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from recgen.algebra.derive import derive
from recgen.emit import companions
from recgen.emit.module import module_text
from recgen.loader import load_file
from recgen.plan.passes import plan
from recgen.resources import catalogue
from recgen.spec import read, read_dict

OPERATORS = ("mlstm", "linear_attention_global", "rg_lru")
LICENSE = "Ask me first.\n  Then ask again."
ALONE = """
import sys
class NoRecgen:
    def find_spec(self, name, *rest):
        if name.partition(".")[0] == "recgen":
            raise ImportError("recgen is not here")
sys.meta_path.insert(0, NoRecgen())
import pytest
sys.exit(pytest.main(sys.argv[1:]))
"""
FAULTS = {
    "another_output": "o * (1 + 1e-6)",
    "another_gradient": "o + 1e-6 * (o - o.detach())",
}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the modules of three operators, their tests and their types."""
    folder = tmp_path_factory.mktemp("generated")
    for name in OPERATORS:
        spec = read_dict(read(catalogue()[name]).as_dict() | {"license": LICENSE if name == "rg_lru" else "mit"})
        derivation = derive(spec, prove=False)
        planned = plan(derivation)
        (folder / f"{name}.py").write_text(module_text(derivation, planned), encoding="utf-8")
        (folder / f"{name}.pyi").write_text(companions.stub_text(derivation, planned), encoding="utf-8")
        text = companions.test_text(derivation, planned, name)
        (folder / f"test_{name}.py").write_text(text, encoding="utf-8")
    return folder


def pytest_alone(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """pytest in a folder, in a process where recgen cannot be imported."""
    command = [sys.executable, "-I", "-c", ALONE, "-q", "-p", "no:cacheprovider", "--rootdir", folder, *arguments]
    settled = {"OMP_NUM_THREADS": "1", "PATH": ""}
    return subprocess.run(command, cwd=folder, env=settled, capture_output=True, text=True, timeout=200, check=False)


def test_the_tests_pass_without_recgen(written: Path) -> None:
    done = pytest_alone(written, ".")
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    assert "passed" in done.stdout and "failed" not in done.stdout
    assert all(
        f"import {word}" not in (written / f"test_{name}.py").read_text()
        for name in OPERATORS
        for word in ("recgen", "hypothesis")
    )


def test_the_tests_see_faults(written: Path, tmp_path: Path) -> None:
    """An output and a gradient that are off by a millionth, and another module than theirs."""
    right, tests = ((written / name).read_text(encoding="utf-8") for name in ("mlstm.py", "test_mlstm.py"))
    start = "\n_right = _naive\ndef _naive(*tensors):\n    o, *state = _right(*tensors)\n"
    modules = {fault: f"{right}{start}    return ({expression}, *state)\n" for fault, expression in FAULTS.items()}
    modules["another_module"] = right.replace('SPEC_HASH = "', 'SPEC_HASH = "0')
    for fault, text in {**modules, "right": right}.items():
        (tmp_path / f"{fault}.py").write_text(text, encoding="utf-8")
        (tmp_path / f"test_{fault}.py").write_text(tests.replace("mlstm", fault), encoding="utf-8")
    done = pytest_alone(tmp_path, ".", "-k", "test_outputs_and_gradients and chunk and 17 or the_module_is")
    failed = sorted(line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith("FAILED"))
    assert failed == [
        "FAILED test_another_gradient.py::test_outputs_and_gradients[chunk-17]",
        "FAILED test_another_module.py::test_the_module_is_the_one_that_these_tests_are_for",
        "FAILED test_another_output.py::test_outputs_and_gradients[chunk-17]",
    ], done.stdout
    assert "o is off by" in done.stdout and "d q is off by" in done.stdout


def test_the_license_is_at_the_top_of_all_files(written: Path) -> None:
    for name in ("rg_lru.py", "rg_lru.pyi", "test_rg_lru.py"):
        assert (written / name).read_text(encoding="utf-8").startswith("# Ask me first.\n#   Then ask again.\n\n"), name
    for name in ("mlstm.py", "mlstm.pyi", "test_mlstm.py"):
        assert (written / name).read_text(encoding="utf-8").startswith("# SPDX-License-Identifier: MIT\n\n"), name
    assert ast.get_docstring(ast.parse((written / "rg_lru.py").read_text(encoding="utf-8"))).startswith("Real-gated")
    assert load_file(written / "rg_lru.py").SPEC["license"] == LICENSE


def test_all_of_it_is_formatted_and_nothing_is_unused(written: Path) -> None:
    files = [str(path) for path in sorted(written.glob("test_*.py"))]
    rules = ["--isolated", "--line-length=120"]
    for command in (
        ["format", "--check", *rules, *files, *map(str, written.glob("*.pyi"))],
        ["check", "--select=F,E,W,I", *rules, *files],
    ):
        done = subprocess.run([sys.executable, "-m", "ruff", *command], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout


def signatures(tree: ast.Module) -> Iterator[tuple[str, dict[str, Any]]]:
    """Function → argument → default, ... where there is none, of every function in a stub."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    for node in functions:
        a = node.args
        none: list[Any] = [None] * (len(a.args) - len(a.defaults))
        pairs = [*zip(a.args, [*none, *a.defaults], strict=True), *zip(a.kwonlyargs, a.kw_defaults, strict=True)]
        yield node.name, {arg.arg: "…" if default is None else ast.unparse(default) for arg, default in pairs}


@pytest.mark.parametrize("name", OPERATORS)
def test_the_types_name_what_the_module_has(written: Path, name: str) -> None:
    module: ModuleType = load_file(written / f"{name}.py")
    tree = ast.parse((written / f"{name}.pyi").read_text(encoding="utf-8"))
    seen = set()
    for function, declared in signatures(tree):
        actual = inspect.signature(getattr(module, function)).parameters
        assert list(declared) == list(actual), function
        for argument, default in declared.items():
            there = actual[argument].default
            is_wanted = argument == "output_final_state" and default == "…"  # of the signature that says Literal[True]
            wanted = "…" if there is inspect.Parameter.empty else str(there) if "torch." in str(there) else repr(there)
            assert is_wanted or default == wanted, (function, argument)
        seen.add(function)
    public = {n for n, x in vars(module).items() if inspect.isfunction(x) and x.__module__ == module.__name__}
    assert seen == {n for n in public if not n.startswith("_")}
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    assert set(classes) == {"Operator"} | ({"State"} if module.STATE else set())
    if module.STATE:
        fields = [node.target.id for node in classes["State"].body if isinstance(node, ast.AnnAssign)]
        assert fields == list(module.State._fields)
    sizes = [*inspect.signature(module.Operator).parameters] if module.PARAMS else []
    [init] = [n for n in classes["Operator"].body if isinstance(n, ast.FunctionDef) and n.name == "__init__"]
    assert [arg.arg for arg in init.args.args[1:]] == sizes
    values = {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    assert all(hasattr(module, value) for value in values)


TORCH = """
class Tensor: ...
class dtype: ...
class device: ...
float32: dtype
from . import nn as nn
"""
NN = """
from torch import Tensor
class Parameter(Tensor): ...
class Module: ...
"""
USER = """
import mlstm
import linear_attention_global
import rg_lru
from torch import Tensor

inputs = mlstm.sample_inputs(B=1, T=4)
q = inputs["q"]
o, state = mlstm.chunk(q, q, q, q, q, output_final_state=True, mode="chunk", schedule="split")
later, after = mlstm.step(q, q, q, q, q, state=state)
total: Tensor = after.S
nothing: None = linear_attention_global.operator(q, q, q)[1]
rate: Tensor = rg_lru.Operator(D=4).lam
o, state = mlstm.operator(**inputs, output_final_state=True)
token = {name: x[:, 0] for name, x in inputs.items()}
o_next, state = mlstm.step(**token, state=state)
pool = mlstm.State(q, q, q)
o_next, pool = mlstm.step(**token, state=pool, slots=q)
inputs["k"] = inputs["k"][:, :, :2]
o, _ = mlstm.operator(**inputs)
o_all, _ = linear_attention_global.operator(**linear_attention_global.sample_inputs())
"""
WRONG = {
    'mlstm.chunk(q, q, q, q, q, mode="recurrent")': "call-overload",
    "mlstm.operator(q, q, q, q)": "call-overload",
    "mlstm.operator(q, q, q, q, q)[1].S": "union-attr",
    "linear_attention_global.operator(q, q, q, initial_state=None)": "call-arg",
    "after.T": "attr-defined",
}


def test_a_type_checker_accepts_them_and_sees_wrong_calls(written: Path, tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    for file, text in {"torch/__init__.pyi": TORCH, "torch/nn.pyi": NN}.items():
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(text)
    for path in written.glob("*.pyi"):
        (tmp_path / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "user.py").write_text(USER + "".join(f"{line}\n" for line in WRONG))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-site-packages",
        "--cache-dir",
        "cache",
        "user.py",
        *(f"{name}.pyi" for name in OPERATORS),
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)
    first = USER.count("\n") + 1
    expected = {(first + n, code) for n, code in enumerate(WRONG.values())}
    found = set()
    for line in done.stdout.splitlines():
        if ": error: " in line:
            file, number, _ = line.split(":", 2)
            assert file == "user.py", done.stdout
            found.add((int(number), line.rsplit("[", 1)[1].rstrip("]")))
    assert found == expected, done.stdout

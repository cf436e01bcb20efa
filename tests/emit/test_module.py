"""The emitted module as a product: complete, specialised, tidy, and the same every time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import jinja2
import pytest
from jinja2 import meta

from recgen.algebra.derive import derive
from recgen.emit.module import module_context, module_text
from recgen.emit.notes import Notes
from recgen.emit.render import environment, formatted
from recgen.plan.passes import plan
from recgen.resources import specs_dir, templates_dir
from recgen.spec import read

CHUNKWISE = {"chunk_torch.j2", "segment_end.j2", "kernels.j2", "launch.j2"}
SCANNED = {"scan_torch.j2", "scan_kernels.j2", "scan_launch.j2"}
TOTALS = {"total_reference.j2", "total_parallel.j2"}
CARRYING = {"segment_end.j2", "segments_torch.j2", "recurrent_kernel.j2", "step_launch.j2"}
COMPANIONS = {"test.py.j2", "module.pyi.j2"}
SPECS = sorted(specs_dir().glob("*.yaml"), key=lambda p: p.stem)


@pytest.fixture(params=SPECS, ids=lambda p: p.stem, scope="module")
def emitted(request: pytest.FixtureRequest) -> tuple[str, dict]:
    derivation = derive(read(request.param), prove=False)
    planned = plan(derivation)
    return module_text(derivation, planned), module_context(
        derivation.spec, derivation.recurrence, planned, Notes(planned)
    )


def test_the_text_is_the_committed_one_and_does_not_depend_on_the_run(emitted: tuple[str, dict]) -> None:
    text, context = emitted
    name = ast.literal_eval(context["spec"])["name"]
    committed = Path(__file__).parents[2] / "generated" / f"{name}.py"
    assert text == committed.read_text(encoding="utf-8")


def test_it_imports_torch_and_triton_and_the_standard_library_alone(emitted: tuple[str, dict]) -> None:
    tree = ast.parse(emitted[0])
    roots = {a.name.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    roots |= {n.module.split(".")[0] for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert roots - sys.stdlib_module_names == {"torch", "triton"}


def test_nothing_in_it_is_unused(emitted: tuple[str, dict], tmp_path: Path) -> None:
    """Neither imports, variables, arguments, nor helper functions."""
    path = tmp_path / "module.py"
    path.write_text(emitted[0], encoding="utf-8")
    rules = "--select=F,ARG,B,C4,SIM,E,W"
    command = [sys.executable, "-m", "ruff", "check", "--isolated", rules, "--line-length=120", path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    tree = ast.parse(emitted[0])
    private = {n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("_")}
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    assert private <= used


def test_every_kernel_argument_is_used(emitted: tuple[str, dict]) -> None:
    for n in ast.parse(emitted[0]).body:
        if isinstance(n, ast.FunctionDef) and n.decorator_list:
            used = {x.id for x in ast.walk(n) if isinstance(x, ast.Name)}
            assert {a.arg for a in n.args.args} <= used, n.name


def test_the_templates_use_every_key_of_the_context_and_no_other(emitted: tuple[str, dict]) -> None:
    env = environment()
    needed = set()
    only_other = (CHUNKWISE if emitted[1]["scans"] else SCANNED) | (CARRYING if emitted[1]["total"] else TOTALS)
    for path in (p for p in Path(templates_dir()).glob("*.j2") if p.name not in only_other | COMPANIONS):
        needed |= meta.find_undeclared_variables(env.parse(path.read_text(encoding="utf-8")))
    assert needed == set(emitted[1]) - ({"heads"} if emitted[1]["total"] else set())  # all of those have heads


def test_a_template_error_names_template_and_line() -> None:
    env = environment()
    with pytest.raises(jinja2.UndefinedError) as caught:
        env.get_template("contract.j2").render(version="0")
    assert any(entry.path.name == "contract.j2" for entry in caught.traceback)


def test_a_name_defined_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="_rows more than once"):
        formatted("def _rows():\n    pass\n\n\ndef _rows():\n    pass\n")

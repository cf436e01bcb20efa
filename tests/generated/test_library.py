"""The operators of torch.library that a file registers: correct as torch checks them, and never another file's."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

from tests.generated.catalogue import OPERATORS, ROOT, emitted, load_file
from tests.generated.compiled import small
from tests.generated.inputs import Values
from tests.generated.support import relative_error
from tests.generated.test_module import python


class Calls:
    """What the operators of a module are called with while the block runs."""

    def __init__(self, module: ModuleType) -> None:
        self.module, self.seen = module, {}

    def __enter__(self) -> dict[str, tuple]:
        self.before = dict(self.module.OPS)
        self.module.OPS.update({what: self._noted(what) for what in self.before})
        return self.seen

    def _noted(self, what: str):
        def call(*arguments: object) -> object:
            self.seen[what] = tuple(_detached(x) for x in arguments)
            return self.before[what](*arguments)

        return call

    def __exit__(self, *_: object) -> None:
        self.module.OPS.update(self.before)


def _detached(x: object) -> object:
    if isinstance(x, (list, tuple)):
        return [_detached(y) for y in x]
    return x.detach().clone() if isinstance(x, torch.Tensor) else x


def calls_of(module: ModuleType, **options: object) -> dict[str, tuple]:
    """The arguments of every operator in a training step with packed documents."""
    values, _ = small(module, B=1, T=17)
    with Calls(module) as seen:
        module.operator(**values, cu_seqlens=torch.tensor([0, 5, 5, 17]), **options)[0].sum().backward()
    return seen


@pytest.mark.parametrize("name", OPERATORS)
def test_torch_finds_nothing_wrong_with_them(name: str) -> None:
    """Schema, shapes and strides as announced, dynamic shapes, no result in the memory of an argument."""
    module = emitted(name)
    seen = calls_of(module)
    assert seen.keys() == module.OPS.keys() - {"step"}  # a step in torch is no operator
    for what, arguments in seen.items():
        torch.library.opcheck(module.OPS[what], arguments)


@pytest.mark.interpreter
@pytest.mark.parametrize("name", ["simple_gla", "mlstm", "hgrn", "linear_attention_global", "mamba2"])
def test_torch_finds_nothing_wrong_with_their_kernels(name: str) -> None:
    module = emitted(name)
    for schedule in module.SCHEDULES:
        calls = calls_of(module, backend="triton", mode="chunk", chunk_size=16, schedule=schedule)
        for what, arguments in calls.items():
            torch.library.opcheck(module.OPS[what], arguments, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("name", ["simple_gla", "hgrn"])
def test_no_tokens_give_results_of_their_own_memory(name: str) -> None:
    """The final state is then the initial one, and yet another tensor."""
    module = emitted(name)
    values, state = small(module, T=0)
    state = {n: x.detach() for n, x in state.items()}
    _, end = module.operator(**values, initial_state=module.State(**state), output_final_state=True, mode="chunk")
    assert torch.equal(end.S, state["S"])
    assert end.S.untyped_storage().data_ptr() != state["S"].untyped_storage().data_ptr()


def test_shapes_without_numbers() -> None:
    """On the meta device the operators say what comes out, and compute nothing."""
    module = emitted("mamba2")
    values = {n: x.detach().to("meta") for n, x in small(module)[0].items()}
    o, end = module.operator(**values, output_final_state=True, backend="torch")
    assert (o.shape, o.device.type, end.S.shape) == ((2, 20, 2, 3), "meta", (2, 2, 4, 3))


@pytest.fixture
def files(tmp_path: Path) -> Iterator[list[Path]]:
    """Two copies of one file, one of another operator, and one whose text was changed under the same spec."""
    names = ("first", "second", "edited")
    for n in names:
        shutil.copy(ROOT / "generated" / "simple_gla.py", tmp_path / f"{n}.py")
    edited = tmp_path / "edited.py"
    text = edited.read_text()
    changed = text.replace("query = _rows(scale * q, size)", "query = _rows(2 * scale * q, size)")
    assert changed != text
    edited.write_text(changed)
    yield [tmp_path / f"{n}.py" for n in names]


def output(module: ModuleType, values: Values) -> torch.Tensor:
    return module.operator(**values, mode="chunk")[0].detach()


def test_files_of_one_spec_keep_apart(files: list[Path]) -> None:
    """One file under two names, and one that its owner has changed: each computes what it says."""
    first, again, second, edited = (load_file(path, f"apart_{k}") for k, path in enumerate([files[0], *files]))
    names = [m.OPS["forward"].name() for m in (first, again, second, edited)]
    assert len(set(names)) == 4 and all(n.startswith("recgen::simple_gla_") for n in names)
    values, _ = small(first)
    expected = output(emitted("simple_gla"), values)
    for module in (first, again, second):
        assert torch.equal(output(module, values), expected)
    assert relative_error(output(edited, values), 2 * expected) < 1e-6


def test_a_file_that_is_imported_again_replaces_its_operators(files: list[Path]) -> None:
    module = load_file(files[0], "reloaded")
    values, _ = small(module)
    expected = output(module, values)
    for _ in range(3):
        shutil.copy(files[2], files[0])
        module = load_file(files[0], "reloaded")
        assert relative_error(output(module, values), 2 * expected) < 1e-6
        gc.collect()


def test_the_first_import_has_the_plain_name() -> None:
    """The same in every process, so that exported programs and compilers' caches find it."""
    code = """
module, other = load(sys.argv[1]), load(sys.argv[1])
print(module.SPEC_HASH[:8], module.OPS["forward"].name(), other.OPS["forward"].name())
"""
    digest, first, second = python(code, str(ROOT / "generated" / "simple_gla.py")).split()
    assert (first, second) == (f"recgen::simple_gla_{digest}_forward", f"recgen::simple_gla_{digest}_2_forward")

"""The three ways from a spec or a file to something that runs: load, load_file, generate."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType

from recgen.files import write_atomically
from recgen.loader import cache
from recgen.loader.execute import execute
from recgen.loader.source import SpecLike, resolve
from recgen.spec import Spec

_lock = threading.RLock()  # a second thread waits for a module that the first is still compiling or running


def load(spec: SpecLike) -> ModuleType:
    """The module that `spec` (a path, a catalogue name, a dict or a Spec) compiles to.

    Compiled at the first use on this machine, then found in the cache; the same module object within a process.
    Raises SpecError for a bad spec, FileNotFoundError where there is none.
    """
    return load_compiled(resolve(spec), compile_source)


def load_compiled(spec: Spec, compiled: Callable[[Spec], str]) -> ModuleType:
    """The same of a spec that is read; `compiled` is asked for its source where the cache has none."""
    key = cache.key(spec)
    name = f"recgen_{spec.name}_{key[:32]}"
    with _lock:
        if name in sys.modules:
            return sys.modules[name]
        found = cache.find(spec.name, key)
        if found is None:
            source = compiled(spec)
            found = cache.store(spec.name, key, source), source
        path, source = found
        return execute(name, path, source, filename=str(path))


def load_file(path: str | os.PathLike[str]) -> ModuleType:
    """The module in a file that recgen has written, by path and content: a file that has changed is a new module.

    Raises FileNotFoundError where there is no file, and whatever the file raises.
    """
    file = Path(path).resolve(strict=True)
    content = file.read_bytes()
    digest = hashlib.sha256(os.fsencode(file) + b"\0" + content).hexdigest()
    stem = re.sub(r"\W", "_", file.stem)
    name = f"recgen_{stem}_{digest[:32]}"
    with _lock:
        if name in sys.modules:
            return sys.modules[name]
        return execute(name, file, decode_source(content), filename=f"{file} ({digest[:8]})")


def generate(spec: SpecLike, out: str | os.PathLike[str], *, with_test: bool = False, typed: bool = False) -> Path:
    """Compiles `spec` into the file `out`, or into `out`/NAME.py where `out` is a folder, and returns the file.

    `out` is a file when it ends in .py, and a folder otherwise. The file is replaced whole or not at all. with_test:
    beside it goes test_NAME.py, with which pytest verifies it without recgen. typed: and NAME.pyi, its types.
    """
    checked = resolve(spec)
    files = compile_files(checked, module_path(checked, out), with_test=with_test, typed=typed)
    for path, text in files.items():
        write_atomically(path, text)
    return next(iter(files))


def compile_files(spec: Spec, path: Path, *, with_test: bool = False, typed: bool = False) -> dict[Path, str]:
    """What `generate` writes: file → text, the module's own file first."""
    from recgen import compiler

    files = compiler.compile_files(spec, path.stem, with_test=with_test, typed=typed)
    return {path.with_name(name): text for name, text in files.items()}


def module_path(spec: Spec, out: str | os.PathLike[str]) -> Path:
    """The module's file: `out` itself, or NAME.py in it."""
    path = Path(out)
    return path if path.suffix == ".py" and not path.is_dir() else path / f"{spec.name}.py"


def compile_source(spec: SpecLike) -> str:
    """The source text of the module that `spec` compiles to."""
    from recgen import compiler  # sympy and the whole compiler: not needed where the cache has the answer

    return compiler.compile_spec(resolve(spec))

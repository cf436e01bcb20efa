"""The three ways from a spec or a file to something that runs: load, load_file, generate."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from importlib.util import decode_source
from pathlib import Path
from types import ModuleType

from recgen.loader import cache
from recgen.loader.execute import execute
from recgen.loader.files import write_atomically
from recgen.loader.source import SpecLike, resolve

_lock = threading.RLock()  # a second thread waits for a module that the first is still compiling or running


def load(spec: SpecLike) -> ModuleType:
    """The module that `spec` (a path, a catalogue name, a dict or a Spec) compiles to.

    Compiled at the first use on this machine, then found in the cache; the same module object within a process.
    Raises SpecError for a bad spec, FileNotFoundError where there is none.
    """
    checked = resolve(spec)
    key = cache.key(checked)
    name = f"recgen_{checked.name}_{key[:32]}"
    with _lock:
        if name in sys.modules:
            return sys.modules[name]
        found = cache.find(checked.name, key)
        if found is None:
            source = compile_source(checked)
            found = cache.store(checked.name, key, source), source
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


def generate(spec: SpecLike, out: str | os.PathLike[str]) -> Path:
    """Compiles `spec` into the file `out`, or into `out`/NAME.py where `out` is a folder, and returns the file.

    `out` is a file when it ends in .py, and a folder otherwise. The file is replaced whole or not at all.
    """
    checked = resolve(spec)
    path = Path(out)
    if path.suffix != ".py" or path.is_dir():
        path = path / f"{checked.name}.py"
    write_atomically(path, compile_source(checked))
    return path


def compile_source(spec: SpecLike) -> str:
    """The source text of the module that `spec` compiles to."""
    from recgen import compiler  # sympy and the whole compiler: not needed where the cache has the answer

    return compiler.compile_spec(resolve(spec))

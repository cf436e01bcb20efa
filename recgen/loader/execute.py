"""Source text → a module in sys.modules that knows its own source, whatever happens to its file."""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import ExecutionLoader
from pathlib import Path
from types import ModuleType


class SourceLoader(ExecutionLoader):
    """Runs the very text it is given: no bytecode file, no second look at the disk.

    Triton, tracebacks and debuggers ask for source long after import, and ask the loader when no file has the name in
    the code objects. So they are shown what runs, even when the file has been rewritten or removed.
    """

    def __init__(self, filename: str, source: str) -> None:
        self.filename = filename
        self.source = source

    def get_filename(self, fullname: str) -> str:
        return self.filename

    def get_source(self, fullname: str) -> str:
        return self.source

    def is_package(self, fullname: str) -> bool:
        return False


def execute(name: str, path: Path, source: str, filename: str) -> ModuleType:
    """Runs `source` as the module `name` and registers it.

    `path` is the module's __file__; `filename` is what its code objects are filed under, and must never be used for
    another text. Raises whatever the source raises, and then leaves no module behind.
    """
    spec = importlib.util.spec_from_file_location(name, path, loader=SourceLoader(filename, source))
    assert spec is not None and spec.loader is not None
    spec.cached = None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module

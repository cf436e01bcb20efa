"""The arrangements for the whole suite.

Triton reads TRITON_INTERPRET when it is imported, so it is set here, before anything imports torch or Triton: every
kernel that a test launches runs in Triton's interpreter, on CPU tensors. Compiling kernels for real targets needs a
process without it: `recgen.cost.compile` runs in processes of its own.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
if "triton" in sys.modules and os.environ.get("TRITON_INTERPRET") != "1":
    raise RuntimeError("something imported Triton before tests/conftest.py could ask for its interpreter")
os.environ["TRITON_INTERPRET"] = "1"

import pytest  # noqa: E402

from tests.browser import browser  # noqa: E402, F401  a fixture for every test

MARKERS = {
    "interpreter": "runs Triton kernels in Triton's interpreter",
    "offline": "compiles Triton kernels for GPUs that are not in this machine",
}

LONG = ("test_readme.py", "test_docs.py", "test_specs.py")


def pytest_configure(config: pytest.Config) -> None:
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests come first, so that no worker waits for one at the end."""
    items.sort(key=lambda item: item.path.name not in LONG)


@pytest.fixture(scope="session", autouse=True)
def shortcuts() -> Iterator[Any]:
    """Those of tests/interpreter.py, taken for the whole session where there is Triton."""
    if importlib.util.find_spec("triton") is None:
        yield None
        return
    from tests.interpreter import Shortcuts

    taken = Shortcuts()
    taken.take()
    yield taken
    taken.give_up()

"""What a caller may hand over as a spec: a path, the name of a catalogue operator, a dict, or a Spec."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from recgen.errors import shortened
from recgen.resources import catalogue
from recgen.spec import Spec, read, read_dict
from recgen.spec.reader import what_is_there
from recgen.spec.source import suggestion

SpecLike: TypeAlias = "Spec | Mapping[str, Any] | str | os.PathLike[str]"


def resolve(spec: SpecLike) -> Spec:
    """The checked Spec that `spec` stands for.

    A text that is a plain word is the name of a catalogue operator; with a suffix or a folder in it, it is a path.
    Raises SpecError for a spec that says something wrong, FileNotFoundError for one that is not there.
    """
    if isinstance(spec, Spec):
        return spec
    if isinstance(spec, Mapping):
        return read_dict(dict(spec))
    if not isinstance(spec, (str, os.PathLike)):
        raise TypeError(f"a spec is a path, a catalogue name, a dict or a Spec, not {type(spec).__name__}")
    return read(locate(spec))


def locate(spec: str | os.PathLike[str]) -> Path:
    """The file of the spec at this path or of this catalogue name. Raises FileNotFoundError when there is none."""
    path = Path(spec)
    called = os.fspath(spec)
    named = isinstance(spec, str) and called == path.name and not path.suffix
    known = catalogue()
    if named and called in known:
        return known[called]
    if named:
        hint = suggestion(called, known, f"it has {', '.join(known)}; a file is named with its suffix")
        raise FileNotFoundError(f"no operator in the catalogue is called {shortened(called, 64)!r}: {hint}")
    if path.is_file():
        return path
    reason, fix = what_is_there(path)
    raise FileNotFoundError(f"{path}: {reason}; {fix}")

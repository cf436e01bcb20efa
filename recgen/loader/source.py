"""What a caller may hand over as a spec: a path, the name of a catalogue operator, a dict, or a Spec."""

from __future__ import annotations

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

from recgen.resources import catalogue
from recgen.spec import Spec, read, read_dict

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
    named = isinstance(spec, str) and spec == path.name and not path.suffix
    known = catalogue()
    if named and spec in known:
        return known[spec]
    if path.is_file() and not named:
        return path
    if named:
        near = get_close_matches(str(spec), known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}; a file is named with its suffix"
        raise FileNotFoundError(f"no operator in the catalogue is called {spec!r}: {hint}")
    what = "is a folder" if path.is_dir() else "is not there"
    raise FileNotFoundError(f"the spec {str(path)!r} {what}")

"""Writing a file so that nobody ever reads half of it, or runs bytecode of the one before; and data as JSON."""

from __future__ import annotations

import glob
import json
import math
import os
import secrets
from importlib.util import cache_from_source
from pathlib import Path
from typing import Any


def write_atomically(path: Path, text: str) -> None:
    """Puts `text` (UTF-8) at `path`, making its folders. Other processes see the old file or the new one, whole.

    A file that holds the same text already is left as it is; what is no file, as a pipe is none, is written to. Raises
    OSError and leaves nothing behind on failure.
    """
    if path.exists() and not path.is_file():
        with path.open("w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return
    target = Path(os.path.realpath(path))
    if _holds(target, text):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        _date_after(draft, target)
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _drop_bytecode(target)


def write_json(path: Path, data: Any) -> None:
    """Puts plain data at `path` as JSON."""
    write_atomically(path, json_text(data))


def json_text(data: Any) -> str:
    """Plain data as JSON; null for a number that is not finite, which JSON has none for."""
    return json.dumps(_finite(data), indent=2, allow_nan=False) + "\n"


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _holds(target: Path, text: str) -> bool:
    try:
        return target.read_bytes() == text.encode("utf-8")
    except OSError:
        return False


def _date_after(draft: Path, target: Path) -> None:
    """Dates the draft at least a second after the file it replaces.

    Python takes bytecode for current when the source has the size and the whole second that it remembers; 0.9 and 0.5
    have one size, and both can be written within a second.
    """
    try:
        before = int(target.stat().st_mtime)
    except FileNotFoundError:
        return
    if int(draft.stat().st_mtime) <= before:
        os.utime(draft, (before + 1, before + 1))


def _drop_bytecode(target: Path) -> None:
    """Removes bytecode of an earlier file of this name, for every interpreter; what cannot be removed stays."""
    beside = target.parent / "__pycache__"
    compiled = [*beside.glob(f"{glob.escape(target.stem)}.*.pyc"), Path(cache_from_source(str(target)))]
    for file in compiled:
        try:
            file.unlink(missing_ok=True)
        except OSError:
            continue

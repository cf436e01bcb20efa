"""Writing a source file so that nobody ever reads half of it, or runs bytecode of the one before."""

from __future__ import annotations

import glob
import os
import secrets
from importlib.util import cache_from_source
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Puts `text` (UTF-8) at `path`, making its folders. Other processes see the old file or the new one, whole.

    A file that holds the same text already is left as it is. Raises OSError and leaves nothing behind on failure.
    """
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

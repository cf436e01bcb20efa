"""Compiled sources on disk, filed by the hash of all that they depend on.

A file in the cache is never changed: another spec, another recgen or another template has another key. Each ends in
the hash of its own text, so a file that something else has cut short or edited counts as absent.
"""

from __future__ import annotations

import atexit
import hashlib
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Set
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

import platformdirs

import recgen
from recgen import resources
from recgen.files import write_atomically
from recgen.spec import Spec

SEAL = "# recgen cache, sha256 of the lines above: "
SHAPING = ("sympy", "jinja2", "packaging", "ruff")  # packages whose version can show in an emitted text
APART = {"bench", "cli", "cost", "demo", "doctor", "explain", "loader", "page", "schemas", "verify"}
"""Folders of recgen that no emitted text depends on."""


def key(spec: Spec) -> str:
    """The sha256 (hex) of everything that the source compiled from `spec` depends on."""
    parts = {
        "recgen": recgen.__version__,
        **{package: version(package) for package in SHAPING},
        "compiler": _compiler_digest(),
        "templates": _digest(resources.templates_dir()),
        "spec": spec.digest,
    }
    return _sha256(json.dumps(parts, sort_keys=True))


def find(name: str, key: str) -> tuple[Path, str] | None:
    """The file and source that were stored for this operator name and key, or None."""
    for folder in _folders():
        path = _path(folder, name, key)
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            continue
        source, seal, digest = text.rpartition(SEAL)
        if seal and digest.strip() == _sha256(source):
            return path, source
    return None


def store(name: str, key: str, source: str) -> Path:
    """Files `source` and returns where: in the user's cache, or for this process only where that cannot be written."""
    sealed = f"{source}{SEAL}{_sha256(source)}\n"
    path = _path(cache_dir(), name, key)
    try:
        write_atomically(path, sealed)
    except OSError as error:
        _warn_once(cache_dir(), str(error))
        path = _path(_folder_of_this_process(), name, key)
        write_atomically(path, sealed)
    return path


def cache_dir() -> Path:
    """RECGEN_CACHE where it is set, else the folder for caches of the user's system."""
    chosen = os.environ.get("RECGEN_CACHE")
    return Path(chosen).absolute() if chosen else platformdirs.user_cache_path("recgen")


def _folders() -> list[Path]:
    used = [_folder_of_this_process()] if _folder_of_this_process.cache_info().currsize else []
    return [cache_dir(), *used]


def _path(folder: Path, name: str, key: str) -> Path:
    return folder / f"{name}_{key[:32]}.py"


@lru_cache(maxsize=1)
def _folder_of_this_process() -> Path:
    """A private folder that goes when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="recgen-"))
    owner = os.getpid()

    def remove() -> None:
        if os.getpid() == owner:
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(remove)
    return folder


@lru_cache(maxsize=8)
def _warn_once(folder: Path, reason: str) -> None:
    warnings.warn(
        f"recgen cannot keep what it compiles in {folder} ({reason}), so every process compiles it again; "
        "set RECGEN_CACHE to a folder that can be written",
        RuntimeWarning,
        stacklevel=5,
    )


@lru_cache(maxsize=1)
def _compiler_digest() -> str:
    """The hash of the compiler's own sources, as this process found them when it first asked: that is what it runs."""
    return _digest(resources.PACKAGE, apart=APART)


def _digest(folder: Path, apart: Set[str] = frozenset()) -> str:
    """The hash of the names and contents of all sources below `folder`, but for the subfolders in `apart`."""
    sources = (
        path
        for path in folder.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not apart & set(path.relative_to(folder).parts[:1])
    )
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{_sha256(path.read_bytes())}\n".encode())
    return digest.hexdigest()


def _sha256(content: str | bytes) -> str:
    return hashlib.sha256(content.encode("utf-8") if isinstance(content, str) else content).hexdigest()

"""The last stage: source text → a module, or a file.

    load(spec)           compiled once into the cache, then imported from there, by content
    load_file(path)      a file that recgen has written earlier, under a name of its path and content
    generate(spec, out)  the same source into a file of the caller's choosing

A module's name and file name contain the hash of what it was made from. So two specs of one name are two modules, a
changed spec is a new one, and code already loaded keeps the source that it was loaded with.
"""

from __future__ import annotations

from recgen.loader.modules import generate, load, load_file
from recgen.loader.source import SpecLike, resolve

__all__ = ["SpecLike", "generate", "load", "load_file", "resolve"]

"""How a template becomes text: strictly rendered, then formatted."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

import jinja2

from recgen.python import command
from recgen.resources import templates_dir


def environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(templates_dir())
    return jinja2.Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def formatted(text: str, stub: bool = False) -> str:
    """The text as ruff formats it. stub: it is a .pyi file, where a function may have several signatures."""
    ruff = command(
        "ruff",
        "format",
        "--isolated",
        "--config",
        "line-length=120",
        "--stdin-filename",
        "module.pyi" if stub else "module.py",
        "-",
    )
    repeated = [name for name, times in Counter(_definitions(text)).items() if times > 1]
    if repeated and not stub:
        raise ValueError(f"the emitted text defines {', '.join(repeated)} more than once")
    done = subprocess.run(ruff, input=text, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise ValueError(f"the emitted text is not Python: {done.stderr}")
    return done.stdout


def _definitions(text: str) -> list[str]:
    """Names of the functions and classes at the top level."""
    return re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)

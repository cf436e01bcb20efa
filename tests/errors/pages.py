"""The pages of docs/errors: examples of what is refused, each followed by what is said of it.

A comment names what the block after it is:

    <!-- file: NAME -->   a file beside the examples after it, up to the next heading
    <!-- spec -->         a spec that is refused
    <!-- family -->       a decay family that is refused
    <!-- derive -->       a spec that is read, and refused when it is compiled
    <!-- setup -->        Python that later blocks of the page go on from
    <!-- raises -->       Python, of which every statement by itself raises an error
    <!-- commands -->     commands of the shell, each of which fails

The block is followed by its output, which `python -m tests.errors.pages --update` writes.
"""

from __future__ import annotations

import ast
import re
import shlex
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from recgen.errors import ProofError, SpecError

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs" / "errors").glob("*.md"))

BLOCK = re.compile(
    r"^<!-- (?P<kind>file|spec|family|derive|setup|raises|commands)(?:: (?P<name>\S+))? -->\n\n"
    r"```(?P<language>\w+)\n(?P<content>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?|^#[^\n]*\n",
    re.MULTILINE | re.DOTALL,
)


def rewritten(page: str) -> str:
    """The page with every output as it is now."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        return BLOCK.sub(_Runner().block, page)


def outputs(page: str) -> Iterator[str]:
    """What the page shows as printed."""
    return (match["output"] for match in BLOCK.finditer(page) if match["output"])


class _Runner:
    def __init__(self) -> None:
        self.names: dict[str, Any] = {}

    def block(self, match: re.Match[str]) -> str:
        kind, content = match["kind"], match["content"]
        if kind is None:
            for file in Path().iterdir():
                file.unlink()
            return match[0]
        name = f": {match['name']}" if match["name"] else ""
        shown = f"<!-- {kind}{name} -->\n\n```{match['language']}\n{content}```\n"
        if kind == "file":
            Path(match["name"]).write_text(content, encoding="utf-8")
        elif kind == "setup":
            exec(compile(content, "<setup>", "exec"), self.names)
        else:
            output = getattr(self, kind)(content).replace(f"{ROOT}/", "")
            shown += f"\n```text\n{output.strip(chr(10))}\n```\n"
        return shown

    def spec(self, content: str) -> str:
        from recgen.spec import read_text

        return _refused(lambda: read_text(content, "spec.yaml"), content)

    def family(self, content: str) -> str:
        from recgen.spec.families import read_family
        from recgen.spec.source import Source

        return _refused(lambda: read_family(Source("family.yaml", content)), content)

    def derive(self, content: str) -> str:
        from recgen.algebra.derive import derive
        from recgen.spec import read_text

        spec = read_text(content, "spec.yaml")
        return _refused(lambda: derive(spec), content)

    def raises(self, content: str) -> str:
        return "\n".join(self._raised(ast.unparse(statement)) for statement in ast.parse(content).body)

    def _raised(self, statement: str) -> str:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(compile(statement, "<example>", "exec"), dict(self.names))
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        raise AssertionError(f"nothing is raised by {statement}")

    def commands(self, content: str) -> str:
        from typer.testing import CliRunner

        from recgen.cli import app

        said = []
        for line in content.splitlines():
            program, *arguments = shlex.split(line)
            assert program == "recgen", line
            result = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1"}).invoke(app, arguments, catch_exceptions=False)
            assert result.exit_code, f"nothing is wrong with {line}"
            said.append(_unframed(result.stderr))
        return "\n\n".join(said)


def _unframed(text: str) -> str:
    """What a command said, without the lines on its usage and the frame, which are those of the library."""
    lines = [line.strip(" │") for line in text.splitlines() if not line.startswith(("Usage:", "Try '", "╭", "╰"))]
    framed = any(line.startswith("│") for line in text.splitlines())
    return " ".join(lines) if framed else "\n".join(lines).strip()


def _refused(action: Callable[[], object], content: str) -> str:
    try:
        action()
    except SpecError as error:
        return str(error)
    except ProofError as error:
        return f"the proof failed, so nothing is emitted: {error}"
    raise AssertionError(f"nothing is wrong with\n{content}")


if __name__ == "__main__":
    if sys.argv[1:] != ["--update"]:
        sys.exit("usage: python -m tests.errors.pages --update")
    for page in PAGES:
        page.write_text(rewritten(page.read_text(encoding="utf-8")), encoding="utf-8")

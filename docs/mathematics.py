r"""What `recgen explain --latex` writes, as Markdown: formulas between dollars, and in blocks of the language math.

\operatorname becomes \mathrm, since not everything that renders Markdown takes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from recgen.page.formulas import BLOCK, INLINE

SPECIAL = re.compile(r"([*_`<\[\]$])")
ESCAPED = re.compile(r"\\([_#%&$])")


def sections(latex: str) -> dict[str, str]:
    """Title → Markdown, in order."""
    found: dict[str, list[str]] = {}
    title = ""
    for match in BLOCK.finditer(latex):
        if match["title"] is not None:
            title = prose(match["title"])
            found[title] = []
        else:
            found[title] += _block(match)
    return {title: "\n\n".join(blocks) for title, blocks in found.items()}


def _block(match: re.Match[str]) -> Iterator[str]:
    kind, text = match.lastgroup, match[match.lastgroup or 0]
    if kind == "verbatim":
        yield f"```text\n{text.rstrip()}\n```"
    elif kind == "rows":
        yield f"```math\n\\begin{{align*}}\n{_plain(text.rstrip())}\n\\end{{align*}}\n```"
    elif kind == "table":
        yield _table(text)
    elif kind == "display":
        yield f"```math\n{_plain(text.strip())}\n```"
    elif text.strip():
        yield f"**{prose(text)}**" if kind == "heading" else prose(text)


def _table(text: str) -> str:
    """The rows of a tabular environment, the first of which is its head."""
    rows = [row.split(" & ") for row in text.replace("\\hline", "").strip().split("\\\\\n")]
    cells = [[prose(cell.strip().removesuffix("\\\\").strip()) for cell in row] for row in rows]
    lines = [cells[0], ["---"] * len(cells[0]), *cells[1:]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def prose(text: str) -> str:
    """A paragraph, its formulas between dollars."""
    pieces = INLINE.split(text)
    return "".join(
        f"${_plain(piece.strip())}$" if n % 2 else SPECIAL.sub(r"\\\1", ESCAPED.sub(r"\1", piece))
        for n, piece in enumerate(pieces)
    )


def _plain(latex: str) -> str:
    return latex.replace(r"\operatorname{", r"\mathrm{")

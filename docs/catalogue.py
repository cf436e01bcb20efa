"""The pages of the catalogue, from specs/: the table in README.md, and docs/operators/NAME.md for every operator.

`python docs/catalogue.py` writes them. With `--check` it writes nothing, and fails when one is missing, differs, or is
of no operator.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

from mathematics import sections  # noqa: E402

from recgen import compiler  # noqa: E402
from recgen.errors import SpecError  # noqa: E402
from recgen.resources import catalogue  # noqa: E402
from recgen.spec import Spec, read  # noqa: E402
from recgen.spec.axes import varies_with  # noqa: E402
from recgen.spec.schema import HINT  # noqa: E402
from recgen.spec.source import listing  # noqa: E402

README = ROOT / "README.md"
PAGES = ROOT / "docs" / "operators"
TABLE = re.compile(r"(?<=<!-- catalogue -->\n\n).*?(?=\n\n<!-- end -->)", re.DOTALL)
HEAD = ("operator", "log-decay ℓ", "varies with", "features", "normalizer", "published")
ORDER = ("none", "head", "key", "value", "key_value", "channel")
KINDS = ("none", "fixed", "learned", "gated")
KEPT = ("Meaning", "Inputs", "Parameters")  # of what the reader understood
CITED = re.compile(r"arXiv:([\d.]+)")


def specs() -> list[Spec]:
    """Every operator, from those without decay to those with the richest one."""
    found = [read(path) for path in catalogue().values()]
    return sorted(found, key=lambda s: (_structure(s), KINDS.index(s.decay.type), s.name))


def _structure(spec: Spec) -> int:
    return 0 if spec.decay.type == "none" else ORDER.index(spec.decay.per)


def table(found: Iterable[Spec]) -> str:
    """The catalogue in README.md."""
    rows = [HEAD, ("---",) * len(HEAD), *map(_row, found)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _row(spec: Spec) -> tuple[str, ...]:
    none = "0" if spec.causal else "0, over all positions"
    decay = none if spec.decay.type == "none" else _code(spec.decay.log.text)
    normalizer = "–" if spec.normalizer.kind == "none" else spec.normalizer.kind
    varies = listing(varies_with(spec.decay.log, spec.tensors), "and") or "–"
    return (
        f"[`{spec.name}`](docs/operators/{spec.name}.md)",
        decay,
        varies,
        _features(spec),
        normalizer,
        spec.cite or "–",
    )


def _code(text: str) -> str:
    return f"`{text.replace('|', chr(92) + '|')}`"


def _features(spec: Spec) -> str:
    query, key = spec.query_map.text, spec.key_map.text
    return _code(query) if query == key else f"{_code(query)} of the query, {_code(key)} of the key"


def page(spec: Spec, path: Path) -> str:
    """One operator: its spec, and what is derived from it."""
    source = CITED.sub(r"[arXiv:\1](https://arxiv.org/abs/\1)", spec.cite)
    where = f"[specs/{spec.name}.yaml](../../specs/{spec.name}.yaml)"
    module = f"[generated/{spec.name}.py](../../generated/{spec.name}.py)"
    lines = [
        f"# {spec.title or spec.name}",
        "",
        f"`{spec.name}`" + (f", published as {source}" if spec.cite else "") + f". The spec, {where}:",
        "",
        "```yaml",
        "".join(line for line in path.open(encoding="utf-8") if not line.startswith(HINT)).rstrip(),
        "```",
        "",
        f"It compiles to {module}.",
    ]
    for title, text in _sections(spec):
        lines += ["", f"## {title}", "", text]
    return "\n".join(lines) + "\n"


def _sections(spec: Spec) -> list[tuple[str, str]]:
    """What it means, and the sections of its derivation up to the adjoint, which is as long as all the others."""
    meaning = _titled(compiler.explain(spec, "read"))
    derived = sections(compiler.explain(spec, "derive", latex=True))
    read = [(title, text) for title, text in meaning.items() if title.split(",")[0] in KEPT]
    blocks = [(title, "```text\n" + text.strip("\n") + "\n```") for title, text in read]
    return blocks + [(title, text) for title, text in derived.items() if title != "Adjoint"]


def _titled(text: str) -> Mapping[str, str]:
    found = re.split(r"^(\S.*)\n-+\n", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def files() -> dict[Path, str]:
    """Every file that is made from specs/, with its text."""
    found = specs()
    readme = README.read_text(encoding="utf-8")
    if not TABLE.search(readme):
        raise SystemExit("README.md has no place for the catalogue: <!-- catalogue --> … <!-- end -->")
    pages = {PAGES / f"{spec.name}.md": page(spec, catalogue()[spec.name]) for spec in found}
    return {README: TABLE.sub(lambda _: table(found), readme, count=1), **pages}


def stale(wanted: Mapping[Path, str]) -> list[str]:
    """What is not as it should be, one line for each file."""
    wrong = [path for path, text in wanted.items() if not path.is_file() or path.read_bytes() != text.encode("utf-8")]
    extra = [path for path in PAGES.glob("*.md") if path not in wanted]
    return [f"{path.relative_to(ROOT)} is not up to date" for path in wrong] + [
        f"{path.relative_to(ROOT)} is of no operator" for path in extra
    ]


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    try:
        wanted = files()
    except SpecError as error:
        print(error, file=sys.stderr)
        return 2
    if arguments:
        wrong = stale(wanted)
        print("\n".join([*wrong, "run make docs"] if wrong else [f"{len(wanted)} files are up to date"]))
        return int(bool(wrong))
    PAGES.mkdir(exist_ok=True)
    for path in PAGES.glob("*.md"):
        if path not in wanted:
            path.unlink()
    for path, text in wanted.items():
        path.write_text(text, encoding="utf-8")
    print(f"{len(wanted)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

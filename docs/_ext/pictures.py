"""The directive `pictures`: the mask of an operator of generated/ and how its chunks divide it, drawn into the page.

They are those of `recgen explain --html`, as SVG text: no file is written.
"""

from __future__ import annotations

import importlib
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Pictures(SphinxDirective):
    """Its argument is the operator's name."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        drawn = "".join(f"<figure>{svg}</figure>" for svg in pictures(self.arguments[0]))
        return [nodes.raw("", f'<div class="pictures">{drawn}</div>', format="html")]


def pictures(name: str) -> tuple[str, str]:
    """The mask, and the chunks, as SVG."""
    from recgen.algebra.derive import derive
    from recgen.explain.pictures import chunk_picture, mask_picture, pair_kinds
    from recgen.explain.sampled import masks
    from recgen.resources import catalogue
    from recgen.spec import read

    found = derive(read(catalogue()[name]), prove=False)
    mask, *_ = masks(found.recurrence, importlib.import_module(f"generated.{name}"))
    return mask_picture(mask, name), chunk_picture(pair_kinds(found.recurrence, found.program), name)


def setup(app: Sphinx) -> dict[str, Any]:
    """Makes the directive known."""
    app.add_directive("pictures", Pictures)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

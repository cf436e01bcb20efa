"""The site: `make site` builds build/site from docs/, from the docstrings and from the compiler's own tables."""

from __future__ import annotations

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path[:0] = [str(DOCS.parent), str(DOCS), str(DOCS / "_ext")]

import recgen  # noqa: E402

project = "recgen"
author = "The recgen authors"
release = version = recgen.__version__
copyright = author

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "mathml", "pictures", "reference"]
exclude_patterns = ["_ext", "_static"]
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"(?!recgen\.).*")]  # what other projects document is not looked up: no network

myst_enable_extensions = ["dollarmath", "attrs_block"]
myst_fence_as_directive = ["math"]
myst_heading_anchors = 3

add_module_names = False
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "none"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"recgen {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
suppress_warnings = ["misc.highlighting_failure"]  # pages of errors show what is no YAML

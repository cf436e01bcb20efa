"""The size of the language model in these tests."""

from __future__ import annotations

from recgen.demo.model import Size

SMALL = Size(width=16, layers=2, heads=2, key=8, value=8, hidden=32)

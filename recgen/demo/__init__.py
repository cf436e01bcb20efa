"""Everything once, on real text, in one report: generate, prove, verify, train, sample, compare, measure.

run(Path("demo.html"))
"""

from __future__ import annotations

from recgen.demo.pipeline import Plan, run

__all__ = ["Plan", "run"]

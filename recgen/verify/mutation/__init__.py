"""How much the checks see: small faults put into an emitted module one at a time, each run through a quick check.

    survey = run(module, limit=80, seed=0, budget=90)
    print(survey.render())      # which faults were caught, by which form and check, and which survived, with the line

Faults that change nothing (a factor that is 1, an order that does not matter) survive every check, so a survivor is a
question, not a verdict.
"""

from __future__ import annotations

from recgen.verify.mutation.report import Survey, Tried
from recgen.verify.mutation.survey import BUDGET, LIMIT, run

__all__ = ["BUDGET", "LIMIT", "Survey", "Tried", "run"]

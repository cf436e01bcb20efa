"""Texts of errors that no page shows: why, and what else makes sure of them.

The key is a source file, or a part of a text in one.
"""

from __future__ import annotations

FAULT = "only a fault of recgen itself leads there; tests/algebra and tests/plan provoke it"
TESTED = "depends on what is installed or how it is run"

FILES: dict[str, str] = {
    **dict.fromkeys(
        (
            *("algebra/adjoint.py", "algebra/bounds.py", "algebra/calculus.py", "algebra/complex_proof.py"),
            *("algebra/complex_values.py", "algebra/exact.py", "algebra/graph.py", "algebra/interpret.py"),
            *("algebra/interval.py", "algebra/laurent.py", "algebra/meaning.py", "algebra/precise.py"),
            *("algebra/proof.py", "algebra/recurrence.py", "algebra/relative.py", "algebra/scan.py"),
            *("algebra/show/expressions.py", "algebra/show/formulas.py", "algebra/show/parts.py"),
            *("algebra/show/unroll.py", "algebra/tokens.py", "plan/check.py", "plan/fused.py", "plan/scan.py"),
            *("plan/split.py", "plan/total.py"),
        ),
        FAULT,
    ),
}
"""Files whose errors need no example, though some have one: those of the proof are shown where a spec leads to them."""

TEXTS: dict[str, str] = {
    "this needs Triton, which is not installed": TESTED,
    "torch sees no GPU here": TESTED,
    "this needs a system on which processes fork": TESTED,
    "no faults could be tried: ": "depends on the system; tests/cli/test_mutate.py",
    "the process of ": "a fault of what is installed; tests/verify/test_processes.py",
    " where an answer was due": "the same",
    ": only line ends differ": "shown by a test of tests/cli/test_generate.py",
    "are missing; looked in": "an installation without its data; tests/test_packaging.py",
    ". Install recgen again.": "an installation without its data; tests/test_packaging.py",
    "cu_seqlens: mode='naive' reads them in Python": "under torch.compile alone; tests/generated/test_compile.py",
    "(h is the head index)": "no part of a spec takes h today and no axis H",
    "write it with + - * /, whole powers, exp and expm1": "the language refuses such a value where it is built",
    " is none of these; give a number or a word of the list": "asked at a terminal; tests/cli/test_new.py",
    "What is left, after token t": "no error: the title of a picture",
    "no input or parameter of it is free to be set": "no error: what recgen explain A B prints; tests/explain",
    "no value of ": "the same",
    ", and what it would have to be varies along ": "the same",
    "the normal form of this text would mean something else": "only a fault of recgen itself leads there",
    "a spec is made of ": "for those who change the reader; tests/spec/test_python.py",
    " as well, or without": "the same",
    "mapping values are not allowed": "no error: what the YAML reader says",
    "<block mapping start>": "the same",
    "cannot start any token": "the same",
    "this cannot be built": "for what sympy may refuse in a version to come",
}

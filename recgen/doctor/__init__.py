"""What works on this machine, one check after the other.

checks   what is looked at, and what to do where it does not work
trial    a small kernel, in a process of its own: interpreted, or compiled for a GPU that is not here
"""

from __future__ import annotations

from recgen.doctor.checks import CHECKS, Check, Finding, able, examine

__all__ = ["CHECKS", "Check", "Finding", "able", "examine"]

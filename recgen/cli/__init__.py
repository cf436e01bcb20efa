"""The `recgen` command. Exit code 0: done; 1: a check failed; 2: a bad spec or bad usage."""

from __future__ import annotations

from recgen.cli.app import app, main

__all__ = ["app", "main"]

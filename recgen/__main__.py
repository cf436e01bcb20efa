"""`python -m recgen` is the `recgen` command."""

from __future__ import annotations

from recgen.cli import main

if __name__ == "__main__":
    main()

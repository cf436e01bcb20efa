"""Keeping the search for a peer's fastest configurations short: it is not what a run is for.

A peer tries dozens of configurations per kernel at its first call, each compiled and then timed. Compiling is shared
among processes beforehand, and timing is made brief.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

WARMUP, TIMED = 5, 20
"""Milliseconds for which one configuration runs before it is timed, and while it is."""


def compile_only(share: int, shares: int) -> None:
    """From here on, in this process: every `shares`-th configuration is run once, which compiles it, and not timed."""
    import triton.testing
    from triton.runtime.autotuner import Autotuner

    whole = Autotuner.prune_configs

    def prune(self: Any, kwargs: dict[str, Any]) -> list[Any]:
        configs = list(whole(self, kwargs))
        return configs[share::shares] or configs[:1]

    Autotuner.prune_configs = prune
    triton.testing.do_bench = _once


def _once(call: Callable[[], Any], *_: Any, quantiles: tuple[float, ...] | None = None, **__: Any) -> Any:
    call()
    return [1.0] * len(quantiles) if quantiles else 1.0


@cache
def tune_briefly() -> None:
    """From here on, in this process: a configuration is timed for milliseconds."""
    import triton.testing

    triton.testing.do_bench = partial(triton.testing.do_bench, warmup=WARMUP, rep=TIMED)

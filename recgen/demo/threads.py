"""How many threads torch uses: one for small work, as many as help for large work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def threads(count: int) -> Iterator[None]:
    """`count` threads inside the block. For small operations 1 is best: waking another takes longer than the work."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def fitting(work: Callable[[], Any]) -> int:
    """All of torch's threads, or one where that is faster: threads wait for each other where the cores are busy."""
    seconds: dict[int, float] = {}
    for count in (1, torch.get_num_threads()):
        with threads(count):
            work()
            start = time.perf_counter()
            work()
            seconds[count] = time.perf_counter() - start
    return min(seconds, key=lambda count: seconds[count])

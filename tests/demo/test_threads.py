"""How many threads torch uses while the demo works."""

from __future__ import annotations

import time

import torch

from recgen.demo.threads import fitting, threads


def test_the_number_of_threads_is_restored() -> None:
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_threads_that_only_wait_are_not_used() -> None:
    with threads(4):
        assert fitting(lambda: time.sleep(0.02 * torch.get_num_threads())) == 1
        assert fitting(lambda: time.sleep(0.08 / torch.get_num_threads())) == 4

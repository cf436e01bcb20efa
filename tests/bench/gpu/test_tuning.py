"""A peer's search for its fastest configurations, cut short."""

from __future__ import annotations

import pytest

from recgen.bench.gpu.tuning import compile_only, tune_briefly

testing = pytest.importorskip("triton.testing")
autotuner = pytest.importorskip("triton.runtime.autotuner")


class Tuner:
    """What of Triton's tuner chooses among configurations."""

    early_config_prune = perf_model = None

    def __init__(self, *configs: str) -> None:
        self.configs, self.nargs = list(configs), {}


@pytest.fixture
def triton_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(autotuner.Autotuner, "prune_configs", autotuner.Autotuner.prune_configs)
    monkeypatch.setattr(testing, "do_bench", testing.do_bench)


@pytest.mark.parametrize(("share", "configs"), [(0, ["a", "c"]), (1, ["b", "d"]), (3, ["d"])])
def test_a_share_is_compiled_by_running_it_once(triton_kept: None, share: int, configs: list[str]) -> None:
    compile_only(share, 2 if share < 2 else 4)
    assert autotuner.Autotuner.prune_configs(Tuner("a", "b", "c", "d"), {}) == configs
    ran: list[str] = []
    assert testing.do_bench(lambda: ran.append("once"), quantiles=(0.5, 0.2, 0.8)) == [1.0, 1.0, 1.0]
    assert ran == ["once"]


def test_no_kernel_is_left_without_a_configuration(triton_kept: None) -> None:
    compile_only(3, 4)
    assert autotuner.Autotuner.prune_configs(Tuner("a"), {}) == ["a"]


def test_timing_a_configuration_is_brief(triton_kept: None) -> None:
    tune_briefly.cache_clear()
    tune_briefly()
    once = testing.do_bench
    tune_briefly()
    assert testing.do_bench is once and once.keywords == {"warmup": 5, "rep": 20}
    tune_briefly.cache_clear()

"""The search for tiles, with a stand-in for the compiler: whose chunks are of one length, and what is tried."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from recgen.verify.tiles import Config, Search
from tests.generated.catalogue import emitted

FORWARD, QUERY, KEY, WRITES = "_chunk_forward", "_chunk_backward_query", "_chunk_backward_key", "_chunk_backward_writes"
Fits = Callable[[str, int, int], bool]


class Stub(Search):
    """Kernels that fit where they are said to: name, rows of a chunk, tile."""

    def __init__(self, fits: Fits, whole: bool = False) -> None:
        self.module, self.width, self.sparse = SimpleNamespace(CHUNK_SIZES=(16, 32, 64)), 128, True
        self.edges, self.writers, self.levels = {QUERY, KEY, *[WRITES] * whole}, {QUERY}, set()
        self.whole = {WRITES} if whole else set()
        self.found = {name: [] for name in (FORWARD, QUERY, KEY, *self.whole)}
        self.fit, self.tried = fits, []

    def _kernels(self) -> None:
        pass

    def _try(self, config: Config, kernels: set[str]) -> None:
        for name in sorted(kernels):
            self.tried.append((name, dict(self.found)))
            if self.fit(name, *config[:2]):
                self.found[name].append(config)


def rows(found: dict[str, list[Config]]) -> dict[str, int]:
    return {name: configs[0][0] for name, configs in found.items()}


def test_kernels_that_share_states_get_chunks_of_one_length() -> None:
    """The one that fits long chunks takes those of the one that does not; others do as they like."""
    found = Stub(lambda name, rows, tile: rows <= (16 if name == QUERY else 32) and tile == 128).run()
    assert rows(found) == {FORWARD: 32, QUERY: 16, KEY: 16}


def test_a_whole_kernel_is_kept_if_it_shortens_nothing() -> None:
    fits = {WRITES: 32, KEY: 32, QUERY: 32, FORWARD: 32}
    assert rows(Stub(lambda name, rows, tile: rows <= fits[name] and tile == 128, whole=True).run())[WRITES] == 32
    fits[WRITES] = 16
    assert WRITES not in Stub(lambda name, rows, tile: rows <= fits[name] and tile == 128, whole=True).run()


def test_where_a_kernel_fits_nowhere_nothing_is_shipped() -> None:
    assert Stub(lambda name, rows, tile: name != FORWARD).run() == {}


def test_what_stores_states_is_compiled_for_what_reads_them() -> None:
    """A reader says for how many chunks one is stored: its tiles are found first, and are those of its launch."""
    search = Stub(lambda name, rows, tile: tile == 128 and rows == 32)
    search.run()
    assert all(found[KEY] for name, found in search.tried if name == QUERY)

    real = Search.__new__(Search)
    real.module, real.found, real.target = emitted("simple_gla"), {KEY: [(16, 32, 8, 2)], QUERY: []}, "sm_90"
    grid = real.module._Grid.__new__(real.module._Grid)
    grid.widths = {"m": 128, "v": 128}
    with real._recorded((32, 64, 8, 2), {QUERY}):
        assert grid.tiles(QUERY, "m") == (32, 64, 2, 8, 2)
        assert grid.tiles(KEY, "m") == (16, 32, 4, 8, 2)

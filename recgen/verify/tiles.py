"""Which tiles fit: every kernel of a module compiled for a GPU that is not here, until some do not spill.

    python -m recgen.verify.tiles gla --target sm_90 --width 128

writes into recgen/tiles/gla.json: kernel → [[rows of a chunk, tile, warps, stages]], the first that fits in the order
of the bytes they move. It spills no register and fits into shared memory; products are taken in bfloat16. Kernels that
hand each other states at the chunks' edges have chunks of equal length.

Triton aborts on some programs that it cannot compile, so that each width of a target is a process of its own, which
says what it tries before it does; the one that started it tries again without that.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from recgen.python import command
from recgen.targets import TARGETS

PAIRS = [(rows, tile) for tile in (128, 64, 32, 16) for rows in (64, 32, 16)]  # rows of a chunk, tile of the state
LARGEST = 128 * 128  # numbers in the tile of a state: a quarter of the registers
Config = tuple[int, int, int, int]  # rows, tile, warps, stages


def survivors(path: Path, target: str, width: int) -> dict[str, list[Config]]:
    """The survivors of every kernel, found in processes of their own. Empty where some kernel has none."""
    fatal: list[str] = []
    while True:
        started = command("recgen.verify.tiles", str(path), "--inside")
        started += ["--target", target, "--width", str(width)]
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        done = subprocess.run(
            [*started, *(f"--without={f}" for f in fatal)], capture_output=True, text=True, env=environment
        )
        lines = done.stdout.splitlines()
        if done.returncode == 0:
            found: dict[str, list[Config]] = json.loads(lines[-1])
            return found
        tried = [line for line in lines if line.startswith("try ")]
        if not tried or tried[-1][4:] in fatal:
            raise RuntimeError(f"{path.name}, {target}, width {width}: {done.stderr[-500:]}")
        fatal.append(tried[-1][4:])


class Search:
    """One module on one target at one width, inside the process that may be aborted."""

    def __init__(self, path: Path, target: str, width: int, without: set[str]) -> None:
        self.module, self.target, self.width, self.without = _load(path), target, width, without
        self.module._load_triton()
        self.found: dict[str, list[Config]] = {}
        self.edges: set[str] = set()
        self.writers: set[str] = set()  # of those with edges, what stores the states there
        self.sparse = hasattr(self.module._Grid, "stretch")
        self.whole: set[str] = set()
        self.levels: set[str] = set()  # what loops over the pair tree's levels
        self.broken: set[str] = set()  # of those tried last, what does not compile

    def run(self) -> dict[str, list[Config]]:
        self._kernels()
        others = self._order(False)
        self._try_all(self._order(True), self._readers)
        rows = self._rows(self._readers)  # to read states more often costs more than smaller tiles
        self._try_all(sorted(others, key=lambda pair: pair[0] != rows), self.writers)
        self._try_all(others, set(self.found) - self.edges)
        self._same_rows()
        needed = [k for k in self.found if k not in self.whole]
        return {k: fits for k, fits in self.found.items() if fits} if all(self.found[k] for k in needed) else {}

    def _same_rows(self) -> None:
        """Chunks of one length where states and gradients are cut at their edges."""
        rows = self._rows(self.edges)
        for kernel in self.edges:
            self.found[kernel] = [c for c in self.found[kernel] if c[0] == rows]
        pairs = [pair for pair in self._order(True) if pair[0] == rows]
        self._try_all(pairs, self._readers)  # which say how many chunks the writers store a state for
        self._try_all(pairs, self.writers)

    @property
    def _readers(self) -> set[str]:
        return self.edges - self.writers

    def _rows(self, kernels: set[str]) -> int:
        """The shortest chunk that a kernel needs, a whole one aside: with shorter chunks it saves nothing."""
        return min((self.found[k][0][0] for k in kernels - self.whole if self.found[k]), default=0)

    def _order(self, reads: bool) -> list[tuple[int, int]]:
        """What moves the fewest bytes first. More than one tile reads two tensors of the width again for each; a kernel
        that reads states has one stored and reads it for each chunk, or for two and reads keys and values of one again.
        Long chunks of the largest tile never fit."""

        def states(rows: int, tile: int) -> float:
            every = self.width / rows
            again = (1 + self.width / tile) / 2
            return min(2 * every, every + again) if self.sparse else 2 * every

        def cost(pair: tuple[int, int]) -> float:
            rows, tile = pair
            return 2 * (self.width / tile - 1) + (states(rows, tile) if reads else 1 / rows)

        largest = min(self.width, LARGEST // self.width)
        pairs = [(r, t) for r, t in PAIRS if t <= largest and r in self.module.CHUNK_SIZES]
        return sorted((p for p in pairs if p[0] * p[1] * self.width < 64 * LARGEST), key=cost)

    def _try_all(self, pairs: Iterable[tuple[int, int]], kernels: set[str]) -> None:
        """Try rows and tiles, with the warps and stages that go with them, until something fits each of the kernels. A
        whole kernel needs the whole state."""
        for rows, tile in pairs:
            small, long = tile * self.width <= 64 * 64, rows * tile * self.width >= 32 * LARGEST
            for warps, stages in ((8, 2), (8, 1), *([(4, 2)] if small else [])):
                left = {k for k in kernels if not self.found[k] and (k not in self.whole or tile == self.width)}
                left -= self.levels if long else set()  # levels hold too much more
                if left:
                    self._try((rows, tile, warps, stages), left)

    def _kernels(self) -> None:
        """Find the kernels that tiles are chosen for, and which of them hand over states at the edges of chunks."""
        with self._recorded((16, 16, 4, 1), set()) as seen:
            self._call()
        for name, pointers in seen.items():
            self.found[name] = []
            edges = [p for p in pointers if p.endswith("_edges_ptr")]
            if edges:
                self.edges.add(name)
            if any(f"_store({p}" in getattr(self.module, name).src for p in edges):
                self.writers.add(name)
            if "LEVELS" in pointers:
                self.levels.add(name)

    def _try(self, config: Config, kernels: set[str]) -> None:
        kernels = {k for k in kernels if f"{k} {' '.join(map(str, config))}" not in self.without}
        for name, spills in self.spills(config, kernels).items():
            if not any(spills):
                self.found[name].append(config)

    def spills(self, config: Config, kernels: set[str]) -> dict[str, list[int]]:
        """Bytes that every variant of each kernel spills that the schedules launch, without the kernels that fail."""
        from recgen.verify.offline import offline

        with offline(self.target) as compiled, self._recorded(config, kernels):
            self._call()
        found: dict[str, list[int]] = {}
        for kernel in compiled.kernels.values():
            if kernel.name in kernels - self.broken:
                found.setdefault(kernel.name, []).append(kernel.spill)
        return found

    def _call(self) -> None:
        """Forward and backward in every schedule, with whole kernels and without."""
        import torch

        width, inputs = self.width, {}
        sizes = {"B": 1, "T": 64, "H": 1, "K": width, "V": width, "M": width}
        sample = self.module.sample_inputs(**{k: v for k, v in sizes.items() if k in _axes(self.module)})
        for name, x in sample.items():
            inputs[name] = x.to(torch.bfloat16).requires_grad_(x.is_floating_point())
        for whole in (True, False):  # the kernels that have the whole state, and those that they stand for
            self.module._Grid.fits = lambda grid, kernel, whole=whole: self._fits(kernel, whole)
            for schedule in self.module.SCHEDULES:
                o, _ = self.module.operator(**inputs, mode="chunk", backend="triton", schedule=schedule)
                o.sum().backward()

    def _fits(self, kernel: str, whole: bool) -> bool:
        self.whole.add(kernel)
        return whole

    @contextlib.contextmanager
    def _recorded(self, config: Config, kernels: set[str]) -> Iterator[dict[str, list[str]]]:
        """Launch only these kernels, with these tiles; hand out the pointers of all that would have been launched."""
        from recgen.verify.offline import offline

        search, grid, seen = self, self.module._Grid, {}
        self.broken = set()
        launch, tiles = grid.launch, grid.tiles

        def forced(self: Any, name: str, axis: str) -> tuple[int, int, int, int, int]:
            """The tiles to try; of another kernel, on which it may depend, what was found."""
            rows, tile, warps, stages = config if name in kernels else next(iter(search.found.get(name, ())), config)
            width = self.widths[axis]
            return rows, min(tile, width), -(-width // min(tile, width)), warps, stages

        def recorded(self: Any, kernel: Any, *args: Any, **options: Any) -> None:
            name = kernel.__name__
            if options.get("chunked", True):
                seen[name] = kernel.arg_names
            if name in kernels:
                print("try", name, *config, flush=True)
                try:
                    launch(self, kernel, *args, **options)
                except Exception:  # noqa: BLE001  it does not compile, or needs too much shared memory
                    search.broken.add(name)

        grid.launch, grid.tiles = recorded, forced
        try:
            if kernels:
                yield seen
            else:
                with offline(self.target):
                    yield seen
        finally:
            grid.launch, grid.tiles = launch, tiles


def _axes(module: ModuleType) -> set[str]:
    return {a for layout in {**module.INPUTS, **module.PARAMS}.values() for a in layout.split()}


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def search(name: str, targets: Iterable[str], widths: Iterable[int], folder: Path) -> Iterator[str]:
    """Find what is not in the operator's file yet, and write it there; a file of other kernels starts anew."""
    from recgen.algebra.derive import derive
    from recgen.emit.module import module_text
    from recgen.loader.source import resolve
    from recgen.plan.passes import plan
    from recgen.plan.tiles import with_orders

    from .finds import Finds, code_of

    derivation = derive(resolve(name), prove=False)
    planned = plan(derivation)
    finds = Finds.of(name, planned, folder)
    text = module_text(derivation, with_orders(planned, finds.orders))
    finds.only_for(code_of(text))
    with tempfile.TemporaryDirectory() as scratch:
        module = Path(scratch) / f"{name}.py"
        module.write_text(text, encoding="utf-8")
        for target, width in ((t, w) for w in widths for t in targets):
            found = finds.tiles(target, width)
            if found is None:
                found = survivors(module, target, width)
                finds.add_tiles(target, width, found)
            yield f"{name}, {target}, width {width}: {'fits' if found else 'nothing fits'}"


def main(arguments: list[str] | None = None) -> None:
    from recgen import resources

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="+", metavar="NAME", help="operators of the catalogue")
    parser.add_argument("--target", default=",".join(TARGETS), help="GPUs (default: %(default)s)")
    parser.add_argument("--width", default="64,128,256", help="widths of keys and values (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=resources.tiles_dir(), help="their folder (default: %(default)s)")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--without", action="append", default=[], help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    targets, widths = given.target.split(","), [int(w) for w in given.width.split(",")]
    if given.inside:
        print(json.dumps(Search(Path(given.names[0]), targets[0], widths[0], set(given.without)).run()))
        return
    for name in given.names:
        for line in search(name, targets, widths, given.out):
            print(line, flush=True)


if __name__ == "__main__":
    main()

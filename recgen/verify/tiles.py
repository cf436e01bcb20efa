"""Which tiles fit: every kernel of a module compiled for a GPU that is not here, until some do not spill.

    python -m recgen.verify.tiles generated/gla.py --target sm_90 --width 128

prints JSON: kernel → its survivors, each [rows of a chunk, tile, warps, stages], the one that moves the fewest bytes
first. A survivor spills no register and fits into shared memory; its products are taken in bfloat16.

Kernels that hand each other states at the chunks' edges have chunks of equal length. A tile that does not fit at some
rows is not tried at more. Triton aborts on some programs that it cannot compile, so that each width of a target is a
process of its own, which says what it tries before it does; the one that started it tries again without that.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

ROWS = (16, 32, 64)
LARGEST = {64: 64, 128: 128, 256: 64}  # width → the largest state tile worth trying: more than 128 x 128 never fits
Config = tuple[int, int, int, int]  # rows, tile, warps, stages
Found = dict[str, dict[int, Config]]  # kernel → rows → what fits


def survivors(path: Path, target: str, width: int) -> dict[str, list[Config]]:
    """The survivors of every kernel, found in processes of their own. Empty where some kernel has none."""
    fatal: list[str] = []
    while True:
        command = [sys.executable, "-m", "recgen.verify.tiles", str(path), "--target", target, "--width", str(width), "--inside"]
        environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
        done = subprocess.run(
            [*command, *(f"--without={f}" for f in fatal)], capture_output=True, text=True, env=environment
        )
        lines = done.stdout.splitlines()
        if done.returncode == 0:
            return json.loads(lines[-1])
        tried = [line for line in lines if line.startswith("try ")]
        if not tried or tried[-1][4:] in fatal:
            raise RuntimeError(f"{path.name}, {target}, width {width}: {done.stderr[-500:]}")
        fatal.append(tried[-1][4:])


def chosen(found: Found, edges: set[str], width: int, optional: set[str]) -> dict[str, list[Config]]:
    """Of what fits, for every kernel what moves the fewest bytes. Kernels in `edges` get chunks of equal length.

    A state at every chunk's edge is written and read, and every tile more reads two tensors of the width once more.
    optional: kernels that others stand in for; they may have nothing.
    """
    if any(not fits for kernel, fits in found.items() if kernel not in optional):
        return {}

    def cost(kernel: str, rows: int) -> float:
        tile = found[kernel][rows][1]
        return 2 * width * (-(-width // tile) - 1) + (width * width / rows if kernel in edges else 0) - rows / 64

    linked = [k for k in found if k in edges and found[k]]
    common = set(ROWS).intersection(*(found[k] for k in linked))
    needed = [k for k in linked if k not in optional]
    if needed and not common:
        linked = needed
        common = set(ROWS).intersection(*(found[k] for k in linked))
        if not common:
            return {}
    best = min(common, key=lambda r: sum(cost(k, r) for k in linked)) if linked else 0
    result = {}
    for kernel, fits in found.items():
        if kernel in edges:
            if best in fits and kernel in linked:
                result[kernel] = [fits[best]]
        elif fits:
            result[kernel] = [fits[r] for r in sorted(fits, key=lambda r: cost(kernel, r))[:2]]
    return result


class Search:
    """One module on one target at one width, inside the process that may be aborted."""

    def __init__(self, path: Path, target: str, width: int, without: set[str]) -> None:
        self.module, self.target, self.width, self.without = _load(path), target, width, without
        self.module._load_triton()
        self.found: Found = {}
        self.edges: set[str] = set()
        self.optional: set[str] = set()

    def run(self) -> dict[str, list[Config]]:
        largest = dict.fromkeys(self._kernels(), LARGEST[self.width])
        for rows in (r for r in ROWS if r in self.module.CHUNK_SIZES):
            tile = LARGEST[self.width]
            while tile >= 16:
                for warps, stages in ((8, 2), (8, 1), (4, 2), (4, 1)):
                    open_ones = {k for k, most in largest.items() if tile <= most and rows not in self.found[k]}
                    if tile * self.width > 64 * 64 and warps == 4 or not open_ones:
                        continue
                    self._try((rows, tile, warps, stages), open_ones)
                tile //= 2
            for kernel, fits in self.found.items():
                largest[kernel] = fits[rows][1] if rows in fits else 0
        return chosen(self.found, self.edges, self.width, self.optional)

    def _kernels(self) -> list[str]:
        """The kernels that tiles are chosen for, and which of them hand over states at the edges of chunks."""
        with self._recorded((16, 16, 4, 1), set()) as seen:
            self._call()
        for name, pointers in seen.items():
            self.found[name] = {}
            if any(p.endswith("_edges_ptr") for p in pointers):
                self.edges.add(name)
        return list(self.found)

    def _try(self, config: Config, kernels: set[str]) -> None:
        from recgen.verify.offline import offline

        kernels = {k for k in kernels if f"{k} {' '.join(map(str, config))}" not in self.without}
        with offline(self.target) as compiled, self._recorded(config, kernels):
            self._call()
        for kernel in compiled.kernels.values():
            if kernel.spill == 0 and kernel.name in kernels:
                self.found[kernel.name][config[0]] = config

    def _call(self) -> None:
        """Forward and backward in every schedule, with whole kernels and without."""
        import torch

        width, inputs = self.width, {}
        sizes = {"B": 1, "T": 64, "H": 1, "K": width, "V": width, "M": width}
        sample = self.module.sample_inputs(**{k: v for k, v in sizes.items() if k in _axes(self.module)})
        for name, x in sample.items():
            inputs[name] = x.to(torch.bfloat16).requires_grad_(x.is_floating_point())
        for whole in (True, False):
            self.module._Grid.fits = lambda grid, kernel, whole=whole: self._optional(kernel, whole)
            for schedule in self.module.SCHEDULES[-1:]:
                o, _ = self.module.operator(**inputs, mode="chunk", backend="triton", schedule=schedule)
                o.sum().backward()

    def _optional(self, kernel: str, whole: bool) -> bool:
        self.optional.add(kernel)
        return whole

    @contextlib.contextmanager
    def _recorded(self, config: Config, kernels: set[str]) -> Iterator[dict[str, list[str]]]:
        """Launch only these kernels, with these tiles; hand out the pointers of all that would have been launched."""
        from recgen.verify.offline import offline

        grid, seen = self.module._Grid, {}
        rows, tile, warps, stages = config
        launch, tiles = grid.launch, grid.tiles

        def forced(self: Any, name: str, axis: str) -> tuple[int, int, int, int, int]:
            width = self.widths[axis]
            return rows, min(tile, width), -(-width // min(tile, width)), warps, stages

        def recorded(self: Any, kernel: Any, *args: Any, **options: Any) -> None:
            name = kernel.__name__
            if options.get("chunked", True):
                seen[name] = kernel.arg_names
            if name in kernels:
                print("try", name, *config, flush=True)
                with contextlib.suppress(Exception):  # it does not compile, or needs too much shared memory
                    launch(self, kernel, *args, **options)

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
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def main(arguments: list[str] | None = None) -> Mapping[str, list[Config]]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("module", type=Path)
    parser.add_argument("--target", required=True)
    parser.add_argument("--width", type=int, required=True)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--without", action="append", default=[], help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.inside:
        found = Search(given.module, given.target, given.width, set(given.without)).run()
    else:
        found = survivors(given.module, given.target, given.width)
    print(json.dumps(found))
    return found


if __name__ == "__main__":
    main()

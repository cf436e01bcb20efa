"""Which order of a kernel's statements keeps it in registers: orders are tried at random, and the better ones kept.

    python -m recgen.verify.orders simple_gla --kernel _chunk_backward_writes --tile 32,128,8,2

writes the first order that spills nothing on the target into recgen/tiles/simple_gla.json, and drops the tiles there:
`python -m recgen.verify.tiles` finds them again. A step moves one statement, or one term of a sum, to another place, as
far as what it needs and what needs it allow. The same seed takes the same steps; the first order is the one there.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from recgen import resources
from recgen.algebra.derive import Derivation, derive
from recgen.emit.groups import grouped_inputs
from recgen.emit.module import module_text
from recgen.emit.triton_lines import order_of
from recgen.loader.source import resolve
from recgen.plan.kernels import Plan
from recgen.plan.passes import plan
from recgen.plan.tiles import with_orders
from recgen.spec.source import listing

from .finds import Finds
from .tiles import Config, Search

FAILED = 1 << 30  # bytes: does not compile


class Trial:
    """One kernel of an operator, compiled with one tile for a target and a width, in one order after the other.

    planned: the operator's plan, with the orders that are known; the kernel's own is the first to be tried.
    """

    def __init__(
        self,
        derivation: Derivation,
        planned: Plan,
        kernel: str,
        target: str,
        width: int,
        config: Config,
        scratch: Path,
    ) -> None:
        self.derivation, self.planned = derivation, planned
        self.kernel = next(k for k in planned.kernels if k.name == kernel)
        self.target, self.width, self.config, self.scratch = target, width, config, scratch

    def order(self, wanted: list[str]) -> list[str]:
        """The order nearest to this one in which every statement comes after what it needs."""
        return order_of(replace(self.kernel, order=tuple(wanted)), grouped_inputs(self.derivation.spec))

    def spilled(self, order: list[str]) -> int:
        """Bytes that spill, in all variants of the kernel that are launched."""
        path = self.scratch / "candidate.py"
        name = self.kernel.name
        candidate = with_orders(self.planned, {name: tuple(order)})
        path.write_text(module_text(self.derivation, candidate), encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()):
            spills = Search(path, self.target, self.width, set()).spills(self.config, {name}).get(name, [-1])
        return FAILED if min(spills) < 0 else sum(spills)


def improved(trial: Trial, tries: int, seed: int) -> Iterator[tuple[int, int, list[str]]]:
    """Try, bytes and order, each time that fewer bytes spill than before; ends with the first that spills none."""
    chance = random.Random(seed)
    best = trial.order([*trial.kernel.order])
    least = trial.spilled(best)
    yield 0, least, best
    seen = {tuple(best)}
    for n in range(1, tries + 1):
        if not least:
            return
        moved = list(best)
        for _ in range(chance.choice((1, 1, 2))):
            moved.insert(chance.randrange(len(moved)), moved.pop(chance.randrange(len(moved))))
        order = trial.order(moved)
        if tuple(order) in seen:
            continue
        seen.add(tuple(order))
        spilled = trial.spilled(order)
        if spilled <= least:
            if spilled < least:
                yield n, spilled, order
            least, best = spilled, order


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", metavar="NAME", help="an operator of the catalogue")
    parser.add_argument("--kernel", required=True)
    parser.add_argument("--tile", default="32,128,8,2", help="rows of a chunk, tile, warps, stages (%(default)s)")
    parser.add_argument("--target", default="sm_90", help="GPU (default: %(default)s)")
    parser.add_argument("--width", type=int, default=128, help="of keys and values (default: %(default)s)")
    parser.add_argument("--tries", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=resources.tiles_dir(), help="their folder (default: %(default)s)")
    given = parser.parse_args(arguments)
    rows, tile, warps, stages = map(int, given.tile.split(","))
    derivation = derive(resolve(given.name), prove=False)
    planned = plan(derivation)
    kernels = [k.name for k in planned.kernels]
    if given.kernel not in kernels:
        parser.error(f"--kernel: {given.name} has no {given.kernel!r}; it has {listing(kernels, 'and')}")
    finds = Finds.of(given.name, planned, given.out)
    planned = with_orders(planned, finds.orders)
    with tempfile.TemporaryDirectory() as scratch:
        config = (rows, tile, warps, stages)
        trial = Trial(derivation, planned, given.kernel, given.target, given.width, config, Path(scratch))
        for found in improved(trial, given.tries, given.seed):
            print(f"{found[0]:4d}  {found[1]} bytes", flush=True)
    n, spilled, order = found
    if spilled:
        print(f"no order of {given.tries} spills nothing; try another --seed")
        return 1
    if n:
        finds.add_order(given.kernel, order)
        print(finds.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

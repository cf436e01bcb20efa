"""A model of what a kernel would take on a GPU that is not here. It is arithmetic on counts, not a measurement.

For each kernel,

    launches · LAUNCH + max(bytes / bandwidth, products / rate, operations / rate, waves · one program alone)

with the bytes, products and operations that the interpreter has counted. A processor holds as many programs at once as
their registers and shared memory allow; when all processors have taken as many, that is a wave. One program alone has
its processor's rates, at most ALONE processors' shares of the bandwidth, and waits TURN for memory in every turn of its
loop. The floor is the time in which inputs, outputs and gradients cross the memory bus once, all else being free.

Left out are caches, spilled registers, bank conflicts, and how well a kernel's instructions overlap. So the model ranks
schedules and sizes and shows what bounds a kernel; it does not say what a clock will show.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from .traffic import Counts

LAUNCH = 3e-6
"""Seconds from the end of one kernel to the start of the next: assumed."""
TURN = 1e-6
"""Seconds that one turn of a program's loop waits for what it loads: assumed, a trip to memory and a barrier."""
ALONE = 3
"""How many processors' shares of the bandwidth one program can draw when the others are idle: assumed."""
BANDWIDTH_REACHED, PRODUCTS_REACHED, OPERATIONS_REACHED = 0.85, 0.4, 0.5
"""The parts of the published rates that kernels with small tiles are assumed to reach."""


@dataclass(frozen=True)
class Device:
    """A GPU by its makers' data sheet: the rates that it cannot exceed.

    bandwidth        bytes per second between memory and chip
    products         multiplications and additions per second in matrix products of each dtype, dense
    operations       floating-point operations per second on single float32 elements
    processors       streaming multiprocessors, or compute units
    registers        32-bit registers of one processor
    shared           bytes of shared memory of one processor
    threads          most threads on one processor
    warp             threads of a warp
    """

    name: str
    bandwidth: float
    products: Mapping[str, float]
    operations: float
    processors: int
    registers: int
    shared: int
    threads: int
    warp: int


DEVICES: Mapping[str, Device] = {
    "sm_80": Device(
        "A100 80GB SXM", 2.04e12, {"bfloat16": 312e12, "tf32": 156e12}, 19.5e12, 108, 65536, 167936, 2048, 32
    ),
    "sm_90": Device("H100 SXM", 3.35e12, {"bfloat16": 989e12, "tf32": 494e12}, 67e12, 132, 65536, 233472, 2048, 32),
    "sm_100": Device("B200", 8e12, {"bfloat16": 2250e12, "tf32": 1125e12}, 80e12, 148, 65536, 233472, 2048, 32),
    "gfx942": Device("MI300X", 5.3e12, {"bfloat16": 1307e12, "tf32": 653e12}, 163e12, 304, 131072, 65536, 2048, 64),
}


@dataclass(frozen=True)
class Shape:
    """A call that is modelled: batch, heads, tokens."""

    batch: int
    heads: int
    tokens: int

    def __str__(self) -> str:
        return f"batch {self.batch}, {self.heads} heads, {self.tokens:,} tokens"


SHAPES = (Shape(8, 16, 4096), Shape(1, 16, 32768))
"""A training batch, and one long sequence, which offers few programs."""


@dataclass(frozen=True)
class Footprint:
    """What one program takes of a processor, and where its products are computed.

    off  the part of its products that is not on tensor cores
    """

    warps: int
    registers: int
    shared: int
    off: float = 0.0

    def resident(self, device: Device) -> int:
        """How many such programs one processor holds at once."""
        threads = self.warps * device.warp
        limits = [device.threads // threads]
        if self.registers > 0:
            limits.append(device.registers // (self.registers * threads))
        if self.shared > 0:
            limits.append(device.shared // self.shared)
        return max(1, min(limits))


def kernel_seconds(counts: Counts, footprint: Footprint, dtype: str, device: Device) -> float:
    """The modelled time of all launches of one kernel."""
    launches = max(1.0, round(counts.launches))
    programs = max(1.0, counts.programs)
    bandwidth = device.bandwidth * BANDWIDTH_REACHED
    throughput = max(
        _products_seconds(counts, footprint, dtype, device),
        counts.arithmetic / (device.operations * OPERATIONS_REACHED),
    )
    waves = launches * ceil(programs / launches / (device.processors * footprint.resident(device)))
    alone = max(
        counts.moved / programs / (ALONE * bandwidth / device.processors),
        throughput * device.processors / programs,
    )
    alone += counts.turns / programs * TURN
    return launches * LAUNCH + max(counts.moved / bandwidth, throughput, waves * alone)


def _products_seconds(counts: Counts, footprint: Footprint, dtype: str, device: Device) -> float:
    operations = device.operations * OPERATIONS_REACHED
    kind = {"bfloat16": "bfloat16", "float16": "tf32"}.get(dtype)  # float16 products are taken in TF32
    tensor = device.products[kind] * PRODUCTS_REACHED if kind else operations
    return counts.products * (footprint.off / operations + (1 - footprint.off) / tensor)


def floor_seconds(bytes_once: float, device: Device) -> float:
    """The time that `bytes_once` take to cross the memory bus at the published bandwidth."""
    return bytes_once / device.bandwidth


def scaled(counts: Counts, shape: Shape) -> Counts:
    """The counts of one sequence and head as those of all of a shape; launches are shared by all."""
    copies = shape.batch * shape.heads
    return Counts(**{name: value * (1 if name == "launches" else copies) for name, value in vars(counts).items()})

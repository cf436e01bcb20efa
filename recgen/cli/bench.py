"""`recgen bench`: time and memory of generated operators, against softmax attention, a token loop and fla."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from recgen.cli.common import CHECK_FAILED, read_all

NAME = "bench"
HELP = "Measure generated operators against softmax attention and a token loop; fail when one is slower than promised."
EXAMPLE = "recgen bench simple_gla gla --quick --plot curves.png"


class Device(StrEnum):
    cpu = "cpu"
    cuda = "cuda"


def run(
    specs: Annotated[
        list[str] | None,
        typer.Argument(metavar="SPEC", help="Paths, or catalogue operators; simple_gla and gla by default."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--json", "--out", "-o", metavar="FILE", dir_okay=False, help="Write everything as JSON."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Short lengths and few repetitions.")] = False,
    device: Annotated[Device, typer.Option(help="Where to measure; on a GPU in bfloat16.")] = Device.cpu,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", dir_okay=False, help="Draw time and memory by length.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Write curves and tables as one page.")
    ] = None,
) -> None:
    """Forward, backward and one more token, in interleaved rounds; ratios come with their quartiles. Where
    flash-linear-attention is installed and has the operator, it is measured too: its kernels on a GPU, its token loop
    on a CPU.

    Exit code 1: an operator is slower than promised.
    """
    read = read_all(specs or [])
    _need(device, plot)
    from recgen import bench

    if not bench.run(read, out, quick, device=device.value, plot=plot, html=html).ok:
        raise typer.Exit(CHECK_FAILED)


def _need(device: Device, plot: Path | None) -> None:
    """Refuses what this machine cannot do, before anything is measured."""
    if plot is not None and plot.suffix.lower() != ".png":
        raise typer.BadParameter(f"{plot} is not a .png file", param_hint="--plot")
    if device is Device.cuda:
        import torch

        if not torch.cuda.is_available():
            raise typer.BadParameter(
                "torch sees no GPU here; leave it out to measure on the CPU", param_hint="--device"
            )

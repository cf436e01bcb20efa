"""What the offline tests ask `recgen.cost.compile`, which is also what `recgen compile` asks: jobs in, results out."""

from __future__ import annotations

import queue
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recgen.cost.compile import Result, compiler
from recgen.cost.jobs import Job
from tests.generated.catalogue import ROOT, emitted

Asked = dict[str, Any]
"""A job, with the operator's name and the topic of the test it belongs to."""


def job(
    operator: str,
    target: str,
    mode: str,
    topic: str,
    sizes: dict[str, int],
    *,
    dtype: str = "float32",
    chunk_size: int | None = None,
    documents: int | None = None,
) -> Asked:
    odd = sizes["K"] % 2 if "rotation" in emitted(operator).SPEC else 0  # channels turn in pairs
    asked = Job(
        str(ROOT / "generated" / f"{operator}.py"),
        mode,
        target,
        dtype=dtype,
        chunk_size=chunk_size,
        documents=documents,
        **{**sizes, "K": sizes["K"] + odd},
    )
    return {"operator": operator, "topic": topic, **asdict(asked)}


def answers(batches: queue.SimpleQueue[list[Asked]], folder: Path) -> list[Result]:
    """The results of one process, fed until nothing is left; each has what was asked, too."""
    found: list[Result] = []
    with compiler(env={"TRITON_CACHE_DIR": str(folder / "triton")}) as worker:
        while not batches.empty():
            for asked in batches.get():
                task = {name: value for name, value in asked.items() if name not in ("operator", "topic")}
                found.append({**asked, **worker.ask({**task, "disassemble": False})})
    return found

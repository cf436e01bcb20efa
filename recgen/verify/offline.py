"""Compile what an operator launches for a GPU that is not in this machine, and read what it would cost there.

    with offline("sm_90") as compiled:
        o, _ = module.operator(**inputs, mode="chunk", backend="triton")   # CPU tensors
        o.sum().backward()
    print(compiled.table())

Inside the block a stand-in Triton driver is active: a launch compiles its kernel for the target, machine code included,
is written down, and does nothing. The operator's own results are therefore meaningless. A kernel that does not compile
raises Triton's error; one that needs more shared memory than the target has raises `OutOfResources`, as on the chip.

The process must have been started without TRITON_INTERPRET, which Triton reads when it is imported.
"""
from __future__ import annotations

import contextlib
import re
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any


@dataclass(frozen=True)
class Target:
    """A GPU by its architecture. shared: bytes of shared memory one program may take. device: its number here."""
    name: str
    backend: str
    arch: int | str
    warp: int
    shared: int
    device: int


TARGETS: Mapping[str, Target] = {
    t.name: t for t in (
        Target("sm_80", "cuda", 80, 32, 166912, 0),
        Target("sm_90", "cuda", 90, 32, 232448, 1),
        Target("sm_100", "cuda", 100, 32, 232448, 2),
        Target("gfx942", "hip", "gfx942", 64, 65536, 3),
    )
}


@dataclass
class Kernel:
    """One compiled variant. registers and spill (bytes per thread) are -1 where the target's tools do not tell."""
    name: str
    hash: str
    warps: int
    stages: int
    shared: int
    registers: int = -1
    spill: int = -1
    launches: int = 0
    grid: tuple[int, int, int] = (0, 0, 0)
    files: dict[str, Path] = field(default_factory=dict)

    def text(self, stage: str) -> str:
        """The kernel at one stage of Triton's compiler: ttir, ttgir, llir, ptx or amdgcn."""
        return self.files[stage].read_text()


@dataclass
class Compiled:
    """What was launched while the stand-in driver was active: one entry per compiled variant, in order."""
    target: Target
    kernels: dict[str, Kernel] = field(default_factory=dict)

    def variants(self) -> dict[str, int]:
        """Kernel name → number of its compiled variants."""
        names = [kernel.name for kernel in self.kernels.values()]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    def table(self) -> str:
        """Aligned text, one line per variant."""
        columns = ("launches", "warps", "stages", "shared", "registers", "spill")
        rows = [("kernel", *columns)]
        rows += [(k.name, *(str(getattr(k, c)) for c in columns)) for k in self.kernels.values()]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)) for row in rows)


@contextlib.contextmanager
def offline(target: str, *, resources: bool = True) -> Iterator[Compiled]:
    """Make the stand-in driver for `target` (a name in TARGETS) active, and hand out the record of its launches.

    resources: read registers and spills out of each binary (some 50 ms per kernel).
    Raises KeyError for an unknown target, RuntimeError when Triton was imported for its interpreter.
    """
    import triton
    from triton.runtime import driver
    if triton.knobs.runtime.interpret:
        raise RuntimeError("offline compilation needs a process without TRITON_INTERPRET")
    compiled = Compiled(TARGETS[target])
    previous = getattr(driver, "_active", None)
    driver.set_active(_StandIn(compiled, resources))
    hooks = triton.knobs.runtime.kernel_load_end_hook
    hooks.add(_note_files)
    try:
        yield compiled
    finally:
        hooks.remove(_note_files)
        driver.set_active(previous)


def _note_files(module: Any, function: Any, name: str, metadata_group: Mapping[str, str], hash: str) -> None:
    files = {Path(path).suffix[1:]: Path(path) for path in metadata_group.values()}
    _loaded[hash].files.update(files)


_loaded: dict[str, Kernel] = {}
"""Every kernel that this process has compiled. Triton keeps them too: a later block launches them without loading."""


class _StandIn:
    """Answers what Triton's runtime asks of a driver; loads and launches nothing.

    Triton keeps compiled kernels per device number, so each target has a number of its own.
    """

    def __init__(self, compiled: Compiled, resources: bool) -> None:
        self.compiled = compiled
        self.utils = _Utilities(compiled, resources)

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_target(self) -> Any:
        from triton.backends.compiler import GPUTarget
        target = self.compiled.target
        return GPUTarget(target.backend, target.arch, target.warp)

    def get_current_device(self) -> int:
        return self.compiled.target.device

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch
        return torch.device("cpu")

    def get_device_interface(self) -> ModuleType:
        import torch
        return torch.cuda

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        arch = self.compiled.target.arch
        return divmod(arch, 10) if isinstance(arch, int) else (9, 4)

    def map_python_to_cpp_type(self, type_name: str) -> str:
        return type_name

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        blank = Kernel(metadata.name, metadata.hash, metadata.num_warps, metadata.num_stages, metadata.shared)
        _loaded[metadata.hash] = blank

        def launch(grid_x: int, grid_y: int, grid_z: int, *_: Any) -> None:
            from triton.runtime import driver
            kernels = driver.active.compiled.kernels  # of the block that is open now
            kernel = kernels.setdefault(metadata.hash, replace(_loaded[metadata.hash]))
            kernel.launches += 1
            kernel.grid = (grid_x, grid_y, grid_z)
        return launch


class _Utilities:
    def __init__(self, compiled: Compiled, resources: bool) -> None:
        self.compiled = compiled
        self.resources = resources

    def get_device_properties(self, device: int) -> dict[str, int]:
        target = self.compiled.target
        return {"max_shared_mem": target.shared, "multiprocessor_count": 132, "warpSize": target.warp,
                "max_num_regs": 65536, "sm_clock_rate": 1_000_000, "mem_clock_rate": 1_000_000, "mem_bus_width": 4096}

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[int, int, int, int, int]:
        """module, function, registers, spills, most threads per program."""
        kernel = list(_loaded.values())[-1]
        if self.resources:
            read = _nvidia_resources if self.compiled.target.backend == "cuda" else _amd_resources
            kernel.registers, kernel.spill = read(binary)
        return 1, 1, max(kernel.registers, 0), max(kernel.spill, 0), 1024

    def unload_module(self, module: int) -> None:
        pass


def _nvidia_resources(binary: bytes) -> tuple[int, int]:
    """Registers per thread and bytes of stack per thread, which is where ptxas puts what it spills."""
    import triton
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    if not tool.exists():
        return -1, -1
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(binary)
        file.flush()
        text = subprocess.run([tool, "--dump-resource-usage", file.name], capture_output=True, text=True).stdout
    found = re.search(r"REG:(\d+) STACK:(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (-1, -1)


def _amd_resources(binary: bytes) -> tuple[int, int]:
    """Vector registers per lane and bytes of scratch per lane, from the MessagePack metadata of the code object."""
    return _packed_number(binary, b".vgpr_count"), _packed_number(binary, b".private_segment_fixed_size")


def _packed_number(binary: bytes, key: bytes) -> int:
    """The unsigned integer that follows `key` in MessagePack, or -1 when the key is not there."""
    at = binary.find(key)
    if at < 0:
        return -1
    rest = binary[at + len(key):]
    if rest[0] < 0x80:
        return rest[0]
    width = {0xCC: 1, 0xCD: 2, 0xCE: 4, 0xCF: 8}[rest[0]]
    return int.from_bytes(rest[1:1 + width], "big")

"""torch.export: the exported program has the operator in it as one call, and takes any length."""

from __future__ import annotations

import pytest
import torch
from torch.export import Dim, export

from tests.generated.catalogue import OPERATORS, emitted
from tests.generated.compiled import assert_equal, forward_of, small
from tests.generated.inputs import Values


class Program(torch.nn.Module):
    """What torch.export takes: a module of tensors."""

    def __init__(self, forward) -> None:
        super().__init__()
        self.call = forward

    def forward(self, values: Values, state: Values) -> list[torch.Tensor]:
        return self.call(values, state)


def plain(values: Values) -> Values:
    return {n: x.detach() for n, x in values.items()}


@pytest.mark.parametrize("name", OPERATORS)
def test_an_exported_program_takes_any_length(name: str) -> None:
    module = emitted(name)
    forward = forward_of(module)
    values, state = (plain(x) for x in small(module))
    shapes = {
        "values": {n: {1: Dim("T")} if n in module.INPUTS else None for n in values},
        "state": dict.fromkeys(state),
    }
    program = export(Program(forward), (values, state), dynamic_shapes=shapes)
    calls = [n for n in program.graph.nodes if n.target == module.OPS["forward"]]
    assert len(calls) == 1
    for T in (20, 5, 70):
        values, state = (plain(x) for x in small(module, T=T))
        assert_equal(program.module()(values, state), forward(values, state), f"T={T}")


@pytest.mark.parametrize("name", ["simple_gla", "mlstm", "retnet_rotary", "linear_attention_global"])
def test_an_exported_program_takes_documents(name: str) -> None:
    module = emitted(name)

    class Packed(torch.nn.Module):
        def forward(self, values: Values, state: Values, cu_seqlens: torch.Tensor) -> list[torch.Tensor]:
            return forward_of(module)(values, state, cu_seqlens=cu_seqlens)

    values, state = (plain(x) for x in small(module, B=1, N=3))
    program = export(Packed(), (values, state, torch.tensor([0, 5, 5, 20]))).module()
    for offsets in ([0, 5, 5, 20], [0, 0, 13, 20]):
        cu_seqlens = torch.tensor(offsets)
        expected = forward_of(module)(values, state, cu_seqlens=cu_seqlens)
        assert_equal(program(values, state, cu_seqlens), expected, offsets)
    with pytest.raises(ValueError, match="cu_seqlens: must rise"):
        program(values, state, torch.tensor([0, 5, 4, 20]))


def test_a_saved_program_runs_where_the_file_is_imported(tmp_path) -> None:
    """The operators' names are the same in every process that imports the file first."""
    module = emitted("simple_gla")
    values, state = (plain(x) for x in small(module))
    torch.export.save(export(Program(forward_of(module)), (values, state)), tmp_path / "program.pt2")
    loaded = torch.export.load(tmp_path / "program.pt2").module()
    assert_equal(loaded(values, state), forward_of(module)(values, state))

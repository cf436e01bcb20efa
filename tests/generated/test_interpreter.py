"""Triton's interpreter with the shortcuts of tests/interpreter.py computes what it computes without them."""

from __future__ import annotations

import pytest
import torch
from triton.runtime.interpreter import InterpretedFunction

from tests.generated.catalogue import CHUNK_TRITON, RECURRENT_TRITON, Form, each_form, emitted
from tests.generated.inputs import draw, draw_state
from tests.generated.support import assert_same_bits, run
from tests.interpreter import Shortcuts


@pytest.mark.parametrize("form", each_form([CHUNK_TRITON, RECURRENT_TRITON]))
@pytest.mark.parametrize("name", ["gla", "mlstm"])
def test_no_bit_is_another(name: str, form: Form, shortcuts: Shortcuts) -> None:
    module = emitted(name)
    values = draw(module, T=19, K=5, V=3, dtype=torch.bfloat16)
    state = draw_state(module, values)
    found = run(module, form, values, state, chunk_size=16)
    taken = InterpretedFunction.__call__
    shortcuts.give_up()
    try:
        assert InterpretedFunction.__call__ is not taken
        assert_same_bits(run(module, form, values, state, chunk_size=16), found)
    finally:
        shortcuts.take()

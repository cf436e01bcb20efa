"""Put a generated operator into an existing model: Mamba-2 of `transformers`, whose scan and decoding step it replaces.

    pip install 'recgen[examples]'
    python examples/replace_in_transformers.py

The model is small and has random weights, so nothing is downloaded. With the generated operator it must give the same
logits, the same gradients and the same text; its weights, its cache and its `generate` stay as they are.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from transformers import Mamba2Config, Mamba2ForCausalLM, logging
from transformers.models.mamba2 import modeling_mamba2

import recgen

mamba2 = recgen.load("mamba2")


def chunk_scan(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    D: Tensor,
    dt_bias: Tensor,
    initial_states: Tensor | None = None,
    return_final_states: bool = False,
    dt_limit: tuple[float, float] = (0.0, float("inf")),
    **_: Any,
) -> Tensor | tuple[Tensor, Tensor]:
    """The scan over a sequence, with the signature of the one it replaces.

    There A is -exp(A_log), and a state is [batch, heads, values, keys], which recgen has the other way round. B and C
    have one head per group: the operator takes fewer heads as they are.
    """
    if dt_limit != (0.0, float("inf")):
        raise ValueError(f"dt_limit: {dt_limit} clamps the time step, which the spec mamba2 does not")
    before = None if initial_states is None else mamba2.State(initial_states.transpose(2, 3))
    o, after = mamba2.operator(
        C, B, x, dt, torch.log(-A), dt_bias, D, initial_state=before, output_final_state=return_final_states
    )
    return (o, after.S.transpose(2, 3)) if return_final_states else o


def state_update(
    state: Tensor, x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, D: Tensor, *, dt_bias: Tensor, **_: Any
) -> Tensor:
    """One token of decoding; `state` is updated in place. What is one number per head comes expanded to all of it."""
    parameters = torch.log(-A[:, 0, 0]), dt_bias[:, 0], D[:, 0]
    o, after = mamba2.step(C, B, x, dt[..., 0], *parameters, state=mamba2.State(state.transpose(2, 3)))
    state.copy_(after.S.transpose(2, 3))
    return o


def replaced() -> Any:
    """While this is entered, every Mamba-2 model of transformers runs on the generated operator."""
    return patch.multiple(modeling_mamba2, mamba2_chunk_scan=chunk_scan, mamba2_selective_state_update=state_update)


def small_model() -> Mamba2ForCausalLM:
    """Two layers with random weights: 8 heads of 16 values and 32 keys, in two groups."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 64, "num_heads": 8, "head_dim": 16, "state_size": 32, "n_groups": 2, "chunk_size": 32}
    return Mamba2ForCausalLM(Mamba2Config(vocab_size=256, num_hidden_layers=2, **sizes))


def results(model: Mamba2ForCausalLM, tokens: Tensor) -> tuple[Tensor, dict[str, Tensor], list[list[int]]]:
    """The logits, the gradients of the loss by parameter, and 30 tokens that follow the first 20."""
    model.zero_grad()
    output = model.train()(tokens, labels=tokens)
    output.loss.backward()
    gradients = {name: p.grad.clone() for name, p in model.named_parameters()}
    text = model.eval().generate(tokens[:, :20], max_new_tokens=30, do_sample=False, pad_token_id=0, eos_token_id=None)
    return output.logits.detach(), gradients, text[:, 20:].tolist()


def main() -> None:
    logging.set_verbosity_error()  # it would advise to install kernels for what is replaced here
    model = small_model()
    tokens = torch.randint(256, (2, 100))
    logits, gradients, text = results(model, tokens)
    with replaced():
        new_logits, new_gradients, new_text = results(model, tokens)
    logit_error = (new_logits - logits).abs().max().item()
    gradient_error = max(((new_gradients[n] - g).norm() / g.norm()).item() for n, g in gradients.items())
    print(f"model      {model.num_parameters():,} parameters, tokens {list(tokens.shape)}")
    print(f"logits     differ by {logit_error:.1e} at most, of {logits.abs().max().item():.1f}")
    print(f"gradients  differ by {gradient_error:.1e} of their norm at most, over {len(gradients)} parameters")
    print(f"generated  {'the same' if new_text == text else 'other'} tokens: {new_text[0][:10]} …")
    if logit_error > 1e-4 or gradient_error > 1e-4 or new_text != text:
        raise SystemExit("the generated operator is not the one it replaced")


if __name__ == "__main__":
    main()

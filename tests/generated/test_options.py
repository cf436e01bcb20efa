"""Every optional argument, on and off, with every subset of requires_grad."""

from __future__ import annotations

import itertools
import re

import pytest
import torch

from tests.generated.catalogue import FORMS, REPRESENTATIVES, Form, emitted, over, profile
from tests.generated.inputs import Values, draw, draw_state
from tests.generated.support import assert_matches, call, cotangents, relative_error, run, truth


def subset_gradients(
    name: str, form: Form, values: Values, state: Values, wanted: set[str], *, with_state: bool, final: bool
) -> Values:
    """Gradients by name through .backward(), for the tensors in `wanted`; the others must get none."""
    module = emitted(name)
    leaves = {n: x.detach().requires_grad_(n in wanted) for n, x in {**values, **(state if with_state else {})}.items()}
    start = module.State(*(leaves[n] for n in state)) if with_state else None
    o, end = getattr(module, form.name)(
        **{n: leaves[n] for n in values}, initial_state=start, output_final_state=final, backend=form.backend
    )
    outputs = {"o": o, **(end._asdict() if final else {})}
    assert o.requires_grad == bool(wanted)
    if wanted:
        roots = {n: x for n, x in outputs.items() if x.requires_grad}
        torch.autograd.backward(list(roots.values()), [cotangents(outputs)[n] for n in roots])
    assert all(leaves[n].grad is None for n in leaves if n not in wanted)
    return {f"d {n}": leaves[n].grad if leaves[n].grad is not None else torch.zeros_like(leaves[n]) for n in wanted}


@over(REPRESENTATIVES)
def test_gradients_go_to_those_who_want_them(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=5, H=1, K=4, V=4)
    state = draw_state(module, values)
    names = [*values, *(n for n in state if n not in ("position", "m"))]  # which have no gradient
    subsets = [set(s) for n in range(len(names) + 1) for s in itertools.combinations(names, n)]
    cases = list(itertools.product((False, True), repeat=2))
    if len(names) > 6:
        subsets = [s for s in subsets if len(s) <= 2 or len(s) >= len(names) - 1]
    if form.interpreted:
        subsets = [s for s in subsets if len(s) in (0, 1, len(names))]
        cases = [(True, True), (False, False)]
    for with_state, final in cases:
        expected = truth(module, values, state if with_state else None, loss="both" if final else "output")
        for subset in subsets:
            wanted = subset if with_state else subset & set(values)
            found = subset_gradients(name, form, values, state, wanted, with_state=with_state, final=final)
            assert_matches(found, {n: expected[n] for n in found}, note=(sorted(wanted), with_state, final))


@pytest.mark.parametrize("scale", [None, 0.0, 1, -0.5])
@over(REPRESENTATIVES)
def test_scale(name: str, form: Form, scale: float | None) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=2, K=8, V=4)
    state = draw_state(module, values)
    found = run(module, form, values, state, scale=scale)
    assert_matches(found, truth(module, values, state, scale=scale))
    if scale == 0.0:
        query = re.findall(r"\w+", module.SPEC.get("query", "q"))
        assert not any(found[f"d {n}"].any() for n in values if n in query), "the query"
        assert not found["o"].any() or "skip" in module.SPEC["readout"]
    own = profile(module).scale(H=2, K=8, V=4)
    if scale is None:
        assert_matches(found, run(module, form, values, state, scale=own))


@over(REPRESENTATIVES)
def test_no_grad_and_inference_mode(name: str, form: Form) -> None:
    module = emitted(name)
    values = draw(module, T=20, H=1)
    leaves = {n: x.detach().requires_grad_() for n, x in values.items()}
    expected = call(module, form, values)["o"]
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            o = call(module, form, leaves)["o"]
        assert not o.requires_grad and torch.equal(o, expected)


@over(REPRESENTATIVES, [form for form in FORMS if form.name != "parallel"])
def test_gradients_accumulate_over_two_calls(name: str, form: Form) -> None:
    """Two calls that share their inputs: autograd adds up what each sends back."""
    module = emitted(name)
    values = draw(module, T=12, H=1, K=4, V=4)
    leaves = {n: x.detach().requires_grad_() for n, x in values.items()}
    (call(module, form, leaves)["o"].sum() + 2 * call(module, form, leaves)["o"].sum()).backward()
    single = {n: x.detach().requires_grad_() for n, x in values.items()}
    call(module, form, single)["o"].sum().backward()
    for n in values:
        assert relative_error(leaves[n].grad, 3 * single[n].grad) <= 1e-6, n

"""A failure as a small script: the numbers of the failing input written out, and nothing needed but the module.

Where numbers alone do not show it (a cut in time, packed documents, memory layouts, a broken promise about dtypes),
the script builds the same case by recgen.verify instead.
"""

from __future__ import annotations

import os

from torch import Tensor

from .check import Outcome
from .data import Data
from .profile import TRITON_FORMS, accepted
from .reference import References

NUMBERS = 400  # most numbers that are written out


def script(references: References, outcome: Outcome) -> str:
    """A runnable script that shows the failure and exits with 1 as long as it is there."""
    data = references.data(outcome.case)
    if not _plain(outcome, data):
        return outcome.case.snippet(references.profile.path)
    return "\n".join([*_opening(references, outcome), *_numbers(references, outcome, data), *_running(outcome)]) + "\n"


def _plain(outcome: Outcome, data: Data) -> bool:
    """Whether numbers, one call and a comparison show the failure."""
    case = outcome.case
    usual = case.split is None and case.documents is None and not case.groups
    here = case.device == "cpu" and case.layout == case.grad_layout == "contiguous"
    tensors = (*data.tensors.values(), *(data.initial or ()), data.output_cotangent, *data.state_cotangents)
    few = sum(x.numel() for x in tensors) <= NUMBERS
    broken_promise = bool(outcome.problems) and bool(outcome.measures)
    return usual and here and few and not broken_promise and case.form not in ("step", "naive")


def _opening(references: References, outcome: Outcome) -> list[str]:
    case, profile = outcome.case, references.profile
    name = profile.module.SPEC["name"]
    reasons = [reason.splitlines()[0].replace("\\", "/").replace('"""', "'''") for reason in outcome.reasons()]
    lines = [f'"""{name}: the {case.form} form on {case.backend} is not what the one-step recurrence gives.', ""]
    lines += [*reasons, '"""', ""]
    if case.backend == "triton":
        lines += ["import os", ""]
        lines += ['os.environ["TRITON_INTERPRET"] = "1"  # before triton is imported', ""]
    return [
        *lines,
        "import importlib.util",
        "import sys",
        "from math import inf, nan  # noqa: F401",
        "",
        "import torch",
        "",
        f"spec = importlib.util.spec_from_file_location({name!r}, {os.path.abspath(profile.path)!r})",
        "module = importlib.util.module_from_spec(spec)",
        "sys.modules[spec.name] = module",
        "spec.loader.exec_module(module)",
        "",
    ]


def _numbers(references: References, outcome: Outcome, data: Data) -> list[str]:
    """The tensors, the options of the call, and what is allowed."""
    case, profile = outcome.case, references.profile
    lines = ["inputs = {", *(f"    {name!r}: {_written(x)}," for name, x in data.tensors.items()), "}"]
    for name, tensors in (("initial", data.initial or ()), ("d_state", data.state_cotangents)):
        lines += [f"{name} = [", *(f"    {_written(x)}," for x in tensors), "]"] if tensors else [f"{name} = []"]
    lines += [f"d_output = {_written(data.output_cotangent)}"]
    graded = [name for name, x in data.tensors.items() if x.requires_grad]
    starts = [n for n, x in enumerate(data.initial or ()) if x.requires_grad]
    lines += [f"graded = {graded!r}, {starts!r}  # what needs a gradient: inputs, entries of the initial state"]
    function = getattr(profile.module, case.form)
    options: dict[str, object] = {"scale": case.scale}
    if profile.state:
        options["output_final_state"] = case.final
    truth = options | {"scale": profile.scale(case.H, case.K, case.V) if case.scale is None else case.scale or 1e-250}
    if case.chunk_size is not None:
        options |= accepted(function, {"chunk_size": case.chunk_size})
    if case.schedule != "auto":
        options |= accepted(function, {"schedule": case.schedule})
    if case.form in TRITON_FORMS or case.backend == "torch":
        options |= accepted(function, {"backend": case.backend})
    allowed = {m.name: m.allowed for m in outcome.measures}
    return [
        *lines,
        f"options = {options!r}",
        f"truth_options = {truth!r}  # the scale as the spec has it",
        f"allowed = {allowed!r}",
        "",
    ]


def _written(x: Tensor) -> str:
    """A tensor as Python text, exactly: every number of a narrower dtype is one of float64."""
    values = x.detach().cpu().double()
    text = f"torch.tensor({values.tolist()!r}, dtype={x.dtype})"
    return text if x.numel() else f"torch.zeros({tuple(x.shape)!r}, dtype={x.dtype})"


def _running(outcome: Outcome) -> list[str]:
    case = outcome.case
    pairs = "pairs = [(o, d_output), *zip(state or (), d_state)]"
    if case.loss == "output":
        pairs = "pairs = [(o, d_output)]"
    elif case.loss == "state":
        pairs = "pairs = list(zip(state or (), d_state))"
    return [
        "",
        "def results(form, cast, options):",
        '    """The output, the final state and every gradient of one form, by name."""',
        "    x = {name: cast(value).requires_grad_(name in graded[0]) for name, value in inputs.items()}",
        "    start = [cast(value).requires_grad_(n in graded[1]) for n, value in enumerate(initial)]",
        '    o, state = form(**x, **options, **({"initial_state": tuple(start)} if start else {}))',
        '    found = {"output": o} | {f"state {name}": s for name, s in zip(module.STATE, state or ())}',
        f"    {pairs}",
        "    pairs = [(y, d.to(y.dtype)) for y, d in pairs if y.requires_grad]",
        '    leaves = x | {f"initial {n}": s for n, s in enumerate(start)}',
        "    leaves = {name: leaf for name, leaf in leaves.items() if leaf.requires_grad}",
        "    if pairs and leaves:",
        "        ys, ds = zip(*pairs)",
        "        gradients = torch.autograd.grad(ys, list(leaves.values()), ds, allow_unused=True)",
        "        for (name, leaf), d in zip(leaves.items(), gradients):",
        '            found[f"gradient {name}"] = torch.zeros_like(leaf) if d is None else d',
        "    return {name: value.detach().double() for name, value in found.items()}",
        "",
        "",
        f"found = results(module.{case.form}, torch.clone, options)",
        "truth = results(module.naive, lambda x: x.double(), truth_options)  # one token at a time, in float64",
        "wrong = False",
        "for name, bound in allowed.items():",
        "    error = float((found[name] - truth[name]).norm() / max(float(truth[name].norm()), 1e-30))",
        "    wrong |= not error <= bound",
        "    print(f\"{name}: relative error {error:.2e}, allowed {bound:.2e}{'' if error <= bound else '  WRONG'}\")",
        "    if not error <= bound and truth[name].numel() <= 8:",
        '        print(f"    {found[name].flatten().tolist()}\\n    should be\\n    {truth[name].flatten().tolist()}")',
        "sys.exit(wrong)",
    ]

"""Which names a spec may give, and what is said of the ones it may not.

Every input and parameter becomes an argument of the emitted functions, and the operator's name becomes a file's name.
"""

from __future__ import annotations

import builtins
import keyword
import re
import sys

from recgen.algebra.functions import LANGUAGE
from recgen.spec.initial import DRAWS

MAX_NAME = 40

STATE_NAMES: dict[str, str] = {
    "S": "the state",
    "z": "the normalizer's state",
    "n": "the normalizer",
    "y": "the unnormalised output",
    "o": "the output",
}
"""Names that the recurrence gives to what it computes; an input or a parameter may still be declared under them."""

LANGUAGE_NAMES: dict[str, str] = {
    "h": "the head index",
    "T": "the number of tokens",
    "H": "the number of heads",
    "K": "the key width",
    "V": "the value width",
    "M": "the number of features",
}

ARGUMENT_NAMES = frozenset(
    {
        *("scale", "initial_state", "output_final_state", "cu_seqlens", "mask"),
        *("mode", "backend", "schedule", "chunk_size", "slots", "in_place"),
        *("state", "dtype", "device", "seed", "self"),
    }
)
"""Keyword arguments that every emitted function has."""

MODULE_NAMES = frozenset(
    {
        *("torch", "triton", "tl", "nn", "math", "F", "np", "os", "sys"),
        *("SPEC", "SPEC_HASH", "RECGEN_VERSION", "INPUTS", "PARAMS", "STATE", "SCHEDULES", "State", "Operator"),
        "OPS",
        *("operator", "naive", "parallel", "chunk", "recurrent", "step", "sample_inputs", "ctx", "offsets"),
        *("o", "t", "at", "row", "rows", "rows_here", "length", "size", "sizes", "half", "level", "siblings", "valid"),
        *("program", "tile", "head", "sequence", "sequences", "first", "feature", "channel", "chunks", "slot", "back"),
        *("state", "tensors", "inputs", "outputs", "kept", "ends", "grid", "products", "gradients", "wanted", "form"),
        *("self", "options", "generator", "values", "dtype", "device", "tiles_m", "tiles_v", "batch", "reads"),
        *("log_decay", "position", "pair", "before", "CHUNK", "BM", "BV", "TILES", "LEVELS", "DOT", "PRECISION"),
        *("last", "total", "totals", "scratch", "pointers", "count", "first_slot", "segments", "starts", "part"),
        *("CHANNELS", "after", "cuts", "heads", "maximum", "owners", "read_maximum", "read_shift", "shift", "results"),
        *("segment", "start", "states", "tiles", "time", "token", "reverse"),
    }
)
"""What an emitted file imports and defines, and the variables of its functions; an argument would hide it."""

SUFFIXES = (
    *("_ptr", "_end", "_ends", "_start", "_starts", "_edges", "_rows", "_part", "_parts", "_forward", "_reverse"),
    *("_features", "_valid", "_projected", "_powers", "_softmax", "_states", "_after", "_alone", "_before"),
    *("_head", "_heads", "_group", "_double", "_real", "_imag", "_size", "_tokens", "_levels", "_segments", "_kept"),
)
"""What the emitted module adds to names: pointers, states at edges and ends, rows of a chunk, parts of sums and of
feature maps, heads that are shared, values of both real features of a complex one."""

LAYER_NAMES = frozenset(
    {
        *("T_destination", "add_module", "apply", "bfloat16", "buffers", "call_super_init", "children", "compile"),
        *("cpu", "cuda", "double", "dump_patches", "eval", "extra_repr", "float", "forward", "get_buffer"),
        *("get_extra_state", "get_parameter", "get_submodule", "half", "ipu", "load_state_dict", "modules", "mtia"),
        *("named_buffers", "named_children", "named_modules", "named_parameters", "parameters"),
        *("register_backward_hook", "register_buffer", "register_forward_hook", "register_forward_pre_hook"),
        *("register_full_backward_hook", "register_full_backward_pre_hook", "register_load_state_dict_post_hook"),
        *("register_load_state_dict_pre_hook", "register_module", "register_parameter"),
        *("register_state_dict_post_hook", "register_state_dict_pre_hook", "requires_grad_", "set_extra_state"),
        *("set_submodule", "share_memory", "state_dict", "to", "to_empty", "train", "training", "type"),
        *("xpu", "zero_grad"),
    }
)
"""The public attributes of torch.nn.Module: a parameter of the emitted `Operator` would replace one."""

_OPERATOR_NAMES = frozenset({"torch", "triton", "recgen", "numpy"}) | frozenset(sys.stdlib_module_names)

_RUN_BY_OTHERS = {"sitecustomize": "Python", "usercustomize": "Python", "conftest": "pytest", "setup": "pip"}
_DEVICES = re.compile(r"con|prn|aux|nul|(com|lpt)[0-9]", re.IGNORECASE)

_BUILTINS = frozenset(name for name in dir(builtins) if not name.startswith("_"))


def refuse_tensor_name(name: str) -> tuple[str, str] | None:
    """(reason, fix) when an input or parameter may not be called so, None when it may."""
    refused = _refuse_identifier(name)
    if refused:
        return refused
    if name in LANGUAGE_NAMES:
        return f"{name} already means {LANGUAGE_NAMES[name]}", f"call it {_other(name)}"
    if name in ARGUMENT_NAMES:
        return f"{name} is already an argument of the emitted functions", f"call it {_other(name)}"
    if name in LANGUAGE or name in DRAWS:
        return f"{name} is a function of the expression language", f"call it {_other(name)}"
    if name in MODULE_NAMES:
        return f"{name} has a meaning of its own in the emitted module", f"call it {_other(name)}"
    if name.endswith(SUFFIXES):
        ending = next(suffix for suffix in SUFFIXES if name.endswith(suffix))
        return f"names that end in {ending} are kept for the emitted module", f"call it {name.removesuffix(ending)}_in"
    if name in LAYER_NAMES:
        return f"{name} is an attribute of every torch module, as the parameter would be", f"call it {_other(name)}"
    if name.startswith("d_"):
        return f"{name} would be taken for the gradient of {name[2:]} in the emitted module", f"call it {name[2:]}"
    if name in _BUILTINS:
        return f"{name} would hide Python's own {name} in the emitted module", f"call it {_other(name)}"
    return None


def refuse_operator_name(name: str) -> tuple[str, str] | None:
    """(reason, fix) when an operator or a decay family may not be called so, None when it may."""
    refused = _refuse_identifier(name)
    if refused:
        return refused
    if name in _OPERATOR_NAMES:
        return f"a file called {name}.py would hide the module {name}", f"call it {_other(name)}"
    if name in _RUN_BY_OTHERS:
        return f"{_RUN_BY_OTHERS[name]} runs a file called {name}.py by itself", f"call it {_other(name)}"
    if _DEVICES.fullmatch(name):
        return f"{name} is the name of a device on Windows, where no file is called so", f"call it {_other(name)}"
    return None


def _refuse_identifier(name: str) -> tuple[str, str] | None:
    if not name:
        return "the name is empty", "write a name"
    if len(name) > MAX_NAME:
        return f"the name is longer than {MAX_NAME} characters", "choose a shorter one"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return f"{ascii(name)} is no name: letters a–z, digits and _ make one", f"call it {_spelled(name)}"
    if keyword.iskeyword(name):
        return f"{name} is a keyword of Python, in which it becomes an argument", f"call it {_other(name)}"
    if name.startswith("_"):
        return "names that begin with _ are kept for the emitted module", f"call it {_spelled(name)}"
    return None


def _other(name: str) -> str:
    return {"lambda": "lam", "h": "g"}.get(name, f"{name}_in")


_GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "λ": "lam", "ω": "omega", "ζ": "zeta", "π": "pi"}


def _spelled(name: str) -> str:
    """The nearest name that is one."""
    plain = "".join(_GREEK.get(character, character) for character in name[:MAX_NAME])
    plain = re.sub(r"[^A-Za-z0-9_]+", "_", plain).strip("_").lstrip("0123456789_")
    if not plain or keyword.iskeyword(plain):
        return "my_name"
    return plain

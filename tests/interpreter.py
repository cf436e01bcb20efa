"""Triton's interpreter, without work that it does again and again and whose result is always the same.

Nearly all of its time goes to types and shapes, not to numbers. What is computed stays the same to the bit:
tests/generated/test_interpreter.py compares.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.language.semantic import TritonSemantic
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpretedFunction, InterpreterOptions, interpreter_builder

Wrapped = Callable[..., Any]


def _device_functions(right: Wrapped) -> Wrapped:
    """A launch patches triton.language. Patching it again at every call of a device function changes nothing after
    the first time."""
    patched: set[object] = set()

    def call(self: InterpretedFunction, *args: object, **kwargs: object) -> object:
        if self.fn.__module__.startswith("triton.") and self.fn not in patched:
            patched.add(self.fn)
            return right(self, *args, **kwargs)
        return self.rewrite()(*args, **kwargs)

    return call


def _numpy_dtypes(right: Wrapped) -> Wrapped:
    """One look-up in place of a table written anew."""
    known: dict[str, np.dtype] = {}

    def numpy_dtype(dtype: tl.dtype) -> np.dtype:
        found = known.get(dtype.name)
        if found is None:
            found = known[dtype.name] = right(dtype)
        return found

    return numpy_dtype


def _block_types(right: Wrapped) -> Wrapped:
    """A shape is checked and written out the first time that an element type has it."""
    known: dict[tuple[object, ...], dict[str, object]] = {}

    def init(self: tl.block_type, element_ty: tl.dtype, shape: Any) -> None:
        sizes = [n.value if isinstance(n, tl.constexpr) else n for n in shape]
        key = (element_ty.name, *sizes, *map(type, sizes))
        if key in known:
            self.__dict__.update(known[key], element_ty=element_ty)
        else:
            right(self, element_ty, shape)
            known[key] = self.__dict__.copy()

    return init


def _tensors(right: Wrapped) -> Wrapped:
    """Blocks of one shape share what says so."""
    known: dict[tuple[int, ...], tuple[object, object]] = {}

    def init(self: tl.tensor, handle: object, type: tl.dtype) -> None:
        sizes = (*type.shape.values,) if type.is_block() else ()
        if sizes in known:
            self.handle, self.type, self.dtype = handle, type, type.scalar
            self.shape, self.numel = known[sizes]
        else:
            right(self, handle, type)
            known[sizes] = self.shape, self.numel

    return init


def _broadcasts(right: Wrapped) -> Wrapped:
    """Blocks of the same shape are what they become."""

    def broadcast(self: TritonSemantic, lhs: tl.tensor, rhs: tl.tensor) -> tuple[tl.tensor, tl.tensor]:
        x, y = lhs.type, rhs.type
        if x.is_block() and y.is_block() and x.shape.values == y.shape.values:
            return lhs, rhs
        return right(self, lhs, rhs)

    return broadcast


def _equality(right: Wrapped) -> Wrapped:
    """A type is itself."""

    def equal(self: tl.dtype, other: object) -> bool:
        return self is other or right(self, other)

    return equal


def _overflow(right: InterpreterOptions) -> InterpreterOptions:
    """Sums and products of int32 are not computed again in int64: without `debug`, which the interpreter never has,
    nothing is done with what the two tell of an overflow."""
    return dataclasses.replace(right, sanitize_overflow=False)


SHORTCUTS = [
    (interpreter_builder, "options", _overflow),
    (InterpretedFunction, "__call__", _device_functions),
    (interpreter, "_get_np_dtype", _numpy_dtypes),
    (tl.block_type, "__init__", _block_types),
    (tl.tensor, "__init__", _tensors),
    (TritonSemantic, "broadcast_impl_value", _broadcasts),
    (tl.dtype, "__eq__", _equality),
]


class Shortcuts:
    """Taken until they are given up."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, str, object]] = []

    def take(self) -> None:
        for place, name, shortcut in SHORTCUTS:
            self.before.append((place, name, getattr(place, name)))
            setattr(place, name, shortcut(getattr(place, name)))

    def give_up(self) -> None:
        while self.before:
            setattr(*self.before.pop())

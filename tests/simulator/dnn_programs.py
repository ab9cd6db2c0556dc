"""Machines on which cuDNN computes: tensors in device memory, descriptors of its graphs, and convolutions."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from scipy import signal
from tests.simulator.conftest import Start
from tests.simulator.library_programs import Array, Libraries

FLOAT, DOUBLE, HALF, INT32, BFLOAT = 0, 1, 2, 4, 9  # cudnnDataType_t
HANDLE, DATA_TYPE, BOOLEAN, INT64, REAL, ADDRESS, MODE, HEURISTIC, POINTWISE, DESCRIPTOR, REDUCTION = (
    0, 1, 2, 3, 4, 6, 7, 8, 14, 15, 18,
)  # fmt: skip
C_TYPES: Mapping[int, Any] = {
    HANDLE: ctypes.c_uint64, DATA_TYPE: ctypes.c_int, BOOLEAN: ctypes.c_bool, INT64: ctypes.c_int64,
    REAL: ctypes.c_float, ADDRESS: ctypes.c_uint64, MODE: ctypes.c_int, HEURISTIC: ctypes.c_int,
    POINTWISE: ctypes.c_int, DESCRIPTOR: ctypes.c_uint64, REDUCTION: ctypes.c_int,
}  # fmt: skip
KINDS = {"f": FLOAT, "d": DOUBLE, "e": HALF, "i": INT32}
ENGINE, CONFIG, HEURISTICS, PLAN, GRAPH, PACK, TENSOR = 2, 3, 4, 5, 15, 16, 17


def random(*shape: int, seed: int = 0, dtype: DTypeLike = np.float32) -> Array:
    """Return numbers between -1 and 1."""
    return np.random.default_rng((seed, *shape)).uniform(-1, 1, shape).astype(dtype)


def rows(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of elements whose last dimension lies together."""
    return tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))


def channels_last(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of elements whose channels lie together."""
    spatial = rows(shape[2:])
    return (int(np.prod(shape[1:])), 1, *(each * shape[1] for each in spatial))


def convolved(
    x: Array, w: Array, pads: Sequence[int], strides: Sequence[int], dilations: Sequence[int], turns: bool = False
) -> Array:
    """Return a convolution, by SciPy: a plane at a time."""
    groups, per_group = x.shape[1] // w.shape[1], w.shape[0] // (x.shape[1] // w.shape[1])
    padded = np.pad(x, ((0, 0), (0, 0), *((each, each) for each in pads)))
    lengths = [(length - 1) * dilation + 1 for length, dilation in zip(w.shape[2:], dilations, strict=True)]
    wide = np.zeros((*w.shape[:2], *lengths), w.dtype)
    apart: tuple[Any, ...] = tuple(slice(None, None, each) for each in dilations)
    wide[(..., *apart)] = w[:, :, ::-1, ::-1] if turns else w
    steps = tuple(slice(None, None, each) for each in strides)
    made = [
        [
            sum(
                signal.correlate(padded[n, group * w.shape[1] + c], wide[group * per_group + k, c], "valid", "direct")
                for c in range(w.shape[1])
            )[steps]
            for group, k in itertools.product(range(groups), range(per_group))
        ]
        for n in range(len(x))
    ]
    return np.asarray(made)


class Dnn(Libraries):
    """A device with a handle of cuDNN 9."""

    def __init__(self, start: Start, folder: Path, options: dict[str, Any]) -> None:
        super().__init__(start, folder, options)
        self.dnn = self.make("simulated_9_cudnnCreate")

    def dnn_call(self, function: str, *arguments: Any) -> int:
        """Call a function; whole numbers are words of 64 bits."""
        passed = [ctypes.c_int64(each) if isinstance(each, int) else each for each in arguments]
        return int(getattr(self.driver, f"computed_9_cudnn{function}")(*passed))

    def ok_dnn(self, function: str, *arguments: Any) -> None:
        """Call a function, and expect that it succeeds."""
        assert self.dnn_call(function, *arguments) == 0

    def place(self, values: Array, strides: Sequence[int] = ()) -> int:
        """Return the address of elements that lie so far apart, in a block that they fill."""
        strides = strides or rows(values.shape)
        count = 1 + sum((length - 1) * stride for length, stride in zip(values.shape, strides, strict=True))
        content = np.zeros(count, values.dtype)
        each = [stride * values.itemsize for stride in strides]
        np.lib.stride_tricks.as_strided(content, values.shape, each)[...] = values
        return self.put(content)

    def taken(self, address: int, shape: Sequence[int], strides: Sequence[int] = (), dtype: Any = np.float32) -> Array:
        """Return elements that lie so far apart."""
        strides = strides or rows(shape)
        count = 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
        content = self.get(address, dtype, count)
        return np.lib.stride_tricks.as_strided(content, shape, [each * content.itemsize for each in strides]).copy()

    # -- descriptors of functions -------------------------------------------------------------------------------------

    def shaped(self, shape: Sequence[int], strides: Sequence[int] = (), kind: int = FLOAT) -> int:
        """Return the descriptor of a tensor, by which functions know it."""
        made = self.descriptor("TensorDescriptor")
        lists = [(ctypes.c_int * len(shape))(*each) for each in (shape, strides or rows(shape))]
        self.ok_dnn("SetTensorNdDescriptor", made, kind, len(shape), *lists)
        return made

    def descriptor(self, kind: str) -> int:
        """Return a descriptor that nothing is said of."""
        made = ctypes.c_uint64()
        self.ok_dnn(f"Create{kind}", ctypes.byref(made))
        return made.value

    def tensors(self, *values: Array) -> list[int]:
        """Return for each its descriptor and its address."""
        return [
            each
            for value in values
            for each in (self.shaped(value.shape, kind=KINDS[value.dtype.char]), self.place(value))
        ]

    def filled(self, kind: str, setter: str, *arguments: Any) -> int:
        """Return a descriptor, of which something is said."""
        made = self.descriptor(kind)
        self.ok_dnn(setter, made, *arguments)
        return made

    def convolution(self, pads: Sequence[int], strides: Sequence[int], dilations: Sequence[int], **more: int) -> int:
        """Return the descriptor of a convolution."""
        lists = [(ctypes.c_int * len(pads))(*each) for each in (pads, strides, dilations)]
        mode = 0 if more.get("turns") else 1
        made = self.filled("ConvolutionDescriptor", "SetConvolutionNdDescriptor", len(pads), *lists, mode, FLOAT)
        self.ok_dnn("SetConvolutionGroupCount", made, more.get("groups", 1))
        return made

    def filter(self, shape: Sequence[int], kind: int = FLOAT) -> int:
        """Return the descriptor of a filter."""
        return self.filled(
            "FilterDescriptor", "SetFilterNdDescriptor", kind, 0, len(shape), (ctypes.c_int * len(shape))(*shape)
        )

    # -- the graph interface ------------------------------------------------------------------------------------------

    def described(self, kind: int, attributes: Mapping[int, tuple[int, Sequence[Any]]], *, final: bool = True) -> int:
        """Return a descriptor with attributes, each with its type."""
        made = ctypes.c_uint64()
        self.ok_dnn("BackendCreateDescriptor", kind, ctypes.byref(made))
        for name, (type_, values) in attributes.items():
            assert self.set(made.value, name, type_, *values) == 0
        if final:
            self.ok_dnn("BackendFinalize", made.value)
        return made.value

    def set(self, descriptor: int, name: int, type_: int, *values: Any) -> int:
        """Set an attribute, and return the status."""
        elements = (C_TYPES[type_] * len(values))(*values)
        return self.dnn_call("BackendSetAttribute", descriptor, name, type_, len(values), elements)

    def got(self, descriptor: int, name: int, type_: int) -> list[Any]:
        """Return what an attribute has."""
        count, elements = ctypes.c_int64(), (C_TYPES[type_] * 16)()
        self.ok_dnn("BackendGetAttribute", descriptor, name, type_, 16, ctypes.byref(count), elements)
        return list(elements[: count.value])

    def tensor(
        self, number: int, shape: Sequence[int], strides: Sequence[int] = (), kind: int = FLOAT, **more: bool
    ) -> int:
        """Return the descriptor of a tensor."""
        return self.described(TENSOR, {
            901: (DATA_TYPE, [kind]), 902: (INT64, shape), 903: (INT64, strides or rows(shape)),
            900: (INT64, [4]), 906: (INT64, [number]), 907: (BOOLEAN, [more.get("virtual", False)]),
            908: (BOOLEAN, [more.get("by_value", False)]),
        })  # fmt: skip

    def plan(self, *operations: int) -> int:
        """Return a plan for a graph, by the first configuration that heuristics offer."""
        graph = self.described(GRAPH, {800: (HANDLE, [self.dnn]), 801: (DESCRIPTOR, operations)})
        heuristics = self.described(HEURISTICS, {200: (HEURISTIC, [0]), 201: (DESCRIPTOR, [graph])})
        config, count = self.described(CONFIG, {}, final=False), ctypes.c_int64()
        results = (ctypes.c_uint64 * 1)(config)
        self.ok_dnn("BackendGetAttribute", heuristics, 202, DESCRIPTOR, 1, ctypes.byref(count), results)
        assert count.value == 1
        return self.described(PLAN, {400: (HANDLE, [self.dnn]), 401: (DESCRIPTOR, [config])})

    def execute(self, plan: int, addresses: Mapping[int, int], workspace: int | None = None) -> int:
        """Execute a plan with tensors at addresses, and return the status."""
        (size,) = self.got(plan, 402, INT64)
        work = (self.room(size) if size else 0) if workspace is None else workspace
        attributes = {
            1000: (INT64, list(addresses)),
            1001: (ADDRESS, list(addresses.values())),
            1003: (ADDRESS, [work]),
        }
        return self.dnn_call("BackendExecute", self.dnn, plan, self.described(PACK, attributes))

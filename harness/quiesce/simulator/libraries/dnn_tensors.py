"""cuDNN: tensors in a device's memory, with as many dimensions and in any order of strides, and what calls have alike.

Numbers are those of cudnn_graph.h (9) and of cudnn_ops_infer.h (8), which the wheels nvidia-cudnn have. Results are
"alpha[0] * result + beta[0] * priorDstValue" (cuDNN, "Scaling Parameters"): where beta is 0, nothing is read there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.elements import BFLOAT, DOUBLE, HALF, INT8, INT32, SINGLE, Element
from quiesce.simulator.libraries.table import Call, NotDescribed, Refused

DIMENSIONS_MAX: Final = 8  # CUDNN_DIM_MAX
_EIGHT: Final = 8
"""The first setting of a handle that has the statuses of cuDNN 8: ``native/libraries/dnn.c`` sets it."""
_WRONG: Final = {_EIGHT: 3, 9: 2000}
_INT64: Final = Element(np.dtype(np.int64), np.dtype(np.int64))
_UINT8: Final = Element(np.dtype(np.uint8), np.dtype(np.int32))

BY_DATA_TYPE: Final = {
    0: SINGLE, 1: DOUBLE, 2: HALF, 3: INT8, 4: INT32, 6: _UINT8, 9: BFLOAT, 10: _INT64,
}  # fmt: skip
"""``cudnnDataType_t``."""


def require(call: Call[Any], *conditions: bool) -> None:
    """Refuse a call of which some argument is wrong: ``CUDNN_STATUS_BAD_PARAM``."""
    if not all(conditions):
        raise Refused(_WRONG[call.settings[0]])


def element_of(data_type: int) -> Element:
    """Return a type of elements by its number."""
    element = BY_DATA_TYPE.get(data_type)
    if element is None:
        raise NotDescribed(f"elements of the type {data_type} are not described")
    return element


def computed_with(*elements: Element) -> np.dtype[Any]:
    """Return the type in which a result is computed: integers in double precision, which is exact for 8 bits."""
    if any(each.computed == np.float64 or each.computed.kind in "iu" for each in elements):
        return np.dtype(np.float64)
    return np.dtype(np.float32)


@dataclass(frozen=True, slots=True)
class Tensor:
    """Elements at an address, each ``strides`` elements from the next one of its dimension."""

    operand: str
    address: int
    element: Element
    dimensions: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def count(self) -> int:
        """Return how many elements it has."""
        return math.prod(self.dimensions)

    @property
    def _order(self) -> list[int]:
        """Return its dimensions by their strides, the largest first, and those alone that have several elements."""
        several = [axis for axis, length in enumerate(self.dimensions) if length != 1]
        return sorted(several, key=lambda axis: -self.strides[axis])

    def read(self, call: Call[Any]) -> Array:
        """Return its elements."""
        order = self._order
        runs = _Runs.of([(self.dimensions[axis], self.strides[axis]) for axis in order])
        parts = [
            call.read(self.operand, self.address + at * self.element.size_bytes, self.element.stored, *size)
            for at, size in runs.places(self.element.size_bytes)
        ]
        stored = parts[0] if len(parts) == 1 else np.stack(parts)
        return self.element.decode(self._arranged(stored, order))

    def _arranged(self, stored: Array, order: Sequence[int]) -> Array:
        """Return elements, which are in the order of memory, in that of the dimensions."""
        ones = [axis for axis in range(len(self.dimensions)) if axis not in order]
        lengths = [self.dimensions[axis] for axis in (*order, *ones)]
        back = np.argsort([*order, *ones])
        return stored.reshape(lengths).transpose(back)

    def write(self, call: Call[Any], values: Array) -> None:
        """Write its elements."""
        order = self._order
        ones = [axis for axis in range(len(self.dimensions)) if axis not in order]
        whole = np.broadcast_to(values, self.dimensions).transpose([*order, *ones])
        stored = np.ascontiguousarray(self.element.encode(np.ascontiguousarray(whole)))
        runs = _Runs.of([(self.dimensions[axis], self.strides[axis]) for axis in order])
        parts = stored.reshape(-1, runs.rows, runs.count)
        for part, (at, (_, _, pitch)) in zip(parts, runs.places(self.element.size_bytes), strict=True):
            call.write(self.operand, self.address + at * self.element.size_bytes, part, pitch)

    def blend(self, call: Call[Any], values: Array, alpha: float, beta: float) -> None:
        """Write alpha times values, and beta times what was there."""
        made = np.broadcast_to(values, self.dimensions)
        if alpha != 1:
            made = made * made.dtype.type(alpha)
        if beta != 0:
            made = made + made.dtype.type(beta) * self.read(call).astype(made.dtype)
        self.write(call, made)


@dataclass(frozen=True, slots=True)
class _Runs:
    """How memory is gone through: elements beside each other, rows of them, and places where such rows begin."""

    count: int
    rows: int
    row_stride: int
    outer: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, levels: Sequence[tuple[int, int]]) -> _Runs:
        """Return it for lengths with their strides, the largest first."""
        left = list(levels)
        count, rows, row_stride = 1, 1, 0
        while left and left[-1][1] == count:
            count *= left.pop()[0]
        if left:
            rows, row_stride = left.pop()
        while left and left[-1][1] == rows * row_stride:
            rows *= left.pop()[0]
        return cls(count, rows, row_stride, tuple(left))

    def places(self, size_bytes: int) -> Iterator[tuple[int, tuple[int, int, int]]]:
        """Yield where rows begin, in elements, and for each the arguments of a range."""
        size = self.count, self.rows, self.row_stride * size_bytes
        for indices in itertools.product(*(range(length) for length, _ in self.outer)):
            yield sum(index * stride for index, (_, stride) in zip(indices, self.outer, strict=True)), size

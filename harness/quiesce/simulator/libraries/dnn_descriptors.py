"""cuDNN: what its descriptors hold, as ``native/libraries/dnn_descriptors.h`` lays it out, and calls read it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries import dnn_pointwise as pointwise
from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.dnn_convolutions import Convolution
from quiesce.simulator.libraries.dnn_tensors import DIMENSIONS_MAX, Tensor, element_of, require
from quiesce.simulator.libraries.elements import DOUBLE, Element
from quiesce.simulator.libraries.table import Call, NotDescribed

_TENSOR: Final = struct.Struct(f"<{3 + 2 * DIMENSIONS_MAX}i")
_CONVOLUTION: Final = struct.Struct(f"<{6 + 3 * DIMENSIONS_MAX}i")
_POOLING: Final = struct.Struct(f"<{3 + 3 * DIMENSIONS_MAX}i")
_ACTIVATION: Final = struct.Struct("<2i2d")
_OPERATION: Final = struct.Struct("<5i")


def _unpacked(call: Call[Any], operand: str, address: int, form: struct.Struct) -> tuple[Any, ...]:
    require(call, address != 0)
    return form.unpack(call.host(operand, address, np.uint8, form.size).tobytes())


def tensor(call: Call[Any], operand: str, descriptor: str, address: int) -> Tensor:
    """Return what a descriptor of a tensor, or of a filter, says of memory."""
    kind, count, *numbers = _unpacked(call, descriptor, getattr(call.arguments, descriptor), _TENSOR)
    require(call, count > 0)
    strides = numbers[DIMENSIONS_MAX : DIMENSIONS_MAX + count]
    return Tensor(operand, address, element_of(kind), tuple(numbers[:count]), tuple(strides))


def given(call: Call[Any], *names: str) -> list[Tensor]:
    """Return the tensors of these names, whose descriptors end in ``Desc``; a call without one is refused."""
    addresses = [getattr(call.arguments, name) for name in names]
    require(call, *(address != 0 for address in addresses))
    return [tensor(call, name, f"{name}Desc", at) for name, at in zip(names, addresses, strict=True)]


def factor(call: Call[Any], operand: str, element: Element) -> float:
    """Return a factor: "of type float for HALF and FLOAT tensors, and double for DOUBLE tensors"."""
    address = getattr(call.arguments, operand)
    require(call, address != 0)
    return float(call.host(operand, address, np.float64 if element is DOUBLE else np.float32)[0])


def convolution(call: Call[Any], x: Tensor, w: Tensor, y: Tensor) -> Convolution:
    """Return what the descriptor of a convolution says. Refuses tensors that do not fit."""
    values = _unpacked(call, "convDesc", call.arguments.convDesc, _CONVOLUTION)
    count, (mode, _, groups, _, _) = values[0], values[-5:]
    lists = [values[1 + at * DIMENSIONS_MAX :][:count] for at in range(3)]
    made = Convolution(lists[0], lists[0], lists[1], lists[2], turns=mode == 0)
    require(call, made.is_of(x.dimensions, w.dimensions, y.dimensions))
    require(call, x.dimensions[1] == groups * w.dimensions[1])
    return made


def pooling(call: Call[Any]) -> tuple[int, bool, Sequence[Sequence[int]]]:
    """Return the mode, whether NaN is propagated, and the windows, pads and strides."""
    mode, nan, count, *numbers = _unpacked(call, "poolingDesc", call.arguments.poolingDesc, _POOLING)
    return mode, nan == 1, [numbers[at * DIMENSIONS_MAX :][:count] for at in range(3)]


_ACTIVATIONS: Final = {0: 102, 1: 100, 2: 101, 3: 100, 4: 103, 6: 106}
"""``cudnnPointwiseMode_t`` by ``cudnnActivationMode_t``."""
_CLIPPED, _IDENTITY = 3, 5


class Activation:
    """What the descriptor of an activation says."""

    def __init__(self, call: Call[Any]) -> None:
        mode, _, coefficient, swish = _unpacked(call, "activationDesc", call.arguments.activationDesc, _ACTIVATION)
        if mode not in _ACTIVATIONS and mode != _IDENTITY:
            raise NotDescribed(f"the activation {mode} is not described")
        self._mode = _ACTIVATIONS.get(mode)
        upper = coefficient if mode == _CLIPPED else np.inf
        self._shape = pointwise.Shape(upper=upper, elu=coefficient, swish=swish)

    @property
    def needs_input(self) -> bool:
        """Say whether its slope can't be told from its result."""
        return self._mode is not None and self._mode + 100 not in pointwise.SLOPES_OF_RESULTS

    def forward(self, x: Array) -> Array:
        """Return what it makes of elements."""
        return x if self._mode is None else pointwise.FORWARD[self._mode](x, self._shape).astype(x.dtype)

    def slope(self, given_: Array) -> Array:
        """Return its derivative: of elements of its result, or of its input where that is needed."""
        if self._mode is None:
            return np.ones_like(given_)
        slopes = pointwise.SLOPES if self.needs_input else pointwise.SLOPES_OF_RESULTS
        return slopes[self._mode + 100](given_, self._shape).astype(given_.dtype)


def operation(call: Call[Any], descriptor: str) -> tuple[int, bool]:
    """Return what is done with tensors, and whether indices of elements are wanted."""
    kind, _, _, indices, _ = _unpacked(call, descriptor, getattr(call.arguments, descriptor), _OPERATION)
    return kind, indices == 1

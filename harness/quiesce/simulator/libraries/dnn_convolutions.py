"""cuDNN: convolutions, forward and backward, of tensors with any number of spatial dimensions.

"y = w * x": cross-correlation, or convolution, for which the filter is turned around (``cudnnConvolutionMode_t``). With
groups, each computes its channels of the result from its own of the input.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from quiesce.simulator.libraries.conversation import Array

_Index: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Convolution:
    """What a descriptor says. Each tuple has a number for each spatial dimension."""

    before: tuple[int, ...]
    after: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    turns: bool
    """Whether the filter is turned around."""

    def lengths(self, lengths: tuple[int, ...], window: tuple[int, ...]) -> tuple[int, ...]:
        """Return the lengths of a result: "1 + (inputDim + 2*pad - (((filterDim-1)*dilation)+1)) / stride"."""
        return tuple(
            1 + (length + before + after - ((taps - 1) * dilation + 1)) // stride
            for length, taps, before, after, stride, dilation in zip(
                lengths, window, self.before, self.after, self.strides, self.dilations, strict=True
            )
        )

    def is_of(self, x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...]) -> bool:
        """Say whether tensors of these dimensions can be its input, filter and result."""
        sizes = {len(x), len(w), len(y), len(self.strides) + 2}
        if len(sizes) > 1 or min(*x, *w, *y, *self.strides, *self.dilations) < 1 or min(*self.before, *self.after) < 0:
            return False
        has_groups = x[1] % w[1] == 0 and w[0] % (x[1] // w[1]) == 0
        return has_groups and y == (x[0], w[0], *self.lengths(x[2:], w[2:]))

    def _taps(self, window: tuple[int, ...], result: tuple[int, ...]) -> Iterator[tuple[_Index, _Index]]:
        """Yield each place in a filter, and which elements of a padded input it meets."""
        for tap in itertools.product(*map(range, window)):
            place = tuple(length - 1 - at for length, at in zip(window, tap, strict=True)) if self.turns else tap
            met = tuple(
                slice(at * dilation, at * dilation + (length - 1) * stride + 1, stride)
                for at, dilation, length, stride in zip(tap, self.dilations, result, self.strides, strict=True)
            )
            yield (..., *place), (..., *met)

    def _padded(self, x: Array) -> Array:
        """Return an input with its padding, the channels before the batch."""
        return np.pad(x, ((0, 0), (0, 0), *zip(self.before, self.after, strict=True))).swapaxes(0, 1)

    def forward(self, x: Array, w: Array) -> Array:
        """Return y, of x and w of the same type."""
        groups, window = x.shape[1] // w.shape[1], w.shape[2:]
        result = self.lengths(x.shape[2:], window)
        padded, filters = self._padded(x), _by_group(w, groups)
        made = np.zeros((groups, filters.shape[1], len(x) * int(np.prod(result))), x.dtype)
        for place, met in self._taps(window, result):
            made += np.ascontiguousarray(filters[place]) @ padded[met].reshape(groups, w.shape[1], -1)
        return made.reshape(len(w), len(x), *result).swapaxes(0, 1)

    def backward_data(self, w: Array, dy: Array, shape: tuple[int, ...]) -> Array:
        """Return dx, of this shape."""
        groups, result = shape[1] // w.shape[1], dy.shape[2:]
        lengths = [sum(each) for each in zip(shape[2:], self.before, self.after, strict=True)]
        made = np.zeros((shape[1], shape[0], *lengths), dy.dtype)
        filters, gradients = _by_group(w, groups), _by_group(dy.swapaxes(0, 1), groups, flat=True)
        for place, met in self._taps(w.shape[2:], result):
            moved = np.ascontiguousarray(filters[place]).swapaxes(1, 2) @ gradients
            made[met] += moved.reshape(shape[1], shape[0], *result)
        inner: _Index = tuple(slice(at, at + length) for at, length in zip(self.before, shape[2:], strict=True))
        return made[(..., *inner)].swapaxes(0, 1)

    def backward_filter(self, x: Array, dy: Array, shape: tuple[int, ...]) -> Array:
        """Return dw, of this shape."""
        groups = x.shape[1] // shape[1]
        padded, gradients = self._padded(x), _by_group(dy.swapaxes(0, 1), groups, flat=True)
        made = np.zeros((groups, shape[0] // groups, *shape[1:]), dy.dtype)
        for place, met in self._taps(shape[2:], dy.shape[2:]):
            made[place] = gradients @ padded[met].reshape(groups, shape[1], -1).swapaxes(1, 2)
        return made.reshape(shape)


def _by_group(of: Array, groups: int, *, flat: bool = False) -> Array:
    """Return an array whose first dimension is split into groups; ``flat``: and whose others are one."""
    return of.reshape(groups, len(of) // groups, *((-1,) if flat else of.shape[1:]))

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
        return np.pad(x, ((0, 0), (0, 0), *zip(self.before, self.after, strict=True)))

    def forward(self, x: Array, w: Array) -> Array:
        """Return y, of x and w of the same type."""
        groups, window = x.shape[1] // w.shape[1], w.shape[2:]
        result = self.lengths(x.shape[2:], window)
        padded = self._padded(x)
        filters = w.reshape(groups, w.shape[0] // groups, w.shape[1], *window)
        made = np.zeros((len(x), groups, filters.shape[1], int(np.prod(result))), x.dtype)
        for place, met in self._taps(window, result):
            made += filters[place] @ padded[met].reshape(len(x), groups, w.shape[1], -1)
        return made.reshape(len(x), w.shape[0], *result)

    def backward_data(self, w: Array, dy: Array, shape: tuple[int, ...]) -> Array:
        """Return dx, of this shape."""
        groups, window, result = shape[1] // w.shape[1], w.shape[2:], dy.shape[2:]
        lengths = [sum(each) for each in zip(shape[2:], self.before, self.after, strict=True)]
        made = np.zeros((*shape[:2], *lengths), dy.dtype)
        filters = w.reshape(groups, w.shape[0] // groups, w.shape[1], *window)
        gradients = dy.reshape(len(dy), groups, filters.shape[1], -1)
        for place, met in self._taps(window, result):
            made[met] += (filters[place].swapaxes(1, 2) @ gradients).reshape(*shape[:2], *result)
        inner: _Index = tuple(slice(at, at + length) for at, length in zip(self.before, shape[2:], strict=True))
        return made[(..., *inner)]

    def backward_filter(self, x: Array, dy: Array, shape: tuple[int, ...]) -> Array:
        """Return dw, of this shape."""
        groups, window, result = x.shape[1] // shape[1], shape[2:], dy.shape[2:]
        padded = self._padded(x)
        gradients = dy.reshape(len(dy), groups, shape[0] // groups, -1)
        made = np.zeros((groups, shape[0] // groups, *shape[1:]), dy.dtype)
        for place, met in self._taps(window, result):
            inputs = padded[met].reshape(len(x), groups, shape[1], -1)
            made[place] = (gradients @ inputs.swapaxes(2, 3)).sum(0)
        return made.reshape(shape)

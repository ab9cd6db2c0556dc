"""cuDNN: pooling, forward and backward, of tensors with any number of spatial dimensions.

A maximum leaves padding out. An average counts it, or not, by its mode (``cudnnPoolingMode_t``).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.dnn_descriptors import factor, given, pooling
from quiesce.simulator.libraries.dnn_tensors import Tensor, computed_with, require
from quiesce.simulator.libraries.table import Call, Work, computes

_MAXIMA: Final = (0, 3)
_WITH_PADDING: Final = 1


@dataclass(frozen=True, slots=True)
class Pooling:
    """Windows over an input of some dimensions."""

    windows: Sequence[int]
    pads: Sequence[int]
    strides: Sequence[int]
    input: tuple[int, ...]
    result: tuple[int, ...]

    def taps(self) -> Iterator[tuple[Any, ...]]:
        """Yield which elements of a padded input each place of the windows meets, the first places first."""
        for tap in itertools.product(*map(range, self.windows)):
            places = zip(tap, self.result[2:], self.strides, strict=True)
            yield (..., *(slice(at, at + (length - 1) * stride + 1, stride) for at, length, stride in places))

    def padded(self, x: Array, padding: float) -> Array:
        """Return an input with as much around it as windows reach."""
        axes = zip(self.input[2:], self.result[2:], self.windows, self.pads, self.strides, strict=True)
        wide = [
            (pad, max(0, (count - 1) * stride + window - length - pad)) for length, count, window, pad, stride in axes
        ]
        return np.pad(x, ((0, 0), (0, 0), *wide), constant_values=padding)

    def counts(self, mode: int) -> Array:
        """Return by how many elements sums are divided."""
        if mode == _WITH_PADDING:
            return np.asarray(float(np.prod(self.windows)))
        ones = self.padded(np.ones((1, 1, *self.input[2:])), 0)
        return np.asarray(np.maximum(sum(ones[tap] for tap in self.taps()), 1))

    def inner(self, padded: Array) -> Array:
        """Return a padded input without what is around it."""
        within = (slice(pad, pad + length) for pad, length in zip(self.pads, self.input[2:], strict=True))
        index: tuple[Any, ...] = (..., *within)
        return np.asarray(padded[index])


def _pooling(call: Call[Any], x: Tensor, y: Tensor) -> tuple[Pooling, int, bool]:
    mode, propagates, (windows, pads, strides) = pooling(call)
    require(call, len(x.dimensions) == len(y.dimensions) == len(windows) + 2, x.dimensions[:2] == y.dimensions[:2])
    for length, count, window, pad, stride in zip(
        x.dimensions[2:], y.dimensions[2:], windows, pads, strides, strict=True
    ):
        require(call, count == 1 + (length + 2 * pad - window) // stride)
    return Pooling(windows, pads, strides, x.dimensions, y.dimensions), mode, propagates


@computes({"cudnnPoolingForward": None}, "p:handle p:poolingDesc p:alpha p:xDesc p:x p:beta p:yDesc p:y")
def pool(call: Call[None]) -> Work:
    """Compute the maximum or the average of each window."""
    x, y = given(call, "x", "y")
    alpha, beta = factor(call, "alpha", y.element), factor(call, "beta", y.element)
    of, mode, propagates = _pooling(call, x, y)
    computed = computed_with(x.element)

    def run() -> None:
        values = x.read(call).astype(computed, copy=False)
        if mode in _MAXIMA:
            greater = np.maximum if propagates else np.fmax
            padded = of.padded(values, -np.inf)
            made = np.full(of.result, -np.inf, computed)
            for tap in of.taps():
                made = greater(made, padded[tap])
        else:
            padded = of.padded(values, 0)
            made = np.zeros(of.result, computed)
            for tap in of.taps():
                made += padded[tap]
            made = (made / of.counts(mode)).astype(computed)
        y.blend(call, made, alpha, beta)

    return run


@computes({"cudnnPoolingBackward": None}, "p:handle p:poolingDesc p:alpha p:yDesc p:y p:dyDesc p:dy p:xDesc p:x p:beta "
          "p:dxDesc p:dx")  # fmt: skip
def pool_backward(call: Call[None]) -> Work:
    """Compute dx from dy; for maxima also from x and y. A maximum's gradient goes to the first element that has it."""
    dy, dx = given(call, "dy", "dx")
    alpha, beta = factor(call, "alpha", dx.element), factor(call, "beta", dx.element)
    of, mode, _ = _pooling(call, dx, dy)
    computed = computed_with(dy.element)
    of_maxima = given(call, "x", "y") if mode in _MAXIMA else []
    require(call, all(each.dimensions == to.dimensions for each, to in zip(of_maxima, (dx, dy), strict=False)))

    def run() -> None:
        gradient = dy.read(call).astype(computed, copy=False)
        made = of.padded(np.zeros(of.input, computed), 0)
        if of_maxima:
            inputs = of.padded(of_maxima[0].read(call).astype(computed, copy=False), -np.inf)
            greatest = of_maxima[1].read(call).astype(computed, copy=False)
            left = np.ones(of.result, bool)
            for tap in of.taps():
                meets = left & (inputs[tap] == greatest)
                made[tap] += np.where(meets, gradient, 0)
                left &= ~meets
        else:
            gradient = (gradient / of.counts(mode)).astype(computed)
            for tap in of.taps():
                made[tap] += gradient
        dx.blend(call, of.inner(made), alpha, beta)

    return run

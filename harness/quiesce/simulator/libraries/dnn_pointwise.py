"""cuDNN: what is done to one element at a time, of one tensor, two or three, and activations with their gradients.

Formulas are those of ``cudnnPointwiseMode_t`` and ``cudnnActivationMode_t`` (cuDNN, "Graph API" and "ops library").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from scipy import special

from quiesce.simulator.libraries.conversation import Array


@dataclass(frozen=True, slots=True)
class Shape:
    """What an activation has beside its input."""

    lower: float = 0.0
    upper: float = np.inf
    slope: float = 0.0
    elu: float = 1.0
    softplus: float = 1.0
    swish: float = 1.0


Activation = Callable[[Array, Shape], Array]


def sigmoid(x: Array) -> Array:
    """Return 1 / (1 + exp(-x))."""
    return np.asarray(special.expit(x))


def _relu(x: Array, shape: Shape) -> Array:
    low = np.where(x > shape.lower, x, shape.lower + shape.slope * (x - shape.lower))
    return np.minimum(low, shape.upper).astype(x.dtype)


def _relu_slope(x: Array, shape: Shape) -> Array:
    return np.where(x > shape.lower, np.where(x < shape.upper, 1.0, 0.0), shape.slope)


def _elu(x: Array, shape: Shape) -> Array:
    return np.where(x > 0, x, shape.elu * np.expm1(np.minimum(x, 0)))


def _elu_slope(x: Array, shape: Shape) -> Array:
    return np.where(x > 0, 1.0, shape.elu * np.exp(np.minimum(x, 0)))


def _gelu(x: Array, _: Shape) -> Array:
    return np.asarray(x * 0.5 * (1 + special.erf(x * np.sqrt(0.5))))


def _gelu_slope(x: Array, _: Shape) -> Array:
    normal = np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)
    return np.asarray(0.5 * (1 + special.erf(x * np.sqrt(0.5))) + x * normal)


def _inner(x: Array) -> Array:
    return np.asarray(np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def _tanh_gelu(x: Array, _: Shape) -> Array:
    return np.asarray(0.5 * x * (1 + _inner(x)))


def _tanh_gelu_slope(x: Array, _: Shape) -> Array:
    inner = _inner(x)
    slope = np.sqrt(2 / np.pi) * (1 + 3 * 0.044715 * x * x)
    return np.asarray(0.5 * (1 + inner) + 0.5 * x * (1 - inner * inner) * slope)


def _softplus(x: Array, shape: Shape) -> Array:
    return np.asarray(np.logaddexp(0, shape.softplus * x) / shape.softplus)


def _swish(x: Array, shape: Shape) -> Array:
    return x * sigmoid(shape.swish * x)


def _swish_slope(x: Array, shape: Shape) -> Array:
    of = sigmoid(shape.swish * x)
    return np.asarray(of + shape.swish * x * of * (1 - of))


FORWARD: Final[Mapping[int, Activation]] = {
    100: _relu,
    101: lambda x, _: np.tanh(x),
    102: lambda x, _: sigmoid(x),
    103: _elu,
    104: _gelu,
    105: _softplus,
    106: _swish,
    107: _tanh_gelu,
}
"""Activations of one tensor, by ``cudnnPointwiseMode_t``."""

SLOPES: Final[Mapping[int, Activation]] = {
    200: _relu_slope,
    201: lambda x, _: 1 - np.tanh(x) ** 2,
    202: lambda x, _: sigmoid(x) * (1 - sigmoid(x)),
    203: _elu_slope,
    204: _gelu_slope,
    205: lambda x, shape: sigmoid(shape.softplus * x),
    206: _swish_slope,
    207: _tanh_gelu_slope,
}
"""Their derivatives by their input."""

SLOPES_OF_RESULTS: Final[Mapping[int, Activation]] = {
    200: _relu_slope,
    201: lambda y, _: 1 - y * y,
    202: lambda y, _: y * (1 - y),
    203: lambda y, shape: np.where(y > 0, 1.0, y + shape.elu),
}
"""Derivatives by their input of those whose result is enough to tell them."""

UNARY: Final[Mapping[int, Callable[[Array], Array]]] = {
    4: np.sqrt,
    10: np.abs,
    11: np.ceil,
    12: np.cos,
    13: np.exp,
    14: np.floor,
    15: np.log,
    16: np.negative,
    17: lambda x: 1 / np.sqrt(x),
    18: np.sin,
    19: np.tan,
    20: special.erf,
    21: np.asarray,
    22: lambda x: 1 / x,
    402: lambda x: np.logical_not(x.astype(bool)),
}

BINARY: Final[Mapping[int, Callable[[Array, Array], Array]]] = {
    0: np.add,
    1: np.multiply,
    2: np.minimum,
    3: np.maximum,
    5: lambda x, b: x + b * b,
    6: np.divide,
    7: np.fmod,
    8: np.power,
    9: np.subtract,
    23: np.arctan2,
    24: np.mod,
    300: np.equal,
    301: np.not_equal,
    302: np.greater,
    303: np.greater_equal,
    304: np.less,
    305: np.less_equal,
    400: lambda x, b: np.logical_and(x.astype(bool), b.astype(bool)),
    401: lambda x, b: np.logical_or(x.astype(bool), b.astype(bool)),
}

INDEX: Final = 501
SELECT: Final = 601

"""cuDNN: activations, softmax, and functions of all elements of tensors, by descriptors."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.dnn_descriptors import Activation, factor, given, operation, tensor
from quiesce.simulator.libraries.dnn_reductions import reduction
from quiesce.simulator.libraries.dnn_tensors import Tensor, computed_with, require
from quiesce.simulator.libraries.table import Call, NotDescribed, Work, computes

ADD, MULTIPLY, LEAST, GREATEST, ROOT, NOT = range(6)  # cudnnOpTensorOp_t
_BINARY: Final = {ADD: np.add, MULTIPLY: np.multiply, LEAST: np.minimum, GREATEST: np.maximum}
LOGARITHM: Final = 2  # cudnnSoftmaxAlgorithm_t
OF_CHANNELS: Final = 1  # cudnnSoftmaxMode_t


def _read(call: Call[Any], of: Tensor) -> Array:
    return of.read(call).astype(computed_with(of.element), copy=False)


def _factors(call: Call[Any], result: Tensor) -> tuple[float, float]:
    return factor(call, "alpha", result.element), factor(call, "beta", result.element)


def _spreads(of: Tensor, to: Tensor) -> bool:
    """Say whether each dimension of a tensor is as long as another's, or has one element."""
    if len(of.dimensions) != len(to.dimensions):
        return False
    return all(one in (1, other) for one, other in zip(of.dimensions, to.dimensions, strict=True))


@computes({"cudnnActivationForward": None}, "p:handle p:activationDesc p:alpha p:xDesc p:x p:beta p:yDesc p:y")
def activate(call: Call[None]) -> Work:
    """Compute y = alpha activation(x) + beta y."""
    x, y = given(call, "x", "y")
    (alpha, beta), activation = _factors(call, y), Activation(call)
    require(call, x.dimensions == y.dimensions)
    return lambda: y.blend(call, activation.forward(_read(call, x)), alpha, beta)


@computes({"cudnnActivationBackward": None}, "p:handle p:activationDesc p:alpha p:yDesc p:y p:dyDesc p:dy p:xDesc p:x "
          "p:beta p:dxDesc p:dx")  # fmt: skip
def activate_backward(call: Call[None]) -> Work:
    """Compute dx = alpha activation'(x) dy + beta dx. Most slopes follow from y, and x is not read."""
    y, dy, dx = given(call, "y", "dy", "dx")
    (alpha, beta), activation = _factors(call, dx), Activation(call)
    x = given(call, "x")[0] if activation.needs_input else y
    require(call, y.dimensions == dy.dimensions == dx.dimensions == x.dimensions)
    return lambda: dx.blend(call, _read(call, dy) * activation.slope(_read(call, x)), alpha, beta)


def _together(mode: int, of: Tensor) -> tuple[int, ...]:
    """Return the dimensions whose elements a softmax takes together."""
    return (1,) if mode == OF_CHANNELS else tuple(range(1, len(of.dimensions)))


@computes({"cudnnSoftmaxForward": None}, "p:handle e:algorithm e:mode p:alpha p:xDesc p:x p:beta p:yDesc p:y")
def softmax(call: Call[None]) -> Work:
    """Compute the softmax, or its logarithm, of the elements of a sample or of each place in it."""
    x, y = given(call, "x", "y")
    alpha, beta = _factors(call, y)
    algorithm, mode = call.arguments.algorithm, call.arguments.mode
    require(call, x.dimensions == y.dimensions, 0 <= algorithm <= LOGARITHM, mode in (0, OF_CHANNELS))
    along = _together(mode, x)

    def run() -> None:
        values = _read(call, x)
        values = values - values.max(along, keepdims=True)
        total = np.exp(values).sum(along, keepdims=True)
        y.blend(call, values - np.log(total) if algorithm == LOGARITHM else np.exp(values) / total, alpha, beta)

    return run


@computes({"cudnnSoftmaxBackward": None}, "p:handle e:algorithm e:mode p:alpha p:yDesc p:y p:dyDesc p:dy p:beta "
          "p:dxDesc p:dx")  # fmt: skip
def softmax_backward(call: Call[None]) -> Work:
    """Compute dx from y and dy."""
    y, dy, dx = given(call, "y", "dy", "dx")
    alpha, beta = _factors(call, dx)
    algorithm, mode = call.arguments.algorithm, call.arguments.mode
    require(call, y.dimensions == dy.dimensions == dx.dimensions, 0 <= algorithm <= LOGARITHM)
    along = _together(mode, y)

    def run() -> None:
        result, gradient = _read(call, y), _read(call, dy)
        if algorithm == LOGARITHM:
            made = gradient - np.exp(result) * gradient.sum(along, keepdims=True)
        else:
            made = result * (gradient - (result * gradient).sum(along, keepdims=True))
        dx.blend(call, made, alpha, beta)

    return run


@computes({"cudnnAddTensor": None}, "p:handle p:alpha p:aDesc p:A p:beta p:cDesc p:C")
def add(call: Call[None]) -> Work:
    """Compute C = alpha A + beta C, of which A may have one element in a dimension."""
    of = call.arguments
    require(call, of.A != 0, of.C != 0)
    a, c = tensor(call, "A", "aDesc", of.A), tensor(call, "C", "cDesc", of.C)
    alpha, beta = _factors(call, c)
    require(call, _spreads(a, c))
    return lambda: c.blend(call, _read(call, a), alpha, beta)


@computes({"cudnnOpTensor": None}, "p:handle p:opTensorDesc p:alpha1 p:aDesc p:A p:alpha2 p:bDesc p:B p:beta p:cDesc "
          "p:C")  # fmt: skip
def operate(call: Call[None]) -> Work:
    """Compute C = op(alpha1 A, alpha2 B) + beta C. The square root and NOT have one operand."""
    of = call.arguments
    kind, _ = operation(call, "opTensorDesc")
    require(call, of.A != 0, of.C != 0, kind in (*_BINARY, ROOT, NOT))
    a, c = tensor(call, "A", "aDesc", of.A), tensor(call, "C", "cDesc", of.C)
    first, beta = factor(call, "alpha1", c.element), factor(call, "beta", c.element)
    require(call, a.dimensions == c.dimensions)
    if kind not in _BINARY:
        return lambda: c.blend(call, _unary(kind, first * _read(call, a)), 1, beta)
    require(call, of.B != 0)
    b, second = tensor(call, "B", "bDesc", of.B), factor(call, "alpha2", c.element)
    require(call, _spreads(b, c))
    computed = computed_with(a.element, b.element)

    def run() -> None:
        one, other = a.read(call).astype(computed), b.read(call).astype(computed)
        c.blend(call, _BINARY[kind](computed.type(first) * one, computed.type(second) * other), 1, beta)

    return run


def _unary(kind: int, values: Array) -> Array:
    return np.asarray(np.sqrt(values) if kind == ROOT else 1 - values)


@computes({"cudnnReduceTensor": None}, "p:handle p:reduceTensorDesc p:indices z:indices_bytes p:workspace "
          "z:workspace_bytes p:alpha p:aDesc p:A p:beta p:cDesc p:C")  # fmt: skip
def reduce(call: Call[None]) -> Work:
    """Reduce A along the dimensions in which C has one element."""
    of = call.arguments
    kind, wants_indices = operation(call, "reduceTensorDesc")
    if wants_indices:
        raise NotDescribed("indices of elements are not described")
    require(call, of.A != 0, of.C != 0)
    a, c = tensor(call, "A", "aDesc", of.A), tensor(call, "C", "cDesc", of.C)
    alpha, beta = _factors(call, c)
    wanted = 4 * c.count
    require(call, of.workspace_bytes >= wanted)
    reduced = reduction(kind, a.dimensions, c.dimensions)

    def run() -> None:
        call.use("workspace", of.workspace, wanted)
        c.blend(call, reduced(_read(call, a)), alpha, beta)

    return run


@computes({"cudnnTransformTensor": None}, "p:handle p:alpha p:xDesc p:x p:beta p:yDesc p:y")
def transform(call: Call[None]) -> Work:
    """Compute y = alpha x + beta y, of tensors with other strides."""
    x, y = given(call, "x", "y")
    alpha, beta = _factors(call, y)
    require(call, x.dimensions == y.dimensions)
    return lambda: y.blend(call, _read(call, x), alpha, beta)


@computes({"cudnnScaleTensor": None}, "p:handle p:yDesc p:y p:alpha")
def scale(call: Call[None]) -> Work:
    """Compute y = alpha y."""
    (y,) = given(call, "y")
    alpha = factor(call, "alpha", y.element)
    return lambda: y.blend(call, _read(call, y), alpha, 0)


@computes({"cudnnSetTensor": None}, "p:handle p:yDesc p:y p:value")
def fill(call: Call[None]) -> Work:
    """Set all elements to a value of their type, which lies in the host's memory."""
    (y,) = given(call, "y")
    require(call, call.arguments.value != 0)
    value = y.element.decode(call.host("value", call.arguments.value, y.element.stored))
    return lambda: y.write(call, value.reshape((1,) * len(y.dimensions)))

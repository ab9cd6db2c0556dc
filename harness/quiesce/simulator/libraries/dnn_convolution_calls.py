"""cuDNN: the functions that convolve, by descriptors. Their algorithms differ here in their workspaces alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.dnn_convolutions import Convolution
from quiesce.simulator.libraries.dnn_descriptors import Activation, convolution, factor, given, tensor
from quiesce.simulator.libraries.dnn_tensors import Tensor, computed_with, require
from quiesce.simulator.libraries.table import Call, Work, computes

_WORKSPACE: Final = "p:convDesc e:algorithm p:workspace z:workspace_bytes"


def _workspace(call: Call[Any], w: Tensor) -> int:
    """Return how much of its workspace a call uses: as much as ``native/libraries/dnn_descriptors.c`` says."""
    of = call.arguments
    wanted = 4 * w.count if of.algorithm else 0
    require(call, of.workspace_bytes >= wanted, of.workspace != 0 or wanted == 0)
    return wanted


def _read(call: Call[Any], tensors: tuple[Tensor, ...]) -> list[Array]:
    """Return the elements of the operands, in the type that computes with theirs."""
    computed = computed_with(*(each.element for each in tensors))
    return [each.read(call).astype(computed, copy=False) for each in tensors]


def _blends(
    call: Call[None],
    of: tuple[Tensor, Tensor, Tensor],
    operands: tuple[Tensor, Tensor],
    made: Tensor,
    compute: Callable[[Convolution, Array, Array], Array],
) -> Work:
    """Return what computes alpha times a convolution's result plus beta times what was there; ``of``: x, w and y."""
    alpha, beta = factor(call, "alpha", made.element), factor(call, "beta", made.element)
    described, workspace = convolution(call, *of), _workspace(call, of[1])

    def run() -> None:
        call.use("workspace", call.arguments.workspace, workspace)
        made.blend(call, compute(described, *_read(call, operands)), alpha, beta)

    return run


@computes(
    {"cudnnConvolutionForward": None}, f"p:handle p:alpha p:xDesc p:x p:wDesc p:w {_WORKSPACE} p:beta p:yDesc p:y"
)
def forward(call: Call[None]) -> Work:
    """Compute y = alpha (w * x) + beta y."""
    x, w, y = given(call, "x", "w", "y")
    return _blends(call, (x, w, y), (x, w), y, Convolution.forward)


@computes({"cudnnConvolutionBackwardData": None},
          f"p:handle p:alpha p:wDesc p:w p:dyDesc p:dy {_WORKSPACE} p:beta p:dxDesc p:dx")  # fmt: skip
def backward_data(call: Call[None]) -> Work:
    """Compute dx from w and dy."""
    w, dy, dx = given(call, "w", "dy", "dx")
    return _blends(call, (dx, w, dy), (w, dy), dx, lambda of, *read: of.backward_data(*read, dx.dimensions))


@computes({"cudnnConvolutionBackwardFilter": None},
          f"p:handle p:alpha p:xDesc p:x p:dyDesc p:dy {_WORKSPACE} p:beta p:dwDesc p:dw")  # fmt: skip
def backward_filter(call: Call[None]) -> Work:
    """Compute dw from x and dy."""
    x, dy, dw = given(call, "x", "dy", "dw")
    return _blends(call, (x, dw, dy), (x, dy), dw, lambda of, *read: of.backward_filter(*read, dw.dimensions))


@computes({"cudnnConvolutionBackwardBias": None}, "p:handle p:alpha p:dyDesc p:dy p:beta p:dbDesc p:db")
def backward_bias(call: Call[None]) -> Work:
    """Compute db: the sum of dy along all dimensions but the channels."""
    dy, db = given(call, "dy", "db")
    alpha, beta = factor(call, "alpha", db.element), factor(call, "beta", db.element)
    along = tuple(axis for axis in range(len(dy.dimensions)) if axis != 1)
    require(call, db.dimensions == tuple(1 if axis in along else each for axis, each in enumerate(dy.dimensions)))
    computed = computed_with(dy.element)
    return lambda: db.blend(call, dy.read(call).astype(computed).sum(along, keepdims=True), alpha, beta)


@computes({"cudnnConvolutionBiasActivationForward": None},
          f"p:handle p:alpha1 p:xDesc p:x p:wDesc p:w {_WORKSPACE} p:alpha2 p:zDesc p:z p:biasDesc p:bias "
          "p:activationDesc p:yDesc p:y")  # fmt: skip
def fused(call: Call[None]) -> Work:
    """Compute y = activation(alpha1 (w * x) + alpha2 z + bias)."""
    x, w, bias, y = given(call, "x", "w", "bias", "y")
    of, workspace, activation = convolution(call, x, w, y), _workspace(call, w), Activation(call)
    alpha, side = factor(call, "alpha1", y.element), factor(call, "alpha2", y.element)
    z = tensor(call, "z", "zDesc", call.arguments.z) if side else None
    computed = computed_with(x.element, w.element)

    def run() -> None:
        call.use("workspace", call.arguments.workspace, workspace)
        inputs, filters = _read(call, (x, w))
        made = computed.type(alpha) * of.forward(inputs, filters)
        if z is not None:
            made = made + computed.type(side) * z.read(call).astype(computed)
        y.write(call, activation.forward(made + bias.read(call).astype(computed)))

    return run

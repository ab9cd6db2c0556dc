"""cuDNN: batch normalization, for inference, training and backward, with an activation after it or without one.

Statistics are those of a channel, or in the mode "per activation" those of each element of a sample. "The running
variance is the unbiased one" (cuDNN, ``cudnnBatchNormalizationForwardTraining``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from quiesce.simulator.libraries.conversation import Array
from quiesce.simulator.libraries.dnn_descriptors import Activation, factor, given, tensor
from quiesce.simulator.libraries.dnn_tensors import Tensor, computed_with, require
from quiesce.simulator.libraries.table import Call, Work, computes

PER_ACTIVATION: Final = 0  # cudnnBatchNormMode_t
PLAIN, ACTIVATED, ADDED = range(3)  # cudnnBatchNormOps_t


@dataclass(frozen=True, slots=True)
class Normalization:
    """Tensors of one call, and what they have in common."""

    call: Call[Any]
    x: Tensor
    parameters: Tensor
    """Of the scale: all others are like it."""
    along: tuple[int, ...]
    computed: np.dtype[Any]

    @classmethod
    def of(cls, call: Call[Any], x: Tensor, descriptor: str) -> Normalization:
        """Return it for an input. Refuses parameters that do not fit."""
        parameters = tensor(call, "bnScale", descriptor, call.arguments.bnScale)
        axes = range(len(x.dimensions))
        along = (0,) if call.arguments.mode == PER_ACTIVATION else tuple(axis for axis in axes if axis != 1)
        wanted = tuple(1 if axis in along else length for axis, length in enumerate(x.dimensions))
        require(call, 0 <= call.arguments.mode <= 2, parameters.dimensions == wanted, parameters.address != 0)
        return cls(call, x, parameters, along, computed_with(x.element, parameters.element))

    @property
    def count(self) -> int:
        """Return of how many elements one statistic is."""
        return self.x.count // self.parameters.count

    def at(self, operand: str) -> Tensor:
        """Return a tensor like the scale."""
        of = self.parameters
        return Tensor(operand, getattr(self.call.arguments, operand), of.element, of.dimensions, of.strides)

    def read(self, of: Tensor) -> Array:
        """Return elements to compute with."""
        return of.read(self.call).astype(self.computed, copy=False)

    def keep(self, operand: str, values: Array) -> None:
        """Write a statistic, where it is wanted."""
        to = self.at(operand)
        if to.address:
            to.write(self.call, values)

    def update(self, operand: str, values: Array, weight: float) -> None:
        """Write a running average: what was there is not read where it weighs nothing."""
        to = self.at(operand)
        if to.address:
            to.blend(self.call, values, weight, 1 - weight)

    def statistics(self, values: Array, epsilon: float) -> tuple[Array, Array, Array]:
        """Return the mean, the variance and what elements are multiplied by."""
        mean = values.mean(self.along, keepdims=True, dtype=np.float64)
        variance = values.var(self.along, keepdims=True, dtype=np.float64)
        return mean, variance, 1 / np.sqrt(variance + epsilon)

    def saved(self, values: Array) -> tuple[Array, Array]:
        """Return the mean and the inverse deviation that the forward pass kept, or else compute them again."""
        mean, inverse = self.at("savedMean"), self.at("savedInvVariance")
        if mean.address:
            return self.read(mean), self.read(inverse)
        found, _, scale = self.statistics(values, self.call.arguments.epsilon)
        return found, scale


@computes({"cudnnBatchNormalizationForwardInference": None}, "p:handle e:mode p:alpha p:beta p:xDesc p:x p:yDesc p:y "
          "p:bnScaleBiasMeanVarDesc p:bnScale p:bnBias p:estimatedMean p:estimatedVariance d:epsilon")  # fmt: skip
def infer(call: Call[None]) -> Work:
    """Compute y from statistics that are given."""
    x, y = given(call, "x", "y")
    alpha, beta = factor(call, "alpha", y.element), factor(call, "beta", y.element)
    of = Normalization.of(call, x, "bnScaleBiasMeanVarDesc")
    require(call, x.dimensions == y.dimensions)
    scale, bias, mean, variance = map(of.at, ("bnScale", "bnBias", "estimatedMean", "estimatedVariance"))
    require(call, *(each.address != 0 for each in (bias, mean, variance)))

    def run() -> None:
        inverse = 1 / np.sqrt(of.read(variance) + of.computed.type(call.arguments.epsilon))
        made = of.read(scale) * (of.read(x) - of.read(mean)) * inverse + of.read(bias)
        y.blend(call, made, alpha, beta)

    return run


_TRAINED: Final = (
    "p:bnScaleBiasMeanVarDesc p:bnScale p:bnBias d:factor p:resultRunningMean p:resultRunningVariance d:epsilon "
    "p:resultSaveMean p:resultSaveInvVariance"
)


def _train(call: Call[None], operations: int) -> Work:
    of = call.arguments
    x, y = given(call, "x", "y")
    alpha, beta = factor(call, "alpha", y.element), factor(call, "beta", y.element)
    by = Normalization.of(call, x, "bnScaleBiasMeanVarDesc")
    require(call, x.dimensions == y.dimensions, of.bnBias != 0)
    require(call, (of.resultRunningMean == 0) == (of.resultRunningVariance == 0))
    activation = Activation(call) if operations else None
    z = given(call, "z")[0] if operations == ADDED else None

    def run() -> None:
        if operations:
            call.use("reserveSpace", of.reserveSpace, 4 * x.count)
        values = by.read(x)
        mean, variance, inverse = by.statistics(values, of.epsilon)
        made = by.read(by.at("bnScale")) * ((values - mean) * inverse) + by.read(by.at("bnBias"))
        if z is not None:
            made = made + by.read(z)
        made = made.astype(by.computed)
        y.blend(call, activation.forward(made) if activation else made, alpha, beta)
        by.update("resultRunningMean", mean, of.factor)
        by.update("resultRunningVariance", variance * by.count / max(1, by.count - 1), of.factor)
        by.keep("resultSaveMean", mean)
        by.keep("resultSaveInvVariance", inverse)

    return run


@computes({"cudnnBatchNormalizationForwardTraining": None},
          f"p:handle e:mode p:alpha p:beta p:xDesc p:x p:yDesc p:y {_TRAINED}")  # fmt: skip
def train(call: Call[None]) -> Work:
    """Compute y from the statistics of x, which are kept and averaged."""
    return _train(call, PLAIN)


_WORKSPACES: Final = "p:activationDesc p:workspace z:workspace_bytes p:reserveSpace z:reserve_bytes"


def _with_workspaces(call: Call[None], work: Work, parameters: int, reserved: int) -> Work:
    """Return work that uses its workspace as ``native/libraries/dnn_calls.inc`` says, besides what it does."""
    of = call.arguments
    require(call, of.workspace_bytes >= 4 * parameters, of.reserve_bytes >= reserved)

    def run() -> None:
        call.use("workspace", of.workspace, 4 * parameters)
        assert work is not None
        work()

    return run


def _sizes(call: Call[None], descriptor: str) -> tuple[int, int]:
    parameters = tensor(call, "bnScale", descriptor, 0).count
    return parameters, 4 * tensor(call, "x", "xDesc", 0).count if call.arguments.operations else 0


@computes({"cudnnBatchNormalizationForwardTrainingEx": None}, "p:handle e:mode e:operations p:alpha p:beta p:xDesc p:x "
          f"p:zDesc p:z p:yDesc p:y {_TRAINED} {_WORKSPACES}")  # fmt: skip
def train_with(call: Call[None]) -> Work:
    """Compute the same, with an activation after it, and before that with z added."""
    require(call, PLAIN <= call.arguments.operations <= ADDED)
    return _with_workspaces(call, _train(call, call.arguments.operations), *_sizes(call, "bnScaleBiasMeanVarDesc"))


_FACTORS: Final = "p:alphaDataDiff p:betaDataDiff p:alphaParamDiff p:betaParamDiff"


def _backward(call: Call[None], operations: int, results: tuple[str, str]) -> Work:
    of = call.arguments
    x, dy, dx = given(call, "x", "dy", "dx")
    data = [factor(call, name, dx.element) for name in ("alphaDataDiff", "betaDataDiff")]
    by = Normalization.of(call, x, "dBnScaleBiasDesc")
    parameters = [factor(call, name, by.parameters.element) for name in ("alphaParamDiff", "betaParamDiff")]
    require(call, x.dimensions == dy.dimensions == dx.dimensions, *(getattr(of, name) != 0 for name in results))
    require(call, (of.savedMean == 0) == (of.savedInvVariance == 0))
    activation = Activation(call) if operations else None
    y = given(call, "y")[0] if operations else None
    dz = given(call, "dz")[0] if operations == ADDED else None

    def run() -> None:
        if operations:
            call.read("reserveSpace", of.reserveSpace, np.float32, x.count)
        values, gradient = by.read(x), by.read(dy)
        if activation is not None and y is not None:
            gradient = gradient * activation.slope(by.read(y))
        mean, inverse = by.saved(values)
        normal = (values - mean) * inverse
        scale = by.read(by.at("bnScale"))
        d_bias = gradient.sum(by.along, keepdims=True)
        d_scale = (gradient * normal).sum(by.along, keepdims=True)
        made = scale * inverse * (gradient - d_bias / by.count - normal * (d_scale / by.count))
        dx.blend(call, made.astype(by.computed), data[0], data[1])
        for name, value in zip(results, (d_scale, d_bias), strict=True):
            by.at(name).blend(call, value.astype(by.computed), parameters[0], parameters[1])
        if dz is not None:
            dz.write(call, gradient)

    return run


@computes({"cudnnBatchNormalizationBackward": None}, f"p:handle e:mode {_FACTORS} p:xDesc p:x p:dyDesc p:dy p:dxDesc "
          "p:dx p:dBnScaleBiasDesc p:bnScale p:dBnScale p:dBnBias d:epsilon p:savedMean "
          "p:savedInvVariance")  # fmt: skip
def backward(call: Call[None]) -> Work:
    """Compute the gradients of x, the scale and the bias."""
    return _backward(call, PLAIN, ("dBnScale", "dBnBias"))


@computes({"cudnnBatchNormalizationBackwardEx": None}, f"p:handle e:mode e:operations {_FACTORS} p:xDesc p:x p:yDesc "
          "p:y p:dyDesc p:dy p:dzDesc p:dz p:dxDesc p:dx p:dBnScaleBiasDesc p:bnScale p:bnBias p:dBnScale p:dBnBias "
          f"d:epsilon p:savedMean p:savedInvVariance {_WORKSPACES}")  # fmt: skip
def backward_with(call: Call[None]) -> Work:
    """Compute the same, through an activation and what was added."""
    require(call, PLAIN <= call.arguments.operations <= ADDED)
    work = _backward(call, call.arguments.operations, ("dBnScale", "dBnBias"))
    return _with_workspaces(call, work, *_sizes(call, "dBnScaleBiasDesc"))

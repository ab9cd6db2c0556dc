"""cuDNN's functions compute as NumPy and SciPy do, by descriptors that hold what they are told."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("scipy")

from scipy import special
from tests.simulator.dnn_programs import FLOAT, Dnn, channels_last, convolved, random, rows
from tests.simulator.library_programs import Array

MakeLibraries = Callable[..., Any]
WRONG, NULL, NOT_SUPPORTED = 2000, 2002, 3000


@pytest.fixture
def on(libraries: MakeLibraries) -> Iterator[Dnn]:
    """A machine; nothing of what a test does there is wrong."""
    made = libraries(Dnn)
    yield made
    assert made.findings() == ()


SHAPES = [
    ((2, 3, 7, 8), (4, 3, 3, 3), (1, 1), (1, 1), (1, 1)),
    ((2, 4, 9, 8), (6, 2, 3, 2), (0, 2), (2, 3), (2, 1)),
    ((2, 2, 4, 5, 6), (3, 2, 2, 3, 2), (1, 0, 1), (1, 2, 1), (1, 1, 2)),
]


class Problem:
    """A convolution with its tensors."""

    def __init__(self, on: Dnn, index: int) -> None:
        x_shape, w_shape, pads, strides, dilations = SHAPES[index]
        self.on, self.geometry = on, (pads, strides, dilations)
        self.x, self.w = random(*x_shape), random(*w_shape, seed=1)
        self.y = convolved(self.x, self.w, *self.geometry)
        self.dy = random(*self.y.shape, seed=2)
        self.descriptor = on.convolution(*self.geometry, groups=x_shape[1] // w_shape[1])
        self.filter = on.filter(w_shape)

    def workspace(self, direction: str, *descriptors: int, algorithm: int = 1) -> tuple[int, int]:
        """Return a workspace as large as an algorithm wants it, and its size."""
        size = ctypes.c_size_t()
        self.on.ok_dnn(
            f"GetConvolution{direction}WorkspaceSize", self.on.dnn, *descriptors, algorithm, ctypes.byref(size)
        )
        assert size.value == (4 * self.w.size if algorithm else 0)
        return (self.on.room(size.value) if size.value else 0), size.value


@pytest.mark.parametrize("algorithm", [0, 1])
@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_convolutions(on: Dnn, index: int, algorithm: int) -> None:
    of = Problem(on, index)
    x, y, before = on.shaped(of.x.shape), on.shaped(of.y.shape), random(*of.y.shape, seed=3)
    lengths = (ctypes.c_int * of.x.ndim)()
    on.ok_dnn("GetConvolutionNdForwardOutputDim", of.descriptor, x, of.filter, of.x.ndim, lengths)
    assert tuple(lengths) == of.y.shape
    work = of.workspace("Forward", x, of.filter, of.descriptor, y, algorithm=algorithm)
    at = on.place(before)
    on.ok_dnn(
        "ConvolutionForward", on.dnn, on.host(2), x, on.place(of.x), of.filter, on.place(of.w), of.descriptor,
        algorithm, *work, on.host(3), y, at,
    )  # fmt: skip
    assert np.allclose(on.taken(at, of.y.shape), 2 * of.y + 3 * before, atol=1e-5)


@pytest.mark.parametrize("index", range(len(SHAPES)))
def test_gradients_are_adjoint(on: Dnn, index: int) -> None:
    of = Problem(on, index)
    x, dy = on.shaped(of.x.shape), on.shaped(of.y.shape)
    dx, dw = on.room(of.x.nbytes), on.room(of.w.nbytes)
    one, zero = on.host(1), on.host(0)
    work = of.workspace("BackwardData", of.filter, dy, of.descriptor, x)
    on.ok_dnn("ConvolutionBackwardData", on.dnn, one, of.filter, on.place(of.w), dy, on.place(of.dy), of.descriptor, 1,
              *work, zero, x, dx)  # fmt: skip
    work = of.workspace("BackwardFilter", x, dy, of.descriptor, of.filter)
    on.ok_dnn("ConvolutionBackwardFilter", on.dnn, one, x, on.place(of.x), dy, on.place(of.dy), of.descriptor, 1, *work,
              zero, of.filter, dw)  # fmt: skip
    found_x, found_w = on.taken(dx, of.x.shape), on.taken(dw, of.w.shape)
    for seed in (5, 6, 7):
        along_x, along_w = random(*of.x.shape, seed=seed), random(*of.w.shape, seed=seed)
        wanted = (of.dy * convolved(along_x, of.w, *of.geometry)).sum()
        assert np.isclose((found_x * along_x).sum(), wanted, rtol=1e-3, atol=1e-4)
        wanted = (of.dy * convolved(of.x, along_w, *of.geometry)).sum()
        assert np.isclose((found_w * along_w).sum(), wanted, rtol=1e-3, atol=1e-4)


def test_biases(on: Dnn) -> None:
    dy = random(2, 3, 4, 5)
    db = on.room(12)
    shape = on.shaped((1, 3, 1, 1))
    on.ok_dnn("ConvolutionBackwardBias", on.dnn, on.host(1), *on.tensors(dy), on.host(0), shape, db)
    assert np.allclose(on.taken(db, (3,)), dy.sum((0, 2, 3)), atol=1e-5)


@pytest.mark.parametrize("side", [0, 2])
def test_an_activation_after_a_convolution(on: Dnn, side: int) -> None:
    of = Problem(on, 0)
    bias, z = random(1, 4, 1, 1, seed=4), random(*of.y.shape, seed=5)
    x, y = on.shaped(of.x.shape), on.shaped(of.y.shape)
    relu = on.filled("ActivationDescriptor", "SetActivationDescriptor", 1, 0, ctypes.c_double(0))
    at = on.room(of.y.nbytes)
    on.ok_dnn(
        "ConvolutionBiasActivationForward", on.dnn, on.host(1), x, on.place(of.x), of.filter, on.place(of.w),
        of.descriptor, 1, *of.workspace("Forward", x, of.filter, of.descriptor, y), on.host(side), y,
        on.place(z) if side else at, *on.tensors(bias), relu, y, at,
    )  # fmt: skip
    assert np.allclose(on.taken(at, of.y.shape), np.maximum(of.y + side * z + bias, 0), atol=1e-5)


def test_algorithms_are_offered_with_their_workspaces(on: Dnn) -> None:
    of = Problem(on, 0)
    x, y = on.shaped(of.x.shape), on.shaped(of.y.shape)
    results, count = np.zeros((3, 12), np.int32), ctypes.c_int()
    for name in ("GetConvolutionForwardAlgorithm_v7", "FindConvolutionForwardAlgorithm"):
        on.ok_dnn(
            name, on.dnn, x, of.filter, of.descriptor, y, 3, ctypes.byref(count), ctypes.c_void_p(results.ctypes.data)
        )
        assert count.value == 2
        assert [(row[0], row[1], row[4]) for row in results[:2].tolist()] == [(1, 0, 4 * of.w.size), (0, 0, 0)]
    on.ok_dnn("GetConvolutionBackwardFilterAlgorithmMaxCount", on.dnn, ctypes.byref(count))
    assert count.value == 2


ACTIVATIONS: dict[int, Any] = {
    0: special.expit, 1: lambda x: np.maximum(x, 0), 2: np.tanh, 3: lambda x: np.clip(x, 0, 0.5),
    4: lambda x: np.where(x > 0, x, 0.5 * np.expm1(x)), 5: np.copy, 6: lambda x: x * special.expit(x),
}  # fmt: skip


@pytest.mark.parametrize("mode", ACTIVATIONS)
def test_activations_and_their_gradients(on: Dnn, mode: int) -> None:
    of = on.filled("ActivationDescriptor", "SetActivationDescriptor", mode, 0, ctypes.c_double(0.5))
    x, dy = random(2, 3, 4, dtype=np.float64), random(2, 3, 4, seed=1, dtype=np.float64)
    one, zero = on.host(1, dtype=np.float64), on.host(0, dtype=np.float64)
    given, y = on.tensors(x), on.room(x.nbytes)
    on.ok_dnn("ActivationForward", on.dnn, of, one, *given, zero, given[0], y)
    assert np.allclose(on.taken(y, x.shape, dtype=np.float64), ACTIVATIONS[mode](x))
    dx = on.room(x.nbytes)
    on.ok_dnn("ActivationBackward", on.dnn, of, one, given[0], y, *on.tensors(dy), *given, zero, given[0], dx)
    slope = (ACTIVATIONS[mode](x + 1e-7) - ACTIVATIONS[mode](x - 1e-7)) / 2e-7
    assert np.allclose(on.taken(dx, x.shape, dtype=np.float64), slope * dy, atol=1e-6)


@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("algorithm", [0, 1, 2])
def test_softmax_and_its_gradient(on: Dnn, algorithm: int, mode: int) -> None:
    x, dy = random(2, 3, 4, 2, dtype=np.float64), random(2, 3, 4, 2, seed=1, dtype=np.float64)
    along: Any = 1 if mode else (1, 2, 3)

    def wanted(x: Array) -> Array:
        made: Array = special.log_softmax(x, along) if algorithm == 2 else special.softmax(x, along)
        return made

    one, zero = on.host(1, dtype=np.float64), on.host(0, dtype=np.float64)
    given, y, dx = on.tensors(x), on.room(x.nbytes), on.room(x.nbytes)
    on.ok_dnn("SoftmaxForward", on.dnn, algorithm, mode, one, *given, zero, given[0], y)
    assert np.allclose(on.taken(y, x.shape, dtype=np.float64), wanted(x))
    on.ok_dnn("SoftmaxBackward", on.dnn, algorithm, mode, one, given[0], y, *on.tensors(dy), zero, given[0], dx)
    found = on.taken(dx, x.shape, dtype=np.float64)
    for seed in (3, 4):
        along_x = random(*x.shape, seed=seed, dtype=np.float64)
        slope = (wanted(x + 1e-6 * along_x) - wanted(x - 1e-6 * along_x)) / 2e-6
        assert np.isclose((found * along_x).sum(), (dy * slope).sum(), atol=1e-7)


def pooled(x: Array, mode: int, windows: tuple[int, int], pads: tuple[int, int], strides: tuple[int, int]) -> Array:
    """Return what pooling makes, an element at a time."""
    shape = [1 + (n + 2 * p - w) // s for n, p, w, s in zip(x.shape[2:], pads, windows, strides, strict=True)]
    made = np.zeros((*x.shape[:2], *shape), x.dtype)
    for at in itertools.product(*map(range, made.shape)):
        starts = [index * stride - pad for index, stride, pad in zip(at[2:], strides, pads, strict=True)]
        inside = [slice(max(0, start), start + window) for start, window in zip(starts, windows, strict=True)]
        index: tuple[Any, ...] = (*at[:2], *inside)
        seen = x[index]
        count = np.prod(windows) if mode == 1 else seen.size
        made[at] = seen.max() if mode in (0, 3) else seen.sum() / count
    return made


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("geometry", [((2, 2), (0, 0), (2, 2)), ((3, 2), (1, 1), (2, 1))])
def test_pooling_and_its_gradient(on: Dnn, mode: int, geometry: Any) -> None:
    windows, pads, strides = geometry
    of = on.filled("PoolingDescriptor", "SetPooling2dDescriptor", mode, 0, *windows, *pads, *strides)
    x = random(2, 3, 7, 6, dtype=np.float64)
    wanted = pooled(x, mode, *geometry)
    dy = random(*wanted.shape, seed=1, dtype=np.float64)
    given, lengths = on.tensors(x), [ctypes.c_int() for _ in range(4)]
    on.ok_dnn("GetPooling2dForwardOutputDim", of, given[0], *map(ctypes.byref, lengths))
    assert tuple(each.value for each in lengths) == wanted.shape
    one, zero = on.host(1, dtype=np.float64), on.host(0, dtype=np.float64)
    result, y, dx = on.tensors(dy), on.room(wanted.nbytes), on.room(x.nbytes)
    on.ok_dnn("PoolingForward", on.dnn, of, one, *given, zero, result[0], y)
    assert np.allclose(on.taken(y, wanted.shape, dtype=np.float64), wanted)
    on.ok_dnn("PoolingBackward", on.dnn, of, one, result[0], y, *result, *given, zero, given[0], dx)
    found = on.taken(dx, x.shape, dtype=np.float64)
    for seed in (3, 4):
        along = random(*x.shape, seed=seed, dtype=np.float64)
        slope = (pooled(x + 1e-7 * along, mode, *geometry) - pooled(x - 1e-7 * along, mode, *geometry)) / 2e-7
        assert np.isclose((found * along).sum(), (dy * slope).sum(), atol=1e-6)


class Normalized:
    """A batch and parameters of its normalization."""

    def __init__(self, on: Dnn, mode: int) -> None:
        self.along: Any = (0, 2, 3) if mode else (0,)
        self.x, self.dy = random(4, 3, 2, 5, dtype=np.float64), random(4, 3, 2, 5, seed=1, dtype=np.float64)
        shape = (1, 3, 1, 1) if mode else (1, 3, 2, 5)
        self.scale, self.bias, self.mean, self.variance = (
            random(*shape, seed=seed, dtype=np.float64) + offset for seed, offset in ((2, 2), (3, 0), (4, 0), (5, 2))
        )
        self.given = on.tensors(self.x)
        self.derived = on.descriptor("TensorDescriptor")
        on.ok_dnn("DeriveBNTensorDescriptor", self.derived, self.given[0], mode)
        found = (ctypes.c_int * 4)()
        on.ok_dnn("GetTensorNdDescriptor", self.derived, 4, None, None, found, None)
        assert tuple(found) == shape
        self.at = {name: on.place(getattr(self, name)) for name in ("scale", "bias", "mean", "variance")}

    def normal(self, x: Array) -> Array:
        mean, variance = x.mean(self.along, keepdims=True), x.var(self.along, keepdims=True)
        return np.asarray((x - mean) / np.sqrt(variance + 0.01))


EPSILON = ctypes.c_double(0.01)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_normalization_of_batches(on: Dnn, mode: int) -> None:
    of, one, zero = Normalized(on, mode), on.host(1, dtype=np.float64), on.host(0, dtype=np.float64)
    y, saved, inverse = (on.room(of.x.nbytes) for _ in range(3))
    at = of.at
    on.ok_dnn("BatchNormalizationForwardInference", on.dnn, mode, one, zero, *of.given, of.given[0], y, of.derived,
              *at.values(), EPSILON)  # fmt: skip
    wanted = of.scale * (of.x - of.mean) / np.sqrt(of.variance + 0.01) + of.bias
    assert np.allclose(on.taken(y, of.x.shape, dtype=np.float64), wanted)
    on.ok_dnn("BatchNormalizationForwardTraining", on.dnn, mode, one, zero, *of.given, of.given[0], y, of.derived,
              at["scale"], at["bias"], ctypes.c_double(0.25), at["mean"], at["variance"], EPSILON, saved,
              inverse)  # fmt: skip
    assert np.allclose(on.taken(y, of.x.shape, dtype=np.float64), of.scale * of.normal(of.x) + of.bias)
    mean, unbiased = of.x.mean(of.along, keepdims=True), of.x.var(of.along, keepdims=True, ddof=1)
    for name, new in (("mean", mean), ("variance", unbiased)):
        assert np.allclose(on.taken(at[name], new.shape, dtype=np.float64), 0.75 * getattr(of, name) + 0.25 * new)
    assert np.allclose(on.taken(saved, mean.shape, dtype=np.float64), mean)
    dx, d_scale, d_bias = (on.room(of.x.nbytes) for _ in range(3))
    for kept in ((saved, inverse), (0, 0)):
        on.ok_dnn("BatchNormalizationBackward", on.dnn, mode, one, zero, one, zero, *of.given, *on.tensors(of.dy),
                  of.given[0], dx, of.derived, at["scale"], d_scale, d_bias, EPSILON, *kept)  # fmt: skip
        shape = of.scale.shape
        wanted = (of.dy * of.normal(of.x)).sum(of.along, keepdims=True)
        assert np.allclose(on.taken(d_scale, shape, dtype=np.float64), wanted)
        assert np.allclose(on.taken(d_bias, shape, dtype=np.float64), of.dy.sum(of.along, keepdims=True))
        along = random(*of.x.shape, seed=9, dtype=np.float64)
        slope = (of.normal(of.x + 1e-6 * along) - of.normal(of.x - 1e-6 * along)) / 2e-6
        found = on.taken(dx, of.x.shape, dtype=np.float64)
        assert np.isclose((found * along).sum(), (of.dy * of.scale * slope).sum(), atol=1e-6)


@pytest.mark.parametrize("operations", [0, 1, 2])
def test_normalization_with_an_activation(on: Dnn, operations: int) -> None:
    of, one, zero = Normalized(on, 1), on.host(1, dtype=np.float64), on.host(0, dtype=np.float64)
    relu = on.filled("ActivationDescriptor", "SetActivationDescriptor", 1, 0, ctypes.c_double(0))
    x, y, z = of.given[0], on.room(of.x.nbytes), random(*of.x.shape, seed=7, dtype=np.float64)
    size = ctypes.c_size_t()
    asked = "GetBatchNormalizationForwardTrainingExWorkspaceSize"
    on.ok_dnn(asked, on.dnn, 1, operations, x, x, x, of.derived, relu, ctypes.byref(size))
    work = on.room(size.value), size.value
    on.ok_dnn("GetBatchNormalizationTrainingExReserveSpaceSize", on.dnn, 1, operations, relu, x, ctypes.byref(size))
    reserve = (on.room(size.value) if size.value else 0), size.value
    on.ok_dnn(
        "BatchNormalizationForwardTrainingEx", on.dnn, 1, operations, one, zero, *of.given, x, on.place(z), x, y,
        of.derived, of.at["scale"], of.at["bias"], ctypes.c_double(1), 0, 0, EPSILON, 0, 0, relu, *work, *reserve,
    )  # fmt: skip
    wanted = of.scale * of.normal(of.x) + of.bias + (z if operations == 2 else 0)
    wanted = np.maximum(wanted, 0) if operations else wanted
    assert np.allclose(on.taken(y, of.x.shape, dtype=np.float64), wanted)
    dx, dz, d_scale, d_bias = (on.room(of.x.nbytes) for _ in range(4))
    on.ok_dnn(
        "BatchNormalizationBackwardEx", on.dnn, 1, operations, one, zero, one, zero, *of.given, x, y,
        *on.tensors(of.dy), x, dz, x, dx, of.derived, of.at["scale"], of.at["bias"], d_scale, d_bias, EPSILON, 0, 0,
        relu, *work, *reserve,
    )  # fmt: skip
    dy = of.dy * (wanted > 0) if operations else of.dy
    assert np.allclose(on.taken(d_bias, (1, 3, 1, 1), dtype=np.float64), dy.sum(of.along, keepdims=True))
    if operations == 2:
        assert np.allclose(on.taken(dz, of.x.shape, dtype=np.float64), dy)


# -- all elements -----------------------------------------------------------------------------------------------------


def test_tensors_are_added_scaled_filled_and_transformed(on: Dnn) -> None:
    a, c = random(1, 3, 1, 1), random(2, 3, 4, 5, seed=1)
    shape, at = on.tensors(c)
    on.ok_dnn("AddTensor", on.dnn, on.host(2), *on.tensors(a), on.host(3), shape, at)
    assert np.allclose(on.taken(at, c.shape), 2 * a + 3 * c, atol=1e-5)
    on.ok_dnn("ScaleTensor", on.dnn, shape, at, on.host(0.5))
    assert np.allclose(on.taken(at, c.shape), a + 1.5 * c, atol=1e-5)
    last, moved = channels_last(c.shape), on.room(c.nbytes)
    on.ok_dnn("TransformTensor", on.dnn, on.host(2), shape, at, on.host(0), on.shaped(c.shape, last), moved)
    assert np.allclose(on.taken(moved, c.shape, last), 2 * a + 3 * c, atol=1e-5)
    on.ok_dnn("SetTensor", on.dnn, shape, at, on.host(7))
    assert (on.taken(at, c.shape) == 7).all()


def test_gaps_between_elements_are_left_alone(on: Dnn) -> None:
    shape, strides = (2, 3, 4, 5), (100, 30, 7, 1)
    size = 4 * (1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True)))
    y = on.place(np.zeros(size // 4, np.float32))
    on.ok_dnn("SetTensor", on.dnn, on.shaped(shape, strides), y, on.host(1))
    assert on.taken(y, (size // 4,)).sum() == np.prod(shape)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (0, np.add),
        (1, np.multiply),
        (2, np.minimum),
        (3, np.maximum),
        (4, lambda a, _: np.sqrt(a)),
        (5, lambda a, _: 1 - a),
    ],
)
def test_operations_of_tensors(on: Dnn, kind: int, wanted: Any) -> None:
    a, b = np.abs(random(2, 3, 4)), random(1, 3, 1, seed=1)
    of = on.filled("OpTensorDescriptor", "SetOpTensorDescriptor", kind, FLOAT, 0)
    given, c = on.tensors(a), on.room(a.nbytes)
    on.ok_dnn("OpTensor", on.dnn, of, on.host(2), *given, on.host(3), *on.tensors(b), on.host(0), given[0], c)
    assert np.allclose(on.taken(c, a.shape), wanted(2 * a, 3 * b), atol=1e-5)


def test_reductions_use_their_workspace(on: Dnn) -> None:
    a, size = random(2, 3, 4), ctypes.c_size_t()
    of = on.filled("ReduceTensorDescriptor", "SetReduceTensorDescriptor", 0, FLOAT, 0, 0, 0)
    given, shape, c = on.tensors(a), on.shaped((1, 3, 1)), on.room(12)
    on.ok_dnn("GetReductionWorkspaceSize", on.dnn, of, given[0], shape, ctypes.byref(size))
    work = on.room(size.value)
    call = ("ReduceTensor", on.dnn, of, 0, 0, work)
    assert on.dnn_call(*call, size.value - 1, on.host(2), *given, on.host(0), shape, c) == WRONG
    on.ok_dnn(*call, size.value, on.host(2), *given, on.host(0), shape, c)
    assert np.allclose(on.taken(c, (3,)), 2 * a.sum((0, 2)), atol=1e-5)


# -- descriptors ------------------------------------------------------------------------------------------------------


def test_descriptors_are_kept(on: Dnn) -> None:
    made, size = on.descriptor("TensorDescriptor"), ctypes.c_size_t()
    found = [ctypes.c_int() for _ in range(9)]
    for layout, strides in ((0, rows((2, 3, 4, 5))), (1, channels_last((2, 3, 4, 5)))):
        on.ok_dnn("SetTensor4dDescriptor", made, layout, 2, 2, 3, 4, 5)
        on.ok_dnn("GetTensor4dDescriptor", made, *map(ctypes.byref, found))
        assert [each.value for each in found] == [2, 2, 3, 4, 5, *strides]
    on.ok_dnn("GetTensorSizeInBytes", made, ctypes.byref(size))
    assert size.value == 240
    assert on.dnn_call("SetTensor4dDescriptor", made, 0, 0, 0, 3, 4, 5) == WRONG
    assert on.dnn_call("SetTensor4dDescriptor", made, 2, 3, 2, 3, 4, 5) == NOT_SUPPORTED
    on.ok_dnn("DestroyTensorDescriptor", made)
    shape, kinds = (ctypes.c_int * 4)(), [ctypes.c_int() for _ in range(3)]
    on.ok_dnn("GetFilterNdDescriptor", on.filter((4, 3, 2, 1)), 4, *map(ctypes.byref, kinds), shape)
    assert ([each.value for each in kinds], list(shape)) == ([0, 0, 4], [4, 3, 2, 1])
    assert on.dnn_call("CreateTensorDescriptor", None) == NULL


def test_shapes_that_do_not_fit_are_refused(on: Dnn) -> None:
    of = Problem(on, 0)
    x, short = on.shaped(of.x.shape), on.shaped((2, 4, 6, 8))
    at = on.room(of.y.nbytes)
    call = ("ConvolutionForward", on.dnn, on.host(1), x, on.place(of.x), of.filter, on.place(of.w), of.descriptor)
    assert on.dnn_call(*call, 0, 0, 0, on.host(0), short, at) == WRONG
    assert on.dnn_call(*call, 1, 0, 0, on.host(0), on.shaped(of.y.shape), at) == WRONG
    on.ok_dnn("SetConvolutionGroupCount", of.descriptor, 3)
    assert on.dnn_call(*call, 0, 0, 0, on.host(0), on.shaped(of.y.shape), at) == WRONG
    on.ok_dnn("SetConvolutionGroupCount", of.descriptor, 1)


def test_statuses_of_cudnn_8_have_its_numbers(on: Dnn) -> None:
    handle = on.make("simulated_8_cudnnCreate")
    x = on.place(random(2, 3))
    shape = on.shaped((2, 3))
    words = [ctypes.c_int64(each) for each in (handle, shape, x, 0)]
    assert on.driver.computed_8_cudnnScaleTensor(*words) == 3
    assert on.driver.computed_8_cudnnScaleTensor(*words[:3], ctypes.c_int64(on.host(2))) == 0

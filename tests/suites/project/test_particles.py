"""Tests of particles.py against NumPy, as its author would have written them for a machine with a GPU."""

import cupy as cp
import numpy as np
import particles
import pytest

SIZES = [1, 33, 128, 1000, 4099]
FLOATS = [np.float32, np.float64]
TYPES = [np.int32, np.int64, *FLOATS]


def made(size, dtype, seed=0):
    values = np.random.default_rng(seed).normal(0, 50, size)
    return values.astype(dtype)


def same(found, expected, **more):
    cp.testing.assert_allclose(found, expected, rtol=1e-4 if expected.dtype == np.float32 else 1e-10, **more)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", TYPES)
class TestEachType:
    def test_scale(self, size, dtype):
        x = made(size, dtype)
        same(particles.scale(cp.asarray(x), dtype(3)), x * dtype(3) + 1, atol=1e-4)

    def test_largest_distance(self, size, dtype):
        x, y = made(size, dtype), made(size, dtype, 1)
        same(particles.largest_distance(cp.asarray(x), cp.asarray(y)), abs(x - y).max())

    def test_sum(self, size, dtype):
        x = made(size, dtype)
        same(cp.asarray(x).sum(), x.sum(), atol=1e-2)

    def test_sort(self, size, dtype):
        x = made(size, dtype)
        same(cp.sort(cp.asarray(x)), np.sort(x))

    def test_inside(self, size, dtype):
        x = made(size, dtype)
        same(particles.inside(cp.asarray(x), -20, 20), x[(x >= -20) & (x < 20)])

    def test_extremes(self, size, dtype):
        x = made(size, dtype)
        given = cp.asarray(x)
        assert (int(given.argmax()), int(given.argmin())) == (x.argmax(), x.argmin())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", FLOATS)
class TestEachFloat:
    def test_energy(self, size, dtype):
        x, y = made(size, dtype), made(size, dtype, 1)
        same(particles.energy(cp.asarray(x), cp.asarray(y)), y * x * x / 2, atol=1e-3)

    def test_softmax(self, size, dtype):
        x = made(size, dtype)
        powers = np.exp(x - x.max())
        same(particles.softmax(cp.asarray(x)), powers / powers.sum(), atol=1e-7)

    def test_moving_average(self, size, dtype):
        x = made(size, dtype)
        width = min(3, size)
        expected = np.convolve(x, np.ones(width, dtype), "valid") / dtype(width)
        same(particles.moving_average(cp.asarray(x), width), expected.astype(dtype), atol=0.05)

    def test_sine(self, size, dtype):
        x = made(size, dtype)
        same(cp.sin(cp.asarray(x)) ** 2 + cp.cos(cp.asarray(x)) ** 2, np.ones(size, dtype))


@pytest.mark.parametrize("size", SIZES)
class TestKernels:
    def test_blur(self, size):
        x = made(size, np.float32)
        padded = np.concatenate([[0], x, [0]]).astype(np.float32)
        same(particles.blur(cp.asarray(x)), (padded[:-2] + padded[1:-1] + padded[2:]) / np.float32(3), atol=1e-4)

    def test_deposit(self, size):
        cells, weights = np.arange(size, dtype=np.int32) ** 2 % 7, made(size, np.float64)
        expected = np.bincount(cells, weights, 7)
        same(particles.deposit(cp.asarray(cells), cp.asarray(weights), 7), expected, atol=1e-8)

    def test_warp_sum(self, size):
        x = made(size, np.int32)
        assert int(particles.warp_sum(cp.asarray(x))) == x.sum()

    def test_nearest(self, size):
        x, y = made(size, np.float64), made(40, np.float64, 1)
        expected = abs(x[:, None] - y[None, :]).argmin(axis=1)
        same(particles.nearest(cp.asarray(x), cp.asarray(y)), expected)

    def test_two_streams(self, size):
        x = made(size, np.float64)
        same(particles.two_streams(cp.asarray(x)), x.sum(), atol=1e-8)

    def test_bins(self, size):
        x = made(size, np.float64)
        found, _ = cp.histogram(cp.asarray(x), 10, (-100, 100))
        same(found, np.histogram(x, 10, (-100, 100))[0])

    @pytest.mark.leak
    def test_nothing_is_kept(self, size):
        particles.record(cp.ones(size * 1000), forget=True)


@pytest.mark.leak
def test_everything_is_kept():
    particles.record(cp.ones(100_000), forget=False)


def test_a_wrong_expectation():
    same(cp.arange(10).sum(), np.int64(44))


def test_an_error_of_the_device():
    with pytest.raises(cp.cuda.memory.OutOfMemoryError):
        cp.empty(1 << 50, cp.uint8)


def test_a_copy_goes_through_the_host():
    x = made(1000, np.float64)
    assert (cp.asarray(x)[::-1].get() == x[::-1]).all()


def test_a_view_writes_into_its_array():
    given = cp.zeros((10, 10), cp.int32)
    given[2:5, ::3] += 7
    assert int(given.sum()) == 7 * 3 * 4

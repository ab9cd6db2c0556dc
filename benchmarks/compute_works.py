"""What ``compute.py`` measures: each kernel of ``compute_kernels.h`` with its arguments and its result, by NumPy."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

COUNT: Final = 1_000_000
BODIES: Final = 2_048
PICTURE: Final = 512
STEPS: Final = 256
MATRIX: Final = 256
PLANE: Final = 1_024
THREADS: Final = 256
STRIDED_BLOCKS: Final = 64
TILE: Final = (16, 16)
ROUNDS: Final = 15
SAME: Final = 0.97
"""How much of a result is as expected at least: at the border of Mandelbrot's set a rounding decides."""
Array = np.ndarray[Any, Any]
Launch = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Work:
    """One launch: ``arguments`` are those of the kernel, and the one of number ``written`` becomes ``expected``."""

    name: str
    kernel: str
    blocks: tuple[int, ...]
    threads: tuple[int, ...]
    arguments: tuple[Any, ...]
    written: int
    expected: Array

    def check(self, result: Array) -> None:
        """Raise AssertionError for another result. Some numbers may differ: compilers contract products and sums."""
        assert np.isclose(result, self.expected, rtol=1e-3, atol=1e-4).mean() > SAME, self.name


def works() -> list[Work]:
    """Return what is measured. The order is that of the table."""
    random = np.random.default_rng(0)
    values, count = (random.random(COUNT) - np.float32(0.5)).astype(np.float32), np.int32(COUNT)
    blocks, sums = -(-COUNT // THREADS), np.zeros(-(-COUNT // THREADS), np.float32)
    padded = np.zeros(blocks * THREADS)
    padded[:COUNT] = values
    letters = random.integers(0, 256, COUNT).astype(np.uint8)
    places = random.permutation(COUNT).astype(np.int32)
    factor, strided = np.float32(1.5), (STRIDED_BLOCKS,)
    one = (THREADS,)
    return [
        Work("saxpy", "saxpy", strided, one, (factor, values, zeros(COUNT), count), 2, factor * values),
        _bodies(random),
        _mandelbrot(),
        _product(random),
        Work("block sum", "block_sum", (blocks,), one, (values, sums, count), 1, padded.reshape(-1, THREADS).sum(1)),
        Work("sum by shuffles", "warp_sum", (blocks,), one, (values, zeros(1), count), 1, padded.sum(keepdims=True)),
        Work(
            *("histogram", "histogram", strided, one, (letters, np.zeros(256, np.int32), count), 1),
            np.bincount(letters, minlength=256),
        ),
        _stencil(random),
        Work("gather", "gather", (blocks,), one, (values, places, zeros(COUNT), count), 2, values[places]),
    ]


def zeros(*sizes: int) -> Array:
    """Return an array of floats."""
    return np.zeros(sizes, np.float32)


def _bodies(random: np.random.Generator) -> Work:
    places = random.random((BODIES, 4)).astype(np.float32)
    apart = places[None, :, :3].astype(float) - places[:, None, :3]
    forces = places[None, :, 3] * ((apart**2).sum(2) + 0.01) ** -1.5
    expected = np.zeros((BODIES, 4))
    expected[:, :3] = (forces[:, :, None] * apart).sum(1)
    arguments = (places, zeros(BODIES, 4), np.int32(BODIES))
    return Work("n-body", "bodies", (BODIES // 128,), (128,), arguments, 1, expected)


def _mandelbrot() -> Work:
    axis = np.arange(PICTURE, dtype=np.float32) * np.float32(3) / np.float32(PICTURE)
    cr, ci = (-2 + axis)[None, :], (np.float32(-1.5) + axis)[:, None]
    zr, zi, steps = zeros(PICTURE, PICTURE), zeros(PICTURE, PICTURE), np.zeros((PICTURE, PICTURE), np.int32)
    for _ in range(STEPS):
        near = zr * zr + zi * zi < 4
        zr, zi = np.where(near, zr * zr - zi * zi + cr, zr), np.where(near, 2 * zr * zi + ci, zi)
        steps += near
    blocks = (PICTURE // TILE[0], PICTURE // TILE[1])
    arguments = (np.zeros((PICTURE, PICTURE), np.int32), np.int32(PICTURE), np.int32(STEPS))
    return Work("Mandelbrot", "mandelbrot", blocks, TILE, arguments, 0, steps)


def _product(random: np.random.Generator) -> Work:
    a, b = (random.random((MATRIX, MATRIX)).astype(np.float32) for _ in range(2))
    blocks = (MATRIX // TILE[0], MATRIX // TILE[1])
    return Work("tiled product", "product", blocks, TILE, (a, b, zeros(MATRIX, MATRIX), np.int32(MATRIX)), 2, a @ b)


def _stencil(random: np.random.Generator) -> Work:
    a = random.random((PLANE, PLANE)).astype(np.float32)
    expected = zeros(PLANE, PLANE)
    inner, other = slice(1, -1), (slice(None, -2), slice(2, None))
    sides = sum((a[inner, side] + a[side, inner] for side in other), a[inner, inner])
    expected[inner, inner] = np.float32(0.2) * sides
    blocks = (PLANE // TILE[0], PLANE // TILE[1])
    return Work("stencil", "stencil", blocks, TILE, (a, zeros(PLANE, PLANE), np.int32(PLANE)), 1, expected)


def report(times: dict[str, float]) -> None:
    """Print measured times as ``compute.py`` reads them."""
    print(json.dumps(times))


def shortest(launch: Launch) -> float:
    """Return the least time of some launches, in milliseconds: what else runs there makes caches cold.

    It is the processor's time, or (``COMPUTE_CLOCK=wall``) what passes on a clock, where several cores work.
    """
    clock = time.perf_counter if os.environ.get("COMPUTE_CLOCK") == "wall" else time.process_time
    times = []
    for _ in range(ROUNDS):
        begin = clock()
        launch()
        times.append(clock() - begin)
    return 1e3 * min(times)

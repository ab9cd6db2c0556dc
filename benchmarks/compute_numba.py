"""The results of ``compute_kernels.h`` by plain loops that Numba compiles: prints a JSON object of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from compute_works import THREADS, Array, report, shortest, works
from numba import njit


def saxpy(factor: float, a: Array, sums: Array, n: int) -> None:
    """Add a multiple of an array."""
    for i in range(n):
        sums[i] += factor * a[i]


def bodies(places: Array, forces: Array, n: int) -> None:
    """Sum the forces on each body."""
    for i in range(n):
        x = y = z = np.float32(0)
        for j in range(n):
            dx, dy, dz = places[j, 0] - places[i, 0], places[j, 1] - places[i, 1], places[j, 2] - places[i, 2]
            near = np.float32(1) / np.sqrt(dx * dx + dy * dy + dz * dz + np.float32(0.01))
            force = places[j, 3] * near * near * near
            x, y, z = x + force * dx, y + force * dy, z + force * dz
        forces[i, 0], forces[i, 1], forces[i, 2] = x, y, z


def mandelbrot(steps: Array, width: int, most: int) -> None:
    """Count the steps of each point until it is far away."""
    for y in range(width):
        for x in range(width):
            cr = np.float32(-2) + np.float32(3) * np.float32(x) / np.float32(width)
            ci = np.float32(-1.5) + np.float32(3) * np.float32(y) / np.float32(width)
            zr = zi = np.float32(0)
            step = 0
            while step < most and zr * zr + zi * zi < np.float32(4):
                zr, zi = zr * zr - zi * zi + cr, np.float32(2) * zr * zi + ci
                step += 1
            steps[y, x] = step


def product(a: Array, b: Array, c: Array, n: int) -> None:
    """Multiply two matrices, row by row."""
    c[:] = 0
    for i in range(n):
        for k in range(n):
            for j in range(n):
                c[i, j] += a[i, k] * b[k, j]


def block_sum(a: Array, sums: Array, n: int) -> None:
    """Sum as many numbers as a block has threads."""
    for block in range(len(sums)):
        total = np.float32(0)
        for i in range(block * THREADS, min(n, (block + 1) * THREADS)):
            total += a[i]
        sums[block] = total


def warp_sum(a: Array, total: Array, n: int) -> None:
    """Sum all numbers."""
    for i in range(n):
        total[0] += a[i]


def histogram(a: Array, counts: Array, n: int) -> None:
    """Count equal bytes."""
    for i in range(n):
        counts[a[i]] += 1


def stencil(a: Array, means: Array, width: int) -> None:
    """Take the mean of each point and its neighbours."""
    for y in range(1, width - 1):
        for x in range(1, width - 1):
            means[y, x] = np.float32(0.2) * (a[y, x] + a[y, x - 1] + a[y, x + 1] + a[y - 1, x] + a[y + 1, x])


def gather(a: Array, places: Array, found: Array, n: int) -> None:
    """Copy from places that an array has."""
    for i in range(n):
        found[i] = a[places[i]]


LOOPS: Final[dict[str, Callable[..., Any]]] = {
    each.__name__: each
    for each in (saxpy, bodies, mandelbrot, product, block_sum, warp_sum, histogram, stencil, gather)
}


def main() -> None:
    """Measure and print."""
    times = {}
    for work in works():
        compiled = njit(LOOPS[work.kernel])
        arguments = [each.copy() if isinstance(each, np.ndarray) else each for each in work.arguments]

        def launch() -> None:
            compiled(*arguments)  # noqa: B023 - it is called before the next one

        launch()
        work.check(arguments[work.written])
        times[work.name] = shortest(launch)
    report(times)


if __name__ == "__main__":
    main()

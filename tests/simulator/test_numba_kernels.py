"""numba-cuda's kernels on the simulated device: their results are those of NumPy."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Final

import pytest
from tests.simulator.test_numba import pytestmark as is_installed

pytestmark = is_installed

HEAD: Final = """
import math
import numba
import numpy as np
from numba import cuda, float32
rng = np.random.default_rng(1)

def check(name, got, wanted, tolerance=1e-6):
    assert np.allclose(got, wanted, rtol=tolerance, atol=tolerance), (name, got, wanted)
    print("right:", name)
"""
ARITHMETIC: Final = """
@cuda.jit
def add(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]

a, b, out = rng.random(1000, np.float32), rng.random(1000, np.float32), np.zeros(1000, np.float32)
add[8, 128](a, b, out)
check("addition", out, a + b)
stream = cuda.stream()
given = cuda.to_device(a, stream=stream)
made = cuda.device_array_like(given, stream=stream)
add[8, 128, stream](given, given, made)
result = made.copy_to_host(stream=stream)
stream.synchronize()
check("stream", result, 2 * a)
half = np.arange(10).astype(np.float16)
twice = np.zeros_like(half)
add[1, 32](half, half, twice)
check("half precision", twice, 2 * half)
complexes = rng.random(50) + 1j * rng.random(50)
sums = np.zeros_like(complexes)
add[1, 64](complexes, complexes, sums)
check("complex numbers", sums, 2 * complexes)

@cuda.jit
def functions(x, out):
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        out[i, 0], out[i, 1], out[i, 2], out[i, 3] = math.sin(v), math.exp(v), math.sqrt(v), math.log(v)
        out[i, 4], out[i, 5], out[i, 6] = math.pow(v, 2.5), math.erf(v), math.tanh(v)
        out[i, 7], out[i, 8], out[i, 9] = math.floor(v * 8), math.atan2(v, 2.0), math.gamma(v + 1)

for kind in (np.float64, np.float32):
    x, out = (rng.random(100) + 0.1).astype(kind), np.zeros((100, 10), kind)
    functions[1, 128](x, out)
    wanted = [
        [math.sin(v), math.exp(v), math.sqrt(v), math.log(v), v**2.5, math.erf(v), math.tanh(v), math.floor(v * 8),
         math.atan2(v, 2.0), math.gamma(v + 1)]
        for v in x
    ]
    check(f"functions of {kind.__name__}", out, wanted, 1e-5)
"""
MEMORY: Final = """
@cuda.jit
def multiply(a, b, out):
    left, right = cuda.shared.array((16, 16), float32), cuda.shared.array((16, 16), float32)
    x, y = cuda.grid(2)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    total = float32(0)
    for tile in range(cuda.gridDim.x):
        left[ty, tx], right[ty, tx] = a[y, tx + tile * 16], b[ty + tile * 16, x]
        cuda.syncthreads()
        for k in range(16):
            total += left[ty, k] * right[k, tx]
        cuda.syncthreads()
    out[y, x] = total

a, b = rng.random((64, 64), np.float32), rng.random((64, 64), np.float32)
out = np.zeros_like(a)
multiply[(4, 4), (16, 16)](a, b, out)
check("shared memory", out, a @ b, 1e-4)

@cuda.jit
def turn(x, out):
    place = cuda.shared.array(0, float32)
    i = cuda.threadIdx.x
    place[i] = x[i]
    cuda.syncthreads()
    out[i] = place[cuda.blockDim.x - 1 - i]

x, out = rng.random(64, np.float32), np.zeros(64, np.float32)
turn[1, 64, 0, 64 * 4](x, out)
check("dynamic shared memory", out, x[::-1])

CONSTANTS = np.arange(10, dtype=np.float32)

@cuda.jit(device=True)
def polynomial(x, coefficients):
    result = 0.0
    for k in range(4):
        result = result * x + coefficients[k]
    return result

@cuda.jit
def local(x, out):
    constants = cuda.const.array_like(CONSTANTS)
    coefficients = cuda.local.array(4, numba.float64)
    for k in range(4):
        coefficients[k] = constants[k + 1]
    i = cuda.grid(1)
    if i < x.size:
        out[i] = polynomial(x[i], coefficients)

x, out = rng.random(100), np.zeros(100)
local[1, 128](x, out)
check("local and constant memory, device functions", out, np.polyval([1, 2, 3, 4], x))
"""
TOGETHER: Final = """
@cuda.jit
def count(x, out, extremes):
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(out, x[i], 1)
        cuda.atomic.max(extremes, 0, x[i])
        cuda.atomic.min(extremes, 1, x[i])

x, out, extremes = rng.integers(0, 10, 5000).astype(np.int32), np.zeros(10, np.int32), np.array([0, 9], np.int32)
count[4, 64](x, out, extremes)
check("atomics", out, np.bincount(x, minlength=10))
check("extremes", extremes, [x.max(), x.min()])

@cuda.jit
def warps(out):
    i = cuda.grid(1)
    value = i
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, step)
    even = cuda.ballot_sync(0xFFFFFFFF, i % 2 == 0)
    if cuda.laneid == 0:
        out[i // 32, 0], out[i // 32, 1] = value, cuda.popc(even)

out = np.zeros((4, 2), np.int64)
warps[1, 128](out)
check("shuffles", out[:, 0], np.arange(128).reshape(4, 32).sum(1))
check("votes", out[:, 1], 16)

@cuda.reduce
def total(a, b):
    return a + b

x = rng.random(10000)
check("reduction", total(x), x.sum())

@numba.vectorize(["float32(float32, float32)"], target="cuda")
def weighted(a, b):
    return a + b * 2

@numba.guvectorize(["void(float64[:], float64[:])"], "(n)->()", target="cuda")
def row_sums(row, result):
    result[0] = 0.0
    for value in row:
        result[0] += value

check("vectorize", weighted(x[:100].astype(np.float32), x[:100].astype(np.float32)), 3 * x[:100])
check("guvectorize", row_sums(x.reshape(100, 100)), x.reshape(100, 100).sum(1))

@cuda.jit
def rows(table):
    grid, column = cuda.cg.this_grid(), cuda.grid(1)
    for row in range(1, table.shape[0]):
        table[row, column] = table[row - 1, table.shape[1] - column - 1] + 1
        grid.sync()

table = np.zeros((16, 64), np.int32)
rows[2, 32](table)
check("a grid that waits", table, np.arange(16)[:, None] + np.zeros((1, 64)))

@cuda.jit
def says(x):
    if cuda.grid(1) == 0:
        print("printed:", x[0], 42)

says[1, 32](np.array([1.5]))
cuda.synchronize()
"""


@pytest.mark.parametrize(
    ("program", "right"),
    [
        (
            ARITHMETIC,
            "addition, stream, half precision, complex numbers, functions of float64, functions of float32",
        ),
        (MEMORY, "shared memory, dynamic shared memory, local and constant memory, device functions"),
        (TOGETHER, "atomics, extremes, shuffles, votes, reduction, vectorize, guvectorize, a grid that waits"),
    ],
    ids=["arithmetic", "memory", "together"],
)
def test_results_are_numpys(program: str, right: str) -> None:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--kernels", "run", "--", sys.executable, "-c"]
    quiet = {"NUMBA_CUDA_LOW_OCCUPANCY_WARNINGS": "0", "NUMBA_CUDA_WARN_ON_IMPLICIT_COPY": "0", "NO_COLOR": "1"}
    done = subprocess.run(
        [*command, HEAD + program], capture_output=True, text=True, check=False, env={**os.environ, **quiet}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout.splitlines()
    assert ", ".join(line.removeprefix("right: ") for line in said if line.startswith("right: ")) == right
    assert (program is not TOGETHER) or "printed: 1.500000 42" in said

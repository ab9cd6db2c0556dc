"""Triton's kernels on the simulated device: their results are those of NumPy. Nothing of PyTorch is needed."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest


def _is_installed() -> bool:
    try:
        importlib.metadata.version("triton")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


pytestmark = pytest.mark.skipif(not _is_installed(), reason="it needs Triton: tox -e triton")

PROGRAM: Final = """
import ctypes

import numpy as np
import triton
import triton.language as tl

driver = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
assert driver.cuCtxSetCurrent(context) == 0


arrays = []


class Array:
    def __init__(self, content):
        arrays.append(self)
        self.shape, self.dtype, self.kind = content.shape, str(content.dtype), content.dtype
        self.size_bytes, self.place = ctypes.c_size_t(content.nbytes), ctypes.c_void_p()
        assert driver.cuMemAlloc_v2(ctypes.byref(self.place), self.size_bytes) == 0
        assert driver.cuMemcpyHtoD_v2(self.place, content.ctypes.data_as(ctypes.c_void_p), self.size_bytes) == 0

    def data_ptr(self):
        return self.place.value

    def read(self):
        content = np.empty(self.shape, self.kind)
        assert driver.cuMemcpyDtoH_v2(content.ctypes.data_as(ctypes.c_void_p), self.place, self.size_bytes) == 0
        return content


def check(name, array, wanted, tolerance=1e-5):
    assert np.allclose(array.read(), wanted, rtol=tolerance, atol=tolerance), (name, array.read(), wanted)
    print("right:", name)


@triton.jit
def add(x, y, out, count, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(out + i, tl.load(x + i, mask=i < count) + tl.load(y + i, mask=i < count), mask=i < count)


@triton.jit
def softmax(out, x, columns, B: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, B)
    values = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * columns + i, values / tl.sum(values, axis=0), mask=i < columns)


@triton.jit
def multiply(a, b, c, n, B: tl.constexpr):
    inner = tl.arange(0, B)
    rows, columns = tl.program_id(0) * B + inner, tl.program_id(1) * B + inner
    total = tl.zeros((B, B), tl.float32)
    for k in range(0, n, B):
        left = tl.load(a + rows[:, None] * n + (k + inner)[None, :])
        total += tl.dot(left, tl.load(b + (k + inner)[:, None] * n + columns[None, :]))
    tl.store(c + rows[:, None] * n + columns[None, :], total)


@triton.jit
def count(x, out, total, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.atomic_add(out + tl.load(x + i, mask=i < total, other=0), 1, mask=i < total)


@triton.jit
def order(x, sums, ordered, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(sums + i, tl.cumsum(tl.load(x + i), 0))
    tl.store(ordered + i, tl.sort(tl.load(x + i)))


random = np.random.default_rng(1)
a = random.random(1000, np.float32)
x, out = Array(a), Array(np.zeros_like(a))
add[(4,)](x, x, out, 1000, B=256)
check("addition", out, 2 * a)
rows = random.random((20, 100), np.float32)
x, out = Array(rows), Array(np.zeros_like(rows))
softmax[(20,)](out, x, 100, B=128)
check("softmax", out, np.exp(rows) / np.exp(rows).sum(1, keepdims=True))
for kind in (np.float16, np.float32):
    square = random.random((64, 64)).astype(kind)
    x, out = Array(square), Array(np.zeros((64, 64), np.float32))
    multiply[(2, 2)](x, x, out, 64, B=32)
    check(f"product of {kind.__name__}", out, square.astype(np.float32) @ square.astype(np.float32), 1e-2)
numbers = random.integers(0, 8, 1000).astype(np.int32)
x, out = Array(numbers), Array(np.zeros(8, np.int32))
count[(4,)](x, out, 1000, B=256)
check("atomics", out, np.bincount(numbers, minlength=8))
x, sums, ordered = Array(a[:256]), Array(np.zeros(256, np.float32)), Array(np.zeros(256, np.float32))
order[(1,)](x, sums, ordered, B=256)
check("cumulative sum", sums, np.cumsum(a[:256]))
check("sort", ordered, np.sort(a[:256]))
for array in arrays:
    assert driver.cuMemFree_v2(array.place) == 0
"""


def test_results_are_numpys(tmp_path: Path) -> None:
    program = tmp_path / "program.py"  # Triton reads the source of kernels
    program.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--kernels", "run", "--", sys.executable, str(program)]
    environment = {**os.environ, "NO_COLOR": "1", "TRITON_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    said = [line.removeprefix("right: ") for line in done.stdout.splitlines() if line.startswith("right: ")]
    assert ", ".join(said) == (
        "addition, softmax, product of float16, product of float32, atomics, cumulative sum, sort"
    )

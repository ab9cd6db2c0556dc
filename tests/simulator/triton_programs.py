"""Programs with Triton's kernels, without PyTorch: each says which results are those of NumPy."""

from __future__ import annotations

from typing import Final

BEGIN: Final = """
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


"""
KERNELS: Final = """@triton.jit
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
"""
TUTORIALS: Final = """@triton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, sam, sak, sbk, sbn, scm, scn,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, G: tl.constexpr,
):
    pid = tl.program_id(0)
    nm = tl.cdiv(M, BM); nn = tl.cdiv(N, BN)
    ng = G * nn
    group = pid // ng
    first = group * G
    size = min(nm - first, G)
    pm = first + ((pid % ng) % size)
    pn = (pid % ng) // size
    om = (pm * BM + tl.arange(0, BM)) % M
    on = (pn * BN + tl.arange(0, BN)) % N
    ok = tl.arange(0, BK)
    ap = a_ptr + (om[:, None] * sam + ok[None, :] * sak)
    bp = b_ptr + (ok[:, None] * sbk + on[None, :] * sbn)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        a = tl.load(ap, mask=ok[None, :] < K - k * BK, other=0.0)
        b = tl.load(bp, mask=ok[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        ap += BK * sak
        bp += BK * sbk
    c = acc.to(tl.float16)
    ocm = pm * BM + tl.arange(0, BM); ocn = pn * BN + tl.arange(0, BN)
    tl.store(c_ptr + scm * ocm[:, None] + scn * ocn[None, :], c, mask=(ocm[:, None] < M) & (ocn[None, :] < N))

@triton.jit
def softmax2(out, x, sx, so, rows, cols, B: tl.constexpr, S: tl.constexpr):
    start = tl.program_id(0); step = tl.num_programs(0)
    for row in tl.range(start, rows, step, num_stages=S):
        o = tl.arange(0, B)
        v = tl.load(x + row * sx + o, mask=o < cols, other=-float('inf'))
        v = v - tl.max(v, axis=0)
        n = tl.exp(v)
        tl.store(out + row * so + o, n / tl.sum(n, axis=0), mask=o < cols)

@triton.jit
def dropout(x, out, n, p, seed, B: tl.constexpr):
    o = tl.program_id(0) * B + tl.arange(0, B)
    m = o < n
    r = tl.rand(seed, o)
    tl.store(out + o, tl.where(r > p, tl.load(x + o, mask=m) / (1 - p), 0.0), mask=m)

@triton.jit
def layer_norm(X, Y, W, Bi, Mean, Rstd, stride, N, eps, B: tl.constexpr):
    row = tl.program_id(0); Y += row * stride; X += row * stride
    _m = tl.zeros([B], dtype=tl.float32)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        _m += tl.load(X + c, mask=c < N, other=0.).to(tl.float32)
    mean = tl.sum(_m, axis=0) / N
    _v = tl.zeros([B], dtype=tl.float32)
    for off in range(0, N, B):
        c = off + tl.arange(0, B)
        x = tl.where(c < N, tl.load(X + c, mask=c < N, other=0.).to(tl.float32) - mean, 0.)
        _v += x * x
    rstd = 1 / tl.sqrt(tl.sum(_v, axis=0) / N + eps)
    tl.store(Mean + row, mean); tl.store(Rstd + row, rstd)
    for off in range(0, N, B):
        c = off + tl.arange(0, B); m = c < N
        x = (tl.load(X + c, mask=m, other=0.).to(tl.float32) - mean) * rstd
        tl.store(Y + c, x * tl.load(W + c, mask=m) + tl.load(Bi + c, mask=m), mask=m)

@triton.jit
def locked(X, Out, Lock, N, G: tl.constexpr, B: tl.constexpr):
    row = tl.program_id(0); c = tl.arange(0, B); m = c < N
    x = tl.load(X + row * N + c, mask=m, other=0.)
    lock = row % G
    L = Lock + lock; Count = L + G
    P = Out + lock * N + c
    while tl.atomic_cas(L, 0, 1) == 1:
        pass
    count = tl.load(Count)
    if count == 0:
        tl.atomic_xchg(Count, 1)
    else:
        x += tl.load(P, mask=m)
    tl.store(P, x, mask=m)
    tl.debug_barrier()
    tl.atomic_xchg(L, 0)

@triton.jit
def attention(Q, K, V, O, n, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    om = tl.program_id(0) * BM + tl.arange(0, BM); d = tl.arange(0, D)
    q = tl.load(Q + om[:, None] * D + d[None, :])
    mi, li = tl.zeros([BM], tl.float32) - float('inf'), tl.zeros([BM], tl.float32)
    acc = tl.zeros([BM, D], tl.float32)
    for s in range(0, n, BN):
        on = s + tl.arange(0, BN)
        k = tl.load(K + on[None, :] * D + d[:, None])
        qk = tl.dot(q, k) * scale
        m2 = tl.maximum(mi, tl.max(qk, 1))
        p = tl.exp(qk - m2[:, None]); al = tl.exp(mi - m2)
        li = li * al + tl.sum(p, 1)
        v = tl.load(V + on[:, None] * D + d[None, :])
        acc = acc * al[:, None] + tl.dot(p.to(tl.float16), v)
        mi = m2
    tl.store(O + om[:, None] * D + d[None, :], acc / li[:, None])

@triton.jit
def hist(x, out, n, B: tl.constexpr, K: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    h = tl.histogram(tl.load(x + i, mask=i < n, other=K - 1), K)
    tl.atomic_add(out + tl.arange(0, K), h)

rng = np.random.default_rng(3)
for (M, N, K, st, w) in ((96, 80, 72, 3, 4), (128, 128, 64, 2, 8)):
    a, b = ((rng.random(shape) - .5).astype(np.float16) for shape in ((M, K), (K, N)))
    A, Bb, C = Array(a), Array(b), Array(np.zeros((M, N), np.float16))
    grid, sizes = (triton.cdiv(M, 64) * triton.cdiv(N, 64),), dict(BM=64, BN=64, BK=32, G=8)
    matmul[grid](A, Bb, C, M, N, K, K, 1, N, 1, N, 1, **sizes, num_stages=st, num_warps=w)
    check(f"matmul {M}", C, a.astype(np.float32) @ b.astype(np.float32), 2e-2)
r = rng.random((50, 300), np.float32); x, o = Array(r), Array(np.zeros_like(r))
softmax2[(8,)](o, x, 300, 300, 50, 300, B=512, S=4, num_warps=8)
check("softmax of a loop", o, np.exp(r) / np.exp(r).sum(1, keepdims=True))
r = rng.random(1000, np.float32) + 1; x, o = Array(r), Array(np.zeros_like(r))
dropout[(4,)](x, o, 1000, 0.5, 42, B=256)
got = o.read()
assert np.all((got == 0) | np.isclose(got, 2 * r)) and 400 < (got == 0).sum() < 600
print("right: dropout")
r, w, bi = (rng.random(shape).astype(np.float16) for shape in ((20, 700), 700, 700))
x, y, W, Bi = Array(r), Array(np.zeros_like(r)), Array(w), Array(bi)
Mn, Rs = Array(np.zeros(20, np.float32)), Array(np.zeros(20, np.float32))
layer_norm[(20,)](x, y, W, Bi, Mn, Rs, 700, 700, 1e-5, B=256, num_warps=4)
f = r.astype(np.float32)
want = (f - f.mean(1, keepdims=True)) / np.sqrt(f.var(1, keepdims=True) + 1e-5) * w + bi
check("layer norm", y, want, 2e-2)
r = rng.random((40, 100), np.float32)
x, o, L = Array(r), Array(np.zeros((4, 100), np.float32)), Array(np.zeros(8, np.int32))
locked[(40,)](x, o, L, 100, G=4, B=128)
check("locked sums", o, np.stack([r[g::4].sum(0) for g in range(4)]), 1e-4)
q, k, v = (rng.random((128, 64)).astype(np.float16) for _ in range(3))
Q, Kk, V, O = Array(q), Array(k), Array(v), Array(np.zeros((128, 64), np.float32))
attention[(2,)](Q, Kk, V, O, 128, 0.125, BM=64, BN=32, D=64, num_stages=3)
s = np.exp(q.astype(np.float32) @ k.astype(np.float32).T * .125)
check("attention", O, (s / s.sum(1, keepdims=True)) @ v.astype(np.float32), 1e-2)
n = rng.integers(0, 16, 1000).astype(np.int32); x, o = Array(n), Array(np.zeros(16, np.int32))
hist[(4,)](x, o, 1000, B=256, K=16)
want = np.bincount(n, minlength=16); want[15] += 24; check("histogram", o, want)
"""
"""Kernels such as those of Triton's tutorials: with stages that overlap, with locks, and with random numbers."""
END: Final = """
for array in arrays:
    assert driver.cuMemFree_v2(array.place) == 0
"""

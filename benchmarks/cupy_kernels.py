"""The kernels of ``kernels.py`` in CuPy, for ``quiesce exec``: prints a JSON object of times in milliseconds."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Final

import cupy
import numpy as np
from pocl_kernels import COUNT, STRIDED_BLOCKS, THREADS, best

SOURCE: Final = """
extern "C" __global__ void add(const float *a, const float *b, float *c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + b[i];
}
__device__ void reduce(float *cells, float *sums) {
    int me = threadIdx.x;
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        __syncthreads();
        if (me < step) cells[me] += cells[me + step];
    }
    if (me == 0) sums[blockIdx.x] = cells[0];
}
extern "C" __global__ void block_sum(const float *a, float *sums, int n) {
    __shared__ float cells[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    cells[threadIdx.x] = i < n ? a[i] : 0;
    reduce(cells, sums);
}
extern "C" __global__ void strided_sum(const float *a, float *sums, int n) {
    __shared__ float cells[256];
    float sum = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += a[i];
    cells[threadIdx.x] = sum;
    reduce(cells, sums);
}
extern "C" __global__ void shuffled_sum(const float *a, float *sums, int n) {
    __shared__ float cells[32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    float sum = i < n ? a[i] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) cells[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = lane < blockDim.x / 32 ? cells[lane] : 0;
    for (int step = 16; step > 0; step /= 2) sum += __shfl_down_sync(0xffffffff, sum, step);
    if (lane == 0) sums[blockIdx.x] = sum;
}
extern "C" __global__ void reversed(const float *a, float *b, int n) {
    __shared__ float cells[256];
    int i = blockIdx.x * blockDim.x + threadIdx.x, me = threadIdx.x, other = blockDim.x - 1 - me;
    cells[me * 7 % 256] = i < n ? a[i] : 0;
    __syncthreads();
    if (i < n) b[i] = cells[other * 7 % 256];
}
"""


def main() -> None:
    """Measure and print."""
    values = np.arange(COUNT, dtype=np.float32) % 100
    first, second, third = cupy.asarray(values), cupy.asarray(values[::-1].copy()), cupy.empty(COUNT, cupy.float32)
    module = cupy.RawModule(code=SOURCE)
    blocks = -(-COUNT // THREADS)

    def run(name: str, groups: int, *arguments: Any) -> Callable[[], object]:
        kernel = module.get_function(name)

        def once() -> None:
            kernel((groups,), (THREADS,), (*arguments, np.int32(COUNT)))
            cupy.cuda.runtime.deviceSynchronize()

        return once

    def finished(work: Callable[[], Any]) -> Callable[[], object]:
        def once() -> None:
            work()
            cupy.cuda.runtime.deviceSynchronize()

        return once

    measured = {"raw add": best(run("add", blocks, first, second, third))}
    assert (third == first + second).all()
    measured["cupy add"] = best(finished(lambda: cupy.add(first, second, third)))
    total = float(values.sum(dtype=float))
    sums = cupy.empty(blocks, cupy.float32)
    for name, count in (("block_sum", blocks), ("strided_sum", STRIDED_BLOCKS), ("shuffled_sum", blocks)):
        sums[:] = 0
        measured[name.replace("_", " ")] = best(run(name, count, first, sums))
        assert float(sums[:count].get().sum(dtype=float)) == total
    measured["scattered shared"] = best(run("reversed", blocks, first, third))
    whole = COUNT // THREADS * THREADS
    assert (third[:whole].reshape(-1, THREADS) == first[:whole].reshape(-1, THREADS)[:, ::-1]).all()
    for name, accelerators in (("cupy sum", []), ("cub sum", ["cub"])):
        cupy._core.set_routine_accelerators(accelerators)
        cupy._core.set_reduction_accelerators(accelerators)
        measured[name] = best(finished(first.sum))
        assert abs(float(first.sum()) / total - 1) < 1e-5
    measured["cupy sin"] = best(finished(lambda: cupy.sin(first, third)))
    measured["cupy cumsum"] = best(finished(lambda: cupy.cumsum(first)))
    measured["empty launch"] = best(finished(lambda: cupy.add(first[:1], second[:1], third[:1])))
    json.dump(measured, sys.stdout)
    print()


if __name__ == "__main__":
    main()

"""The kernels of ``compute_kernels.h`` as CUDA in CuPy, for ``quiesce exec``: prints a JSON object of times."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import cupy
import numpy as np
from compute_works import report, shortest, works

WORDS: Final = """
#define KERNEL extern "C" __global__ void
#define GLOBAL
#define SHARED __shared__
#define INDEX_X (blockIdx.x * blockDim.x + threadIdx.x)
#define INDEX_Y (blockIdx.y * blockDim.y + threadIdx.y)
#define LOCAL_X threadIdx.x
#define LOCAL_Y threadIdx.y
#define BLOCK_X blockIdx.x
#define THREADS_X (blockDim.x * gridDim.x)
#define BARRIER __syncthreads()
#define RSQRT rsqrtf
#define FLOAT4 make_float4
#define ATOMIC_ADD atomicAdd
#define SHUFFLE(value, step) __shfl_down_sync(0xffffffffu, value, step)
"""


def main() -> None:
    """Measure and print."""
    module = cupy.RawModule(code=WORDS + Path(__file__).with_name("compute_kernels.h").read_text(encoding="utf-8"))
    times = {}
    for work in works():
        kernel = module.get_function(work.kernel)
        arguments = tuple(cupy.asarray(each) if isinstance(each, np.ndarray) else each for each in work.arguments)

        def launch() -> None:
            kernel(work.blocks, work.threads, arguments)  # noqa: B023 - it is called before the next one
            cupy.cuda.runtime.deviceSynchronize()

        launch()
        work.check(arguments[work.written].get())
        times[work.name] = shortest(launch)
    report(times)


if __name__ == "__main__":
    main()

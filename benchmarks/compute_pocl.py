"""The kernels of ``compute_kernels.h`` as OpenCL C on PoCL: prints a JSON object of times."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pyopencl as cl
from compute_works import report, shortest, works

WORDS: Final = """
#define KERNEL kernel void
#define GLOBAL global
#define SHARED local
#define INDEX_X (int)get_global_id(0)
#define INDEX_Y (int)get_global_id(1)
#define LOCAL_X (int)get_local_id(0)
#define LOCAL_Y (int)get_local_id(1)
#define BLOCK_X get_group_id(0)
#define THREADS_X (int)get_global_size(0)
#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)
#define RSQRT rsqrt
#define FLOAT4 (float4)
#define ATOMIC_ADD atomic_add
"""


def main() -> None:
    """Measure and print. PoCL has no shuffles."""
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    source = WORDS + Path(__file__).with_name("compute_kernels.h").read_text(encoding="utf-8")
    program = cl.Program(context, source).build("-cl-denorms-are-zero")  # as CuPy compiles
    times = {}
    for work in works():
        if work.kernel == "warp_sum":
            continue
        kernel = cl.Kernel(program, work.kernel)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        arguments = [
            cl.Buffer(context, flags, hostbuf=each) if isinstance(each, np.ndarray) else each for each in work.arguments
        ]
        kernel.set_args(*arguments)
        sizes = tuple(blocks * threads for blocks, threads in zip(work.blocks, work.threads, strict=True))

        def launch() -> None:
            cl.enqueue_nd_range_kernel(queue, kernel, sizes, work.threads)  # noqa: B023 - it is called before the next
            queue.finish()

        launch()
        result = np.empty_like(work.arguments[work.written])
        cl.enqueue_copy(queue, result, arguments[work.written])
        work.check(result)
        times[work.name] = shortest(launch)
    report(times)


if __name__ == "__main__":
    main()

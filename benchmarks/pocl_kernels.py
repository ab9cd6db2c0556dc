"""The kernels of ``kernels.py`` as OpenCL C on PoCL, and as NumPy: prints a JSON object of times in milliseconds."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import pyopencl as cl

COUNT: Final = 1_000_000
ROUNDS: Final = 60
THREADS: Final = 256
STRIDED_BLOCKS: Final = 256
SOURCE: Final = """
kernel void add(global const float *a, global const float *b, global float *c, int n) {
    int i = get_global_id(0);
    if (i < n) c[i] = a[i] + b[i];
}
void reduce(local float *cells, global float *sums) {
    int me = get_local_id(0);
    for (int step = get_local_size(0) / 2; step > 0; step /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (me < step) cells[me] += cells[me + step];
    }
    if (me == 0) sums[get_group_id(0)] = cells[0];
}
kernel void block_sum(global const float *a, global float *sums, int n) {
    local float cells[256];
    int i = get_global_id(0);
    cells[get_local_id(0)] = i < n ? a[i] : 0;
    reduce(cells, sums);
}
kernel void strided_sum(global const float *a, global float *sums, int n) {
    local float cells[256];
    float sum = 0;
    for (int i = get_global_id(0); i < n; i += get_global_size(0)) sum += a[i];
    cells[get_local_id(0)] = sum;
    reduce(cells, sums);
}
"""


def best(work: Callable[[], object]) -> float:
    """Return the shortest of some times in milliseconds: in the others the machine was shared with somebody."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return 1e3 * min(times)


def main() -> None:
    """Measure and print."""
    values = np.arange(COUNT, dtype=np.float32) % 100
    others = values[::-1].copy()
    result = np.empty_like(values)
    context = cl.create_some_context(interactive=False)
    queue = cl.CommandQueue(context)
    program = cl.Program(context, SOURCE).build()
    first, second = (cl.Buffer(context, cl.mem_flags.COPY_HOST_PTR, hostbuf=each) for each in (values, others))
    third = cl.Buffer(context, cl.mem_flags.READ_WRITE, values.nbytes)
    blocks = -(-COUNT // THREADS)

    def run(name: str, groups: int, *arguments: Any) -> Callable[[], object]:
        kernel = cl.Kernel(program, name)
        kernel.set_args(*arguments, np.int32(COUNT))

        def once() -> None:
            cl.enqueue_nd_range_kernel(queue, kernel, (groups * THREADS,), (THREADS,))
            queue.finish()

        return once

    sums = np.empty(blocks, np.float32)
    add, block_sum = run("add", blocks, first, second, third), run("block_sum", blocks, first, third)
    strided_sum = run("strided_sum", STRIDED_BLOCKS, first, third)
    measured = {"pocl add": best(add)}
    cl.enqueue_copy(queue, result, third)
    assert (result == values + others).all()
    for name, work, count in (("block sum", block_sum, blocks), ("strided sum", strided_sum, STRIDED_BLOCKS)):
        measured[f"pocl {name}"] = best(work)
        cl.enqueue_copy(queue, sums[:count], third)
        assert sums[:count].sum(dtype=float) == values.sum(dtype=float)
    measured["numpy add"] = best(lambda: np.add(values, others, out=result))
    measured["numpy sum"] = best(values.sum)
    print(json.dumps(measured))


if __name__ == "__main__":
    main()

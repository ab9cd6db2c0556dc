"""The kernel that ``launch`` runs on OpenCL: it reads and writes the first byte of each declared block."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import types

    import pyopencl as cl
    from pyopencl.tools import PooledSVM


def _source(reads: int, writes: int, argument_bytes: int) -> str:
    parameters = [f"__global const uchar *r{index}" for index in range(reads)]
    parameters += [f"__global uchar *w{index}" for index in range(writes)]
    lines = [f"seen ^= r{index}[0];" for index in range(reads)]
    padding = ""
    if argument_bytes:
        padding = f"typedef struct {{ uchar bytes[{argument_bytes}]; }} padding_t;\n"
        parameters.append("padding_t padding")
        lines.append("seen ^= padding.bytes[0];")
    lines += [f"w{index}[0] = seen;" for index in range(writes)]
    return f"{padding}__kernel void touch({', '.join(parameters)}) {{ uchar seen = 0; {' '.join(lines)} }}\n"


@functools.cache
def compiler_complaint(pyopencl: types.ModuleType, device: cl.Device) -> str:
    """Return why a device compiles no kernel, or an empty text: PoCL's compiler may be older than the processor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", pyopencl.CompilerWarning)
        try:
            pyopencl.Program(pyopencl.Context([device]), _source(0, 0, 0)).build(cache_dir=False)
        except pyopencl.Error as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            return next((line for line in lines if "error:" in line), lines[0] if lines else type(error).__name__)
    return ""


class Kernels:
    """Built kernels by the number of blocks they read and write and the bytes of further arguments."""

    def __init__(self, pyopencl: types.ModuleType, context: cl.Context) -> None:
        self._cl = pyopencl
        self._context = context
        self._built: dict[tuple[int, int, int], cl.Kernel] = {}
        self.retained = 0
        """References to the context that the built kernels hold; they are the backend's own and no leak."""

    def _kernel(self, reads: int, writes: int, argument_bytes: int) -> cl.Kernel:
        key = reads, writes, argument_bytes
        if key not in self._built:
            before = self._context.reference_count
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self._cl.CompilerWarning)
                program = self._cl.Program(self._context, _source(*key)).build()
            self._built[key] = self._cl.Kernel(program, "touch")
            self.retained += self._context.reference_count - before
        return self._built[key]

    def launch(
        self, queue: cl.CommandQueue, reads: list[PooledSVM], writes: list[PooledSVM], argument_bytes: int
    ) -> None:
        """Enqueue one work item that touches the blocks; ``argument_bytes`` more are passed by value."""
        import numpy

        kernel = self._kernel(len(reads), len(writes), argument_bytes)
        blocks = [*reads, *writes]
        for index, block in enumerate(blocks):
            kernel.set_arg(index, block)
        if argument_bytes:
            kernel.set_arg(len(blocks), numpy.zeros(argument_bytes, numpy.uint8))
        self._cl.enqueue_nd_range_kernel(queue, kernel, (1,), None)
        queue.flush()

    def close(self) -> None:
        """Give the kernels up."""
        self._built.clear()
        self.retained = 0

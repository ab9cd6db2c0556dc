"""The kernel that ``launch`` runs through CuPy: it reads or writes the first byte of each declared block.

It is compiled once per process and device and loaded before anything is captured or stalled, because loading code may
wait for the device. More blocks than it takes go in several launches. Where nothing can be compiled, nothing is.
"""

from __future__ import annotations

from typing import Any, Final

from quiesce.backends.cupy_backing import Cupy
from quiesce.backends.cupy_memory import Block

BLOCKS_PER_LAUNCH: Final = 8
ARGUMENT_BYTES_MAX: Final = 4096
"""What every CUDA and HIP device takes (CUDA C++ Programming Guide, "__global__ Function Parameters")."""

_OWN_ARGUMENT_BYTES: Final = 8 * BLOCKS_PER_LAUNCH + 4


def _source(padding_bytes: int) -> str:
    slots = range(BLOCKS_PER_LAUNCH)
    # volatile: a value that nobody uses is read all the same
    parameters = [f"volatile unsigned char *b{slot}" for slot in slots] + ["unsigned int written"]
    reads = [f"if (b{slot} && !(written >> {slot} & 1)) seen ^= *b{slot};" for slot in slots]
    writes = [f"if (b{slot} && (written >> {slot} & 1)) *b{slot} = seen;" for slot in slots]
    padding = ""
    if padding_bytes:
        padding = f"struct Padding {{ unsigned char bytes[{padding_bytes}]; }};\n"
        parameters.append("Padding padding")
        reads.append("seen ^= padding.bytes[0];")
    body = " ".join(["unsigned char seen = 0;", *reads, *writes])
    return f'{padding}extern "C" __global__ void touch({", ".join(parameters)}) {{ {body} }}\n'


class Kernels:
    """Compiled kernels of one process, by device and by the bytes of further arguments."""

    def __init__(self, cupy: Cupy) -> None:
        self._cupy = cupy
        self._built: dict[tuple[int, int], Any] = {}

    def is_built(self, device: int, argument_bytes: int) -> bool:
        """Whether a launch with these arguments needs no compiler and loads no code."""
        return (device, _padding(argument_bytes)) in self._built

    def build(self, device: int, argument_bytes: int) -> None:
        """Compile and load the kernel for the current ``device``. Raises what CuPy raises where it cannot."""
        padding_bytes = _padding(argument_bytes)
        kernel = self._cupy.RawKernel(_source(padding_bytes), "touch")
        kernel.compile()
        self._built[device, padding_bytes] = kernel

    def launch(self, device: int, reads: list[Block], writes: list[Block], argument_bytes: int) -> None:
        """Launch one thread on CuPy's current stream. It reads and writes blocks as declared."""
        import numpy

        padding_bytes = _padding(argument_bytes)
        kernel = self._built[device, padding_bytes]
        touched = [(block.address, 0) for block in reads] + [(block.address, 1) for block in writes]
        for batch in _batches(touched):
            addresses = [address for address, _ in batch] + [0] * (BLOCKS_PER_LAUNCH - len(batch))
            written = sum(is_written << slot for slot, (_, is_written) in enumerate(batch))
            arguments = [*map(numpy.uint64, addresses), numpy.uint32(written)]
            if padding_bytes:
                arguments.append(numpy.zeros(1, numpy.dtype((numpy.void, padding_bytes))))
            kernel((1,), (1,), tuple(arguments))


def _padding(argument_bytes: int) -> int:
    return max(0, argument_bytes - _OWN_ARGUMENT_BYTES)


def _batches(touched: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return what each launch touches; one that touches nothing is a launch all the same."""
    starts = range(0, max(1, len(touched)), BLOCKS_PER_LAUNCH)
    return [touched[start : start + BLOCKS_PER_LAUNCH] for start in starts]

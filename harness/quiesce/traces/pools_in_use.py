"""Pools of Python packages that a program took memory from: what happens inside them, the runtime does not see.

To the runtime a block that a pool keeps for later is in use, so that a use of it after the program gave it back looks
right. A pool is told here only where a call stack shows that it was the pool that asked the runtime for memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.simulator.ledger import Ledger, Seen
from quiesce.simulator.stacks import CallStack, CallStacks

STACKS_MAX: Final = 64
"""Of so many different call stacks that asked for memory, the first ones, each is looked at."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """``file`` and ``function`` are those of a frame of the pool; ``variable`` switches it off if it has ``off``."""

    file: re.Pattern[str]
    function: re.Pattern[str]
    keeps: str
    switch: str
    variable: str = ""
    off: str = ""

    def made(self, stack: CallStack) -> bool:
        """Whether a stack is one of the pool's: by its Python frames, or by the functions of its native code."""
        functions = [frame.function for frame in stack.python if self.file.search(frame.file)]
        return any(map(self.function.search, functions or stack.functions_in(self.file)))

    def is_off(self, environment: Mapping[str, str], words: Sequence[str]) -> bool:
        """Whether the environment of the program, or a command such as ``env NAME=0``, switches it off."""
        return bool(self.variable) and (
            environment.get(self.variable) == self.off or f"{self.variable}={self.off}" in words
        )

    def __str__(self) -> str:
        return f"{self.keeps}, so a use after free in it is not seen; {self.switch} and run again"


_POOLS: Final = (
    _Pool(
        re.compile(r"/cupy/cuda/memory\.[^/]*so$"),
        re.compile(r"\dMemoryPool_|DeviceMemoryPool_"),
        "CuPy keeps freed device memory in a pool",
        "call cupy.cuda.set_allocator(None)",
    ),
    _Pool(
        re.compile(r"/numba(?:_cuda/numba)?/cuda/cudadrv/driver\.py$"),
        re.compile(r"^NumbaCUDAMemoryManager\.memalloc"),
        "numba frees device memory later",
        "set NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT=0",
        "NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT",
        "0",
    ),
    _Pool(
        re.compile(r"/libc10_cuda\.so$"),
        re.compile(r""),
        "PyTorch keeps freed device memory in a pool",
        "set PYTORCH_NO_CUDA_MEMORY_CACHING=1",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
        "1",
    ),
    _Pool(
        re.compile(r"/libc10_hip\.so$"),
        re.compile(r""),
        "PyTorch keeps freed device memory in a pool",
        "set PYTORCH_NO_HIP_MEMORY_CACHING=1",
        "PYTORCH_NO_HIP_MEMORY_CACHING",
        "1",
    ),
)
_CALLS: Final = frozenset({"cudaMalloc", "hipMalloc", "cuMemAlloc_v2"})
"""The calls by which these pools take device memory; memory of the runtime's own pools is seen."""


def pools_in_use(
    ledger: Ledger, stacks: CallStacks | None, environment: Mapping[str, str], words: Sequence[str]
) -> tuple[str, ...]:
    """Return what is not seen inside each pool that a process used; nothing where no call stacks were kept.

    ``environment`` and ``words`` are what the program was started with.
    """
    if stacks is None:
        return ()
    seen = list(_stacks_of(ledger, stacks))
    return tuple(
        str(pool) for pool in _POOLS if not pool.is_off(environment, words) and any(pool.made(each) for each in seen)
    )


def _stacks_of(ledger: Ledger, stacks: CallStacks) -> Iterator[CallStack]:
    """Yield the first different stacks of calls that took device memory."""
    known: set[int] = set()
    for number in ledger.numbers_of(Seen.ALLOCATED):
        record = ledger.record(number)
        if record.function not in _CALLS or record.stack in known:
            continue
        known.add(record.stack)
        if (stack := stacks.stack(record.stack)) is not None:
            yield stack
        if len(known) == STACKS_MAX:
            return

"""Pools of Python packages that a program took memory from: what happens inside them, the runtime does not see.

To the runtime a block that a pool keeps for later is in use, so that a use of it after the program gave it back looks
right. A pool is told here only where a call stack shows that it was the pool that asked the runtime for memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.simulator.runtime import POOLS_OFF, CallStack, CallStacks, Ledger, Seen

STACKS_MAX: Final = 64
"""Of so many different call stacks that asked for memory, the first ones, each is looked at."""


@dataclass(frozen=True, slots=True)
class _Pool:
    """``file`` and ``function`` are those of a frame of the pool; ``variable`` switches it off, where there is one.

    Where all code of the file is the pool's, there is no ``function``.
    """

    package: str
    file: re.Pattern[str]
    function: re.Pattern[str] | None
    keeps: str
    variable: str = ""
    hides: str = "a use after free or an access past an array"

    def made(self, stack: CallStack) -> bool:
        """Whether a stack of the package is one of the pool's: by its Python frames, or else by its native code."""
        if self.function is None:
            return True
        functions = [frame.function for frame in stack.python if self.file.search(frame.file)]
        return any(map(self.function.search, functions or stack.functions_in(self.file)))

    def is_off(self, environment: Mapping[str, str], words: Sequence[str]) -> bool:
        """Whether the environment of the program, or a command such as ``env NAME=0``, switches it off."""
        if not self.variable:
            return False
        given = [word for word in words if word.startswith(f"{self.variable}=")]
        value = given[-1].partition("=")[2] if given else environment.get(self.variable)
        return value == POOLS_OFF[self.variable]


_POOLS: Final = (
    _Pool(
        "CuPy",
        re.compile(r"/cupy/cuda/memory\.[^/]*so$"),
        re.compile(r"\dMemoryPool_|DeviceMemoryPool_"),
        "CuPy keeps freed device memory in a pool",
    ),
    _Pool(
        "numba",
        re.compile(r"/numba(?:_cuda/numba)?/cuda/cudadrv/driver\.py$"),
        re.compile(r"^NumbaCUDAMemoryManager\.memalloc"),
        "numba frees device memory later",
        "NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT",
        hides="a use after free",
    ),
    _Pool(
        "PyTorch",
        re.compile(r"/libc10_cuda\.so$"),
        None,
        "PyTorch keeps freed device memory in a pool",
        "PYTORCH_NO_CUDA_MEMORY_CACHING",
    ),
    _Pool(
        "PyTorch",
        re.compile(r"/libc10_hip\.so$"),
        None,
        "PyTorch keeps freed device memory in a pool",
        "PYTORCH_NO_HIP_MEMORY_CACHING",
    ),
)
_CALLS: Final = frozenset({"cudaMalloc", "hipMalloc", "cuMemAlloc_v2"})
"""The calls by which these pools take device memory; memory of the runtime's own pools is seen."""
_ASK: Final = ", so {} in it is not seen; run again with --no-pools"
_STAYED: Final = (
    " although --no-pools was given, so {} in it is not seen; the program chooses the pool itself, or "
    "its Python ignores PYTHONPATH (python -E, -I)"
)


@dataclass(frozen=True, slots=True)
class Pools:
    """What is not seen inside each pool that a process used, and the packages that took memory without theirs."""

    in_use: tuple[str, ...] = ()
    off: tuple[str, ...] = ()


def pools_of(
    ledger: Ledger, stacks: CallStacks | None, environment: Mapping[str, str], words: Sequence[str], *, kept: bool
) -> Pools:
    """Return the pools of a process; nothing is known of them where no call stacks were kept.

    ``environment`` and ``words`` are what the program was started with; ``kept`` is false under ``--no-pools``.
    """
    if stacks is None:
        return Pools()
    seen = list(_stacks_of(ledger, stacks))
    in_use, off = [], []
    for pool in _POOLS:
        stacks_of_package = [stack for stack in seen if stack.is_in(pool.file)]
        if not pool.is_off(environment, words) and any(map(pool.made, stacks_of_package)):
            in_use.append(pool.keeps + (_ASK if kept else _STAYED).format(pool.hides))
        elif stacks_of_package:
            off.append(pool.package)
    return Pools(tuple(in_use), tuple(off))


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

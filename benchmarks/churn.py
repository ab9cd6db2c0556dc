"""The sequence that is measured: so many live blocks, then frees and allocations among them in a scattered order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quiesce.model.backend import DeviceProfile
from quiesce.model.operations import Allocate, Free, Operation

SIZES_BYTES: Final = (512, 1024, 4096, 2048)
STRIDE: Final = 7919
"""A prime, so that the blocks that are freed lie apart and each is met once before any is met twice."""
PROFILE: Final = DeviceProfile(capacity_bytes=1 << 40, provenance="room for every block of a benchmark")


def fill(live: int) -> Iterator[Operation]:
    """Yield the allocations of ``live`` blocks."""
    for number in range(live):
        yield Allocate(f"b[{number}]", SIZES_BYTES[number % len(SIZES_BYTES)])


def churn(live: int, operations: int) -> Iterator[Operation]:
    """Yield ``operations`` frees and allocations, in turn, that leave ``live`` blocks live."""
    for step in range(operations // 2):
        number = step * STRIDE % live
        yield Free(f"b[{number}]")
        yield Allocate(f"b[{number}]", SIZES_BYTES[(number + step) % len(SIZES_BYTES)])

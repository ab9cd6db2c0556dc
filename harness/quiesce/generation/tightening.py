"""Cases on smaller devices, which fewer requests fill."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Final

from quiesce import operations as ops
from quiesce.backend import DeviceProfile
from quiesce.cases.case import Case
from quiesce.cases.effects import uses_of
from quiesce.generation.editing import Body, keep, requests, size_of
from quiesce.operations import MemoryKind

_ROOM_BLOCKS: Final = (1, 2, 4)
_PARTS_LEFT: Final = (2, 4, 16)
"""A small block may hold a large chunk: without it, a half of the device may fill as it did before, or less."""


def tight_cases(case: Case) -> Iterator[Case]:
    """Yield cases whose device has room for a few blocks of their largest size, or of that which most blocks have.

    All blocks come again, or of those that nothing else is done with as many as there is room for, or one more or less.
    """
    asked = [allocation for _, allocation in allocations(case.body)]
    if not asked:
        return
    sizes = [allocation.size_bytes for allocation in asked]
    most_frequent = Counter(sizes).most_common(1)[0][0]
    for room in _ROOM_BLOCKS:
        for size in dict.fromkeys((most_frequent, max(sizes))):
            for footprint_bytes in _footprints([size], case.device.granularity_bytes):
                capacity = room * footprint_bytes
                if 0 < capacity < case.device.capacity_bytes:
                    tight = replace(case, device=replace(case.device, capacity_bytes=capacity))
                    yield tight
                    for count in (room - 1, room, room + 1):
                        yield replace(tight, body=_with_fewer_fillers(case.body, size, count))


def cases_without(case: Case, positions: Collection[int], blocks: Sequence[ops.Allocate]) -> Iterator[Case]:
    """Yield cases that lack some blocks, allocated at these positions, and the room for them or for what held them."""
    body = keep(case.body, set(range(size_of(case.body))).difference(positions))
    pinned = any(block.kind is MemoryKind.PINNED for block in blocks)
    whole = case.device.pinned_capacity_bytes if pinned else case.device.capacity_bytes
    granularity = case.device.granularity_bytes
    footprints = [*_footprints([block.size_bytes for block in blocks], granularity)]
    for footprint_bytes in (*footprints, *(whole - whole // part // granularity * granularity for part in _PARTS_LEFT)):
        device = _with_less(case.device, footprint_bytes, pinned=pinned)
        if device is not None:
            yield replace(case, body=body, device=device)


def allocations(body: Body) -> Iterator[tuple[int, ops.Allocate]]:
    """Yield the allocations and the positions of their leaves."""
    return ((position, asked) for position, asked in requests(body) if isinstance(asked, ops.Allocate))


def _with_fewer_fillers(body: Body, size_bytes: int, count: int) -> Body:
    """Keep of the blocks that nothing is done with but to allocate them the last few of one size, and the very last."""
    used = {use.slot for _, operation in requests(body) for use in uses_of(operation)}
    fillers = [(position, asked.size_bytes) for position, asked in allocations(body) if asked.slot not in used]
    gone = [position for position, size in fillers[:-1] if size != size_bytes]
    alike = [position for position, size in fillers[:-1] if size == size_bytes]
    return keep(body, set(range(size_of(body))).difference(gone, alike[: max(0, len(alike) - count)]))


def _with_less(device: DeviceProfile, room_bytes: int, *, pinned: bool) -> DeviceProfile | None:
    whole = device.pinned_capacity_bytes if pinned else device.capacity_bytes
    if room_bytes >= whole:
        return None
    rest = whole - room_bytes
    return replace(device, pinned_capacity_bytes=rest) if pinned else replace(device, capacity_bytes=rest)


def _footprints(sizes: Sequence[int], granularity_bytes: int) -> Iterator[int]:
    """Yield what blocks take: in whole units, and in classes of powers of two."""
    units = sum(-(-size // granularity_bytes) * granularity_bytes for size in sizes)
    powers = sum(max(granularity_bytes, 1 << (size - 1).bit_length()) for size in sizes if size)
    yield from dict.fromkeys((units, powers))

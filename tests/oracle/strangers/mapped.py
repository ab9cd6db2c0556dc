"""Expandable segments: every stream reserves addresses for good, and backs them granule by granule as it grows.

A block lies in as many backing allocations as it has granules; what is unmapped may lie between two blocks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .device import Broken, NoRoom, Queue
from .pool import Piece, Pool, round_up

GRANULE_BYTES = 2 << 20
RESERVED_BYTES = 1 << 36


@dataclass(eq=False, slots=True)
class Segment:
    """Reserved addresses of a stream, None where that is gone: what is free of them, and what is backed."""

    queue: Queue | None
    free: list[tuple[int, int]]
    backed: set[int] = field(default_factory=set)


class MappedSegments(Pool):
    """A freed span serves its own stream at once; work of others is waited for before it is free."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.segments: dict[int, Segment] = {}
        self.waiting: list[Piece] = []

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        self.poll()
        size, align = round_up(size, self.unit), max(align, self.unit)
        for make_room in (self.release, self.release_all):
            try:
                return self.carve(size, align, queue)
            except NoRoom:
                make_room()
        return self.carve(size, align, queue)

    def base_of(self, queue: Queue) -> int:
        for base, segment in self.segments.items():
            if segment.queue is queue:
                return base
        base = self.store.reserve(RESERVED_BYTES)
        self.segments[base] = Segment(queue, [(base, base + RESERVED_BYTES)])
        return base

    def carve(self, size: int, align: int, queue: Queue) -> Piece:
        base = self.base_of(queue)
        segment = self.segments[base]
        for index, (low, high) in enumerate(segment.free):
            address = round_up(low, align)
            if address + size <= high:
                self.back(segment, address, size)
                rest = ((low, address), (address + size, high))
                segment.free[index : index + 1] = [(start, end) for start, end in rest if start < end]
                return Piece(address, size, base, queue)
        raise NoRoom

    # -- granules --------------------------------------------------------------------------------------------------

    def back(self, segment: Segment, address: int, size: int) -> None:
        """Map what is not mapped yet, or nothing."""
        made: list[int] = []
        try:
            for granule in range(address // GRANULE_BYTES * GRANULE_BYTES, address + size, GRANULE_BYTES):
                if granule not in segment.backed:
                    self.map(granule)
                    made.append(granule)
        except (NoRoom, Broken):
            self.take_back(made)
            raise
        segment.backed.update(made)

    def map(self, granule: int) -> None:
        if self.limit is not None and self.held + GRANULE_BYTES > self.limit:
            raise NoRoom
        self.store.back(granule, GRANULE_BYTES)
        self.chunks[granule] = GRANULE_BYTES
        self.held += GRANULE_BYTES

    def take_back(self, made: list[int]) -> None:
        for granule in made:
            self.drop(granule)

    def drop(self, address: int) -> None:
        self.held -= self.chunks.pop(address)
        self.store.unback(address)

    # -- frees -----------------------------------------------------------------------------------------------------

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        owner = self.segments[piece.chunk].queue
        self.mark(piece, *(each for each in (queue, *touched) if each is not owner))
        if piece.behind:
            self.waiting.append(piece)
        else:
            self.join(piece)

    def join(self, piece: Piece) -> None:
        segment = self.segments[piece.chunk]
        joined: list[tuple[int, int]] = []
        for low, high in sorted([*segment.free, (piece.address, piece.address + piece.size)]):
            start = joined.pop()[0] if joined and joined[-1][1] == low else low
            joined.append((start, high))
        segment.free = joined

    def poll(self) -> None:
        waiting, self.waiting = self.waiting, []
        for piece in waiting:
            if self.is_idle(piece):
                self.join(piece)
            else:
                self.waiting.append(piece)

    def whole(self, low: int, high: int) -> tuple[int, int]:
        """Return where the granules begin and end that lie between two addresses."""
        return round_up(low, GRANULE_BYTES), high // GRANULE_BYTES * GRANULE_BYTES

    def release(self) -> None:
        """Unmap what is free; work of the segment's own stream may still use it."""
        self.poll()
        for base, segment in list(self.segments.items()):
            bounds = [self.whole(low, high) for low, high in segment.free]
            unused = [each for each in sorted(segment.backed) if any(low <= each < high for low, high in bounds)]
            if unused:
                self.settle_segment(segment)
            for granule in unused:
                segment.backed.remove(granule)
                self.drop(granule)
            if segment.queue is None and not segment.backed:
                del self.segments[base]

    def settle_segment(self, segment: Segment) -> None:
        if segment.queue is not None:
            self.runtime.drain(segment.queue)

    def release_all(self) -> None:
        for piece in self.waiting:
            self.settle(piece)
        self.release()

    def trim(self) -> None:
        self.release()

    def queue_is_going(self, queue: Queue) -> None:
        for segment in self.segments.values():
            if segment.queue is queue:
                self.settle_segment(segment)
                segment.queue = None

    def forget(self) -> None:
        for piece in self.waiting:
            self.settle(piece)
        self.waiting.clear()
        self.segments.clear()

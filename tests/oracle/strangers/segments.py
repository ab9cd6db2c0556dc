"""As frameworks cache device memory: segments of one stream, small and large, split and merged within that stream."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .device import NoRoom, Queue
from .pool import Piece, Pool, round_up

SMALL_BYTES_MAX = 1 << 20


@dataclass(eq=False, slots=True)
class Part:
    """A part of a segment, between its neighbours. It is free, owned, or ``waits`` for other streams' work."""

    piece: Piece
    state: str = "free"
    before: Part | None = None
    after: Part | None = None


class StreamSegments(Pool):
    """A part serves the stream of its segment alone, in order; work of others is waited for before it is free."""

    small_segment = 2 << 20
    large_segment = 20 << 20

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.free_parts: list[Part] = []
        self.waiting: list[Part] = []
        self.owned: dict[int, Part] = {}

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size = round_up(max(size, 512), 512)
        self.poll()
        part = None if self.is_capturing else self.find(size, align, queue)
        part = part or self.grow(size, align, queue)
        self.free_parts.remove(part)
        self.cut(part, size, align)
        part.state = "owned"
        self.owned[part.piece.address] = part
        return part.piece

    def find(self, size: int, align: int, queue: Queue) -> Part | None:
        small = size <= SMALL_BYTES_MAX
        fitting = [
            part
            for part in self.free_parts
            if part.piece.queue is queue
            and (self.chunks[part.piece.chunk] == self.small_segment) == small
            and round_up(part.piece.address, align) + size <= part.piece.address + part.piece.size
        ]
        return min(fitting, key=lambda part: (part.piece.size, part.piece.address), default=None)

    def segment_for(self, size: int) -> int:
        if size <= SMALL_BYTES_MAX:
            return self.small_segment
        return max(self.large_segment, round_up(size, 2 << 20)) if size < 10 << 20 else round_up(size, 2 << 20)

    def grow(self, size: int, align: int, queue: Queue) -> Part:
        length = self.segment_for(size)
        try:
            address = self.take(length, max(align, self.unit))
        except NoRoom:
            if self.is_capturing:
                raise
            self.release_all()
            address = self.take(length, max(align, self.unit))
        part = Part(Piece(address, self.chunks[address], address, queue))
        self.free_parts.append(part)
        return part

    def cut(self, part: Part, size: int, align: int) -> None:
        piece = part.piece
        start = round_up(piece.address, align)
        end = piece.address + piece.size
        if start > piece.address:
            head = Part(Piece(piece.address, start - piece.address, piece.chunk, piece.queue), before=part.before)
            head.after, part.before = part, head
            if head.before is not None:
                head.before.after = head
            self.free_parts.append(head)
        if start + size < end:
            tail = Part(Piece(start + size, end - start - size, piece.chunk, piece.queue), after=part.after)
            tail.before, part.after = part, tail
            if tail.after is not None:
                tail.after.before = tail
            self.free_parts.append(tail)
        piece.address, piece.size = start, size

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        part = self.owned.pop(piece.address)
        self.mark(piece, *(each for each in (queue, *touched) if each is not piece.queue))
        if piece.behind:
            part.state = "waits"
            self.waiting.append(part)
            self.poll()
        else:
            self.join(part)

    def poll(self) -> None:
        for part in list(self.waiting):
            if part.state == "waits" and self.is_idle(part.piece):
                self.waiting.remove(part)
                self.join(part)

    def join(self, part: Part) -> None:
        part.state = "free"
        for other in (part.before, part.after):
            if other is None or other.state != "free":
                continue
            self.free_parts.remove(other)
            low, high = (other, part) if other is part.before else (part, other)
            part.piece.address = low.piece.address
            part.piece.size = low.piece.size + high.piece.size
            if low is other:
                part.before = other.before
                if other.before is not None:
                    other.before.after = part
            else:
                part.after = other.after
                if other.after is not None:
                    other.after.before = part
        self.free_parts.append(part)

    def release_all(self) -> None:
        """Wait for the device, so that everything is free, and give back every segment that is whole."""
        self.runtime.drain_device(self.store.device)
        for part in self.waiting:
            self.settle(part.piece)
        self.poll()
        self.release_whole()

    def release_whole(self) -> None:
        for part in list(self.free_parts):
            if part.before is None and part.after is None:
                self.free_parts.remove(part)
                self.drop(part.piece.chunk)

    def trim(self) -> None:
        self.release_all()

    def forget(self) -> None:
        for part in self.waiting:
            self.settle(part.piece)
        self.free_parts.clear()
        self.waiting.clear()
        self.owned.clear()

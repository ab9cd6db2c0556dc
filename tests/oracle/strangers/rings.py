"""Staging memory of one ring: blocks are cut in front of its head, and its tail follows in their order alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from .device import Broken, NoRoom, Queue
from .pool import Piece, Pool, round_up

RING_BYTES = 1 << 20
LARGE_BYTES = RING_BYTES // 4


@dataclass(eq=False, slots=True)
class Cut:
    """A block of the ring, which ends at ``end`` of all that was ever cut."""

    piece: Piece
    end: int
    is_free: bool = False


class Ring(Pool):
    """What is large, or finds no room in the ring, is a chunk of its own, and goes back once it is idle."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.base: int | None = None
        self.head = self.tail = 0
        self.cuts: list[Cut] = []
        self.leaving: list[Piece] = []

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size, align = round_up(size, self.unit), max(align, self.unit)
        if not self.is_capturing:
            self.poll()
        if size <= LARGE_BYTES and align <= self.unit and (piece := self.cut(size, queue)) is not None:
            return piece
        try:
            address = self.take(size, align)
        except NoRoom:
            if self.is_capturing:
                raise
            self.make_room()
            address = self.take(size, align)
        return Piece(address, self.chunks[address], address, queue)

    def cut(self, size: int, queue: Queue) -> Piece | None:
        if self.base is None and not self.begin():
            return None
        assert self.base is not None
        start = self.head
        if start % RING_BYTES + size > RING_BYTES:
            start = round_up(start, RING_BYTES)
        if start + size > self.end():
            return None
        self.head = start + size
        piece = Piece(self.base + start % RING_BYTES, size, self.base, queue)
        self.cuts.append(Cut(piece, self.head))
        return piece

    def begin(self) -> bool:
        try:
            self.base = self.take(RING_BYTES, self.unit)
        except (NoRoom, Broken) as error:
            if isinstance(error, Broken):
                raise
            return False
        return True

    def end(self) -> int:
        """Return what the head must not pass."""
        return self.tail + RING_BYTES

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.mark(piece, *self.users(piece, queue, touched))
        if piece.chunk == self.base:
            self.leave(piece)
        else:
            self.leaving.append(piece)
        self.poll()

    def users(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> tuple[Queue, ...]:
        """Return the queues that a free is put behind."""
        return (piece.queue, queue, *touched)

    def leave(self, piece: Piece) -> None:
        next(cut for cut in self.cuts if cut.piece is piece).is_free = True

    def poll(self) -> None:
        """Let the tail follow, and what is large go, as far as all is idle."""
        while self.cuts and self.cuts[0].is_free and self.is_idle(self.cuts[0].piece):
            self.tail = self.cuts.pop(0).end
        if not self.cuts:
            self.tail = self.head
        for piece in [piece for piece in self.leaving if self.is_idle(piece)]:
            self.leaving.remove(piece)
            self.drop(piece.address)

    def make_room(self) -> None:
        for piece in (*self.leaving, *(cut.piece for cut in self.cuts if cut.is_free)):
            self.settle(piece)
        self.trim()

    def trim(self) -> None:
        self.poll()
        if self.base is not None and self.may_end():
            self.drop(self.base)
            self.base, self.head, self.tail, self.cuts = None, 0, 0, []

    def may_end(self) -> bool:
        return not self.cuts

    def queue_is_going(self, queue: Queue) -> None:
        for piece in (*self.leaving, *(cut.piece for cut in self.cuts if cut.is_free)):
            if any(marker.point.queue is queue for marker in piece.behind):
                self.settle(piece)

    def forget(self) -> None:
        for piece in (*self.leaving, *(cut.piece for cut in self.cuts)):
            self.settle(piece)
        self.base, self.cuts, self.leaving = None, [], []


class HeadMeetsTail(Ring):
    """The head may pass the tail by one unit: the oldest block begins where the newest ends."""

    def end(self) -> int:
        return super().end() + self.unit


class LaterFreesCarryEarlier(Ring):
    """The free of a block frees all that were cut before it, as where each frame frees its last."""

    def leave(self, piece: Piece) -> None:
        pieces = [cut.piece for cut in self.cuts]
        for cut in self.cuts[: pieces.index(piece) + 1 if piece in pieces else 0]:
            cut.is_free = True


class OwnersAloneAreMarked(Ring):
    """Freed on another stream than it was made for, a block waits for the one it was made for alone."""

    def users(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> tuple[Queue, ...]:
        return (piece.queue,)


class EndsWithFreedBlocks(Ring):
    """A trim takes a ring in which everything is freed for one in which everything is done."""

    def may_end(self) -> bool:
        is_over = all(cut.is_free for cut in self.cuts)
        for cut in self.cuts if is_over else ():
            for marker in cut.piece.behind:
                self.runtime.retire(marker)
        return is_over

"""Captures that take an arena when they begin: blocks are cut from it, and it stays as long as the graph does."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.outcomes import Outcome

from .device import Broken, NoRoom, Queue
from .pool import Piece, round_up
from .private import GraphSession, PrivatePool

ARENA_BYTES = 256 << 10


class ReservedPool(PrivatePool):
    """An arena, and whole chunks for what does not fit."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.arena: int | None = None
        self.top = 0
        self.cut_out = 0

    def reserve(self) -> None:
        """Take the arena. Where that fails, every block is a chunk of its own."""
        try:
            self.arena = self.take(ARENA_BYTES, self.unit)
        except (NoRoom, Broken):
            self.arena = None

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        if self.arena is not None:
            address, whole = round_up(self.arena + self.top, max(align, self.unit)), round_up(size, self.unit)
            if self.fits(address, whole, self.arena + ARENA_BYTES):
                self.top = address + whole - self.arena
                self.cut_out += 1
                return Piece(address, whole, self.arena, queue)
        return super().allocate(size, align, queue)

    def fits(self, address: int, size: int, end: int) -> bool:
        return address + size <= end

    def trim(self) -> None:
        """Give back what is freed: the arena once nothing in it is owned."""
        if self.is_needed:
            return
        if self.freed or self.arena is not None:
            self.runtime.drain_device(self.store.device)
        for piece in self.freed:
            self.settle(piece)
            if piece.chunk == self.arena:
                self.cut_out -= 1
            else:
                self.drop(piece.chunk)
        self.freed.clear()
        if self.arena is not None and not self.cut_out:
            self.drop(self.arena)
            self.arena = None


class ReservingSession(GraphSession):
    """Serves allocations in captures from what it took when they began."""

    private_pool: type[ReservedPool] = ReservedPool

    def answer_capture(self, operation: ops.Operation) -> Outcome:
        outcome = super().answer_capture(operation)
        if isinstance(operation, ops.BeginCapture):
            queue = self.named_queue(operation.stream)
            pool = self.private_pool(self.runtime, self.stores[queue.device], self.unit, None)
            self.of_captures[self.captures.of[queue]] = self.pools[f"private/{next(self.numbers)}"] = pool
            pool.reserve()
        return outcome


class LongerArena(ReservedPool):
    """The last block of an arena may be twice as long as what is left."""

    def fits(self, address: int, size: int, end: int) -> bool:
        return address + size // 2 <= end


class CutsBeyondItsEnd(ReservingSession):
    """Captures with such arenas."""

    private_pool = LongerArena

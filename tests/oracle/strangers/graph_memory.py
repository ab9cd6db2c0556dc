"""Captures that use their own memory again while they go on, and give it back as soon as their graph is gone."""

from __future__ import annotations

from quiesce.model import operations as ops
from quiesce.model.operations import Slot

from .device import Queue
from .pool import Piece, Pool, round_up
from .private import GraphSession, PrivatePool


class ReusingPool(PrivatePool):
    """The memory of one capture: what a queue freed is that queue's next."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)
        self.free_on: list[tuple[Queue, Piece]] = []

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        for entry in self.free_on:
            freed_on, piece = entry
            fits = piece.size == round_up(size, self.unit) and not piece.address % max(align, self.unit)
            if fits and self.may_have(queue, freed_on):
                self.free_on.remove(entry)
                return piece
        piece = super().allocate(size, align, queue)
        piece.size = round_up(size, self.unit)
        return piece

    def may_have(self, queue: Queue, freed_on: Queue) -> bool:
        return queue is freed_on

    def free_in_capture(self, piece: Piece, queue: Queue) -> None:
        self.free_on.append((queue, piece))

    def trim(self) -> None:
        if not self.is_needed:
            self.freed += [piece for _, piece in self.free_on]
            self.free_on.clear()
        super().trim()

    def forget(self) -> None:
        self.free_on.clear()
        super().forget()


class KeptForGraphs(GraphSession):
    """Keeps for a graph what its capture freed."""

    private_pool = ReusingPool

    def free(self, slot: Slot, stream: Slot | None) -> None:
        block = self.block(slot)
        queue = self.queue(stream) if stream is not None else block.queue
        capture = self.captures.of.get(queue)
        own = self.of_captures.get(capture) if capture is not None else None
        if isinstance(own, ReusingPool) and block.pool is own and block.piece is not None:
            self.take_out(slot)
            own.free_in_capture(block.piece, queue)
        else:
            super().free(slot, stream)

    def give_up(self, pool: PrivatePool | None) -> None:
        super().give_up(pool)
        if pool is not None and not self.captures.any_active:
            pool.trim()


class AnyQueueMayHaveIt(KeptForGraphs):
    """Memory that one queue of a capture freed goes to another, in whatever order."""

    class private_pool(ReusingPool):
        def may_have(self, queue: Queue, freed_on: Queue) -> bool:
            return True


class GraphsShareOnePool(KeptForGraphs):
    """The next capture gets what an earlier graph still runs on."""

    shared: ReusingPool | None = None

    def pool_for(self, operation: ops.Allocate, queue: Queue) -> Pool:
        capture = self.captures.of.get(queue)
        if capture is not None and self.shared is not None and self.shared.store.device == queue.device:
            self.of_captures.setdefault(capture, self.shared)
        pool = super().pool_for(operation, queue)
        if isinstance(pool, ReusingPool):
            self.shared = pool
        return pool

    def give_up(self, pool: PrivatePool | None) -> None:
        if pool not in (*self.of_captures.values(), *self.of_graphs.values()):
            self.shared = None
            super().give_up(pool)


class GoesBackUnderTheGraph(KeptForGraphs):
    """A trim takes the memory of graphs along that are there."""

    class private_pool(ReusingPool):
        def trim(self) -> None:
            self.is_needed = False
            super().trim()


class GoesBackInFlight(KeptForGraphs):
    """A graph that is destroyed gives its memory back at once, while it runs."""

    class private_pool(ReusingPool):
        def drop_all(self) -> None:
            for piece in [*self.freed, *(piece for _, piece in self.free_on)]:
                self.drop(piece.chunk)
            self.freed.clear()
            self.free_on.clear()

    def give_up(self, pool: PrivatePool | None) -> None:
        if isinstance(pool, GoesBackInFlight.private_pool):
            pool.drop_all()
        super().give_up(pool)


class OwnedBlocksAreReused(KeptForGraphs):
    """What a capture freed and used again serves a second block while the first is owned."""

    class private_pool(ReusingPool):
        def free_in_capture(self, piece: Piece, queue: Queue) -> None:
            super().free_in_capture(piece, queue)
            super().free_in_capture(piece, queue)

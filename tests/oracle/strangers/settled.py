"""Arenas that roll back and wait without asking, as HIP wants it: for nothing that a stream recorded which is gone."""

from __future__ import annotations

from .checkpoints import Arena, Checkpoints
from .device import Queue
from .pool import Piece


class SettledCheckpoints(Checkpoints):
    """Waits here for all that some arena is behind on a stream that is about to go."""

    def line_up(self, piece: Piece, queue: Queue) -> None:
        for marker in piece.behind:
            if marker.point.queue is not queue:
                self.runtime.wait(queue, marker)
            self.runtime.retire(marker)
        piece.behind = [self.runtime.record(queue)] if piece.behind else []

    def queue_is_going(self, queue: Queue) -> None:
        super().queue_is_going(queue)
        for arena in self.arenas:
            self.settle_arena(arena, queue)

    def settle_arena(self, arena: Arena, queue: Queue) -> None:
        """Wait for what an arena is behind on one stream."""
        for marker in [each for each in arena.behind if each.point.queue is queue]:
            self.runtime.await_here(marker)
            self.runtime.retire(marker)
            arena.behind.remove(marker)


class SettlesItsOwn(SettledCheckpoints):
    """Passes over the arenas of other streams, which blocks came back to that the stream had used."""

    def queue_is_going(self, queue: Queue) -> None:
        for arena in self.arenas:
            if arena.owner is queue:
                self.settle_arena(arena, queue)
        Checkpoints.queue_is_going(self, queue)


class SettlesTheLast(SettledCheckpoints):
    """Waits for the last thing that was recorded on the stream, and keeps what was recorded before it."""

    def settle_arena(self, arena: Arena, queue: Queue) -> None:
        behind = [each for each in arena.behind if each.point.queue is queue]
        if behind:
            self.runtime.await_here(behind[-1])
            self.runtime.retire(behind[-1])
            arena.behind.remove(behind[-1])

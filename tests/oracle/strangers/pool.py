"""What every stranger is made of: pieces of memory, the markers that they are behind, and a way to wait for those."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .device import Marker, NoRoom, Queue, Runtime, Store


def round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit


@dataclass(eq=False, slots=True)
class Piece:
    """Memory that is handed out or kept. ``behind`` is work that may still use it."""

    address: int
    size: int
    chunk: int
    queue: Queue
    behind: list[Marker] = field(default_factory=list)


class Pool:
    """The base of all strangers: chunks from a store under a limit."""

    def __init__(self, runtime: Runtime, store: Store, unit: int, limit: int | None) -> None:
        self.runtime, self.store, self.unit, self.limit = runtime, store, unit, limit
        self.chunks: dict[int, int] = {}
        self.held = 0
        self.is_capturing = False
        """Whether some stream is captured: then nothing is recorded or waited for, and only idle memory may go out."""

    # -- what the adapter calls ------------------------------------------------------------------------------------

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        """Return a piece that work on ``queue`` may use. Raises ``NoRoom`` and ``Broken``."""
        raise NotImplementedError

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        """Take a piece back, freed on ``queue``; work on ``touched`` used it."""
        raise NotImplementedError

    def trim(self) -> None:
        """Give back what nothing needs."""

    def forget(self) -> None:
        """Give up every marker and every list: the pool is going, and all work is done."""
        raise NotImplementedError

    def queue_is_going(self, queue: Queue) -> None:
        """Hear that a queue is about to be destroyed."""

    def was_synchronized(self) -> None:
        """Hear that the device is idle."""

    def close(self) -> None:
        self.runtime.drain_device(self.store.device)
        self.forget()
        for address in list(self.chunks):
            self.drop(address)

    # -- chunks ----------------------------------------------------------------------------------------------------

    def take(self, size: int, align: int = 1) -> int:
        if self.limit is not None and self.held + size > self.limit:
            raise NoRoom
        address = self.store.take(size, align)
        self.chunks[address] = self.store.held[address]
        self.held += self.chunks[address]
        return address

    def drop(self, address: int) -> None:
        self.held -= self.chunks.pop(address)
        self.store.give(address)

    # -- markers ---------------------------------------------------------------------------------------------------

    def mark(self, piece: Piece, *queues: Queue) -> None:
        """Put the piece behind all that was issued to these queues."""
        for queue in dict.fromkeys(queues):
            if queue.is_alive:
                piece.behind.append(self.runtime.record(queue))

    def is_idle(self, piece: Piece) -> bool:
        """Whether all that the piece is behind is done."""
        pending = []
        for marker in piece.behind:
            if self.runtime.ask(marker):
                self.runtime.retire(marker)
            else:
                pending.append(marker)
        piece.behind = pending
        return not pending

    def line_up(self, piece: Piece, queue: Queue) -> None:
        """Make a queue wait for what the piece is behind, which stays with it until it is done."""
        if not self.is_idle(piece):
            for marker in piece.behind:
                if marker.point.queue is not queue:
                    self.runtime.wait(queue, marker)

    def settle(self, piece: Piece) -> None:
        """Wait here for what the piece is behind."""
        for marker in piece.behind:
            if not self.runtime.ask(marker):
                self.runtime.await_here(marker)
            self.runtime.retire(marker)
        piece.behind = []

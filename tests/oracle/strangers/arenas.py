"""An arena for each stream, and stealing: what another stream has left is taken once it is idle, or waited for."""

from __future__ import annotations

from collections.abc import Collection

from .device import NoRoom, Queue
from .pool import Piece, Pool, round_up


class StealingArenas(Pool):
    """Whole pieces, best fit within a quarter; an arena whose stream is gone belongs to nobody and to everybody."""

    step = 1024

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.arenas: dict[Queue | None, list[Piece]] = {None: []}

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size = round_up(size, self.step)
        piece = self.pick(self.arenas.get(queue, []), size, align)
        if piece is None:
            piece = self.steal(size, align, queue)
        if piece is None:
            piece = self.fresh(size, align, queue)
        piece.queue = queue
        self.line_up(piece, queue)
        return piece

    def pick(self, arena: list[Piece], size: int, align: int) -> Piece | None:
        fitting = [piece for piece in arena if size <= piece.size <= size + size // 4 and piece.address % align == 0]
        chosen = min(fitting, key=lambda piece: piece.size, default=None)
        if chosen is not None:
            arena.remove(chosen)
        return chosen

    def steal(self, size: int, align: int, queue: Queue) -> Piece | None:
        """Take what is idle in another arena, or else, of the fullest one, what is not."""
        others = [arena for owner, arena in self.arenas.items() if owner is not queue]
        for arena in others:
            idle = [piece for piece in arena if self.is_idle(piece)]
            piece = self.pick(idle, size, align)
            if piece is not None:
                arena.remove(piece)
                return piece
        fullest = max(others, key=len, default=[])
        return self.pick(fullest, size, align) if len(fullest) > 3 else None

    def fresh(self, size: int, align: int, queue: Queue) -> Piece:
        try:
            address = self.take(size, max(align, self.unit))
        except NoRoom:
            self.squeeze()
            address = self.take(size, max(align, self.unit))
        return Piece(address, self.chunks[address], address, queue)

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.mark(piece, piece.queue, queue, *touched)
        home = piece.queue if piece.queue.is_alive else None
        self.arenas.setdefault(home, []).append(piece)

    def queue_is_going(self, queue: Queue) -> None:
        self.arenas[None] += self.arenas.pop(queue, [])

    def squeeze(self) -> None:
        for arena in self.arenas.values():
            for piece in arena:
                self.settle(piece)
        self.trim()

    def trim(self) -> None:
        for arena in self.arenas.values():
            for piece in [piece for piece in arena if self.is_idle(piece)]:
                arena.remove(piece)
                self.drop(piece.address)

    def forget(self) -> None:
        for arena in self.arenas.values():
            for piece in arena:
                self.settle(piece)
        self.arenas = {None: []}

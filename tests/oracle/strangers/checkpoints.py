"""Arenas that only grow and roll back: a block's memory returns once all that was cut behind it is free as well."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .device import Marker, NoRoom, Queue
from .pool import Piece, Pool, round_up

ARENA_BYTES = 1 << 20


@dataclass(eq=False, slots=True)
class Cut:
    """A block of an arena, and where the arena stood before it."""

    piece: Piece
    rolls_back_to: int
    is_free: bool = False


@dataclass(eq=False, slots=True)
class Arena:
    """Memory of one stream. ``behind`` is work on what was rolled back or is free."""

    start: int
    size: int
    owner: Queue | None
    top: int = 0
    cuts: list[Cut] = field(default_factory=list)
    behind: list[Marker] = field(default_factory=list)


class Checkpoints(Pool):
    """A stream has arenas of its own; one that is empty goes to whoever asks, behind what it is behind."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.arenas: list[Arena] = []
        self.owned: dict[int, Arena] = {}

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size, align = round_up(size, self.unit), max(align, self.unit)
        for arena in self.arenas:
            if arena.owner is queue or (not arena.cuts and arena.size >= size):
                self.hand_over(arena, queue)
                if (piece := self.cut(arena, size, align, queue)) is not None:
                    return piece
        arena = self.fresh(size, align, queue)
        piece = self.cut(arena, size, align, queue)
        assert piece is not None
        return piece

    def hand_over(self, arena: Arena, queue: Queue) -> None:
        """Give an arena to a stream, which may have it already."""
        arena.owner = queue
        carrier = Piece(arena.start, arena.size, arena.start, queue, arena.behind)
        self.line_up(carrier, queue)
        arena.behind = carrier.behind

    def cut(self, arena: Arena, size: int, align: int, queue: Queue) -> Piece | None:
        address = round_up(arena.start + arena.top, align)
        if address + size > arena.start + arena.size:
            return None
        piece = Piece(address, size, arena.start, queue)
        arena.cuts.append(Cut(piece, arena.top))
        arena.top = address + size - arena.start
        self.owned[address] = arena
        return piece

    def fresh(self, size: int, align: int, queue: Queue) -> Arena:
        try:
            start = self.take(max(ARENA_BYTES, size), align)
        except NoRoom:
            self.trim()
            start = self.take(size, align)
        arena = Arena(start, self.chunks[start], queue)
        self.arenas.append(arena)
        return arena

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        arena = self.owned.pop(piece.address)
        self.mark(piece, piece.queue, queue, *touched)
        arena.behind += piece.behind
        piece.behind = []
        next(cut for cut in arena.cuts if cut.piece is piece).is_free = True
        self.roll_back(arena)

    def roll_back(self, arena: Arena) -> None:
        while arena.cuts and arena.cuts[-1].is_free:
            arena.top = arena.cuts.pop().rolls_back_to

    def trim(self) -> None:
        for arena in list(self.arenas):
            carrier = Piece(arena.start, arena.size, arena.start, self.runtime.defaults[0], arena.behind)
            is_idle = self.is_idle(carrier)
            arena.behind = carrier.behind
            if is_idle and not arena.cuts:
                self.arenas.remove(arena)
                self.drop(arena.start)

    def queue_is_going(self, queue: Queue) -> None:
        for arena in self.arenas:
            if arena.owner is queue:
                arena.owner = None

    def forget(self) -> None:
        for arena in self.arenas:
            self.settle(Piece(arena.start, arena.size, arena.start, self.runtime.defaults[0], arena.behind))
        self.arenas, self.owned = [], {}


class RollsBackTooFar(Checkpoints):
    """The free of the block below the last one rolls back below both."""

    def roll_back(self, arena: Arena) -> None:
        super().roll_back(arena)
        if len(arena.cuts) > 1 and arena.cuts[-2].is_free:
            arena.top = arena.cuts[-2].rolls_back_to


class HandsOverInFlight(Checkpoints):
    """An arena that is empty is taken for idle."""

    def hand_over(self, arena: Arena, queue: Queue) -> None:
        if arena.owner is not queue:
            for marker in arena.behind:
                self.runtime.retire(marker)
            arena.behind = []
        super().hand_over(arena, queue)


class OrphansAreNotTrimmed(Checkpoints):
    """A trim passes over the arenas of streams that are gone."""

    def trim(self) -> None:
        orphans = [arena for arena in self.arenas if arena.owner is None]
        self.arenas = [arena for arena in self.arenas if arena.owner is not None]
        super().trim()
        self.arenas += orphans

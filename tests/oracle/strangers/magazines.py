"""Slabs of one size class, handed out through magazines: each stream has one, and full ones overflow to a depot."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from .device import NoRoom, Queue
from .pool import Piece, Pool, round_up

SMALL_BYTES_MAX = 128 << 10
ROUNDS = 8
"""How many pieces a magazine holds."""


def size_class(size: int) -> int:
    """Return the next power of two, or three quarters of it."""
    power = max(256, 1 << (size - 1).bit_length())
    return power * 3 // 4 if power >= 1024 and size <= power * 3 // 4 else power


class Magazines(Pool):
    """A stream takes from its own magazine first, then from the depot; what is large is kept whole."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.magazines: dict[tuple[int, Queue], list[Piece]] = {}
        self.depot: dict[int, list[Piece]] = {}
        self.large: list[Piece] = []
        self.slabs: dict[int, int] = {}
        """How many pieces each slab was cut into."""

    def shelves(self) -> Iterator[list[Piece]]:
        yield from self.magazines.values()
        yield from self.depot.values()
        yield self.large

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size = max(size, align)
        piece = self.find(size, align, queue)
        if piece is None:
            try:
                piece = self.fresh(size, align, queue)
            except NoRoom:
                self.squeeze()
                piece = self.find(size, align, queue) or self.fresh(size, align, queue)
        piece.queue = queue
        self.line_up(piece, queue)
        return piece

    def find(self, size: int, align: int, queue: Queue) -> Piece | None:
        if size > SMALL_BYTES_MAX:
            fitting = [each for each in self.large if size <= each.size <= size + size // 4]
            return self.pick(sorted(fitting, key=lambda each: each.size), align, self.large)
        step = size_class(size)
        own = self.magazines.get((step, queue), [])
        depot = self.depot.get(step, [])
        return self.pick(reversed(own), align, own) or self.pick(reversed(depot), align, depot)

    def pick(self, pieces: Iterator[Piece] | list[Piece], align: int, shelf: list[Piece]) -> Piece | None:
        chosen = next((each for each in pieces if each.address % align == 0), None)
        if chosen is not None:
            shelf.remove(chosen)
        return chosen

    def fresh(self, size: int, align: int, queue: Queue) -> Piece:
        if size > SMALL_BYTES_MAX:
            address = self.take(round_up(size, 512), max(align, self.unit))
            return Piece(address, self.chunks[address], address, queue)
        step = size_class(size)
        chunk = self.take(64 << 10 if step <= 4096 else 256 << 10, max(align, self.unit))
        cut = [Piece(chunk + at, step, chunk, queue) for at in range(0, self.chunks[chunk] - step + 1, step)]
        self.slabs[chunk] = len(cut)
        self.depot.setdefault(step, []).extend(reversed(cut[1:]))
        return cut[0]

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.mark(piece, piece.queue, queue, *touched)
        if piece.chunk not in self.slabs:
            self.large.append(piece)
            return
        magazine = self.magazines.setdefault((piece.size, queue), [])
        magazine.append(piece)
        if len(magazine) > ROUNDS:
            self.overflow(magazine)

    def overflow(self, magazine: list[Piece]) -> None:
        """Move the older half of a magazine to the depot."""
        self.depot.setdefault(magazine[0].size, []).extend(magazine[: ROUNDS // 2])
        del magazine[: ROUNDS // 2]

    def queue_is_going(self, queue: Queue) -> None:
        for step, owner in [key for key in self.magazines if key[1] is queue]:
            self.depot.setdefault(step, []).extend(self.magazines.pop((step, owner)))

    def squeeze(self) -> None:
        for shelf in self.shelves():
            for piece in shelf:
                self.settle(piece)
        self.trim()

    def trim(self) -> None:
        idle = [piece for shelf in self.shelves() for piece in shelf if self.is_idle(piece)]
        counts: dict[int, int] = {}
        for piece in idle:
            counts[piece.chunk] = counts.get(piece.chunk, 0) + 1
        for chunk, count in counts.items():
            if count == self.slabs.get(chunk, 1):
                self.give_up(chunk)

    def give_up(self, chunk: int) -> None:
        for shelf in self.shelves():
            shelf[:] = [piece for piece in shelf if piece.chunk != chunk]
        self.slabs.pop(chunk, None)
        self.drop(chunk)

    def forget(self) -> None:
        for shelf in self.shelves():
            for piece in shelf:
                self.settle(piece)
        self.magazines, self.depot, self.large, self.slabs = {}, {}, [], {}


class DepotForgetsMarkers(Magazines):
    """What overflows to the depot is taken for idle."""

    def overflow(self, magazine: list[Piece]) -> None:
        for piece in magazine[: ROUNDS // 2]:
            for marker in piece.behind:
                self.runtime.retire(marker)
            piece.behind = []
        super().overflow(magazine)


class OverflowsTwice(Magazines):
    """What overflows to the depot stays in the magazine as well."""

    def overflow(self, magazine: list[Piece]) -> None:
        self.depot.setdefault(magazine[0].size, []).extend(magazine[: ROUNDS // 2])


class MagazinesDieWithTheirStream(Magazines):
    """The magazine of a stream that goes is dropped with all that is in it."""

    def queue_is_going(self, queue: Queue) -> None:
        for key in [key for key in self.magazines if key[1] is queue]:
            for piece in self.magazines.pop(key):
                self.settle(piece)


class LargeOfAnyAlignment(Magazines):
    """What is large and kept is taken whatever its alignment."""

    def pick(self, pieces: Iterator[Piece] | list[Piece], align: int, shelf: list[Piece]) -> Piece | None:
        return super().pick(pieces, 1 if shelf is self.large else align, shelf)

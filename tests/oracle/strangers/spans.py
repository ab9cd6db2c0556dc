"""Two-level segregated fit: spans of a chunk know their neighbours, free ones are found by two levels of size."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .device import Marker, NoRoom, Queue
from .pool import Piece, Pool, round_up

STEPS = 4
"""Lists between one power of two and the next."""


@dataclass(eq=False, slots=True)
class Span:
    """A stretch of a chunk, between its neighbours."""

    start: int
    size: int
    chunk: int
    is_free: bool = True
    before: Span | None = None
    after: Span | None = None
    behind: list[Marker] = field(default_factory=list)


def list_of(size: int) -> int:
    """Return the number of the list for free spans of a size."""
    level = size.bit_length() - 1
    return level * STEPS + ((size >> (level - 2)) & 3 if level >= 2 else 0)


def first_list_for(size: int) -> int:
    """Return the first list whose every span is large enough."""
    level = size.bit_length() - 1
    return list_of(size + (1 << max(0, level - 2)) - 1)


class SegregatedFit(Pool):
    """Any span of the first list that has one is split; neighbours merge as soon as both are free."""

    chunk = 16 << 20
    step = 256

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.lists: dict[int, list[Span]] = {}
        self.filled = 0
        """Bit n says that list n has a span."""
        self.owned: dict[int, Span] = {}

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size = round_up(size, max(self.step, self.unit))
        span = self.search(size, align) or self.grow(size, align)
        self.unlink(span)
        self.split(span, size, align)
        span.is_free = False
        self.owned[span.start] = span
        piece = Piece(span.start, size, span.chunk, queue, span.behind)
        span.behind = []
        self.line_up(piece, queue)
        return piece

    def search(self, size: int, align: int) -> Span | None:
        wanted = size + (align if align > self.unit else 0)
        filled = self.filled >> (first := first_list_for(wanted))
        if not filled:
            return None
        return self.lists[first + (filled & -filled).bit_length() - 1][-1]

    def grow(self, size: int, align: int) -> Span:
        wanted = size + (align if align > self.unit else 0)
        for attempt in range(2):
            for chunk in (max(self.chunk, wanted), wanted):
                try:
                    address = self.take(chunk, self.unit)
                except NoRoom:
                    continue
                span = Span(address, self.chunks[address], address)
                self.link(span)
                return span
            if attempt == 0:
                self.squeeze()
        raise NoRoom

    def split(self, span: Span, size: int, align: int) -> None:
        """Cut a span down to the piece, which begins where the alignment says."""
        start = round_up(span.start, max(align, self.unit))
        if start > span.start:
            head = Span(span.start, start - span.start, span.chunk, before=span.before, after=span)
            if span.before is not None:
                span.before.after = head
            span.before = head
            span.start, span.size = start, span.size - head.size
            self.inherit(head, span)
        if span.size > size:
            tail = Span(span.start + size, span.size - size, span.chunk, before=span, after=span.after)
            if span.after is not None:
                span.after.before = tail
            span.after, span.size = tail, size
            self.inherit(tail, span)

    def inherit(self, part: Span, whole: Span) -> None:
        part.behind = list(whole.behind)
        for marker in part.behind:
            marker.holders += 1
        self.link(part)

    def link(self, span: Span) -> None:
        number = list_of(span.size)
        self.lists.setdefault(number, []).append(span)
        self.filled |= 1 << number

    def unlink(self, span: Span) -> None:
        number = list_of(span.size)
        self.lists[number].remove(span)
        if not self.lists[number]:
            self.filled &= ~(1 << number)

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.mark(piece, piece.queue, queue, *touched)
        span = self.owned.pop(piece.address)
        span.behind, span.is_free = piece.behind, True
        if span.after is not None and span.after.is_free:
            self.unlink(span.after)
            self.absorb(span, span.after)
        if span.before is not None and span.before.is_free:
            self.unlink(span.before)
            span.before.behind = [*span.before.behind]
            low = span.before
            self.absorb(low, span)
            span = low
        self.link(span)

    def absorb(self, low: Span, high: Span) -> None:
        low.size += high.size
        low.after = high.after
        if high.after is not None:
            high.after.before = low
        for marker in high.behind:
            if marker in low.behind:
                self.runtime.retire(marker)
            else:
                low.behind.append(marker)
        kept = []
        for marker in low.behind:
            if self.runtime.ask(marker):
                self.runtime.retire(marker)
            else:
                kept.append(marker)
        low.behind = kept

    def whole(self) -> list[Span]:
        spans = [span for spans in self.lists.values() for span in spans]
        return [span for span in spans if span.before is None and span.after is None]

    def squeeze(self) -> None:
        for span in self.whole():
            self.settle_span(span)
        self.trim()

    def settle_span(self, span: Span) -> None:
        piece = Piece(span.start, span.size, span.chunk, self.runtime.defaults[0], span.behind)
        self.settle(piece)
        span.behind = piece.behind

    def trim(self) -> None:
        for span in self.whole():
            piece = Piece(span.start, span.size, span.chunk, self.runtime.defaults[0], span.behind)
            idle = self.is_idle(piece)
            span.behind = piece.behind
            if idle:
                self.unlink(span)
                self.drop(span.chunk)

    def forget(self) -> None:
        for spans in self.lists.values():
            for span in spans:
                self.settle_span(span)
        self.lists.clear()
        self.owned.clear()
        self.filled = 0

"""Spans that are tidied up: chunks in which nothing is left go back, for one of their size (Umpire's pools)."""

from __future__ import annotations

from collections.abc import Collection

from .device import Broken, NoRoom, Queue
from .pool import Piece
from .spans import SegregatedFit, Span


class CoalescingSpans(SegregatedFit):
    """Tidies up behind a free, and when the device is idle."""

    chunk = 256 << 10

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        super().free(piece, queue, touched)
        self.coalesce()

    def was_synchronized(self) -> None:
        self.coalesce()

    def coalesce(self) -> None:
        if len(self.whole()) < 2:
            return
        held = self.held
        self.trim()
        if self.held == held:
            return
        try:
            address = self.take(held - self.held, self.unit)
        except (NoRoom, Broken):
            return
        self.link(Span(address, self.chunks[address], address))

"""Host memory, as frameworks keep it: a freed block waits for its copies, and is then kept by its size."""

from __future__ import annotations

from collections.abc import Collection

from .device import NoRoom, Queue
from .pool import Piece, Pool, round_up


class PinnedPool(Pool):
    """Blocks of powers of two; those that are still read are asked about, oldest first, all of them."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.busy: list[Piece] = []
        self.ready: dict[int, list[Piece]] = {}

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size = max(512, 1 << (max(size, align) - 1).bit_length())
        self.sort()
        for piece in self.ready.get(size, []):
            if piece.address % align == 0:
                self.ready[size].remove(piece)
                return piece
        try:
            address = self.take(size, max(align, self.unit))
        except NoRoom:
            for piece in self.busy:
                self.settle(piece)
            self.trim()
            address = self.take(size, max(align, self.unit))
        return Piece(address, self.chunks[address], address, queue)

    def sort(self) -> None:
        busy, self.busy = self.busy, []
        for piece in busy:
            (self.ready.setdefault(piece.size, []) if self.is_idle(piece) else self.busy).append(piece)

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.mark(piece, *touched)
        self.busy.append(piece)

    def trim(self) -> None:
        self.sort()
        for pieces in self.ready.values():
            while pieces:
                self.drop(pieces.pop().address)

    def forget(self) -> None:
        for piece in self.busy:
            self.settle(piece)
        self.busy.clear()
        self.ready.clear()


class ManagedPool(Pool):
    """Managed memory is not kept: who frees it waits for the device."""

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        address = self.take(round_up(size, 65536), max(align, self.unit))
        return Piece(address, self.chunks[address], address, queue)

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        for device in sorted({each.device for each in touched}):
            self.runtime.drain_device(device)
        self.settle(piece)
        self.drop(piece.address)

    def forget(self) -> None:
        pass

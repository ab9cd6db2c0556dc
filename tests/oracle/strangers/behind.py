"""Allocators that see to order with the work and not with the free: by a record in each call, or by waiting in it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from quiesce.model import operations as ops
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Done, Outcome

from .adapter import Session
from .device import Queue
from .pool import Piece, Pool, round_up


class WholeBlocks(Pool):
    """Each block is a chunk, which goes back as soon as the markers are passed that it has."""

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.owned: dict[int, Piece] = {}

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        address = self.take(round_up(size, self.unit), max(align, self.unit))
        piece = self.owned[address] = Piece(address, self.chunks[address], address, queue)
        return piece

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.settle(piece)
        self.drop(self.owned.pop(piece.address).address)

    def forget(self) -> None:
        for piece in self.owned.values():
            self.settle(piece)
        self.owned.clear()


class BehindWork(Session):
    """Does something behind each piece of work, in the call that asks for it."""

    def answer(self, operation: Operation) -> Outcome:
        outcome = super().answer(operation)
        if outcome == Done():
            match operation:
                case ops.Copy(source, destination, _, stream):
                    self.come_behind((source, destination), self.queue(stream))
                case ops.Fill(slot, _, stream):
                    self.come_behind((slot,), self.queue(stream))
                case ops.Launch(reads, writes, _, stream):
                    self.come_behind((*reads, *writes), self.queue(stream))
        return outcome

    def come_behind(self, slots: Iterable[Slot], queue: Queue) -> None:
        raise NotImplementedError


class RecordsItsWork(BehindWork):
    """Puts a marker behind it, for every block of the device."""

    def come_behind(self, slots: Iterable[Slot], queue: Queue) -> None:
        for slot in dict.fromkeys(slots):
            block = self.blocks[slot]
            if block.kind is MemoryKind.DEVICE and block.piece is not None and block.pool is not None:
                block.pool.is_idle(block.piece)
                block.pool.mark(block.piece, queue)


class WaitsForItsWork(BehindWork):
    """Waits for it (``CUDA_LAUNCH_BLOCKING``)."""

    def come_behind(self, slots: Iterable[Slot], queue: Queue) -> None:
        self.runtime.drain(queue)

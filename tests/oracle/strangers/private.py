"""Captures with memory of their own, as frameworks have it: what one allocates stays until its graph is gone."""

from __future__ import annotations

import itertools
from collections.abc import Collection

from quiesce.model import operations as ops
from quiesce.model.backend import DeviceProfile
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Outcome

from .adapter import Session, Stranger
from .captures import Capture, Refused
from .device import Queue
from .pool import Piece, Pool, round_up


class PrivatePool(Pool):
    """The memory of one capture, and then of its graph, which writes to the same addresses whenever it runs."""

    is_needed = True

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.freed: list[Piece] = []

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        address = self.take(round_up(size, self.unit), max(align, self.unit))
        return Piece(address, self.chunks[address], address, queue)

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        self.freed.append(piece)

    def trim(self) -> None:
        if self.freed and not self.is_needed:
            self.runtime.drain_device(self.store.device)
            for piece in self.freed:
                self.settle(piece)
                self.drop(piece.chunk)
            self.freed.clear()

    def forget(self) -> None:
        for piece in self.freed:
            self.settle(piece)
        self.freed.clear()


class GraphSession(Session):
    """Serves allocations in captures, whatever their mode."""

    private_pool: type[PrivatePool] = PrivatePool

    def __init__(self, stranger: Stranger, profile: DeviceProfile) -> None:
        super().__init__(stranger, profile)
        self.of_captures: dict[Capture, PrivatePool] = {}
        self.of_graphs: dict[Slot, PrivatePool] = {}
        self.numbers = itertools.count()

    def pool_for(self, operation: ops.Allocate, queue: Queue) -> Pool:
        capture = self.captures.of.get(queue)
        own = operation.kind is MemoryKind.DEVICE and operation.pool is None and operation.size_bytes
        if capture is None or not own:
            return self.pool(operation.kind, operation.pool)
        capture.require_valid()
        if capture not in self.of_captures:
            pool = self.private_pool(self.runtime, self.stores[queue.device], self.unit, None)
            self.of_captures[capture] = self.pools[f"private/{next(self.numbers)}"] = pool
        return self.of_captures[capture]

    def answer_capture(self, operation: Operation) -> Outcome:
        if not isinstance(operation, ops.EndCapture):
            outcome = super().answer_capture(operation)
            if isinstance(operation, ops.DestroyGraph):
                self.give_up(self.of_graphs.pop(operation.slot, None))
            return outcome
        capture = self.captures.of.get(self.named_queue(operation.stream))
        try:
            outcome = super().answer_capture(operation)
        except Refused:
            self.abandon(capture)
            raise
        if capture in self.of_captures:
            self.of_graphs[operation.slot] = self.of_captures.pop(capture)
        return outcome

    def abandon(self, capture: Capture | None) -> None:
        """Give up what belongs to a capture that is over and left no graph."""
        if capture is not None and capture not in self.captures.of.values():
            self.give_up(self.of_captures.pop(capture, None))

    def give_up(self, pool: PrivatePool | None) -> None:
        if pool is not None:
            pool.is_needed = False

    def destroy_queue(self, slot: Slot) -> None:
        capture = self.captures.of.get(self.named_queue(slot))
        super().destroy_queue(slot)
        self.abandon(capture)

    def trim(self, kind: MemoryKind, slot: Slot | None) -> None:
        if slot is None and kind is MemoryKind.DEVICE and not self.captures.any_active:
            for pool in self.pools.values():
                if isinstance(pool, PrivatePool) and pool.store.device == self.device:
                    pool.trim()  # first: it waits, and what that completes goes as well
        super().trim(kind, slot)


class GraphsAreKeptForEver(GraphSession):
    """What a graph had stays when it is destroyed."""

    def answer_capture(self, operation: Operation) -> Outcome:
        if isinstance(operation, ops.DestroyGraph):
            self.of_graphs.pop(operation.slot, None)
        return super().answer_capture(operation)


class FailedCapturesKeepTheirs(GraphSession):
    """A capture that fails is given up without its memory (as in pytorch/pytorch#180395)."""

    def abandon(self, capture: Capture | None) -> None:
        pass

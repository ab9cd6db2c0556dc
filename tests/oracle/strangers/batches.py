"""Stream-ordered like ``cudaMallocAsync``: frees are batched by stream, and a stream's own memory comes back soon."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from .device import Marker, NoRoom, Queue
from .pool import Piece, Pool, round_up


@dataclass(eq=False, slots=True)
class Batch:
    """What was freed on one queue; ``marker`` is behind all of it once the batch is closed."""

    queue: Queue
    pieces: list[Piece] = field(default_factory=list)
    marker: Marker | None = None


class DeferredBatches(Pool):
    """Memory freed on a stream serves that stream at once, another one behind the batch's marker.

    Only the stream of the free counts: what others did is the caller's business. A synchronisation returns what is
    idle beyond a threshold.
    """

    batch = 8
    threshold = 4 << 20

    def __init__(self, *arguments: object) -> None:
        super().__init__(*arguments)  # type: ignore[arg-type]
        self.batches: list[Batch] = []

    def footprint(self, size: int) -> int:
        step = max(512, 1 << max(0, size.bit_length() - 4))
        return round_up(size, step)

    def allocate(self, size: int, align: int, queue: Queue) -> Piece:
        size = self.footprint(size)
        piece = self.take_from(size, align, queue, own=True) or self.take_from(size, align, queue, own=False)
        if piece is not None:
            piece.queue = queue
            return piece
        try:
            address = self.take(size, max(align, self.unit))
        except NoRoom:
            if self.is_capturing:
                raise
            self.squeeze()
            address = self.take(size, max(align, self.unit))
        return Piece(address, self.chunks[address], address, queue)

    def take_from(self, size: int, align: int, queue: Queue, *, own: bool) -> Piece | None:
        for batch in self.batches:
            if own != (batch.queue is queue) or (not own and batch.marker is None):
                continue
            if self.is_capturing and (batch.marker is None or not self.runtime.ask(batch.marker)):
                continue
            for piece in batch.pieces:
                if piece.size == size and piece.address % align == 0 and not (self.is_capturing and piece.behind):
                    batch.pieces.remove(piece)
                    if batch.marker is not None and not self.runtime.ask(batch.marker) and not own:
                        self.runtime.wait(queue, batch.marker)
                    self.line_up(piece, queue)
                    self.drop_empty(batch)
                    return piece
        return None

    def drop_empty(self, batch: Batch) -> None:
        if not batch.pieces and batch.marker is not None:
            # What was handed out is behind the marker by a wait, or by its own queue's order.
            self.runtime.retire(batch.marker)
            self.batches.remove(batch)

    def free(self, piece: Piece, queue: Queue, touched: Collection[Queue]) -> None:
        open_one = next((each for each in self.batches if each.queue is queue and each.marker is None), None)
        if open_one is None:
            open_one = Batch(queue)
            self.batches.append(open_one)
        if piece.queue is not queue and piece.queue.is_alive:
            self.mark(piece, piece.queue)
        open_one.pieces.append(piece)
        if len(open_one.pieces) >= self.batch:
            self.close_batch(open_one)

    def close_batch(self, batch: Batch) -> None:
        if not batch.pieces:
            self.batches.remove(batch)
        elif batch.marker is None:
            batch.marker = self.runtime.record(batch.queue)

    def queue_is_going(self, queue: Queue) -> None:
        for batch in [each for each in self.batches if each.queue is queue]:
            self.close_batch(batch)

    def was_synchronized(self) -> None:
        if self.held > self.threshold:
            self.trim()

    def squeeze(self) -> None:
        for batch in list(self.batches):
            self.close_batch(batch)
        for batch in self.batches:
            assert batch.marker is not None
            if not self.runtime.ask(batch.marker):
                self.runtime.await_here(batch.marker)
            for piece in batch.pieces:
                self.settle(piece)
        self.trim()

    def trim(self) -> None:
        for batch in list(self.batches):
            self.close_batch(batch)
        for batch in list(self.batches):
            assert batch.marker is not None
            if not self.runtime.ask(batch.marker):
                continue
            for piece in list(batch.pieces):
                if self.is_idle(piece):
                    batch.pieces.remove(piece)
                    self.drop(piece.address)
            self.drop_empty(batch)

    def forget(self) -> None:
        for batch in self.batches:
            for piece in batch.pieces:
                self.settle(piece)
            if batch.marker is not None:
                self.runtime.retire(batch.marker)
        self.batches.clear()

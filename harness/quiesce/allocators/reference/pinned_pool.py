"""Pinned memory: host memory that the device reads and writes while the host runs on, and staging through it.

Staging is how a library brings host data to the device (``cupy.asarray``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.allocators.reference.backing import BackingAllocator
from quiesce.allocators.reference.chunks import Guard, record_guards
from quiesce.allocators.reference.ledger import CallFailed, CallRejected, Ledger, MemoryExhausted
from quiesce.allocators.reference.objects import Block, Stream
from quiesce.allocators.reference.pool import CachingPool
from quiesce.allocators.reference.streams import Streams
from quiesce.model.observations import CopyEnqueued
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import CAPTURE_UNSUPPORTED, INVALID_VALUE

PINNED_UNIT_BYTES: Final = 512


def pinned_footprint(size_bytes: int) -> int:
    """Return what a pinned request takes: 512 times the next power of two of its 512-byte units."""
    units = -(-size_bytes // PINNED_UNIT_BYTES)
    return PINNED_UNIT_BYTES << (units - 1).bit_length()


@dataclass(slots=True, eq=False)
class InFlight:
    """A freed block and the guards that have not been seen complete."""

    address: int
    footprint_bytes: int
    guards: deque[Guard]


class PinnedPool:
    """The pool of pinned host memory."""

    def __init__(self, backing: BackingAllocator, streams: Streams, ledger: Ledger, alignment_bytes: int) -> None:
        self.backing = backing
        self.streams = streams
        self.ledger = ledger
        self.alignment_bytes = alignment_bytes
        self.held_bytes = 0
        self.live_bytes = 0
        self.live_blocks = 0
        self.free_by_size: dict[int, list[int]] = {}
        self.in_flight: dict[Stream, deque[tuple[Guard, InFlight]]] = {}
        self._deferred: list[Block] = []
        streams.captures.when_over[self] = self.settle_deferred

    def allocate(self, size_bytes: int, alignment_bytes: int, stream: Stream) -> Block:
        """Return a pinned block. Raises :class:`MemoryExhausted` where none fits even after waiting for copies."""
        if alignment_bytes > PINNED_UNIT_BYTES:
            raise CallRejected(INVALID_VALUE)
        self.collect()
        size = self.footprint(size_bytes)
        addresses = self.free_by_size.get(size)
        self.ledger.step()
        address = addresses.pop() if addresses else self.obtain(size)
        if addresses is not None and not addresses:
            del self.free_by_size[size]
        self.live_bytes += size
        self.live_blocks += 1
        return Block(address, size_bytes, size, self.backing.kind, stream, self)

    def footprint(self, size_bytes: int) -> int:
        """Return the bytes that a request takes."""
        return pinned_footprint(size_bytes)

    def free(self, block: Block, stream: Stream) -> None:
        """Take a block back; it is handed out again when the last copy that uses it is complete."""
        self.live_bytes -= block.footprint_bytes
        self.live_blocks -= 1
        if block.uses and self.streams.captures.any_active:
            self._deferred.append(block)  # an event recorded now could never be asked
        else:
            self.put(InFlight(block.address, block.footprint_bytes, self.make_guards(block)))

    def free_again(self, block: Block, stream: Stream) -> None:
        """Refuse a block that was freed before."""
        raise CallRejected(INVALID_VALUE)

    def settle_deferred(self) -> None:
        """File what was freed during a capture; no capture is going on any more."""
        waiting, self._deferred = self._deferred, []
        for block in waiting:
            self.put(InFlight(block.address, block.footprint_bytes, self.make_guards(block)))

    def put(self, entry: InFlight) -> None:
        """File each guard of a block under its stream, in the order of the records; without any, the block is free."""
        for guard in entry.guards:
            self.in_flight.setdefault(guard.stream, deque()).append((guard, entry))
        if not entry.guards:
            self.free_by_size.setdefault(entry.footprint_bytes, []).append(entry.address)

    def make_guards(self, block: Block) -> deque[Guard]:
        """Record an event behind the work of every stream that uses the block."""
        return deque(record_guards(block, self.streams, self.ledger))

    def collect(self) -> None:
        """Free the blocks whose work is complete. A capture forbids asking, so then none are."""
        if self.streams.captures.any_active:
            return
        for stream in list(self.in_flight):
            waiting = self.in_flight[stream]
            while waiting and self.streams.is_complete(waiting[0][0].event):
                self.ledger.step()
                self.pass_guard(*waiting.popleft())
            if not waiting:
                del self.in_flight[stream]

    def pass_guard(self, guard: Guard, entry: InFlight) -> None:
        """Take a complete guard off its block, which is free behind its last one."""
        self.streams.destroy_event(guard.event)
        entry.guards.remove(guard)
        if not entry.guards:
            self.put(entry)

    def trim(self) -> None:
        """Release every free block, those whose work has just completed included."""
        self.collect()
        self.give_back_free()

    def give_back_free(self) -> None:
        """Release the blocks that are known to be free."""
        for size, addresses in self.free_by_size.items():
            for address in addresses:
                self.ledger.step()
                self.held_bytes -= self.backing.footprint(size)
                with self.streams.captures.relaxed():
                    self.backing.free(address)
        self.free_by_size.clear()

    def release(self) -> None:
        """Give everything back, waiting for work in flight."""
        self.collect()
        self.wait_for_all()
        self.give_back_free()

    def wait_for_all(self) -> None:
        """Wait for the work of every freed block."""
        while self.in_flight:
            stream = next(iter(self.in_flight))
            waiting = self.in_flight[stream]
            guard, entry = waiting.popleft()
            if not self.streams.is_complete(guard.event):
                self.streams.synchronize_event(guard.event)
            self.pass_guard(guard, entry)
            if not waiting:
                del self.in_flight[stream]

    def obtain(self, size: int) -> int:
        """Take memory from the backing allocator, reclaiming before giving up."""
        try:
            return self.from_backing(size)
        except MemoryExhausted:
            self.trim()
        try:
            return self.from_backing(size)
        except MemoryExhausted:
            if self.streams.captures.any_active:
                raise
            self.release()
        return self.from_backing(size)

    def from_backing(self, size: int) -> int:
        """Take memory from the backing allocator."""
        with self.streams.captures.relaxed():
            address = self.backing.allocate(size, PINNED_UNIT_BYTES)
        self.held_bytes += self.backing.footprint(size)
        return address


def use(blocks: Sequence[Block], streams: Streams, stream: Stream) -> None:
    """Enqueue work on ``stream`` that uses ``blocks``; in a capture it is recorded instead of run."""
    if stream.capture is not None:
        stream.capture.launch(stream, [tuple(blocks)])
        for block in blocks:
            block.captured_on.add(stream)
        return
    streams.enqueue(stream)
    for block in blocks:
        block.uses[stream] = None


class Stager:
    """Copies host blocks into device blocks."""

    def __init__(self, pinned_pool: PinnedPool, streams: Streams, ledger: Ledger) -> None:
        self.pinned_pool = pinned_pool
        self.streams = streams
        self.ledger = ledger

    def stage(self, source: Block, pool: CachingPool, stream: Stream) -> Block:
        """Return a block of ``pool`` into which ``source`` is being copied on ``stream``."""
        destination = pool.allocate(source.size_bytes, 1, stream)
        try:
            self.bring(source, destination, stream)
        except CallFailed:
            self.roll_back(destination, stream)
            raise
        return destination

    def roll_back(self, destination: Block, stream: Stream) -> None:
        """Give the destination of a failed copy back."""
        destination.owner.free(destination, stream)

    def bring(self, source: Block, destination: Block, stream: Stream) -> None:
        """Copy a pinned source directly, any other by way of a buffer."""
        if source.kind is MemoryKind.PINNED:
            self.copy(source, destination, stream)
        else:
            self.through_buffer(source, destination, stream)

    def through_buffer(self, source: Block, destination: Block, stream: Stream) -> None:
        """Copy by way of a pinned buffer, which goes back to its pool behind the copy.

        A capture is refused before anything happens, as CuPy refuses it: the graph would read the buffer whenever it
        runs, and the source long after the caller may have overwritten it.
        """
        if stream.capture is not None:
            raise CallRejected(CAPTURE_UNSUPPORTED)
        buffer = self.pinned_pool.allocate(source.size_bytes, 1, stream)
        try:
            self.copy(buffer, destination, stream)
        finally:
            self.pinned_pool.free(buffer, stream)

    def copy(self, source: Block, destination: Block, stream: Stream) -> None:
        """Enqueue the copy; both blocks are in use until it is done."""
        use((source, destination), self.streams, stream)
        size = min(source.size_bytes, destination.size_bytes)
        self.ledger.see(CopyEnqueued(source.address, destination.address, size, stream.name))

"""The adapter of all strangers: requests become calls of their pools, slots stand for what those return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Closing, Description, DeviceProfile, Flavour, Promise, Reply
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import CopyEnqueued, Observation
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import (
    BACKING_ERROR,
    CAPTURE_UNSUPPORTED,
    ILLEGAL_STATE,
    INVALID_HANDLE,
    INVALID_VALUE,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
    Unsupported,
)

from .captures import Refused
from .device import Broken, NoRoom, Queue, Runtime, Store
from .host_pool import ManagedPool, PinnedPool
from .pool import Pool
from .work import Block, Work

MakePool = Callable[[Runtime, Store, int, "int | None"], Pool]

_CAN = frozenset(
    {
        Capability.MEMORY,
        Capability.ALIGNMENT,
        Capability.POOL,
        Capability.POOLS,
        Capability.POOL_LIMIT,
        Capability.CAPACITY,
        Capability.PINNED,
        Capability.MANAGED,
        Capability.COPY,
        Capability.FILL,
        Capability.LAUNCH,
        Capability.STREAMS,
        Capability.EVENTS,
        Capability.STALL,
        Capability.DEVICES,
        Capability.INJECTION,
    }
)
_BOTH = frozenset(Source)
_CLAIM = frozenset({Source.CLAIM})
_GAUGES = {
    Gauge.LIVE: _CLAIM,
    Gauge.BLOCKS: _CLAIM,
    Gauge.RESERVED: _BOTH,
    Gauge.PINNED: _BOTH,
    Gauge.STREAMS: _CLAIM,
    Gauge.EVENTS: frozenset({Source.LEDGER}),
    Gauge.BACKING_CALLS: frozenset({Source.LEDGER}),
}


@dataclass(frozen=True)
class Stranger:
    """An allocator and what it says of itself."""

    name: str
    make_pool: MakePool
    promises: frozenset[Promise]
    also: frozenset[Capability] = frozenset()
    chunk_bytes: int = 16 << 20
    footprint_factor: int = 2
    keeps_spares: bool = False
    make_session: Callable[[Stranger, DeviceProfile], Session] | None = None

    def describe(self) -> Description:
        return Description(
            self.name,
            "0.1",
            _CAN | {Capability.BACKING_LEDGER} | self.also,
            self.promises,
            _GAUGES,
            alignment_bytes=256,
            chunk_bytes=self.chunk_bytes,
            footprint_factor=self.footprint_factor,
        )

    def open(self, profile: DeviceProfile) -> Session:
        return (self.make_session or Session)(self, profile)

    @property
    def tracks_uses(self) -> bool:
        return Promise.TRACKS_USES in self.promises


class Session(Work):
    """One opened stranger."""

    def __init__(self, stranger: Stranger, profile: DeviceProfile) -> None:
        legacy = Capability.LEGACY_DEFAULT_STREAM in stranger.also
        super().__init__(self.make_runtime(profile.devices, spares=stranger.keeps_spares, legacy=legacy), profile)
        self.stranger = stranger
        self.live_bytes = 0
        self.unit = max(256, profile.alignment_bytes)
        self.stores = [self.make_store(MemoryKind.DEVICE, device) for device in range(profile.devices)]
        self.pinned = PinnedPool(self.runtime, self.make_store(MemoryKind.PINNED, 0), self.unit, None)
        self.managed = ManagedPool(self.runtime, self.make_store(MemoryKind.MANAGED, 0), self.unit, None)
        self.defaults = [self.make_pool(device, None) for device in range(profile.devices)]
        self.pools: dict[Slot, Pool] = {}
        self.graphs: dict[Slot, list[tuple[Slot, ...]]] = {}
        self.deferred: list[tuple[Block, Queue]] = []
        self.is_closed = False

    def make_runtime(self, devices: int, *, spares: bool, legacy: bool) -> Runtime:
        return Runtime(devices, spares=spares, legacy=legacy)

    def make_store(self, kind: MemoryKind, device: int) -> Store:
        pinned = kind is MemoryKind.PINNED
        capacity = self.profile.pinned_capacity_bytes if pinned else self.profile.capacity_bytes
        return Store(self.runtime, kind, device, capacity, self.profile.granularity_bytes)

    def make_pool(self, device: int, limit: int | None) -> Pool:
        return self.stranger.make_pool(self.runtime, self.stores[device], self.unit, limit)

    @property
    def all_pools(self) -> list[Pool]:
        return [*self.defaults, *self.pools.values(), self.pinned, self.managed]

    # -- the contract ----------------------------------------------------------------------------------------------

    def perform(self, operation: Operation) -> Reply:
        outcome: Outcome
        try:
            outcome = Rejected(ILLEGAL_STATE) if self.is_closed else self.answer(operation)
        except NoRoom:
            outcome = OutOfMemory()
        except Broken:
            outcome = Rejected(BACKING_ERROR)
        except Refused as refused:
            outcome = Rejected(str(refused))
        return Reply(outcome, self.take_log())

    def take_log(self) -> tuple[Observation, ...]:
        taken = tuple(self.runtime.log)
        self.runtime.log.clear()
        return taken

    def readings(self) -> Readings:
        device_pools = [*self.defaults, *self.pools.values(), self.managed]
        return {
            (Gauge.LIVE, Source.CLAIM): self.live_bytes,
            (Gauge.BLOCKS, Source.CLAIM): sum(block.piece is not None for block in self.blocks.values()),
            (Gauge.RESERVED, Source.CLAIM): sum(pool.held for pool in device_pools),
            (Gauge.RESERVED, Source.LEDGER): sum(s.used for s in (*self.stores, self.managed.store)),
            (Gauge.PINNED, Source.CLAIM): self.pinned.held,
            (Gauge.PINNED, Source.LEDGER): self.pinned.store.used,
            (Gauge.STREAMS, Source.CLAIM): len(self.queues),
            (Gauge.EVENTS, Source.LEDGER): len(self.events) + self.runtime.markers,
            (Gauge.BACKING_CALLS, Source.LEDGER): self.runtime.calls,
        }

    def close(self) -> Closing:
        self.is_closed = True
        for queue in [*self.queues.values()]:
            self.captures.of.pop(queue, None)
        self.free_deferred()
        for device in range(self.profile.devices):
            self.runtime.drain_device(device)
        for slot in list(self.blocks):
            self.take_out(slot)
        for pool in self.all_pools:
            pool.close()
        self.runtime.destroy_spares()
        for table in (self.pools, self.queues, self.events, self.graphs):
            table.clear()
        return Closing(self.take_log(), self.readings())

    def answer(self, operation: Operation) -> Outcome:
        match operation:
            case ops.Allocate():
                return self.allocate(operation)
            case ops.Free(slot, stream):
                self.free(slot, stream)
            case ops.Trim(kind, pool):
                self.trim(kind, pool)
            case ops.Copy(source, destination, size, stream):
                self.copy(source, destination, size, stream)
            case ops.Fill(slot, _, stream):
                self.launch((slot,), stream)
            case ops.Launch(reads, writes, _, stream, None):
                self.launch((*reads, *writes), stream)
            case ops.CreatePool(slot, limit):
                self.pools[slot] = self.make_pool(self.device, limit)
            case ops.DestroyPool(slot):
                self.destroy_pool(slot)
            case ops.SelectDevice(ordinal):
                if ordinal >= self.profile.devices:
                    raise Refused(INVALID_VALUE)
                self.device = ordinal
            case ops.InjectFailure(ops.FailurePoint.BACKING, nth, error):
                self.runtime.failures.arm(nth, error)
            case ops.InjectFailure() | ops.Mark():
                pass
            case ops.BeginCapture() | ops.EndCapture() | ops.LaunchGraph() | ops.DestroyGraph():
                return self.answer_capture(operation)
            case _:
                return self.answer_order(operation)
        return Done()

    def answer_capture(self, operation: Operation) -> Outcome:
        if Capability.CAPTURE not in self.stranger.also:
            return Unsupported("no captures")
        match operation:
            case ops.BeginCapture(stream, mode):
                self.captures.begin(self.named_queue(stream), mode)
            case ops.EndCapture(slot, stream):
                try:
                    self.graphs[slot] = self.captures.end(self.named_queue(stream)).work
                finally:
                    self.free_deferred()
            case ops.LaunchGraph(slot, stream):
                if slot not in self.graphs:
                    raise Refused(INVALID_HANDLE)
                for slots in self.graphs[slot] or [()]:
                    self.enqueue(tuple(each for each in slots if each in self.blocks), self.queue(stream))
            case ops.DestroyGraph(slot):
                if self.graphs.pop(slot, None) is None:
                    raise Refused(INVALID_HANDLE)
        return Done()

    def pool(self, kind: MemoryKind, slot: Slot | None) -> Pool:
        if slot is not None:
            if slot not in self.pools:
                raise Refused(INVALID_HANDLE)
            return self.pools[slot]
        if kind is MemoryKind.PAGEABLE:
            raise Refused(INVALID_VALUE)
        elsewhere = {MemoryKind.PINNED: self.pinned, MemoryKind.MANAGED: self.managed}
        return elsewhere.get(kind) or self.defaults[self.device]

    # -- memory ----------------------------------------------------------------------------------------------------

    def allocate(self, operation: ops.Allocate) -> Outcome:
        queue = self.queue(operation.stream)
        pool = self.pool_for(operation, queue)
        block = self.blocks[operation.slot] = Block(operation.size_bytes, operation.kind, queue)
        if not operation.size_bytes:
            return Allocated(0)
        pool.is_capturing = self.captures.any_active
        try:
            block.piece = pool.allocate(operation.size_bytes, operation.alignment_bytes or 1, queue)
        except (NoRoom, Broken):
            del self.blocks[operation.slot]
            raise
        block.pool = pool
        self.live_bytes += block.piece.size
        return Allocated(block.piece.address)

    def pool_for(self, operation: ops.Allocate, queue: Queue) -> Pool:
        """Return the pool that serves a request, which strict captures forbid."""
        pool = self.pool(operation.kind, operation.pool)
        if self.captures.any_strict:
            self.captures.invalidate()
            raise Refused(CAPTURE_UNSUPPORTED)
        return pool

    def free(self, slot: Slot, stream: Slot | None) -> None:
        block = self.block(slot)
        queue = self.queue(stream) if stream is not None else block.queue
        if not queue.is_alive:
            queue = self.runtime.defaults[queue.device]
        self.take_out(slot)
        if self.captures.any_active:
            self.deferred.append((block, queue))
        else:
            self.give_back(block, queue)

    def take_out(self, slot: Slot) -> None:
        block = self.blocks.pop(slot)
        if block.piece is not None:
            self.live_bytes -= block.piece.size

    def give_back(self, block: Block, queue: Queue) -> None:
        if block.piece is not None and block.pool is not None:
            on_device = block.kind is MemoryKind.DEVICE
            touched = list(block.touched) if self.stranger.tracks_uses or not on_device else []
            block.pool.free(block.piece, queue, [each for each in touched if each.is_alive])

    def free_deferred(self) -> None:
        """Free what was freed during captures, once there is none."""
        if self.captures.any_active:
            return
        deferred, self.deferred = self.deferred, []
        for block, queue in deferred:
            self.give_back(block, queue if queue.is_alive else self.runtime.defaults[queue.device])

    def trim(self, kind: MemoryKind, slot: Slot | None) -> None:
        if slot is None and kind is MemoryKind.PAGEABLE:
            return
        pool = self.pool(kind, slot)
        if not self.captures.any_active:
            pool.trim()

    def destroy_pool(self, slot: Slot) -> None:
        pool = self.pool(MemoryKind.DEVICE, slot)
        if self.captures.any_active:
            self.captures.invalidate()
            raise Refused(CAPTURE_UNSUPPORTED)
        if any(block.pool is pool for block in self.blocks.values()):
            raise Refused(ILLEGAL_STATE)
        pool.close()
        del self.pools[slot]

    # -- work ------------------------------------------------------------------------------------------------------

    def copy(self, source: Slot, destination: Slot, size: int | None, stream: Slot | None) -> None:
        first, second = self.block(source), self.block(destination)
        length = min(first.size, second.size) if size is None else size
        if length > min(first.size, second.size):
            raise Refused(INVALID_VALUE)
        if first.piece is None or second.piece is None:
            return
        queue = self.queue(stream)
        self.enqueue((source, destination), queue)
        self.runtime.log.append(CopyEnqueued(first.piece.address, second.piece.address, length, queue.name))

    def synchronize_device(self) -> None:
        if self.captures.any_active:
            self.captures.invalidate()
            raise Refused(CAPTURE_UNSUPPORTED)
        self.runtime.synchronize_device(self.device)
        for pool in self.all_pools:
            pool.was_synchronized()

    def destroy_queue(self, slot: Slot) -> None:
        """Destroy a queue; what still depends on it is put behind a marker while that can be made."""
        queue = self.named_queue(slot)
        capture = self.captures.of.get(queue)
        if capture is not None:
            self.captures.leave(capture)
        queue.release()
        for pool in self.all_pools:
            pool.queue_is_going(queue)
        depend = [
            block
            for block in [*self.blocks.values(), *(block for block, _ in self.deferred)]
            if block.piece is not None and (queue in block.touched or block.piece.queue is queue)
        ]
        if self.profile.flavour is Flavour.HIP:
            self.runtime.drain(queue)
        else:
            for block in depend:
                assert block.piece is not None
                block.piece.behind.append(self.runtime.record(queue))
        for block in depend:
            block.touched.pop(queue, None)
        queue.is_alive = False
        del self.queues[slot]
        if queue.last.is_done:
            self.runtime.queues.remove(queue)
        self.free_deferred()

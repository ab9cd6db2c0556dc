"""The bench: a backend that carries a trial allocator through the public contract."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Closing, Context, Description, DeviceProfile, Promise, Reply
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, CopyEnqueued, Observation
from quiesce.model.operations import MemoryKind, Operation, Slot
from quiesce.model.outcomes import Allocated, Done, Outcome, OutOfMemory, Rejected, Unsupported

from .heap import ForeignError, Heap, Injection, NoMemory, Placement
from .machine import Event, Machine, Stream
from .policy import Area, Policy, Use

PolicyType: TypeAlias = Callable[..., Policy]

MEMORY = frozenset(
    {
        Capability.MEMORY,
        Capability.ALIGNMENT,
        Capability.POOL,
        Capability.POOLS,
        Capability.POOL_LIMIT,
        Capability.CAPACITY,
        Capability.PINNED,
        Capability.PAGEABLE,
        Capability.MANAGED,
        Capability.COPY,
        Capability.STAGING,
        Capability.FILL,
        Capability.LAUNCH,
        Capability.STREAMS,
        Capability.LEGACY_DEFAULT_STREAM,
        Capability.EVENTS,
        Capability.STALL,
        Capability.DEVICES,
        Capability.INJECTION,
    }
)
CLAIM = frozenset({Source.CLAIM})
BOTH = frozenset(Source)
_BASES = {MemoryKind.DEVICE: 0x1000_0000_0000, MemoryKind.PINNED: 0x2000_0000_0000}
_BASES |= {MemoryKind.MANAGED: 0x3000_0000_0000, MemoryKind.PAGEABLE: 0x4000_0000_0000}


@dataclass(frozen=True)
class Traits:
    """How a trial allocator behaves where the contract leaves it free."""

    tracks_uses: bool = True
    zero: str = "null"
    """What a request of no bytes gets: ``null``, ``unique`` or ``rejected``."""
    huge_is_invalid: bool = False
    stall_is_work: bool = False
    alignment_max: int | None = None
    stages_through_buffer: bool = False
    pageable_copies_block: bool = True
    live_counts_footprint: bool = True
    live_counts_host: bool = True
    placement: Placement = Placement.LOWEST
    refuses_busy_pools: bool = False
    copies_itself: bool = True


@dataclass(frozen=True)
class Trial:
    """A backend: a policy, its traits, and what it says about itself."""

    name: str
    policy: PolicyType
    traits: Traits = field(default_factory=Traits)
    promises: frozenset[Promise] = frozenset()
    without: frozenset[Capability] = frozenset()
    backing_ledger: bool = True
    order_ledger: bool = True
    gauges: Mapping[Gauge, frozenset[Source]] = field(default_factory=dict)
    alignment: int = 256
    chunk_bytes: int = 32 << 20
    footprint_factor: int = 2
    context: Callable[[Trial, DeviceProfile], Bench] | None = None

    def describe(self) -> Description:
        capabilities = MEMORY - self.without
        capabilities |= {Capability.BACKING_LEDGER} if self.backing_ledger else set()
        capabilities |= {Capability.ORDER_LEDGER} if self.order_ledger else set()
        return Description(
            self.name,
            "1",
            capabilities,
            self.promises,
            self.gauges,
            self.alignment,
            self.chunk_bytes,
            self.footprint_factor,
        )

    def open(self, profile: DeviceProfile) -> Context:
        return (self.context or Bench)(self, profile)


@dataclass(eq=False)
class Block:
    """A block in the sequence's hands."""

    size: int
    area: Area
    kind: MemoryKind
    stream: Stream
    owner: Policy | Heap
    uses: dict[Stream, Use] = field(default_factory=dict)


class Refused(Exception):
    """A request is refused with a code."""


class Bench:
    """One opened trial allocator."""

    make_heap: type[Heap] = Heap

    def __init__(self, trial: Trial, profile: DeviceProfile) -> None:
        self.trial, self.traits, self.profile = trial, trial.traits, profile
        self.machine = self.make_machine()
        self.injection = Injection()
        self.device = 0
        self.heaps = {
            (kind, device): self._heap(kind, device)
            for kind in MemoryKind
            for device in range(profile.devices if kind is MemoryKind.DEVICE else 1)
        }
        self.policies = {
            key: self.make_policy(heap) for key, heap in self.heaps.items() if key[0] is not MemoryKind.PAGEABLE
        }
        self.pools: dict[Slot, Policy] = {}
        self.blocks: dict[Slot, Block] = {}
        self.empty: set[Slot] = set()
        self.streams: dict[Slot, Stream] = {}
        self.events: dict[Slot, Event] = {}
        self.claimed_live = 0
        self.claimed_blocks = 0

    def make_machine(self) -> Machine:
        return Machine(self.profile.devices, stall_is_work=self.traits.stall_is_work)

    def _heap(self, kind: MemoryKind, device: int) -> Heap:
        capacity = {
            MemoryKind.PINNED: self.profile.pinned_capacity_bytes,
            MemoryKind.PAGEABLE: 1 << 40,
        }.get(kind, self.profile.capacity_bytes)
        base = _BASES[kind] + (device << 41)
        log, granularity = self.machine.log, self.profile.granularity_bytes
        placement = self.traits.placement
        return self.make_heap(base, capacity, granularity, kind, device, log, self.injection, placement)

    def make_policy(self, heap: Heap, limit: int | None = None) -> Policy:
        host = heap.kind is MemoryKind.PINNED
        alignment = max(self.trial.alignment, self.profile.alignment_bytes)
        return self.trial.policy(self.machine, heap, alignment, host=host, limit=limit)

    # -- the contract ----------------------------------------------------------------------------------------------

    def perform(self, operation: Operation) -> Reply:
        try:
            outcome = self.answer(operation)
        except NoMemory:
            outcome = OutOfMemory()
        except ForeignError:
            outcome = Rejected("backing-error")
        except Refused as refused:
            outcome = Rejected(str(refused))
        return Reply(outcome, self._take_log())

    def _take_log(self) -> tuple[Observation, ...]:
        backing = (BackingAllocated, BackingFreed, BackingRefused)
        kept = [
            seen
            for seen in self.machine.log
            if (self.trial.backing_ledger if isinstance(seen, backing) else self.trial.order_ledger)
        ]
        self.machine.log.clear()
        return tuple(kept)

    def readings(self) -> Readings:
        values = self.count()
        return {(gauge, source): values[gauge] for gauge, sources in self.trial.gauges.items() for source in sources}

    def count(self) -> dict[Gauge, int]:
        held = {kind: sum(h.held_bytes for (k, _), h in self.heaps.items() if k is kind) for kind in MemoryKind}
        streams = sum(stream.alive for stream in self.streams.values())
        events = len(self.events) + self.machine.events_alive
        return {
            Gauge.LIVE: self.claimed_live,
            Gauge.BLOCKS: self.claimed_blocks,
            Gauge.RESERVED: held[MemoryKind.DEVICE] + held[MemoryKind.MANAGED],
            Gauge.PINNED: held[MemoryKind.PINNED],
            Gauge.STREAMS: streams,
            Gauge.EVENTS: events,
            Gauge.BACKING_CALLS: sum(heap.calls for heap in self.heaps.values()),
            Gauge.RETAINED: len(self.blocks) + len(self.empty) + streams + events,
        }

    def close(self) -> Closing:
        for device in range(self.profile.devices):
            self.machine.own_synchronize_device(device)
        for slot in list(self.blocks):
            self._forget(slot)
        self.empty.clear()
        for policy in [*self.pools.values(), *self.policies.values()]:
            policy.release()
        pageable = self.heaps[MemoryKind.PAGEABLE, 0]
        for address in list(pageable.held):
            pageable.free(address)
        self.pools.clear()
        self.streams.clear()
        self.events.clear()
        return Closing(self._take_log(), self.readings())

    def answer(self, operation: Operation) -> Outcome:
        match operation:
            case ops.Allocate():
                return self.allocate(operation)
            case ops.Free(slot, stream):
                return self.free(slot, stream)
            case ops.Trim(kind, pool):
                return self.trim(kind, pool)
            case ops.Copy(source, destination, size, stream):
                return self.copy(source, destination, size, stream)
            case ops.Stage(slot, source, stream):
                return self.stage(slot, source, stream)
            case ops.Fill(slot, _, stream):
                return self.use((slot,), stream)
            case ops.Launch(reads, writes, _, stream, None):
                return self.use((*reads, *writes), stream)
            case ops.CreatePool(slot, limit):
                self.pools[slot] = self.make_policy(self.heaps[MemoryKind.DEVICE, self.device], limit)
                return Done()
            case ops.DestroyPool(slot):
                return self.destroy_pool(slot)
            case ops.SelectDevice(ordinal):
                if ordinal >= self.profile.devices:
                    raise Refused("invalid-value")
                self.device = ordinal
                return Done()
            case ops.InjectFailure(point, nth, error):
                if point is ops.FailurePoint.BACKING:
                    self.injection.arm(nth, error)
                return Done()
            case ops.Mark():
                return Done()
            case _:
                return self.answer_order(operation)

    def answer_order(self, operation: Operation) -> Outcome:
        machine = self.machine
        match operation:
            case ops.CreateStream(slot, nonblocking):
                self.streams[slot] = machine.create_stream(slot, self.device, nonblocking=nonblocking)
            case ops.DestroyStream(slot):
                stream = self.stream(slot)
                machine.release(stream)  # nobody could end the stall any more
                machine.destroy_stream(stream)
                del self.streams[slot]
            case ops.SynchronizeStream(slot):
                machine.synchronize(self.stream(slot))
            case ops.QueryStream(slot):
                return self.query(self.stream(slot).tail.done)
            case ops.CreateEvent(slot):
                self.events[slot] = Event(slot, self.device)
            case ops.DestroyEvent(slot):
                self.event(slot)
                del self.events[slot]
            case ops.RecordEvent(slot, on):
                if self.event(slot).device != self.stream(on).device:
                    raise Refused("invalid-handle")
                machine.record(self.event(slot), self.stream(on))
            case ops.WaitEvent(slot, on):
                machine.wait(self.stream(on), self.event(slot))
            case ops.QueryEvent(slot):
                ticket = self.event(slot).ticket
                return self.query(ticket is None or ticket.done)
            case ops.SynchronizeEvent(slot):
                ticket = self.event(slot).ticket
                if ticket is not None:
                    machine.force(ticket)
            case ops.SynchronizeDevice():
                machine.synchronize_device(self.device)
                for policy in [*self.pools.values(), *self.policies.values()]:
                    policy.settle()
            case ops.Stall(slot):
                machine.stall(self.stream(slot))
            case ops.Release(slot):
                machine.release(self.stream(slot))
            case _:
                return Unsupported(type(operation).__name__)
        return Done()

    @staticmethod
    def query(done: bool) -> Outcome:
        return Done() if done else Rejected("not-ready")

    # -- look-ups --------------------------------------------------------------------------------------------------

    def stream(self, slot: Slot | None) -> Stream:
        if slot is None:
            return self.machine.defaults[self.device]
        if slot not in self.streams:
            raise Refused("invalid-handle")
        return self.streams[slot]

    def event(self, slot: Slot) -> Event:
        if slot not in self.events:
            raise Refused("invalid-handle")
        return self.events[slot]

    def block(self, slot: Slot) -> Block:
        if slot not in self.blocks:
            raise Refused("invalid-value")
        return self.blocks[slot]

    # -- memory ----------------------------------------------------------------------------------------------------

    def allocate(self, operation: ops.Allocate) -> Outcome:
        stream = self.stream(operation.stream)
        align = operation.alignment_bytes or 1
        size = operation.size_bytes
        if operation.pool is not None and operation.pool not in self.pools:
            raise Refused("invalid-handle")
        if align > (self.traits.alignment_max or align):
            raise Refused("invalid-value")
        if self.traits.huge_is_invalid and size >= 1 << 63:
            raise Refused("invalid-value")
        if size == 0:
            if self.traits.zero == "rejected":
                raise Refused("invalid-value")
            if self.traits.zero == "null":
                self.empty.add(operation.slot)
                return Allocated(0)
        return self.take(operation, max(size, 1), align, stream)

    def take(self, operation: ops.Allocate, size: int, align: int, stream: Stream) -> Outcome:
        kind = operation.kind
        if kind is MemoryKind.PAGEABLE and operation.pool is None:
            heap = self.heaps[kind, 0]
            address = heap.allocate(size, max(align, self.trial.alignment))
            area, owner = Area(address, heap.held[address], address), heap
            self.blocks[operation.slot] = Block(size, area, kind, stream, owner)
        else:
            device = self.device if kind is MemoryKind.DEVICE else 0
            policy = self.policies[kind, device] if operation.pool is None else self.pools[operation.pool]
            area = policy.allocate(size, align, stream)
            self.blocks[operation.slot] = Block(size, area, policy.heap.kind, stream, policy)
        self.count_block(self.blocks[operation.slot], 1)
        return Allocated(area.address)

    def count_block(self, block: Block, sign: int) -> None:
        if self.traits.live_counts_host or block.kind in (MemoryKind.DEVICE, MemoryKind.MANAGED):
            self.claimed_live += sign * (block.area.size if self.traits.live_counts_footprint else block.size)
            self.claimed_blocks += sign

    def free(self, slot: Slot, on: Slot | None) -> Outcome:
        if slot in self.empty:
            self.empty.discard(slot)
            return Done()
        block = self.block(slot)
        if on is not None:
            stream = self.stream(on)
        else:
            stream = block.stream if block.stream.alive else self.machine.defaults[block.stream.device]
        uses = list(block.uses.values())
        if not self.traits.tracks_uses and block.kind in (MemoryKind.DEVICE, MemoryKind.MANAGED):
            uses = [Use(stream)]
        self.give(block, uses, stream)
        del self.blocks[slot]
        self.count_block(block, -1)
        return Done()

    def give(self, block: Block, uses: list[Use], stream: Stream) -> None:
        if isinstance(block.owner, Heap):
            for device in sorted({use.stream.device for use in uses}):
                self.machine.own_synchronize_device(device)
            block.owner.free(block.area.address)
        else:
            block.owner.free(block.area, uses, stream)

    def _forget(self, slot: Slot) -> None:
        self.count_block(self.blocks.pop(slot), -1)

    def trim(self, kind: MemoryKind, pool: Slot | None) -> Outcome:
        if pool is not None:
            if pool not in self.pools:
                raise Refused("invalid-handle")
            self.pools[pool].trim()
        elif kind is not MemoryKind.PAGEABLE:
            self.policies[kind, self.device if kind is MemoryKind.DEVICE else 0].trim()
        return Done()

    def destroy_pool(self, slot: Slot) -> Outcome:
        if slot not in self.pools:
            raise Refused("invalid-handle")
        policy = self.pools[slot]
        owned = [name for name, block in self.blocks.items() if block.owner is policy]
        if owned and self.traits.refuses_busy_pools:
            raise Refused("busy")
        for name in owned:
            self._forget(name)
        policy.release()
        del self.pools[slot]
        return Done()

    # -- uses ------------------------------------------------------------------------------------------------------

    def use(self, slots: tuple[Slot, ...], on: Slot | None) -> Outcome:
        stream = self.stream(on)
        blocks = [self.block(slot) for slot in slots if slot not in self.empty]
        self.enqueue(blocks, stream)
        return Done()

    def enqueue(self, blocks: list[Block], stream: Stream) -> Use:
        self.machine.enqueue(stream)
        used = Use(stream)
        for block in blocks:
            block.uses[stream] = used
        return used

    def copy(self, source: Slot, destination: Slot, size: int | None, on: Slot | None) -> Outcome:
        if {source, destination} & self.empty:
            return Done()
        first, second, stream = self.block(source), self.block(destination), self.stream(on)
        if source == destination and not self.traits.copies_itself:
            raise Refused("invalid-value")
        if size is not None and size > min(first.area.size, second.area.size):
            raise Refused("invalid-value")
        blocks = [block for block in (first, second) if block.kind is not MemoryKind.PAGEABLE]
        self.enqueue(blocks, stream)
        count = min(first.size, second.size) if size is None else size
        self.machine.log.append(CopyEnqueued(first.area.address, second.area.address, count, stream.name))
        if second.kind is MemoryKind.PAGEABLE or (
            first.kind is MemoryKind.PAGEABLE and self.traits.pageable_copies_block
        ):
            self.machine.synchronize(stream)
        return Done()

    def stage(self, slot: Slot, source: Slot, on: Slot | None) -> Outcome:
        host, stream = self.block(source), self.stream(on)
        if host.kind is MemoryKind.DEVICE:
            raise Refused("invalid-value")
        made = self.take(ops.Allocate(slot, host.size, stream=on), host.size, 1, stream)
        block = self.blocks[slot]
        buffer: Area | None = None
        pinned = self.policies[MemoryKind.PINNED, 0]
        if self.traits.stages_through_buffer or host.kind is MemoryKind.PAGEABLE:
            try:
                buffer = pinned.allocate(host.size, 1, stream)
            except (NoMemory, ForeignError):
                self.give(block, [], stream)
                self._forget(slot)
                raise
        used = self.enqueue([block] if buffer else [block, host], stream)
        address = buffer.address if buffer else host.area.address
        self.machine.log.append(CopyEnqueued(address, block.area.address, host.size, stream.name))
        if buffer:
            pinned.free(buffer, self.uses_of_buffer(used), stream)
        return made

    def uses_of_buffer(self, copied: Use) -> list[Use]:
        """Return what a staging buffer is kept for."""
        return [copied]

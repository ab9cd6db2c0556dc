"""The oracle's own model of one context: fed by what was observed, never by what should have happened.

:meth:`Model.apply` takes one operation with its outcome and observations, brings the model up to date and returns a
:class:`Change`: the facts that invariants read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quiesce import operations as ops
from quiesce.backend import Capability, Description, DeviceProfile, Flavour, Promise
from quiesce.gauges import Readings
from quiesce.observations import (
    DEFAULT_STREAM,
    CopyEnqueued,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleDestroyed,
    HandleKind,
    Observation,
    StreamSynchronized,
    UpstreamRefused,
)
from quiesce.operations import MemoryKind, Operation, Slot
from quiesce.oracle.captures import CaptureModel, CaptureState
from quiesce.oracle.clocks import Clock, HappensBefore, StreamState
from quiesce.oracle.memory import BlockState, MemoryModel, Returned
from quiesce.oracle.tape import TapeModel
from quiesce.outcomes import NOT_READY, Allocated, Done, Outcome, OutOfMemory, Rejected


@dataclass(slots=True, eq=False)
class EventState:
    """What is known of one event."""

    name: str
    device: int
    clock: Clock = field(default_factory=dict)
    capture: CaptureState | None = None
    recorded_on: StreamState | None = None


@dataclass(frozen=True, slots=True)
class Conflict:
    """A use of a block that is not ordered behind earlier work on the same memory."""

    user: BlockState
    earlier: BlockState
    stalled: StreamState | None
    """The stalled stream that certainly holds the earlier work back, if one is known."""


@dataclass(slots=True)
class Change:
    """What one operation changed, and what stood out."""

    operation: Operation
    outcome: Outcome
    observations: tuple[Observation, ...]
    before: Readings
    after: Readings
    description: str
    made: BlockState | None = None
    freed: BlockState | None = None
    overlapped: list[BlockState] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)
    returned: list[Returned] = field(default_factory=list)
    needless: list[EventWaited] = field(default_factory=list)
    """Waits for events of destroyed streams whose work the host knew to be complete."""
    early: StreamState | None = None
    """A stalled stream that certainly holds back what was just reported complete."""
    certain_completion: bool = False
    """Whether the host knew already that what was just reported unfinished is complete."""


class Model:
    """Everything that is known of one context."""

    def __init__(self, description: Description, profile: DeviceProfile) -> None:
        self.description = description
        self.profile = profile
        legacy = Capability.LEGACY_DEFAULT_STREAM in description.capabilities
        self.order = HappensBefore(legacy_default_stream=legacy)
        self.memory = MemoryModel()
        self.captures = CaptureModel()
        self.tape = TapeModel()
        self.blocks: dict[Slot, BlockState] = {}
        self.empty_blocks: set[Slot] = set()
        self.streams: dict[Slot, StreamState] = {}
        self.events: dict[Slot, EventState] = {}
        self.internal_events: dict[str, EventState] = {}
        self.graphs: dict[Slot, CaptureState | None] = {}
        self.pools: dict[Slot, int | None] = {}
        self.instances: dict[Slot, StreamState] = {}
        self.device = 0
        self.initialized = False
        self.finalized = False
        self.failure_armed = False
        self.suspicions: dict[int, list[Conflict]] = {}
        self.first_chunk_bytes: dict[tuple[Slot | None, int], int] = {}
        self._defaults = [self.order.new_stream(DEFAULT_STREAM, d) for d in range(profile.devices)]

    # -- lookups ---------------------------------------------------------------------------------------------------

    def promises(self, promise: Promise) -> bool:
        """Whether the backend made a promise."""
        return promise in self.description.promises

    def can(self, capability: Capability) -> bool:
        """Whether the backend has a capability."""
        return capability in self.description.capabilities

    def stream(self, slot: Slot | None) -> StreamState | None:
        """Return a live stream's state, the current device's default stream for None, or None where it is dead."""
        return self._defaults[self.device] if slot is None else self.streams.get(slot)

    def launch_stream(self, operation: ops.Launch) -> StreamState | None:
        """Return the stream that a launch goes to."""
        if operation.instance is not None:
            return self.instances.get(operation.instance)
        return self.stream(operation.stream)

    def handles(self, kind: HandleKind) -> int:
        """Return how many handles of a kind the sequence owns."""
        tables = {
            HandleKind.STREAM: self.streams,
            HandleKind.EVENT: self.events,
            HandleKind.GRAPH: self.graphs,
            HandleKind.INSTANCE: self.instances,
        }
        return len(tables[kind])

    # -- applying --------------------------------------------------------------------------------------------------

    def apply(  # noqa: PLR0917 - one fact each
        self,
        operation: Operation,
        outcome: Outcome,
        observations: tuple[Observation, ...],
        before: Readings,
        after: Readings,
        description: str,
    ) -> Change:
        """Bring the model up to date with one operation and return what changed."""
        change = Change(operation, outcome, observations, before, after, description)
        pool = operation.pool if isinstance(operation, ops.Allocate | ops.Trim) else None
        if isinstance(operation, ops.Free) and isinstance(outcome, Done):
            self._free(operation, change)  # before its observations: an upstream return is then legal
        if isinstance(operation, ops.DestroyPool) and isinstance(outcome, Done):
            self._destroy_pool(operation)
        change.needless = self._needless_waits(observations)
        self.see(observations, pool, change)
        if isinstance(outcome, Allocated | Done):
            self._succeed(operation, outcome, change)
        elif isinstance(outcome, Rejected):
            self._reject(operation)
        if isinstance(operation, ops.QueryStream | ops.QueryEvent):
            self._judge_query(operation, outcome, change)
        if self.failure_armed and (isinstance(outcome, OutOfMemory | Rejected) or _refused(observations)):
            self.failure_armed = False
        return change

    def see(self, observations: tuple[Observation, ...], pool: Slot | None, change: Change) -> None:
        """Enter observations, in order."""
        for observation in observations:
            match observation:
                case EventRecorded(event, stream):
                    self._see_record(event, stream)
                case EventWaited(event, None):
                    self.order.complete(self._event(event).clock)
                case EventWaited(event, str(waiter)):
                    state = self._stream_by_name(waiter)
                    if state is not None:
                        self.order.join(state, self._event(event).clock)
                case EventCompleted(event):
                    self.order.complete(self._event(event).clock)
                case StreamSynchronized(stream):
                    state = self._stream_by_name(stream)
                    if state is not None:
                        self.order.complete(self.order.snapshot(state))
                case DeviceSynchronized(device):
                    self.order.complete_device(device)
                case CopyEnqueued():
                    pass
                case HandleDestroyed(HandleKind.EVENT, name):
                    self.internal_events.pop(name, None)
                case _:
                    change.returned += [
                        returned
                        for returned in self.memory.see_upstream(observation, pool)
                        if returned.guard is None or not self.order.is_ordered(returned.guard, None)
                    ]

    def _needless_waits(self, observations: tuple[Observation, ...]) -> list[EventWaited]:
        return [
            seen
            for seen in observations
            if isinstance(seen, EventWaited)
            and not seen.stream_alive
            and (self.profile.flavour is Flavour.HIP or not self.order.unfinished(self._event(seen.event).clock))
        ]

    def _see_record(self, event: str, stream: str) -> None:
        if event in self.events:
            return  # the operation itself says the same
        state = self._stream_by_name(stream)
        if state is not None and self.captures.of(state) is None:
            self._event(event).clock = self.order.snapshot(state)

    def _event(self, name: str) -> EventState:
        if name in self.events:
            return self.events[name]
        return self.internal_events.setdefault(name, EventState(name, self.device))

    def _stream_by_name(self, name: str) -> StreamState | None:
        if name == DEFAULT_STREAM:
            return self._defaults[self.device]
        if name in self.streams:
            return self.streams[name]
        return next((state for state in self.instances.values() if state.name == name), None)

    def _succeed(self, operation: Operation, outcome: Outcome, change: Change) -> None:
        match operation:
            case ops.Allocate() if isinstance(outcome, Allocated):
                self._allocate(operation, outcome, change)
            case ops.Stage(slot, source, stream) if isinstance(outcome, Allocated):
                size = self.blocks[source].size_bytes if source in self.blocks else 0
                self._allocate(ops.Allocate(slot, size, stream=stream), outcome, change)
                self._copy(source, slot, self.stream(stream), change)
            case ops.Copy(source, destination, _, stream):
                self._copy(source, destination, self.stream(stream), change)
            case ops.Fill(slot, _, stream):
                self._use((slot,), self.stream(stream), change)
            case ops.Launch(reads, writes):
                self._use((*reads, *writes), self.launch_stream(operation), change)
            case ops.CreatePool(slot, limit):
                self.pools[slot] = limit
            case ops.InjectFailure():
                self.failure_armed = True
            case ops.SelectDevice(ordinal):
                self.device = ordinal
            case ops.Initialize():
                self.initialized = True
            case ops.Finalize():
                self.initialized, self.finalized = False, True
            case ops.Partition(slots):
                for slot in slots:
                    self._make_instance(slot, None)
            case ops.CreateInstance(slot, stream):
                self._make_instance(slot, stream)
            case ops.DestroyInstance(slot):
                state = self.instances.pop(slot, None)
                if state is not None:
                    self.order.complete(dict(state.clock))
            case _:
                self._succeed_order(operation)
                self.tape.apply(operation)

    def _make_instance(self, slot: Slot, stream: Slot | None) -> None:
        given = self.stream(stream) if stream is not None else None
        self.instances[slot] = given or self.order.new_stream(f"internal:{slot}", self.device)

    def _succeed_order(self, operation: Operation) -> None:
        match operation:
            case ops.CreateStream(slot, nonblocking):
                self.streams[slot] = self.order.new_stream(slot, self.device, nonblocking=nonblocking)
            case ops.DestroyStream(slot):
                state = self.streams.pop(slot, None)
                if state is not None and (capture := self.captures.of(state)) is not None:
                    self.captures.end(capture)
            case ops.CreateEvent(slot):
                self.events[slot] = EventState(slot, self.device)
            case ops.DestroyEvent(slot):
                self.events.pop(slot, None)
            case ops.RecordEvent(slot, stream):
                self._record(slot, stream)
            case ops.WaitEvent(slot, stream):
                self._wait(slot, stream)
            case ops.SynchronizeEvent(slot) if slot in self.events:
                self.order.complete(self.events[slot].clock)
            case ops.SynchronizeStream(slot):
                state = self.stream(slot)
                if state is not None:
                    self.order.complete(self.order.snapshot(state))
                    self.order.release(state)
            case ops.SynchronizeDevice():
                self.order.complete_device(self.device)
            case ops.Stall(slot) if slot in self.streams:
                self.order.stall(self.streams[slot])
            case ops.Release(slot) if slot in self.streams:
                self.order.release(self.streams[slot])
            case ops.BeginCapture(stream, mode) if stream in self.streams:
                self.captures.begin(self.streams[stream], mode)
            case ops.EndCapture(slot, stream):
                self.graphs[slot] = self._end_capture(stream)
            case ops.LaunchGraph(slot, stream):
                self._launch_graph(slot, stream)
            case ops.DestroyGraph(slot):
                self.graphs.pop(slot, None)
            case _:
                pass

    def _record(self, slot: Slot, stream: Slot | None) -> None:
        event, state = self.events.get(slot), self.stream(stream)
        if event is None or state is None:
            return
        event.recorded_on = state
        event.capture = self.captures.of(state)
        if event.capture is None:
            event.clock = self.order.snapshot(state)

    def _wait(self, slot: Slot, stream: Slot | None) -> None:
        event, state = self.events.get(slot), self.stream(stream)
        if event is None or state is None:
            return
        if event.capture is None:
            self.order.join(state, event.clock)
            return
        self.captures.join(state, event.capture)
        if state is event.capture.origin and event.recorded_on is not None:
            event.capture.unjoined.discard(event.recorded_on.timeline)

    def _end_capture(self, stream: Slot) -> CaptureState | None:
        state = self.streams.get(stream)
        capture = self.captures.of(state) if state is not None else None
        if capture is not None:
            self.captures.end(capture)
        return capture

    def _launch_graph(self, slot: Slot, stream: Slot | None) -> None:
        graph, state = self.graphs.get(slot), self.stream(stream)
        if graph is None or state is None or self.captures.of(state) is not None:
            return
        for slots in graph.uses:
            number = self.order.enqueue(state)
            for name in slots:
                if name in self.blocks:
                    self.blocks[name].uses[state.timeline] = number

    def _reject(self, operation: Operation) -> None:
        if isinstance(operation, ops.EndCapture):
            self._end_capture(operation.stream)
        elif self.captures.any_active:
            self.captures.invalidate_all()

    # -- memory ----------------------------------------------------------------------------------------------------

    def _allocate(self, operation: ops.Allocate, outcome: Allocated, change: Change) -> None:
        if operation.size_bytes == 0:
            self.empty_blocks.add(operation.slot)
            if outcome.address:
                change.overlapped = [b for _, _, b in self.memory.live.overlapping(outcome.address, outcome.address + 1)]
            return
        stream = self.stream(operation.stream) or self._defaults[self.device]
        block = BlockState(
            operation.slot,
            outcome.address,
            operation.size_bytes,
            operation.kind,
            stream,
            operation.pool,
            self.device,
            change.description,
        )
        change.made = block
        change.overlapped = self.memory.add(block)
        self.blocks[operation.slot] = block
        if operation.kind is not MemoryKind.DEVICE:  # the host may touch it at once
            self._meet(block, None, change)

    def _meet(self, block: BlockState, stream: StreamState | None, change: Change) -> None:
        """Compare a use by ``stream`` (None: the host) with the work that the memory's earlier owners left."""
        for earlier in block.inherited:
            if self.order.is_ordered(earlier.guard, stream):
                continue
            conflict = Conflict(block, earlier.block, self.order.certainly_pending(earlier.guard))
            if self.can(Capability.ORDER_LEDGER) or (stream is None and conflict.stalled is not None):
                change.conflicts.append(conflict)
            elif stream is not None:
                self.suspicions.setdefault(stream.timeline, []).append(conflict)

    def _use(self, slots: tuple[Slot, ...], stream: StreamState | None, change: Change) -> None:
        if stream is None:
            return
        capture = self.captures.of(stream)
        if capture is not None:
            capture.uses.append(slots)
            return
        blocks = [self.blocks[slot] for slot in slots if slot in self.blocks]
        for block in blocks:
            self._meet(block, stream, change)
        self.order.enqueue(stream)
        for block in blocks:
            block.uses.update(stream.clock)

    def _copy(self, source: Slot, destination: Slot, stream: StreamState | None, change: Change) -> None:
        """Enter a copy. Pageable memory is not in use once the call has returned.

        A copy from it has read it by then, one to it is complete (CUDA Runtime API, "API synchronization behavior").
        """
        pageable = {slot for slot in (source, destination) if self._is_pageable(slot)}
        self._use(tuple(slot for slot in (source, destination) if slot not in pageable), stream, change)
        if destination in pageable and stream is not None and self.captures.of(stream) is None:
            self.order.complete(self.order.snapshot(stream))

    def _is_pageable(self, slot: Slot) -> bool:
        return slot in self.blocks and self.blocks[slot].kind is MemoryKind.PAGEABLE

    def _free(self, operation: ops.Free, change: Change) -> None:
        block = self.blocks.pop(operation.slot, None)
        if block is None:
            self.empty_blocks.discard(operation.slot)
            return
        change.freed = block
        self.memory.remove(block, self._guard(block, operation.stream), self._free_stream(block, operation.stream))

    def _free_stream(self, block: BlockState, stream_slot: Slot | None) -> StreamState | None:
        return block.stream if stream_slot is None else self.stream(stream_slot)

    def _guard(self, block: BlockState, stream_slot: Slot | None) -> Clock:
        """Return the work that the block's memory must wait for before it is used again."""
        guard = self.order.unfinished(block.uses)
        if block.kind is MemoryKind.DEVICE and not self.promises(Promise.TRACKS_USES):
            stream = self._free_stream(block, stream_slot)
            known = stream.clock if stream is not None else {}
            guard = {t: number for t, number in guard.items() if number <= known.get(t, 0)}
        for earlier in block.inherited:
            for timeline, number in self.order.unfinished(earlier.guard).items():
                guard[timeline] = max(number, guard.get(timeline, 0))
        return guard

    def _destroy_pool(self, operation: ops.DestroyPool) -> None:
        self.pools.pop(operation.slot, None)
        for slot in [slot for slot, block in self.blocks.items() if block.pool == operation.slot]:
            self.memory.remove(self.blocks.pop(slot), {}, None)

    # -- queries ---------------------------------------------------------------------------------------------------

    def _judge_query(self, operation: ops.QueryStream | ops.QueryEvent, outcome: Outcome, change: Change) -> None:
        stream: StreamState | None = None
        if isinstance(operation, ops.QueryStream):
            stream = self.stream(operation.slot)
            clock = dict(stream.clock) if stream is not None else {}
            suspects = self.suspicions.get(stream.timeline, []) if stream is not None else []
        else:
            event = self.events.get(operation.slot)
            clock, suspects = (event.clock if event is not None else {}), []
        if isinstance(outcome, Done):
            for suspect in suspects:
                stalled = self.order.certainly_pending(suspect.earlier.uses)
                if stalled is not None:
                    change.conflicts.append(Conflict(suspect.user, suspect.earlier, stalled))
            change.early = self.order.certainly_pending(clock)
            self.order.complete(clock)
        elif outcome == Rejected(NOT_READY):
            stalled = isinstance(operation, ops.QueryStream) and stream is not None and stream.stalled_from is not None
            change.certain_completion = not stalled and not self.order.unfinished(clock)


def _refused(observations: tuple[Observation, ...]) -> bool:
    return any(isinstance(observation, UpstreamRefused) for observation in observations)


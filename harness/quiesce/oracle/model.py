"""The oracle's own model of one context: fed by what was observed, never by what should have happened.

:meth:`Model.apply` takes one operation with its outcome and observations, brings the model up to date and returns a
:class:`~quiesce.oracle.change.Change`: the facts that invariants read.
"""

from __future__ import annotations

from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability, Flavour
from quiesce.gauges import Readings
from quiesce.observations import (
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleDestroyed,
    HandleKind,
    Observation,
    StreamSynchronized,
    UpstreamAllocated,
    UpstreamFreed,
    UpstreamRefused,
)
from quiesce.operations import MemoryKind, Operation, Slot
from quiesce.oracle import reuse
from quiesce.oracle.change import Ask, Change, Conflict
from quiesce.oracle.clocks import StreamState, merge
from quiesce.oracle.evidence import Suspect
from quiesce.oracle.facts import OF_ORDER, EventState, Facts
from quiesce.oracle.failures import ArmedFailure
from quiesce.outcomes import NOT_READY, UPSTREAM_ERROR, Allocated, Done, Outcome, Rejected

_WAITS_FOR_NOBODY: Final = (
    ops.CreateStream,
    ops.CreateEvent,
    ops.DestroyEvent,
    ops.RecordEvent,
    ops.WaitEvent,
    ops.QueryEvent,
    ops.QueryStream,
    ops.Stall,
    ops.Release,
    ops.Fill,
    ops.Launch,
    ops.LaunchGraph,
    ops.Copy,
    ops.SelectDevice,
    ops.InjectFailure,
    ops.Mark,
)
"""Requests that a library passes on as they are; behind any other it may wait, or make a stream wait."""

_SERVED: Final = (Allocated, Done)
_OF_UPSTREAM: Final = (UpstreamAllocated, UpstreamRefused, UpstreamFreed)
_CHANGES_BEFORE_IT_IS_SEEN: Final = (ops.Free, ops.DestroyPool, ops.EndCapture, ops.DestroyStream)
_ASKS: Final = (ops.QueryStream, ops.QueryEvent)


class Model(Facts):
    """Everything that is known of one context."""

    def apply(
        self,
        operation: Operation,
        outcome: Outcome,
        observations: tuple[Observation, ...],
        before: Readings,
        after: Readings,
        origin: object,
    ) -> Change:
        """Bring the model up to date with one operation and return what changed."""
        armed = next(iter(self.failures.values())).error if self.failures else None
        change = Change(operation, outcome, observations, before, after, origin, armed)
        if isinstance(operation, _CHANGES_BEFORE_IT_IS_SEEN):
            self._change_at_once(operation, outcome, change)
        if isinstance(operation, ops.Allocate | ops.Stage):  # one that is refused may leave a chunk behind
            self.kinds_used.add(operation.kind if isinstance(operation, ops.Allocate) else MemoryKind.DEVICE)
        if observations:
            if self.profile.flavour is Flavour.HIP:
                change.needless = self._needless_waits(observations)
            self.see(observations, change.pool, change)
        if self.failures:
            self._meet_failure(operation, outcome, change)
        self._doubt(operation)
        if isinstance(outcome, _SERVED) and type(operation) in OF_ORDER:
            self._succeed_order(operation)
        elif isinstance(outcome, _SERVED):
            self._succeed(operation, outcome, change)
        elif isinstance(outcome, Rejected):
            self._reject(operation)
        if isinstance(operation, _ASKS):
            self._judge_query(operation, outcome, change)
        return change

    def _change_at_once(
        self,
        operation: ops.Free | ops.DestroyPool | ops.EndCapture | ops.DestroyStream,
        outcome: Outcome,
        change: Change,
    ) -> None:
        """Enter what is so before the observations: an upstream return is then legal, and a capture over."""
        match operation:
            case ops.Free() if isinstance(outcome, Done):
                reuse.free(self, operation, change)
            case ops.DestroyPool(slot) if isinstance(outcome, Done):
                reuse.destroy_pool(self, slot)
            case ops.EndCapture():
                self._end_capture(operation, outcome)
            case ops.DestroyStream(slot) if isinstance(outcome, Done):
                self._abandon_capture(slot)
            case _:
                pass

    # -- observations ----------------------------------------------------------------------------------------------

    def see(self, observations: tuple[Observation, ...], pool: Slot | None, change: Change) -> None:
        """Enter observations, in order."""
        for observation in observations:
            if isinstance(observation, _OF_UPSTREAM):
                self._see_upstream(observation, pool, change)
                continue
            match observation:
                case EventRecorded(event, stream):
                    self._see_record(event, stream)
                case EventWaited(event, None):
                    self._see_complete(event, forced=True)
                case EventWaited(event, str(waiter)):
                    if event not in self.events:  # the operation itself says the same
                        if self.is_ambiguous(waiter):
                            self.order.doubt_stalls()  # some device's default stream was not made to wait
                        for state in self.observed_streams(waiter):
                            self.order.wait(state, self.observed_event(event).clock)
                case EventCompleted(event):
                    self._see_complete(event, forced=False)
                case StreamSynchronized(stream):
                    self.completion_in_doubt |= self.is_ambiguous(stream)
                    for state in self.observed_streams(stream):
                        self.order.complete(self.order.encompassed(state))
                        self.order.release(state)
                case DeviceSynchronized(device):
                    self.order.complete_device(device)
                case HandleDestroyed(HandleKind.EVENT, name):
                    self.internal_events.pop(name, None)
                case _:
                    pass

    def _needless_waits(self, observations: tuple[Observation, ...]) -> tuple[EventWaited, ...]:
        """Return the waits of a library for events of dead streams: HIP reads the stream, CUDA allows them.

        A wait for an event of the sequence is one that it asked for.
        """
        waits = (seen for seen in observations if isinstance(seen, EventWaited) and not seen.stream_alive)
        return tuple(wait for wait in waits if wait.event not in self.events)

    def _see_complete(self, name: str, *, forced: bool) -> None:
        event = self.observed_event(name)
        self.order.note_sure(event.certain)
        self.completion_in_doubt |= event.ambiguous
        if forced:
            self.order.complete(event.clock)
        else:
            self.order.complete(event.clock, asked=event.stream or self.default_streams[self.device])

    def _see_record(self, name: str, stream: str) -> None:
        if name in self.events:
            return  # the operation itself says the same
        clock: dict[int, int] = {}
        event = self.observed_event(name)
        for state in self.observed_streams(stream):
            if self.captures.of(state) is not None:
                return
            merge(clock, self.order.record(state))
            event.stream = state
            event.certain = {} if self.is_ambiguous(stream) else dict(state.certain)
        event.clock, event.ambiguous = clock, self.is_ambiguous(stream)

    def _see_upstream(
        self, seen: UpstreamAllocated | UpstreamRefused | UpstreamFreed, pool: Slot | None, change: Change
    ) -> None:
        if not isinstance(seen, UpstreamFreed):
            change.asks += (Ask(seen, self.memory.held_bytes),)
        for returned in self.memory.see_upstream(seen, pool):
            if returned.guard is None:
                change.returned += (returned,)
            elif not self.order.is_ordered(returned.guard, None):
                if self.can(Capability.ORDER_LEDGER):
                    change.returned += (returned,)
                else:
                    self.evidence.suspect(Suspect(returned, self.order.work(returned.guard)))

    def _meet_failure(self, operation: Operation, outcome: Outcome, change: Change) -> None:
        """Follow the armed failures: say whether one was swallowed, and disarm it once it certainly was met."""
        if isinstance(operation, ops.Free) and not isinstance(outcome, Done) and operation.slot in self.blocks:
            block = self.blocks[operation.slot]
            reuse.free(self, operation, change)  # the failure came before or behind the free: it may or may not exist
            self.empty_blocks[operation.slot] = block.address
        failure = self.failures.get(ops.FailurePoint.UPSTREAM)
        if failure is not None:
            failure.follow(change)
        if failure is not None and failure.calls_left <= 0:
            del self.failures[ops.FailurePoint.UPSTREAM]
        elif outcome == Rejected(UPSTREAM_ERROR) and len(self.failures) == 1:
            self.failures.clear()
        elif outcome == Rejected(UPSTREAM_ERROR):  # nobody knows which it was
            for each in self.failures.values():
                each.in_doubt = True

    def _doubt(self, operation: Operation) -> None:
        """Where a library's own waits are not observed, there may have been some."""
        launched = isinstance(operation, ops.Launch) and operation.instance is not None
        if self.can(Capability.ORDER_LEDGER) or (isinstance(operation, _WAITS_FOR_NOBODY) and not launched):
            return
        self.order.doubt_stalls()
        self.waits_unseen = True
        state = None
        if isinstance(operation, ops.Allocate | ops.Stage):
            state = self.stream(operation.stream)
        elif isinstance(operation, ops.Launch):
            state = self.launch_stream(operation)
        if state is not None:
            self.order.disturb(state)

    # -- operations ------------------------------------------------------------------------------------------------

    def _succeed(self, operation: Operation, outcome: Outcome, change: Change) -> None:
        match operation:
            case ops.Allocate() if isinstance(outcome, Allocated):
                reuse.allocate(self, operation, outcome, change)
            case ops.Stage() if isinstance(outcome, Allocated):
                reuse.stage(self, operation, outcome, change)
            case ops.Copy():
                reuse.copy(self, operation, change)
            case ops.Fill(slot, _, stream):
                reuse.use(self, (slot,), self.stream(stream), change)
            case ops.Launch(reads, writes):
                reuse.use(self, (*reads, *writes), self.launch_stream(operation), change)
            case ops.CreatePool(slot, limit):
                self.pools[slot], self.pool_devices[slot] = limit, self.device
            case ops.InjectFailure(point, nth, error):
                self.failures[point] = ArmedFailure(error, nth)
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
                    self.order.note_sure(state.certain)
            case _:
                self.tape.apply(operation)

    def _make_instance(self, slot: Slot, stream: Slot | None) -> None:
        given = self.stream(stream) if stream is not None else None
        self.instances[slot] = given or self.order.new_stream(f"internal:{slot}", self.device)

    def _succeed_order(self, operation: Operation) -> None:
        match operation:
            case ops.CreateStream(slot, nonblocking):
                self.streams[slot] = self.order.new_stream(slot, self.device, nonblocking=nonblocking)
            case ops.DestroyStream(slot):
                self._destroy_stream(slot)
            case ops.CreateEvent(slot):
                self.events[slot] = EventState(slot, self.device)
            case ops.DestroyEvent(slot):
                self.events.pop(slot, None)
            case ops.RecordEvent(slot, stream):
                self._record(slot, stream)
            case ops.WaitEvent(slot, stream):
                self._wait(slot, stream)
            case ops.SynchronizeEvent() | ops.SynchronizeStream():
                self._synchronize(operation)
            case ops.SynchronizeDevice():
                self.order.complete_device(self.device)
                self.waits_unseen = self.waits_unseen and self.profile.devices > 1
            case ops.Stall(slot) if slot in self.streams:
                self.order.stall(self.streams[slot])
            case ops.Release(slot) if slot in self.streams:
                self.order.release(self.streams[slot])
            case ops.BeginCapture(stream, mode) if stream in self.streams:
                self.captures.begin(self.streams[stream], mode)
            case ops.LaunchGraph(slot, stream):
                self._launch_graph(slot, stream)
            case ops.DestroyGraph(slot):
                self.graphs.pop(slot, None)
            case _:
                pass

    def _synchronize(self, operation: ops.SynchronizeEvent | ops.SynchronizeStream) -> None:
        if isinstance(operation, ops.SynchronizeStream):
            state = self.stream(operation.slot)
            if state is not None:
                self.order.complete(self.order.encompassed(state))
                self.order.note_sure(state.certain)
                self.order.release(state)
        elif operation.slot in self.events and self.events[operation.slot].capture is None:
            self.order.complete(self.events[operation.slot].clock)
            self.order.note_sure(self.events[operation.slot].certain)
        self.order.doubt_stalls()  # nobody is forbidden to wait for more

    def _destroy_stream(self, slot: Slot) -> None:
        state = self.streams.pop(slot, None)
        if state is None:
            return
        self.order.doubt_stall(state)  # nobody could release it any more: the backend may have

    def _abandon_capture(self, slot: Slot) -> None:
        state = self.streams.get(slot)
        if state is not None and (capture := self.captures.of(state)) is not None:
            self.captures.end(capture)

    def _record(self, slot: Slot, stream: Slot | None) -> None:
        event, state = self.events.get(slot), self.stream(stream)
        if event is None or state is None:
            return
        event.recorded, event.stream = True, state
        event.capture = self.captures.of(state)
        event.clock = self.order.record(state) if event.capture is None else event.capture.snapshot(state)
        event.certain = dict(state.certain)

    def _wait(self, slot: Slot, stream: Slot | None) -> None:
        event, state = self.events.get(slot), self.stream(stream)
        if event is None or state is None:
            return
        if event.capture is None:
            self.order.disturb(state)
            if event.recorded:
                self.order.wait(state, event.clock, event.certain)
            return
        self.captures.join(state, event.capture, event.clock)

    def _end_capture(self, operation: ops.EndCapture, outcome: Outcome) -> None:
        state = self.streams.get(operation.stream)
        capture = self.captures.of(state) if state is not None else None
        if capture is not None and capture.origin is state:
            self.captures.end(capture)
        if isinstance(outcome, Done):
            self.graphs[operation.slot] = capture

    def _launch_graph(self, slot: Slot, stream: Slot | None) -> None:
        graph, state = self.graphs.get(slot), self.stream(stream)
        if graph is None or state is None:
            return
        capture = self.captures.of(state)
        for blocks in graph.uses or [()]:  # an empty graph is an action all the same
            if capture is not None:
                capture.add(state, blocks)
                continue
            self.order.enqueue(state)
            for block in blocks:
                block.uses.update(state.clock)

    def _reject(self, operation: Operation) -> None:
        if self.captures.any_active and not isinstance(operation, ops.EndCapture):
            self.captures.invalidate_all()

    # -- queries ---------------------------------------------------------------------------------------------------

    def _judge_query(self, operation: ops.QueryStream | ops.QueryEvent, outcome: Outcome, change: Change) -> None:
        stream: StreamState | None = None
        if isinstance(operation, ops.QueryStream):
            stream = asked = self.stream(operation.slot)
            clock = dict(stream.clock) if stream is not None else {}
            certain = stream.certain if stream is not None else {}
        else:
            event = self.events.get(operation.slot)
            asked = event.stream if event is not None else None
            clock = event.clock if event is not None and event.capture is None else {}
            certain = event.certain if event is not None and event.capture is None else {}
        if isinstance(outcome, Done):
            change.early = self.order.certainly_pending(certain)
            if asked is not None and asked.stall_mark is None:
                self.order.note_sure(certain)
            if asked is not None:
                self.order.complete(clock, asked=asked)
        elif outcome == Rejected(NOT_READY):
            held_back = (
                self.waits_unseen or self.completion_in_doubt or (stream is not None and stream.stall_mark is not None)
            )
            about = self.order.encompassed(stream) if stream is not None else clock
            change.certain_completion = not held_back and self.order.is_surely_complete(about, certain)
            if stream is not None and stream.name:  # the default stream may answer for others
                self._believe(stream, change)

    def _believe(self, stream: StreamState, change: Change) -> None:
        for suspect in self.evidence.proven_by_pending(stream):
            if isinstance(suspect.subject, Conflict):
                change.conflicts += (Conflict(suspect.subject.user, suspect.subject.earlier, stream),)
            else:
                change.returned += (suspect.subject,)

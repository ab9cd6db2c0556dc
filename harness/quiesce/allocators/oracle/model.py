"""The oracle's own model of one context: fed by what was observed, never by what should have happened.

:meth:`Model.apply` takes one operation with its outcome and observations, brings the model up to date and returns a
:class:`~quiesce.allocators.oracle.change.Change`: the facts that rules read.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.oracle import answer_effects, observation_effects, reuse
from quiesce.allocators.oracle.answer_effects import judge_query
from quiesce.allocators.oracle.blocks import GraphMemory
from quiesce.allocators.oracle.change import Change
from quiesce.allocators.oracle.clocks import StreamState
from quiesce.allocators.oracle.facts import RUNTIME, Facts
from quiesce.allocators.oracle.failures import rose
from quiesce.allocators.oracle.memory import SOME_POOL
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Flavour
from quiesce.model.gauges import Gauge, Readings
from quiesce.model.observations import BackingRefused, Observation
from quiesce.model.operations import FailurePoint, MemoryKind, Operation, Slot
from quiesce.model.outcomes import BACKING_ERROR, Allocated, Done, Outcome, OutOfMemory, Rejected
from quiesce.model.requests import format_request

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

_LEAVES_MEMORY_ALONE: Final = frozenset(
    {*_WAITS_FOR_NOBODY, ops.Allocate, ops.Free, ops.Trim, ops.DestroyPool, ops.DestroyStream}
    | {ops.SynchronizeStream, ops.SynchronizeEvent, ops.SynchronizeDevice}
) - {ops.CreateStream, ops.Launch, ops.LaunchGraph, ops.Fill, ops.Copy}
"""Requests for which nothing is taken from a pool but the blocks that are asked for.

Streams, work, graphs, runtimes and tapes may need memory of a library's own.
"""

_SERVED: Final = (Allocated, Done)
_MAKES_A_BLOCK: Final = (ops.Allocate, ops.Stage)
_CHANGES_BEFORE_IT_IS_SEEN: Final = (
    ops.Free,
    ops.DestroyPool,
    ops.EndCapture,
    ops.CreateStream,
    ops.DestroyStream,
    ops.DestroyGraph,
)
_PUT_ON_A_STREAM: Final = (ops.Launch, ops.LaunchGraph, ops.Copy, ops.Fill, ops.Stage, ops.WaitEvent)
_RUNS: Final = (ops.Launch, ops.LaunchGraph)
_ASKS_A_POOL: Final = (ops.Allocate, ops.Free, ops.Trim)
_ASKS: Final = (ops.QueryStream, ops.QueryEvent)
_GIVES_BACK: Final = (ops.Trim, ops.DestroyPool)
_ENDS_CAPTURES: Final = (ops.EndCapture, ops.DestroyStream)
_DEVICE: Final = MemoryKind.DEVICE
_ERROR_BELOW: Final = Rejected(BACKING_ERROR)


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
        if self.intact is not None and type(operation) not in _LEAVES_MEMORY_ALONE:
            self.intact.forget()
        if isinstance(operation, _CHANGES_BEFORE_IT_IS_SEEN):
            self._change_at_once(operation, outcome, change)
        elif isinstance(operation, _MAKES_A_BLOCK):  # one that is refused may leave a chunk behind
            self.asked.kinds.add(operation.kind if isinstance(operation, ops.Allocate) else _DEVICE)
            change.is_first_of_pool = self.chunks.from_nothing.is_first(operation)
        if self.captures.any_active and isinstance(operation, _ASKS_A_POOL):
            self._note_asked(change)
        if observations:
            if self.profile.flavour is Flavour.HIP:
                change.needless = observation_effects.needless_waits(self, observations)
            taker = SOME_POOL if self.asked.nothing_yet else self._taker(change)
            observation_effects.see(self, observations, taker, change)
            reuse.defer_free(self, change)
        if not self.can(Capability.BACKING_LEDGER):
            self._note_unseen(change)
        self.asked.nothing_yet = False
        self._follow_backing(operation, outcome, change)
        if not self.sees_order:
            self._doubt(operation)
        if self.freed_beside_captures and not self.captures.any_active:
            self._settle_freed_beside_captures(operation)
        if isinstance(outcome, _SERVED):
            answer_effects.enter(self, operation, change)
            if observations and self.sees_order and isinstance(operation, _PUT_ON_A_STREAM):
                self._see_behind(operation, change)
        elif isinstance(outcome, Rejected | OutOfMemory):
            self._refuse(operation, change)
            if isinstance(operation, _MAKES_A_BLOCK):
                reuse.put_back(self, operation, change)
            elif isinstance(operation, _RUNS) and (armed is not None or isinstance(outcome, OutOfMemory)):
                reuse.take_scratch(self, self._runs_on(operation))
        if isinstance(operation, _ASKS):
            judge_query(self, operation, outcome, change)
        if change.returned and isinstance(outcome, _SERVED):
            self._excuse_returned(change)
        return change

    def _note_asked(self, change: Change) -> None:
        """Note of which pool something is asked beside captures: it may keep to it for the graphs that come of them."""
        match change.operation:
            case ops.Allocate(pool=pool) | ops.Trim(pool=pool):
                asked = pool
            case _ if change.freed is not None:
                asked = change.freed.pool
            case _:
                return
        for memory in self.captures.memories:
            memory.pools.add(asked)

    def _excuse_returned(self, change: Change) -> None:
        """Take it that memory which went back beside a request did so behind what that waited for, or learned."""
        change.returned = tuple(
            each for each in change.returned if each.guard is None or not self.order.is_ordered(each.guard, None)
        )

    def _taker(self, change: Change) -> Slot | None:
        """Return whose memory is what is taken from the backing allocator meanwhile, as far as the operation tells.

        A pool may take its first chunk when it is made, and one in place of several when a block is freed. What is
        taken beside any other request may be the library's own, for streams, graphs or kernels, until a block in it
        tells. So may what the first answer tells of, which was perhaps taken when the context was opened.
        """
        match change.operation:
            case ops.CreatePool(slot):
                return slot
            case ops.Allocate(pool=pool) | ops.Trim(pool=pool):
                return pool
            case ops.Stage():
                return None
        return SOME_POOL if change.freed is None else change.freed.pool

    def _note_unseen(self, change: Change) -> None:
        """Note where a library took memory that may be its own, and nobody told whose it is."""
        for gauge in (Gauge.RESERVED, Gauge.PINNED):
            if rose(change, gauge) and self._taker(change) == SOME_POOL:
                self.doubts.kept.add(gauge)

    def _change_at_once(
        self,
        operation: ops.Free
        | ops.DestroyPool
        | ops.EndCapture
        | ops.CreateStream
        | ops.DestroyStream
        | ops.DestroyGraph,
        outcome: Outcome,
        change: Change,
    ) -> None:
        """Enter what is so before the observations: a return is then legal, a capture over, and a new stream waits."""
        match operation:
            case ops.CreateStream(slot, nonblocking) if isinstance(outcome, Done):
                self.streams[slot] = self.order.new_stream(slot, self.device, nonblocking=nonblocking)
            case ops.Free() if isinstance(outcome, Done):
                reuse.free(self, operation, change)
            case ops.DestroyPool(slot) if isinstance(outcome, Done):
                reuse.destroy_pool(self, slot)
            case ops.EndCapture():
                self._end_capture(operation, outcome)
            case ops.DestroyStream(slot) if isinstance(outcome, Done):
                self._abandon_capture(slot)
            case ops.DestroyGraph(slot) if isinstance(outcome, Done):
                reuse.release_graph(self, slot)
            case _:
                pass

    def _see_behind(
        self,
        operation: ops.Launch | ops.LaunchGraph | ops.Copy | ops.Fill | ops.Stage | ops.WaitEvent,
        change: Change,
    ) -> None:
        """A library may record behind the work it was asked for, or wait for it, before it answers."""
        stream = self._runs_on(operation)
        if stream is None:
            return
        if (capture := self.captures.of(stream)) is not None:
            observation_effects.see_captured_behind(self, change.observations, stream, capture)
        else:
            observation_effects.see_behind(self, change.observations, stream, change.pieces, change.own_copies)

    def _runs_on(
        self, operation: ops.Launch | ops.LaunchGraph | ops.Copy | ops.Fill | ops.Stage | ops.WaitEvent
    ) -> StreamState | None:
        return self.launch_stream(operation) if isinstance(operation, ops.Launch) else self.stream(operation.stream)

    def _abandon_capture(self, slot: Slot) -> None:
        state = self.streams.get(slot)
        if state is not None and (capture := self.captures.of(state)) is not None:
            self.captures.end(capture)
            self._lose_graph(capture.memory)

    def _lose_graph(self, memory: GraphMemory) -> None:
        """Note that no graph comes of a capture."""
        memory.is_gone = True
        self.kept.release(memory)

    def _end_capture(self, operation: ops.EndCapture, outcome: Outcome) -> None:
        state = self.streams.get(operation.stream)
        capture = self.captures.of(state) if state is not None else None
        if capture is not None and capture.origin is state:
            self.captures.end(capture)
            if not isinstance(outcome, Done):
                self._lose_graph(capture.memory)
        elif capture is not None and not isinstance(outcome, Done):
            self.captures.spoiled_by = format_request(operation)
            capture.invalidate()  # to end it where it was joined is refused, and what is refused may spoil it
        if isinstance(outcome, Done):
            self.graphs[operation.slot] = capture

    def _follow_backing(self, operation: Operation, outcome: Outcome, change: Change) -> None:
        """Follow the armed failures, and note what was to be given back."""
        if self.failures:
            self._meet_failure(operation, outcome, change)
        ran_out = any(isinstance(ask.observation, BackingRefused) for ask in change.asks)
        if ran_out or isinstance(operation, _GIVES_BACK):
            self.memory.note_leaving()

    def _meet_failure(self, operation: Operation, outcome: Outcome, change: Change) -> None:
        """Follow the armed failures: say what came instead of its error, and disarm it once it certainly was met."""
        if isinstance(operation, ops.Free) and not isinstance(outcome, Done) and operation.slot in self.blocks:
            block = self.blocks[operation.slot]
            reuse.free(self, operation, change)  # the failure came before or behind the free: it may or may not exist
            self.empty_blocks[operation.slot] = range(block.address, block.end)
        if isinstance(operation, answer_effects.DOUBTED_WHERE_THEY_FAIL) and not isinstance(outcome, Done):
            self._put_in_doubt(operation)
        failure = self.failures.get(FailurePoint.BACKING)
        if failure is not None:
            told = self.can(Capability.BACKING_LEDGER) or isinstance(operation, _WAITS_FOR_NOBODY)
            room_bytes = [self.profile.capacity_bytes, self.profile.pinned_capacity_bytes]
            if isinstance(operation, ops.Allocate) and (limit := self.pools.get(operation.pool or "")) is not None:
                room_bytes.append(limit)  # a limit may be kept below the pool, and refused there
            failure.follow(change, self.memory, min(room_bytes), calls_are_seen=told)
        if failure is not None and failure.calls_left <= 0:
            del self.failures[FailurePoint.BACKING]
        elif outcome == _ERROR_BELOW and len(self.failures) == 1:
            self.failures.clear()
        elif outcome == _ERROR_BELOW:  # nobody knows which it was
            for each in self.failures.values():
                each.in_doubt = True

    def _put_in_doubt(self, operation: Operation) -> None:
        """Enter that nobody knows whether a request happened in which a call below failed."""
        slot = getattr(operation, "slot", RUNTIME)
        self.doubts.things.add(slot)
        if isinstance(operation, ops.DestroyGraph) and (graph := self.graphs.get(slot)) is not None:
            graph.memory.is_doubtful = True
        if isinstance(operation, ops.DestroyPool) and slot in self.pools:
            limit = self.pools[slot]
            reuse.destroy_pool(self, slot, is_certain=False)
            self.pools[slot] = limit

    def _doubt(self, operation: Operation) -> None:
        """Where a library's own waits are not observed, there may have been some."""
        launched = isinstance(operation, ops.Launch) and operation.instance is not None
        if isinstance(operation, _WAITS_FOR_NOBODY) and not launched:
            return
        self.order.calls += 1
        self.order.doubt_stalls()
        self.doubts.waits = True
        state = None
        if isinstance(operation, _MAKES_A_BLOCK):
            state = self.stream(operation.stream)
        elif isinstance(operation, ops.Launch):
            state = self.launch_stream(operation)
        if state is not None:
            self.order.disturb(state)

    def _settle_freed_beside_captures(self, operation: Operation) -> None:
        """A library sees to what was freed beside a capture when that is over, or in the first call behind it."""
        if not isinstance(operation, (*_ENDS_CAPTURES, *_WAITS_FOR_NOBODY)):
            self.freed_beside_captures.clear()
        elif isinstance(operation, _ENDS_CAPTURES) and not self.sees_order and self.can(Capability.STREAMS):
            reuse.doubt_freed_beside_captures(self)

    def _refuse(self, operation: Operation, change: Change) -> None:
        """What is refused, or lacks memory, may have made captures invalid. A block may have died with its pool."""
        in_doubt = change.armed is not None or self.captures.any_active
        if isinstance(operation, ops.Free) and operation.stream is None and not in_doubt:
            reuse.settle_orphan(self, operation.slot, change)
        if self.captures.any_active and not isinstance(operation, ops.EndCapture):
            self.captures.invalidate_all(format_request(operation))
            if isinstance(operation, ops.Allocate):  # a place for the graph may have been made
                self.memory.graphs += self.captures.memories

"""The operations on order: streams, events, synchronisation, stalls, captures and graphs, devices."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.observations import HandleCreated, HandleDestroyed, HandleKind
from quiesce.outcomes import INVALID_VALUE, NOT_READY, Done, Outcome, Rejected
from quiesce.reference.calls import CallRejected
from quiesce.reference.staging import use
from quiesce.reference.world import World


class OrderCalls:
    """Ordering operations on a :class:`World`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def create_stream(self, operation: ops.CreateStream) -> Outcome:
        """Create a stream on the current device."""
        world = self._world
        world.stream_slots[operation.slot] = world.streams.create_stream(
            operation.slot, world.device, nonblocking=operation.nonblocking
        )
        return Done()

    def destroy_stream(self, operation: ops.DestroyStream) -> Outcome:
        """Destroy a stream."""
        self._world.streams.destroy_stream(self._world.stream(operation.slot))
        return Done()

    def synchronize_stream(self, operation: ops.SynchronizeStream) -> Outcome:
        """Wait for a stream."""
        stream = self._world.stream(operation.slot)
        self._world.streams.forbid_questions(stream)
        self._world.streams.synchronize_stream(stream)
        return Done()

    def query_stream(self, operation: ops.QueryStream) -> Outcome:
        """Ask a stream."""
        return Done() if self._world.streams.is_idle(self._world.stream(operation.slot)) else Rejected(NOT_READY)

    def create_event(self, operation: ops.CreateEvent) -> Outcome:
        """Create an event on the current device."""
        world = self._world
        world.event_slots[operation.slot] = world.streams.create_event(operation.slot, world.device)
        return Done()

    def destroy_event(self, operation: ops.DestroyEvent) -> Outcome:
        """Destroy an event."""
        self._world.streams.destroy_event(self._world.event(operation.slot))
        return Done()

    def record_event(self, operation: ops.RecordEvent) -> Outcome:
        """Record an event."""
        self._world.streams.record(self._world.event(operation.slot), self._world.stream(operation.stream))
        return Done()

    def wait_event(self, operation: ops.WaitEvent) -> Outcome:
        """Make a stream wait for an event."""
        self._world.streams.wait(self._world.stream(operation.stream), self._world.event(operation.slot))
        return Done()

    def query_event(self, operation: ops.QueryEvent) -> Outcome:
        """Ask an event."""
        return Done() if self._world.streams.is_complete(self._world.event(operation.slot)) else Rejected(NOT_READY)

    def synchronize_event(self, operation: ops.SynchronizeEvent) -> Outcome:
        """Wait for an event."""
        self._world.streams.synchronize_event(self._world.event(operation.slot))
        return Done()

    def synchronize_device(self, operation: ops.SynchronizeDevice) -> Outcome:
        """Wait for the current device."""
        self._world.streams.synchronize_device(self._world.device)
        return Done()

    def stall(self, operation: ops.Stall) -> Outcome:
        """Hold a stream."""
        self._world.streams.stall(self._world.stream(operation.slot))
        return Done()

    def release(self, operation: ops.Release) -> Outcome:
        """End a stream's stalls, also those of one that was destroyed meanwhile."""
        self._world.streams.release(self._world.stream(operation.slot))
        return Done()

    def begin_capture(self, operation: ops.BeginCapture) -> Outcome:
        """Begin a capture."""
        stream = self._world.stream(operation.stream)
        self._world.streams.require(stream)
        self._world.captures.begin(stream, operation.mode)
        return Done()

    def end_capture(self, operation: ops.EndCapture) -> Outcome:
        """End a capture and keep its graph."""
        world = self._world
        stream = world.stream(operation.stream)
        world.streams.require(stream)
        world.graphs[operation.slot] = world.captures.end(stream, operation.slot)
        world.ledger.see(HandleCreated(HandleKind.GRAPH, operation.slot))
        return Done()

    def launch_graph(self, operation: ops.LaunchGraph) -> Outcome:
        """Run a graph: each recorded launch uses its blocks in order."""
        world = self._world
        graph = world.graph(operation.slot)
        stream = world.stream(operation.stream)
        world.streams.require(stream)
        for blocks in graph.launches or ((),):
            use(blocks, world.streams, stream)
        return Done()

    def destroy_graph(self, operation: ops.DestroyGraph) -> Outcome:
        """Destroy a graph."""
        world = self._world
        graph = world.graph(operation.slot)
        del world.graphs[operation.slot]
        graph.capture.give_back()
        world.ledger.see(HandleDestroyed(HandleKind.GRAPH, operation.slot))
        return Done()

    def select_device(self, operation: ops.SelectDevice) -> Outcome:
        """Make a device current."""
        if not 0 <= operation.ordinal < self._world.profile.devices:
            raise CallRejected(INVALID_VALUE)
        self._world.device = operation.ordinal
        return Done()

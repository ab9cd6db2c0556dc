"""The machine: one context of the reference. It performs operations, reads gauges, and releases everything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from quiesce.allocators.reference.calls import MemoryCalls, OrderCalls, RuntimeCalls
from quiesce.allocators.reference.ledger import CallRejected, MemoryExhausted
from quiesce.allocators.reference.world import Parts, World
from quiesce.model import operations as ops
from quiesce.model.backend import Closing, DeviceProfile, Reply
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import HandleKind
from quiesce.model.operations import MemoryKind, Operation
from quiesce.model.outcomes import INVALID_VALUE, Done, Outcome, OutOfMemory, Rejected

_Handler = Callable[[Any], Outcome]  # each handler takes the one operation type it is filed under

MACHINE_GAUGES: Final[Mapping[Gauge, frozenset[Source]]] = {
    Gauge.LIVE: frozenset({Source.CLAIM}),
    Gauge.BLOCKS: frozenset({Source.CLAIM}),
    Gauge.RESERVED: frozenset({Source.CLAIM, Source.LEDGER}),
    Gauge.PINNED: frozenset({Source.CLAIM, Source.LEDGER}),
    Gauge.STREAMS: frozenset({Source.LEDGER}),
    Gauge.EVENTS: frozenset({Source.LEDGER}),
    Gauge.GRAPHS: frozenset({Source.LEDGER}),
    Gauge.INSTANCES: frozenset({Source.LEDGER}),
    Gauge.NODES: frozenset({Source.CLAIM}),
    Gauge.BACKING_CALLS: frozenset({Source.LEDGER}),
    Gauge.COST: frozenset({Source.LEDGER}),
    Gauge.RETAINED: frozenset({Source.LEDGER}),
}
"""The gauges that a machine reads, and who counts them."""


# Made once: they are read after every operation.
_STREAM: Final = HandleKind.STREAM
_EVENT: Final = HandleKind.EVENT
_GRAPH: Final = HandleKind.GRAPH
_INSTANCE: Final = HandleKind.INSTANCE
_DEVICE: Final = MemoryKind.DEVICE
_MANAGED: Final = MemoryKind.MANAGED
_PINNED_KIND: Final = MemoryKind.PINNED
_LIVE: Final = Gauge.LIVE, Source.CLAIM
_BLOCKS: Final = Gauge.BLOCKS, Source.CLAIM
_RESERVED_CLAIM: Final = Gauge.RESERVED, Source.CLAIM
_RESERVED: Final = Gauge.RESERVED, Source.LEDGER
_PINNED_CLAIM: Final = Gauge.PINNED, Source.CLAIM
_PINNED: Final = Gauge.PINNED, Source.LEDGER
_STREAMS: Final = Gauge.STREAMS, Source.LEDGER
_EVENTS: Final = Gauge.EVENTS, Source.LEDGER
_GRAPHS: Final = Gauge.GRAPHS, Source.LEDGER
_INSTANCES: Final = Gauge.INSTANCES, Source.LEDGER
_NODES: Final = Gauge.NODES, Source.CLAIM
_BACKING_CALLS: Final = Gauge.BACKING_CALLS, Source.LEDGER
_COST: Final = Gauge.COST, Source.LEDGER
_RETAINED: Final = Gauge.RETAINED, Source.LEDGER
_DONE: Final = Reply(Done())


class Machine:
    """A context on a device ``profile``, built from ``parts``."""

    def __init__(self, profile: DeviceProfile, parts: Parts) -> None:
        self._world = World(profile, parts)
        self._handlers = self._file_handlers()
        self._closed = False

    def _file_handlers(self) -> Mapping[type[Operation], _Handler]:
        memory, order, runtime = MemoryCalls(self._world), OrderCalls(self._world), RuntimeCalls(self._world)
        return {
            ops.Allocate: memory.allocate,
            ops.Free: memory.free,
            ops.Trim: memory.trim,
            ops.Copy: memory.copy,
            ops.Stage: memory.stage,
            ops.Fill: memory.fill,
            ops.Launch: memory.launch,
            ops.CreatePool: memory.create_pool,
            ops.DestroyPool: memory.destroy_pool,
            ops.InjectFailure: memory.inject,
            ops.CreateStream: order.create_stream,
            ops.DestroyStream: order.destroy_stream,
            ops.SynchronizeStream: order.synchronize_stream,
            ops.QueryStream: order.query_stream,
            ops.CreateEvent: order.create_event,
            ops.DestroyEvent: order.destroy_event,
            ops.RecordEvent: order.record_event,
            ops.WaitEvent: order.wait_event,
            ops.QueryEvent: order.query_event,
            ops.SynchronizeEvent: order.synchronize_event,
            ops.SynchronizeDevice: order.synchronize_device,
            ops.Stall: order.stall,
            ops.Release: order.release,
            ops.BeginCapture: order.begin_capture,
            ops.EndCapture: order.end_capture,
            ops.LaunchGraph: order.launch_graph,
            ops.DestroyGraph: order.destroy_graph,
            ops.SelectDevice: order.select_device,
            ops.Initialize: runtime.initialize,
            ops.Finalize: runtime.finalize,
            ops.CreateInstance: runtime.create_instance,
            ops.DestroyInstance: runtime.destroy_instance,
            ops.Partition: runtime.partition,
            ops.CreatePolicy: runtime.create_policy,
            ops.Node: runtime.node,
            ops.Hold: runtime.hold,
            ops.Drop: runtime.drop,
            ops.Backward: runtime.backward,
            ops.Collect: runtime.collect,
            ops.Mark: runtime.mark,
        }

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation; a failing call becomes an outcome, and after ``close`` everything is refused."""
        outcome: Outcome
        if self._closed:
            return Reply(Rejected(INVALID_VALUE))
        try:
            outcome = self._handlers[type(operation)](operation)
        except MemoryExhausted:
            outcome = OutOfMemory()
        except CallRejected as rejected:
            outcome = Rejected(rejected.code)
        observations = self._world.ledger.drain()
        if not observations and isinstance(outcome, Done):
            return _DONE
        return Reply(outcome, observations)

    def readings(self) -> Readings:
        """Read the gauges: claims from the components, the rest from the ledger."""
        world, ledger = self._world, self._world.ledger
        pinned_pool, pageable, held = world.pinned_pool, world.pageable, ledger.held_bytes
        live_bytes = pinned_pool.live_bytes + pageable.live_bytes
        live_blocks = pinned_pool.live_blocks + pageable.live_blocks
        held_bytes = 0
        for pool in world.every_pool():
            live_bytes += pool.live_bytes
            live_blocks += pool.live_blocks
            held_bytes += pool.held_bytes
        nodes = world.tape.count()
        handles = ledger.handles
        streams, events, graphs, instances = handles[_STREAM], handles[_EVENT], handles[_GRAPH], handles[_INSTANCE]
        return {
            _LIVE: live_bytes,
            _BLOCKS: live_blocks,
            _RESERVED_CLAIM: held_bytes,
            _RESERVED: held[_DEVICE] + held[_MANAGED],
            _PINNED_CLAIM: pinned_pool.held_bytes,
            _PINNED: held[_PINNED_KIND],
            _STREAMS: streams,
            _EVENTS: events,
            _GRAPHS: graphs,
            _INSTANCES: instances,
            _NODES: nodes,
            _BACKING_CALLS: ledger.backing_calls,
            _COST: ledger.steps,
            _RETAINED: ledger.allocations + streams + events + graphs + instances + nodes,
        }

    def close(self) -> Closing:
        """Release what the components hold for themselves; what the sequence still owns stays and is seen."""
        if not self._closed:
            self._closed = True
            world = self._world
            world.captures.abandon_all()
            for device in range(world.profile.devices):
                world.streams.synchronize_device(device)
            world.launcher.release()
            for pool in world.every_pool():
                pool.release()
            world.pinned_pool.release()
        return Closing(self._world.ledger.drain(), self.readings())

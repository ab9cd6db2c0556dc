"""The state of a generated sequence: what it owns, assuming that every legal request is served.

Nothing here reads an answer. A request that is not legal is taken to change nothing that anybody may rely on later;
what it may have changed is given up. An allocation that failed is skipped by lockstep together with what uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from quiesce.allocators.generation.things import Block, Capture, Event, Graph, Instance, Node, Order, Pool, Stream
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile, Promise
from quiesce.model.operations import MemoryKind, Operation, Slot


class State:
    """What a sequence owns on a context of a backend that ``description`` describes, opened on ``device``."""

    def __init__(self, description: Description, device: DeviceProfile) -> None:
        self.capabilities = description.capabilities
        self.promises = description.promises
        self.profile = device
        self.order = Order(device.devices, legacy=Capability.LEGACY_DEFAULT_STREAM in description.capabilities)
        self.keeps_graph_memory = Promise.KEEPS_GRAPH_MEMORY in description.promises
        self.tracks_uses = Promise.TRACKS_USES in description.promises
        self.device = 0
        self.blocks: dict[Slot, Block] = {}
        self.host_blocks: dict[Slot, Block] = {}
        """Those of ``blocks`` that are not device memory."""
        self.empty_blocks: dict[Slot, None] = {}
        self.streams: dict[Slot, Stream] = {}
        self.events: dict[Slot, Event] = {}
        self.pools: dict[Slot, Pool] = {}
        self.graphs: dict[Slot, Graph] = {}
        self.instances: dict[Slot, Instance] = {}
        self.nodes: dict[Slot, Node] = {}
        self.captures: list[Capture] = []
        self.initialized = False
        self.finalized = False
        self.live_bytes = 0

    def stream(self, slot: Slot | None) -> Stream | None:
        """Return a live stream; None is the current device's default stream, and the answer where it is dead."""
        return self.order.defaults[self.device] if slot is None else self.streams.get(slot)

    def launch_stream(self, operation: ops.Launch) -> Stream | None:
        """Return the live stream that a launch goes to."""
        if operation.instance is None:
            return self.stream(operation.stream)
        instance = self.instances.get(operation.instance)
        return instance.stream if instance is not None and instance.stream.alive else None

    def free_stream(self, block: Block, slot: Slot | None) -> Stream | None:
        """Return the live stream that a free is ordered on."""
        if slot is not None:
            return self.streams.get(slot)
        return block.stream if block.stream.alive else None

    def is_needed(self, stream: Stream) -> bool:
        """Whether a block or an instance that the sequence owns belongs to the stream."""
        return any(block.stream is stream for block in self.blocks.values()) or any(
            instance.stream is stream for instance in self.instances.values()
        )

    def apply(self, operation: Operation) -> None:
        """Enter an operation that is about to be performed."""
        transition = _TRANSITIONS.get(type(operation))
        if transition is not None:
            transition(self, operation)

    # -- memory ----------------------------------------------------------------------------------------------------

    def _allocate(self, operation: ops.Allocate) -> None:
        stream = self.stream(operation.stream)
        pool = self.pools.get(operation.pool) if operation.pool is not None else None
        if stream is None or (operation.pool is not None and pool is None):
            return
        if operation.size_bytes == 0:
            self.empty_blocks[operation.slot] = None
            return
        self._add_block(operation.slot, operation.size_bytes, operation.kind, stream, pool)

    def _add_block(self, slot: Slot, size_bytes: int, kind: MemoryKind, stream: Stream, pool: Pool | None) -> Block:
        block = Block(slot, size_bytes, kind, stream, self.order.advance(stream), pool, self.device)
        self.blocks[slot] = block
        if kind is MemoryKind.DEVICE and pool is None:
            block.capture = stream.capture
        if kind is not MemoryKind.DEVICE:
            self.host_blocks[slot] = block
        if pool is not None:
            pool.blocks += 1
        self.live_bytes += size_bytes
        return block

    def _free(self, operation: ops.Free) -> None:
        self.empty_blocks.pop(operation.slot, None)
        block = self.blocks.get(operation.slot)
        if block is None:
            return
        stream = self.free_stream(block, operation.stream)
        if stream is not None:
            self.order.advance(stream)
            if block.capture is not None and block.capture is stream.capture:
                block.is_of_graph = self.keeps_graph_memory
        self._drop_block(block)

    def _drop_block(self, block: Block) -> None:
        block.alive = False
        del self.blocks[block.slot]
        self.host_blocks.pop(block.slot, None)
        if block.pool is not None:
            block.pool.blocks -= 1
        self.live_bytes -= block.size_bytes

    def _stage(self, operation: ops.Stage) -> None:
        source, stream = self.host_blocks.get(operation.source), self.stream(operation.stream)
        if source is not None and stream is not None:
            made = self._add_block(operation.slot, source.size_bytes, MemoryKind.DEVICE, stream, None)
            self.use((source, made), stream)

    def _copy(self, operation: ops.Copy) -> None:
        self._use_slots((operation.source, operation.destination), self.stream(operation.stream))

    def _fill(self, operation: ops.Fill) -> None:
        self._use_slots((operation.slot,), self.stream(operation.stream))

    def _launch(self, operation: ops.Launch) -> None:
        self._use_slots((*operation.reads, *operation.writes), self.launch_stream(operation))

    def _use_slots(self, slots: tuple[Slot, ...], stream: Stream | None) -> None:
        if stream is not None and all(slot in self.blocks for slot in slots):
            self.use(tuple(self.blocks[slot] for slot in slots), stream)

    def use(self, blocks: tuple[Block, ...], stream: Stream) -> None:
        """Enter work on ``stream`` that uses ``blocks``."""
        if stream.capture is not None:
            stream.capture.blocks.extend(blocks)
            return
        point = self.order.advance(stream)
        for block in blocks:
            if block.kind is not MemoryKind.PAGEABLE:  # pageable memory is not in use once the call has returned
                block.uses[stream] = point

    def _create_pool(self, operation: ops.CreatePool) -> None:
        self.pools[operation.slot] = Pool(operation.slot, self.device, operation.limit_bytes)

    def _destroy_pool(self, operation: ops.DestroyPool) -> None:
        pool = self.pools.pop(operation.slot, None)
        if pool is not None and pool.blocks:
            for block in [block for block in self.blocks.values() if block.pool is pool]:
                self._drop_block(block)

    # -- order -----------------------------------------------------------------------------------------------------

    def _create_stream(self, operation: ops.CreateStream) -> None:
        stream = Stream(operation.slot, self.device, operation.nonblocking)
        self.streams[operation.slot] = self.order.add(stream)

    def _destroy_stream(self, operation: ops.DestroyStream) -> None:
        stream = self.streams.pop(operation.slot, None)
        if stream is not None:
            if stream.capture is not None:
                self._close_capture(stream.capture)
            stream.alive = False

    def _create_event(self, operation: ops.CreateEvent) -> None:
        self.events[operation.slot] = Event(operation.slot, self.device)

    def _destroy_event(self, operation: ops.DestroyEvent) -> None:
        self.events.pop(operation.slot, None)

    def _record(self, operation: ops.RecordEvent) -> None:
        event, stream = self.events.get(operation.slot), self.stream(operation.stream)
        if event is None or (stream is not None and event.device != stream.device):
            return
        if stream is None:
            event.clock = {}  # whatever it stands for now, nothing relies on it
            return
        event.recorded_on = stream
        event.capture = stream.capture
        event.clock = self.order.snapshot(stream) if stream.capture is None else None

    def _wait(self, operation: ops.WaitEvent) -> None:
        event, stream = self.events.get(operation.slot), self.stream(operation.stream)
        if event is None or stream is None:
            return
        capture = event.capture
        if capture is None:
            if stream.capture is None and event.clock is not None:
                self.order.join(stream, event.clock)
            elif stream.capture is not None:
                stream.capture.spoiled = True
        elif capture.over or stream.capture not in (None, capture):
            self.spoil_captures()
        elif stream is capture.origin:
            if event.recorded_on in capture.unjoined:
                capture.unjoined.remove(event.recorded_on)
        elif stream not in capture.members:
            capture.members.append(stream)
            capture.unjoined.append(stream)
            stream.capture = capture

    def _synchronize_event(self, operation: ops.SynchronizeEvent) -> None:
        event = self.events.get(operation.slot)
        if self.captures:
            self.spoil_captures()
        elif event is not None and event.clock is not None:
            self.order.complete(event.clock)

    def _synchronize_stream(self, operation: ops.SynchronizeStream) -> None:
        stream = self.stream(operation.slot)
        if self.captures:
            self.spoil_captures()
        elif stream is not None:
            self.order.complete(self.order.snapshot(stream))
            stream.stalled = False

    def _synchronize_device(self, _: ops.SynchronizeDevice) -> None:
        if self.captures:
            self.spoil_captures()
            return
        self.order.complete_device(self.device)
        for stream in self.streams.values():
            if stream.device == self.device:
                stream.stalled = False

    def _query(self, _: ops.QueryStream | ops.QueryEvent) -> None:
        if self.captures:
            self.spoil_captures()

    def _stall(self, operation: ops.Stall) -> None:
        if operation.slot in self.streams:
            self.streams[operation.slot].stalled = True

    def _release(self, operation: ops.Release) -> None:
        if operation.slot in self.streams:
            self.streams[operation.slot].stalled = False

    def _select_device(self, operation: ops.SelectDevice) -> None:
        if operation.ordinal < self.profile.devices:
            self.device = operation.ordinal

    # -- captures --------------------------------------------------------------------------------------------------

    def spoil_captures(self) -> None:
        """Note that a call was made that captures forbid."""
        for capture in self.captures:
            capture.spoiled = True

    def _begin_capture(self, operation: ops.BeginCapture) -> None:
        stream = self.streams.get(operation.stream)
        if stream is None or stream.capture is not None:
            self.spoil_captures()
            return
        stream.capture = Capture(stream, operation.mode, [stream])
        self.captures.append(stream.capture)

    def _end_capture(self, operation: ops.EndCapture) -> None:
        stream = self.streams.get(operation.stream)
        capture = stream.capture if stream is not None else None
        if stream is None or capture is None or capture.origin is not stream:
            self.spoil_captures()
            return
        self._close_capture(capture)
        if not capture.spoiled and not capture.unjoined:
            self.graphs[operation.slot] = Graph(operation.slot, stream.device, tuple(dict.fromkeys(capture.blocks)))

    def _close_capture(self, capture: Capture) -> None:
        capture.over = True
        self.captures.remove(capture)
        for member in capture.members:
            member.capture = None

    def _launch_graph(self, operation: ops.LaunchGraph) -> None:
        graph, stream = self.graphs.get(operation.slot), self.stream(operation.stream)
        if graph is not None and stream is not None:
            self.use(graph.blocks, stream)

    def _destroy_graph(self, operation: ops.DestroyGraph) -> None:
        self.graphs.pop(operation.slot, None)

    # -- runtimes and tapes ----------------------------------------------------------------------------------------

    def _initialize(self, _: ops.Initialize) -> None:
        if not (self.finalized and self.profile.initialization == "once"):
            self.initialized = True

    def _finalize(self, _: ops.Finalize) -> None:
        self.finalized = self.finalized or self.initialized
        self.initialized = False

    def _create_instance(self, operation: ops.CreateInstance) -> None:
        stream = self.streams.get(operation.stream) if operation.stream is not None else self._new_stream()
        if stream is not None:
            self.instances[operation.slot] = Instance(operation.slot, stream, owned=operation.stream is None)

    def _new_stream(self) -> Stream:
        """Return a stream that a library makes: whether it blocks is its own affair, so no implicit order counts."""
        return self.order.add(Stream(None, self.device, nonblocking=True))

    def _partition(self, operation: ops.Partition) -> None:
        known = self.initialized if operation.instance is None else operation.instance in self.instances
        for slot in operation.slots if known else ():
            self.instances[slot] = Instance(slot, self._new_stream(), owned=True)

    def _destroy_instance(self, operation: ops.DestroyInstance) -> None:
        instance = self.instances.pop(operation.slot, None)
        if instance is not None and instance.stream.alive:
            self.order.complete(self.order.snapshot(instance.stream))
            if instance.owned:
                instance.stream.alive = False

    def _node(self, operation: ops.Node) -> None:
        if all(parent in self.nodes for parent in operation.parents):
            self.nodes[operation.slot] = Node(operation.slot)

    def _hold(self, operation: ops.Hold) -> None:
        if operation.slot in self.nodes:
            self.nodes[operation.slot].holds += 1

    def _drop(self, operation: ops.Drop) -> None:
        node = self.nodes.get(operation.slot)
        if node is not None:
            node.holds -= 1
            if not node.holds:
                del self.nodes[operation.slot]


_Transition = Callable[[State, Any], None]  # each takes the one operation type that it is filed under

_TRANSITIONS: Final[Mapping[type[Operation], _Transition]] = {
    ops.Allocate: State._allocate,
    ops.Free: State._free,
    ops.Copy: State._copy,
    ops.Stage: State._stage,
    ops.Fill: State._fill,
    ops.Launch: State._launch,
    ops.CreatePool: State._create_pool,
    ops.DestroyPool: State._destroy_pool,
    ops.CreateStream: State._create_stream,
    ops.DestroyStream: State._destroy_stream,
    ops.SynchronizeStream: State._synchronize_stream,
    ops.QueryStream: State._query,
    ops.CreateEvent: State._create_event,
    ops.DestroyEvent: State._destroy_event,
    ops.RecordEvent: State._record,
    ops.WaitEvent: State._wait,
    ops.QueryEvent: State._query,
    ops.SynchronizeEvent: State._synchronize_event,
    ops.SynchronizeDevice: State._synchronize_device,
    ops.Stall: State._stall,
    ops.Release: State._release,
    ops.BeginCapture: State._begin_capture,
    ops.EndCapture: State._end_capture,
    ops.LaunchGraph: State._launch_graph,
    ops.DestroyGraph: State._destroy_graph,
    ops.SelectDevice: State._select_device,
    ops.Initialize: State._initialize,
    ops.Finalize: State._finalize,
    ops.CreateInstance: State._create_instance,
    ops.DestroyInstance: State._destroy_instance,
    ops.Partition: State._partition,
    ops.Node: State._node,
    ops.Hold: State._hold,
    ops.Drop: State._drop,
}

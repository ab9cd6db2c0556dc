"""What each operation does to the world: on memory, on order, on a parallel runtime and on the autodiff tape."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.allocators.reference.ledger import CallRejected
from quiesce.allocators.reference.objects import Block, Stream
from quiesce.allocators.reference.pinned_pool import use
from quiesce.allocators.reference.world import World
from quiesce.model import operations as ops
from quiesce.model.observations import CopyEnqueued, HandleCreated, HandleDestroyed, HandleKind
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import INVALID_VALUE, NOT_READY, Allocated, Done, Outcome, Rejected

_HOST: Final = (MemoryKind.PINNED, MemoryKind.PAGEABLE)


class MemoryCalls:
    """Memory operations on a :class:`World`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def allocate(self, operation: ops.Allocate) -> Outcome:
        """Allocate; zero bytes own nothing: "no memory is allocated, *ptr returns nullptr" (``hipMalloc``)."""
        world = self._world
        stream = world.stream(operation.stream)
        world.streams.require(stream)
        if operation.pool is not None:
            world.pool(operation.pool)
        alignment = 1 if operation.alignment_bytes is None else operation.alignment_bytes
        if operation.size_bytes < 0 or alignment < 1 or alignment & (alignment - 1):
            raise CallRejected(INVALID_VALUE)
        if operation.size_bytes == 0:
            world.empty_slots.add(operation.slot)
            return Allocated(world.device_pools[world.device].empty_address())
        block = self._allocate_from(operation, alignment, stream)
        world.keep(operation.slot, block)
        return Allocated(block.address)

    def _allocate_from(self, operation: ops.Allocate, alignment: int, stream: Stream) -> Block:
        world = self._world
        if operation.pool is not None:
            return world.pool(operation.pool).allocate(operation.size_bytes, alignment, stream)
        match operation.kind:
            case MemoryKind.PINNED:
                return world.pinned_pool.allocate(operation.size_bytes, alignment, stream)
            case MemoryKind.PAGEABLE:
                return world.pageable.allocate(operation.size_bytes, alignment, stream)
            case MemoryKind.MANAGED:
                return world.managed_pool.allocate(operation.size_bytes, alignment, stream)
            case MemoryKind.DEVICE:
                return world.device_pools[world.device].allocate(operation.size_bytes, alignment, stream)

    def free(self, operation: ops.Free) -> Outcome:
        """Free a block on a stream: the one named, else the one it was allocated on, else the default stream."""
        world = self._world
        if operation.slot in world.empty_slots:  # freeing null performs no operation (``cudaFree``, ``hipFree``)
            world.empty_slots.remove(operation.slot)
            return Done()
        block = world.blocks.get(operation.slot) or world.freed.get(operation.slot)
        if block is None:
            raise CallRejected(INVALID_VALUE)
        if operation.stream is not None:
            stream = world.stream(operation.stream)
            world.streams.require(stream)
        else:
            stream = block.stream if block.stream.alive else world.streams.defaults[block.stream.device]
        if operation.slot not in world.blocks:
            block.owner.free_again(block, stream)
            return Done()
        block.owner.free(block, stream)
        del world.blocks[operation.slot]
        world.freed[operation.slot] = block
        return Done()

    def trim(self, operation: ops.Trim) -> Outcome:
        """Trim one pool, or the default allocators of a kind."""
        world = self._world
        if operation.pool is not None:
            world.pool(operation.pool).trim()
            return Done()
        match operation.kind:
            case MemoryKind.PINNED:
                world.pinned_pool.trim()
            case MemoryKind.MANAGED:
                world.managed_pool.trim()
            case MemoryKind.DEVICE:
                for pool in world.device_pools:
                    pool.trim()
            case MemoryKind.PAGEABLE:
                pass
        return Done()

    def copy(self, operation: ops.Copy) -> Outcome:
        """Enqueue a copy between two blocks."""
        world = self._world
        source, destination = world.block(operation.source), world.block(operation.destination)
        stream = world.stream(operation.stream)
        size = operation.size_bytes
        if size is None:
            size = min(source.size_bytes, destination.size_bytes)
        if not 0 <= size <= min(source.size_bytes, destination.size_bytes):
            raise CallRejected(INVALID_VALUE)
        # Pageable memory is not in use once the call has returned: it was read, or the copy is complete, as one from
        # host memory to host memory always is (CUDA Runtime API, "API synchronization behavior").
        self._use([block for block in (source, destination) if block.kind is not MemoryKind.PAGEABLE], stream)
        world.ledger.see(CopyEnqueued(source.address, destination.address, size, stream.name))
        within_host = source.kind in _HOST and destination.kind in _HOST
        if (within_host or destination.kind is MemoryKind.PAGEABLE) and stream.capture is None:
            world.streams.synchronize_stream(stream)
        return Done()

    def stage(self, operation: ops.Stage) -> Outcome:
        """Allocate a device block and bring the source to it."""
        world = self._world
        source = world.block(operation.source)
        stream = world.stream(operation.stream)
        world.streams.require(stream)
        if stream.is_default:
            world.captures.forbid_default_of(stream.device)
        if source.kind is MemoryKind.DEVICE:
            raise CallRejected(INVALID_VALUE)
        block = world.stager.stage(source, world.device_pools[world.device], stream)
        world.keep(operation.slot, block)
        return Allocated(block.address)

    def fill(self, operation: ops.Fill) -> Outcome:
        """Enqueue a fill of one block."""
        self._use((self._world.block(operation.slot),), self._world.stream(operation.stream))
        return Done()

    def launch(self, operation: ops.Launch) -> Outcome:
        """Launch a kernel on a stream, or on an instance's stream."""
        world = self._world
        named = (*operation.reads, *operation.writes)
        blocks = [world.block(slot) for slot in named if slot not in world.empty_slots]  # a kernel may be given null
        if operation.instance is not None:
            stream = world.instance(operation.instance).stream
        else:
            stream = world.stream(operation.stream)
        world.streams.require(stream)
        memory = world.launcher.prepare(operation.argument_bytes, stream)
        self._use(blocks, stream)
        if memory is not None:
            memory.release(stream)
        return Done()

    def _use(self, blocks: Sequence[Block], stream: Stream) -> None:
        self._world.streams.require(stream)
        use(blocks, self._world.streams, stream)

    def create_pool(self, operation: ops.CreatePool) -> Outcome:
        """Create a pool above the current device's memory."""
        world = self._world
        backing = world.device_backings[world.device]
        world.pools[operation.slot] = world.new_pool(backing, operation.limit_bytes)
        return Done()

    def destroy_pool(self, operation: ops.DestroyPool) -> Outcome:
        """Destroy a pool; blocks that are still out die with it."""
        world = self._world
        pool = world.pool(operation.slot)
        pool.release()
        del world.pools[operation.slot]
        for slot in [slot for slot, block in world.blocks.items() if block.owner is pool]:
            del world.blocks[slot]
        return Done()

    def inject(self, operation: ops.InjectFailure) -> Outcome:
        """Arm a failure."""
        if operation.nth < 1:
            raise CallRejected(INVALID_VALUE)
        self._world.injector.arm(operation.point, operation.nth, operation.error)
        return Done()


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


class RuntimeCalls:
    """Lifecycle and tape operations on a :class:`World`."""

    def __init__(self, world: World) -> None:
        self._world = world

    def initialize(self, operation: ops.Initialize) -> Outcome:
        """Initialise the runtime."""
        self._world.lifecycle.initialize()
        return Done()

    def finalize(self, operation: ops.Finalize) -> Outcome:
        """Finalise the runtime."""
        self._world.lifecycle.finalize()
        return Done()

    def create_instance(self, operation: ops.CreateInstance) -> Outcome:
        """Create an instance on a given stream, or on one of its own."""
        self._make(operation.slot, operation.stream)
        return Done()

    def _make(self, slot: str, stream_slot: str | None) -> None:
        world = self._world
        if stream_slot is None:
            stream = world.streams.create_stream(f"internal:{slot}", world.device)
        else:
            stream = world.stream(stream_slot)
            world.streams.require(stream)
        world.instances[slot] = world.launcher.create_instance(slot, stream, owned=stream_slot is None)

    def destroy_instance(self, operation: ops.DestroyInstance) -> Outcome:
        """Finalise an instance."""
        world = self._world
        world.launcher.destroy_instance(world.instance(operation.slot))
        del world.instances[operation.slot]
        return Done()

    def partition(self, operation: ops.Partition) -> Outcome:
        """Make one instance for each slot."""
        world = self._world
        if operation.instance is None:
            world.lifecycle.require_initialized()
        else:
            world.instance(operation.instance)
        for slot in operation.slots:
            self._make(slot, None)
        return Done()

    def create_policy(self, operation: ops.CreatePolicy) -> Outcome:
        """Create and drop a policy."""
        if operation.instance is not None:
            self._world.instance(operation.instance)
        self._world.lifecycle.create_policy()
        return Done()

    def node(self, operation: ops.Node) -> Outcome:
        """Add a node to the tape."""
        self._world.tape.node(operation.slot, operation.parents)
        return Done()

    def hold(self, operation: ops.Hold) -> Outcome:
        """Hold a node once more."""
        self._world.tape.hold(operation.slot)
        return Done()

    def drop(self, operation: ops.Drop) -> Outcome:
        """Give a hold up."""
        self._world.tape.drop(operation.slot)
        return Done()

    def backward(self, operation: ops.Backward) -> Outcome:
        """Run a backward pass."""
        self._world.tape.backward(operation.slot)
        return Done()

    def collect(self, operation: ops.Collect) -> Outcome:
        """Free what nobody can reach."""
        self._world.tape.collect()
        return Done()

    def mark(self, operation: ops.Mark) -> Outcome:
        """Nothing to do: marks are remembered by whoever drives the backend."""
        return Done()

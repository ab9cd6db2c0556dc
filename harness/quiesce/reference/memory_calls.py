"""The operations on memory: allocate, free, trim, copy, stage, fill, launch, pools, injected failures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce import operations as ops
from quiesce.observations import CopyEnqueued
from quiesce.operations import MemoryKind
from quiesce.outcomes import INVALID_VALUE, Allocated, Done, Outcome
from quiesce.reference.calls import CallRejected
from quiesce.reference.objects import Block, Stream
from quiesce.reference.staging import use
from quiesce.reference.world import World

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

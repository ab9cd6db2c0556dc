"""Memory of the OpenCL backend: PyOpenCL's own pool over shared virtual memory, whose addresses are real.

The default allocator is what PyOpenCL's documentation shows: one ``SVMPool`` for each queue, bound to it, so that
reuse is ordered by the queue. A block used on another queue is rebound with ``bind_to_queue``, which orders that
queue behind the old one; the pool orders the next user behind the last in the same way. That a free comes after
the block's uses on yet other queues is left to the caller, and so done here: PyOpenCL would give memory back that
queued work still writes to, and this is the process that it would tear down.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from quiesce.backends.device_tables import BlockTable, Refused, pageable_array
from quiesce.backends.opencl.ledger import OpenClLedger
from quiesce.backends.opencl.streams import Event, Stream, Streams
from quiesce.model.outcomes import INVALID_HANDLE, INVALID_VALUE

if TYPE_CHECKING:
    import types

    import numpy
    import numpy.typing
    import pyopencl as cl
    from pyopencl.tools import PooledSVM, SVMPool

ALIGNMENT_BYTES: Final = 128
"""What ``clSVMAlloc`` guarantees by default: the size of the largest type, ``long16`` (OpenCL 3.0 API, clSVMAlloc)."""


@dataclass(slots=True, eq=False)
class Pool:
    """One pool; ``last_users`` names the stream of each cached block that was last bound to another queue."""

    svm: SVMPool
    home: Stream
    alive: bool = True
    last_users: dict[int, Stream] = field(default_factory=dict)

    def trim(self) -> None:
        """Give every cached block back to OpenCL, behind the work of the queue it was last bound to."""
        self.svm.free_held()
        self.last_users.clear()

    def retire(self) -> None:
        """Give every cached block back, and from now on every block as it is freed."""
        self.alive = False
        self.svm.stop_holding()
        self.last_users.clear()


@dataclass(slots=True, eq=False)
class DeviceBlock:
    """A block of a pool. ``address`` 0 with a size is PyOpenCL's answer where OpenCL had no memory to give."""

    pooled: PooledSVM
    size_bytes: int
    address: int
    stream: Stream
    pool: Pool
    users: set[Stream] = field(default_factory=set)
    """The streams that used the block; those are ordered before it goes, besides the one it is bound to."""


@dataclass(slots=True, eq=False)
class HostBlock:
    """Pageable host memory: a NumPy array, the streams that used it, and once it is freed what it waits for."""

    array: numpy.typing.NDArray[numpy.uint8]
    size_bytes: int
    address: int
    users: set[Stream] = field(default_factory=set)
    last_uses: list[Event] = field(default_factory=list)


Block: TypeAlias = DeviceBlock | HostBlock


class Memory(BlockTable[Block]):
    """All blocks and pools of one context, by slot."""

    def __init__(self, pyopencl: types.ModuleType, context: cl.Context, streams: Streams, ledger: OpenClLedger) -> None:
        super().__init__()
        self._cl = pyopencl
        self._context = context
        self._streams = streams
        self._ledger = ledger
        self._defaults: dict[Stream, Pool] = {}
        self._named: dict[str, Pool] = {}
        self._pools: list[Pool] = []
        self._leaving: list[HostBlock] = []

    # -- pools -----------------------------------------------------------------------------------------------------

    def _make_pool(self, home: Stream) -> Pool:
        flags = self._cl.svm_mem_flags.READ_WRITE
        allocator = self._cl.tools.SVMAllocator(self._context, flags=flags, queue=home.require())
        pool = Pool(self._cl.tools.SVMPool(allocator), home)
        self._pools = [pool for pool in self._pools if pool.alive or pool.svm.active_blocks]
        self._pools.append(pool)
        return pool

    def create_pool(self, slot: str, home: Stream) -> None:
        """Create a pool of its own, bound to the queue of ``home``."""
        if slot in self._named and self._named[slot].alive:
            raise Refused(INVALID_VALUE)
        self._named[slot] = self._make_pool(home)

    def find_pool(self, slot: str) -> Pool:
        """Return a living pool. Raises :class:`Refused`."""
        if slot not in self._named:
            raise Refused(INVALID_VALUE)
        if not self._named[slot].alive:
            raise Refused(INVALID_HANDLE)
        return self._named[slot]

    def destroy_pool(self, slot: str) -> None:
        """Drop a pool with everything that was allocated from it."""
        pool = self.find_pool(slot)
        for name, block in list(self._blocks.items()):
            if isinstance(block, DeviceBlock) and block.pool is pool:
                self.free(name, None)
        pool.retire()

    def retire_stream(self, stream: Stream) -> None:
        """Empty the default pool of a stream that is about to be destroyed."""
        if pool := self._defaults.pop(stream, None):
            pool.retire()

    def trim(self, slot: str | None) -> None:
        """Trim one pool, or (None) the default pools of all streams."""
        for pool in self._defaults.values() if slot is None else (self.find_pool(slot),):
            pool.trim()

    # -- blocks ----------------------------------------------------------------------------------------------------

    def allocate(self, slot: str, size_bytes: int, stream: Stream, pool_slot: str | None) -> DeviceBlock:
        """Take a block from a named pool, or from the default pool of ``stream``, for use on ``stream``."""
        self._require_unused(slot)
        queue = stream.require()
        if pool_slot is not None:
            pool = self.find_pool(pool_slot)
        elif stream in self._defaults:
            pool = self._defaults[stream]
        else:
            pool = self._defaults[stream] = self._make_pool(stream)
        pooled = pool.svm(size_bytes)
        address = int(pooled.svm_ptr)
        if last_user := pool.last_users.pop(address, None):
            pool.home.follow(last_user)
        if pool.home is not stream:
            pooled.bind_to_queue(queue)
            stream.follow(pool.home)
        block = DeviceBlock(pooled, size_bytes, address, stream, pool)
        self._blocks[slot] = block
        return block

    def allocate_host(self, slot: str, size_bytes: int) -> HostBlock:
        """Allocate pageable host memory. Raises :class:`MemoryError` where there is none."""
        self._require_unused(slot)
        block = self._make_host_block(size_bytes)
        self._blocks[slot] = block
        return block

    def _make_host_block(self, size_bytes: int) -> HostBlock:
        array, address = pageable_array(size_bytes, ALIGNMENT_BYTES)
        self._ledger.note_host_allocation(address, size_bytes)
        return HostBlock(array, size_bytes, address)

    def free(self, slot: str, stream: Stream | None) -> None:
        """Give a block back, ordered behind ``stream`` (None: the stream it is bound to)."""
        block = self.find(slot)
        if isinstance(block, DeviceBlock):
            self._order_free(block, stream or block.stream)
            block.pooled.release()
            if block.address and block.stream is not block.pool.home and block.pool.alive:
                block.pool.last_users[block.address] = block.stream
        else:
            self._let_go(block)
        del self._blocks[slot]

    def _order_free(self, block: DeviceBlock, stream: Stream) -> None:
        """Bind a block to the stream that frees it, behind every use; a dead stream leaves that to the default one."""
        if stream.handle is None and block.users - {stream}:
            stream = self._streams.default
        if stream is not block.stream:
            block.pooled.bind_to_queue(stream.require())
            stream.follow(block.stream)
            block.stream = stream
        for user in sorted(block.users - {stream}, key=lambda user: user.name):
            self._streams.wait(self._streams.mark(user), stream)

    def _let_go(self, block: HostBlock) -> None:
        users = sorted(block.users, key=lambda user: user.name)
        block.last_uses = [self._streams.mark(user) for user in users]
        self._leaving.append(block)

    # -- work ------------------------------------------------------------------------------------------------------

    def _operand(self, block: Block) -> cl.SVMPointer:
        if isinstance(block, DeviceBlock):
            return block.pooled
        operand: cl.SVMPointer = self._cl.SVM(block.array)
        return operand

    @staticmethod
    def _require_memory(*blocks: Block) -> None:
        if any(block.size_bytes and not block.address for block in blocks):
            raise Refused(INVALID_VALUE)

    @staticmethod
    def note_use(stream: Stream, *blocks: Block) -> None:
        """Remember that work was enqueued on ``stream`` that uses the blocks."""
        for block in blocks:
            block.users.add(stream)

    def sweep(self) -> None:
        """Let go of freed host memory whose last uses nothing holds back; they are awaited."""
        waiting = []
        for block in self._leaving:
            if any(use.pending() for use in block.last_uses):
                waiting.append(block)
                continue
            for use in block.last_uses:
                self._streams.synchronize_event(use)
            self._ledger.note_host_free(block.address, block.size_bytes, block.last_uses)
        self._leaving = waiting

    def copy(self, source: str, destination: str, size_bytes: int | None, stream: Stream) -> None:
        """Enqueue a copy between two blocks."""
        reader, writer, size_bytes = self._ends_of_copy(source, destination, size_bytes)
        self._require_memory(reader, writer)
        if size_bytes:
            self._copy(stream, reader, writer, size_bytes)

    def _copy(
        self,
        stream: Stream,
        reader: Block,
        writer: Block,
        size_bytes: int,
    ) -> None:
        queue = stream.require()
        operands = self._operand(writer), self._operand(reader)
        self._cl.enqueue_copy(queue, *operands, byte_count=size_bytes, is_blocking=False)
        queue.flush()
        self.note_use(stream, reader, writer)

    def stage(self, slot: str, source: str, stream: Stream) -> DeviceBlock:
        """Do what ``pyopencl.array.to_device`` does: take a block and copy the host data to it on the same queue."""
        reader = self.find(source)
        if not isinstance(reader, HostBlock):
            raise Refused(INVALID_VALUE)
        block = self.allocate(slot, reader.size_bytes, stream, None)
        if block.size_bytes and block.address:
            self._copy(stream, reader, block, block.size_bytes)
        return block

    def fill(self, slot: str, value: int, stream: Stream) -> None:
        """Enqueue a fill of a whole block."""
        import numpy

        block = self.find(slot)
        queue = stream.require()
        self._require_memory(block)
        if not block.size_bytes:
            return
        if isinstance(block, DeviceBlock):
            self._cl.enqueue_svm_memfill(queue, block.pooled, numpy.uint8(value))
            queue.flush()
            self.note_use(stream, block)
        else:  # OpenCL fills only its own memory: copy a filled array over the host block
            pattern = self._make_host_block(block.size_bytes)
            pattern.array.fill(value)
            self._copy(stream, pattern, block, block.size_bytes)
            self._let_go(pattern)

    def kernel_blocks(self, slots: tuple[str, ...]) -> list[DeviceBlock] | None:
        """Return the blocks that a kernel touches, empty ones left out; None where one of them is host memory."""
        blocks = [self.find(slot) for slot in slots]
        self._require_memory(*blocks)
        device_blocks = [block for block in blocks if isinstance(block, DeviceBlock)]
        if len(device_blocks) < len(blocks):
            return None
        return [block for block in device_blocks if block.size_bytes]

    # -- counts ----------------------------------------------------------------------------------------------------

    @property
    def _host_blocks(self) -> list[HostBlock]:
        return [block for block in self._blocks.values() if isinstance(block, HostBlock)]

    @property
    def live_bytes(self) -> int:
        """Bytes in use: the pools' own counters, and the host arrays."""
        return sum(pool.svm.active_bytes for pool in self._pools) + sum(block.size_bytes for block in self._host_blocks)

    @property
    def live_blocks(self) -> int:
        """Blocks in use: the pools' own counters, and the host arrays."""
        return sum(pool.svm.active_blocks for pool in self._pools) + len(self._host_blocks)

    @property
    def managed_bytes(self) -> int:
        """Bytes that the pools say they hold, used or cached."""
        return sum(pool.svm.managed_bytes for pool in self._pools)

    def close(self) -> None:
        """Give every block and every cached block back. All work must be complete."""
        for slot in tuple(self._blocks):
            self.free(slot, None)
        for pool in self._pools:
            pool.retire()
        self._pools.clear()
        self._defaults.clear()
        self._named.clear()
        self.sweep()

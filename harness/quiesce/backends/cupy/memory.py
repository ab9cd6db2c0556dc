"""Blocks of the CuPy backend and their kernel: device and managed blocks of CuPy's pools, pinned and pageable arrays.

CuPy's pools reuse a block in the order of the stream that it was allocated on, and of no other. So a free on another
stream does what CuPy asks its users to do: the stream of the allocation waits for the other one. Pinned blocks are
reused at once; whoever copies from one keeps it until the copy is done, and so does the backend for the copies that
the sequence asked for, with CuPy's own list of copies in flight. What ``asarray`` does for its copy is CuPy's affair.

The kernel that ``launch`` runs reads or writes the first byte of each declared block. It is compiled once per process
and device and loaded before anything is captured or stalled, because loading code may wait for the device. More blocks
than it takes go in several launches. Where nothing can be compiled, nothing is.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from quiesce.backends.cupy.ledger import Cupy, CupyLedger
from quiesce.backends.cupy.pools import PinnedPool
from quiesce.backends.cupy.streams import Stream, Streams, Unsupportable
from quiesce.backends.cupy.versions import ALIGNMENT_BYTES
from quiesce.backends.device_tables import BlockTable, Refused, pageable_array
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import INVALID_VALUE

_BETWEEN: Final = {(False, False): 0, (False, True): 1, (True, False): 2, (True, True): 3}
"""``cudaMemcpyKind`` and ``hipMemcpyKind`` by whether source and destination are on the device."""


@dataclass(slots=True, eq=False)
class DeviceBlock:
    """A block of a pool; ``owner`` is CuPy's pointer or array, and dropping it gives the block back."""

    owner: Any
    address: int
    size_bytes: int
    kind: MemoryKind
    stream: Stream
    pool: str | None = None


@dataclass(slots=True, eq=False)
class HostBlock:
    """Pinned or pageable memory as a NumPy array; ``users`` are the streams with copies that the sequence asked for.

    ``ends`` are events behind the uses on streams that were destroyed meanwhile.
    """

    array: Any
    address: int
    size_bytes: int
    kind: MemoryKind
    users: set[Stream] = field(default_factory=set)
    ends: list[Any] = field(default_factory=list)


Block: TypeAlias = DeviceBlock | HostBlock


class Memory(BlockTable[Block]):
    """All blocks of one context, by slot. Sizes in bytes."""

    def __init__(self, cupy: Cupy, pools: Any, pinned: PinnedPool, streams: Streams, ledger: CupyLedger) -> None:
        super().__init__()
        self._cupy = cupy
        self._pools = pools
        self._pinned = pinned
        self._streams = streams
        self._ledger = ledger
        self._kept: list[tuple[Any, Any]] = []

    # -- blocks ----------------------------------------------------------------------------------------------------

    def allocate(self, slot: str, size_bytes: int, kind: MemoryKind, stream: Stream, pool: str | None) -> int:
        """Take a block from a pool in the order of ``stream``; return its address."""
        self._require_unused(slot)
        allocator = self._pools.allocator(kind, pool)
        with stream.require():
            pointer = allocator(size_bytes)
        block = DeviceBlock(pointer, int(pointer.ptr), size_bytes, kind, stream, pool)
        self._blocks[slot] = block
        return block.address

    def allocate_host(self, slot: str, size_bytes: int, kind: MemoryKind) -> int:
        """Take pinned memory from CuPy or pageable memory from NumPy; return its address."""
        self._require_unused(slot)
        is_pinned = kind is MemoryKind.PINNED
        array = self._pinned_array(size_bytes) if is_pinned else pageable_array(size_bytes, ALIGNMENT_BYTES)[0]
        block = HostBlock(array, int(array.ctypes.data) if size_bytes else 0, size_bytes, kind)
        if kind is MemoryKind.PAGEABLE and size_bytes:
            self._ledger.note_host_allocation(block.address, size_bytes)
        self._blocks[slot] = block
        return block.address

    def _pinned_array(self, size_bytes: int) -> Any:
        import numpy

        pointer = self._pinned.allocate(size_bytes)
        return numpy.frombuffer(pointer, numpy.uint8, size_bytes) if size_bytes else numpy.empty(0, numpy.uint8)

    def stage(self, slot: str, source: str, stream: Stream) -> int:
        """Bring a NumPy array to the device with ``cupy.asarray``; return the new block's address."""
        self._require_unused(slot)
        reader = self.find(source)
        if not isinstance(reader, HostBlock):
            if reader.kind is MemoryKind.DEVICE:
                raise Refused(INVALID_VALUE)  # asarray would return the same array
            raise Unsupportable("CuPy stages from NumPy arrays")
        if self._is_taken_for_pinned(reader):
            self._streams.end_all()  # the copy reads pageable memory, and waits for the stream
        self._streams.follow_default(stream)
        allocator = self._pools.allocator(MemoryKind.DEVICE, None)
        with warnings.catch_warnings(), self._cupy.cuda.using_allocator(allocator), self._pinned.current():
            # "Using synchronous transfer as pinned memory could not be allocated"
            warnings.simplefilter("ignore", self._cupy._util.PerformanceWarning)
            with stream.require():
                array = self._cupy.asarray(reader.array)
        block = DeviceBlock(array, int(array.data.ptr), reader.size_bytes, MemoryKind.DEVICE, stream)
        self._blocks[slot] = block
        return block.address

    def _is_taken_for_pinned(self, block: HostBlock) -> bool:
        """Whether CuPy takes pageable memory for pinned and copies from it directly, as it does on ROCm since 14."""
        if block.kind is MemoryKind.PINNED or not block.size_bytes or not self._streams.is_stalled:
            return False
        asks = getattr(self._cupy.cuda.pinned_memory, "is_memory_pinned", None)
        try:
            return asks is not None and bool(asks(block.address))
        except self._cupy.cuda.runtime.CUDARuntimeError:
            return False  # asarray will fail in the same way

    def free(self, slot: str, stream: Stream | None) -> None:
        """Give a block back, ordered behind ``stream`` (None: the stream that it was allocated on)."""
        block = self.find(slot)
        if isinstance(block, DeviceBlock):
            self._order_free(block, stream)
        elif block.kind is MemoryKind.PINNED:
            self._keep_until_done(block)
        del self._blocks[slot]
        if block.kind is MemoryKind.PAGEABLE and block.size_bytes:
            self._ledger.note_host_free(block.address, block.size_bytes)

    def _order_free(self, block: DeviceBlock, stream: Stream | None) -> None:
        """Make the stream of the allocation wait for the one that frees; captured work cannot be waited for."""
        home = block.stream
        if stream is None or stream is home or home.handle is None:
            return
        if not (self._streams.is_captured(stream) or self._streams.is_captured(home)):
            self._streams.wait(self._streams.mark(stream), home)

    def _keep_until_done(self, block: HostBlock) -> None:
        """Leave a pinned block with CuPy until the copies that the sequence asked for are done."""
        ends = [*block.ends]
        for user in sorted(block.users, key=lambda user: user.name):
            if user.handle is not None and not self._streams.is_captured(user):
                ends.append(self._streams.mark(user).handle)
        self._kept += [(end, block.array) for end in ends]
        self.settle()

    def settle(self) -> None:
        """Hand over what is kept behind copies. CuPy asks their events, which is illegal while anything is captured."""
        if not self._streams.capturing:
            for end, array in self._kept:
                self._cupy.cuda.pinned_memory._add_to_watch_list(end, array)
            self._kept.clear()

    def retire_stream(self, stream: Stream) -> None:
        """Note the end of the work of a stream that is about to be destroyed."""
        used = [block for block in self._blocks.values() if isinstance(block, HostBlock) and stream in block.users]
        if used and not self._streams.is_captured(stream):
            end = self._streams.mark(stream).handle
            for block in used:
                block.ends.append(end)
        for block in used:
            block.users.discard(stream)

    def note_idle(self, *streams: Stream) -> None:
        """Note that the host has waited for all work of some streams: it uses no block any more."""
        for block in self._blocks.values():
            if isinstance(block, HostBlock):
                block.users.difference_update(streams)

    def free_pool(self, pool: str) -> None:
        """Give back everything that was allocated from a pool."""
        for slot, block in list(self._blocks.items()):
            if isinstance(block, DeviceBlock) and block.pool == pool:
                self.free(slot, None)

    # -- work ------------------------------------------------------------------------------------------------------

    def copy(self, source: str, destination: str, size_bytes: int | None, stream: Stream) -> None:
        """Enqueue a copy between two blocks."""
        reader, writer, size_bytes = self._ends_of_copy(source, destination, size_bytes)
        if not size_bytes:
            return
        if MemoryKind.PAGEABLE in (reader.kind, writer.kind):
            self._streams.end_all()
        self._streams.follow_default(stream)
        between = _BETWEEN[isinstance(reader, DeviceBlock), isinstance(writer, DeviceBlock)]
        handle = stream.require()
        self._cupy.cuda.runtime.memcpyAsync(writer.address, reader.address, size_bytes, between, handle.ptr)
        note_use(stream, reader, writer)

    def fill(self, slot: str, value: int, stream: Stream) -> None:
        """Enqueue a fill of a whole block; pageable memory is filled by the host, behind the stream's work."""
        block = self.find(slot)
        handle = stream.require()
        if not block.size_bytes:
            return
        if block.kind is MemoryKind.PAGEABLE and isinstance(block, HostBlock):
            if self._streams.capturing:
                raise Unsupportable("the host fills pageable memory, and cannot while a stream is being captured")
            self._streams.end_all()
            self._streams.synchronize(stream)
            self._ledger.note_stream_synchronized(handle.name)
            block.array.fill(value)
            return
        self._streams.follow_default(stream)
        self._cupy.cuda.runtime.memsetAsync(block.address, value, block.size_bytes, handle.ptr)
        note_use(stream, block)

    def kernel_blocks(self, slots: tuple[str, ...]) -> list[Block]:
        """Return the blocks that a kernel touches, empty ones left out."""
        blocks = [self.find(slot) for slot in slots]
        if any(block.kind is MemoryKind.PAGEABLE for block in blocks):
            raise Unsupportable("a kernel does not reach pageable memory")
        return [block for block in blocks if block.size_bytes]

    def close(self) -> None:
        """Give every block back. All work must be complete."""
        for slot in tuple(self._blocks):
            self.free(slot, None)


def note_use(stream: Stream, *blocks: Block) -> None:
    """Remember that work on ``stream`` reads or writes the blocks."""
    for block in blocks:
        if isinstance(block, HostBlock) and block.kind is MemoryKind.PINNED:
            block.users.add(stream)


BLOCKS_PER_LAUNCH: Final = 8
ARGUMENT_BYTES_MAX: Final = 4096
"""What every CUDA and HIP device takes (CUDA C++ Programming Guide, "__global__ Function Parameters")."""

_OWN_ARGUMENT_BYTES: Final = 8 * BLOCKS_PER_LAUNCH + 4


def _source(padding_bytes: int) -> str:
    slots = range(BLOCKS_PER_LAUNCH)
    # volatile: a value that nobody uses is read all the same
    parameters = [f"volatile unsigned char *b{slot}" for slot in slots] + ["unsigned int written"]
    reads = [f"if (b{slot} && !(written >> {slot} & 1)) seen ^= *b{slot};" for slot in slots]
    writes = [f"if (b{slot} && (written >> {slot} & 1)) *b{slot} = seen;" for slot in slots]
    padding = ""
    if padding_bytes:
        padding = f"struct Padding {{ unsigned char bytes[{padding_bytes}]; }};\n"
        parameters.append("Padding padding")
        reads.append("seen ^= padding.bytes[0];")
    body = " ".join(["unsigned char seen = 0;", *reads, *writes])
    return f'{padding}extern "C" __global__ void touch({", ".join(parameters)}) {{ {body} }}\n'


class Kernels:
    """Compiled kernels of one process, by device and by the bytes of further arguments."""

    def __init__(self, cupy: Cupy) -> None:
        self._cupy = cupy
        self._built: dict[tuple[int, int], Any] = {}

    def is_built(self, device: int, argument_bytes: int) -> bool:
        """Whether a launch with these arguments needs no compiler and loads no code."""
        return (device, _padding(argument_bytes)) in self._built

    def build(self, device: int, argument_bytes: int) -> None:
        """Compile and load the kernel for the current ``device``. Raises what CuPy raises where it cannot."""
        padding_bytes = _padding(argument_bytes)
        kernel = self._cupy.RawKernel(_source(padding_bytes), "touch")
        kernel.compile()
        self._built[device, padding_bytes] = kernel

    def launch(self, device: int, reads: list[Block], writes: list[Block], argument_bytes: int) -> None:
        """Launch one thread on CuPy's current stream. It reads and writes blocks as declared."""
        import numpy

        padding_bytes = _padding(argument_bytes)
        kernel = self._built[device, padding_bytes]
        touched = [(block.address, 0) for block in reads] + [(block.address, 1) for block in writes]
        for batch in _batches(touched):
            addresses = [address for address, _ in batch] + [0] * (BLOCKS_PER_LAUNCH - len(batch))
            written = sum(is_written << slot for slot, (_, is_written) in enumerate(batch))
            arguments = [*map(numpy.uint64, addresses), numpy.uint32(written)]
            if padding_bytes:
                arguments.append(numpy.zeros(1, numpy.dtype((numpy.void, padding_bytes))))
            kernel((1,), (1,), tuple(arguments))


def _padding(argument_bytes: int) -> int:
    return max(0, argument_bytes - _OWN_ARGUMENT_BYTES)


def _batches(touched: list[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    """Return what each launch touches; one that touches nothing is a launch all the same."""
    starts = range(0, max(1, len(touched)), BLOCKS_PER_LAUNCH)
    return [touched[start : start + BLOCKS_PER_LAUNCH] for start in starts]

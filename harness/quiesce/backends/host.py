"""The host backend: the C heap of this process, driven operation by operation.

The C library is the device here and :class:`HeapContext` the thinnest allocator that can stand on it: one block,
one call, nothing cached. Its claims are counted by slot, and the ledger by address at the C library's door
(:mod:`quiesce.backends.c_heap`, which says why not by the C library's statistics).

What it does not offer, and why: streams and events, since everything it does is done when it returns; ``trim``,
since it caches nothing (the C library does, and what it gives back to the system can't be told from what the
interpreter's own blocks gave back); pinned and managed memory, which a C heap does not have.

The C heap has no capacity of its own either: Linux promises more memory than there is. So :class:`LimitingContext`
refuses what goes beyond the profile's capacity, on the very request that asks for too much.

A block's edges are filled when it is made and checked when it is used or freed, so damage by anybody in the
process is found; damaged blocks are never freed, because glibc ends the process when it meets a damaged chunk.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from quiesce.backends.c_heap import CHeap, c_library, identify_provider
from quiesce.model.backend import (
    Backend,
    BackendFault,
    Capability,
    Closing,
    Context,
    Description,
    DeviceProfile,
    Promise,
    Reply,
)
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import BackingRefused, DeviceSynchronized, Observation
from quiesce.model.operations import (
    Allocate,
    Copy,
    Fill,
    Free,
    Mark,
    MemoryKind,
    Operation,
    SelectDevice,
    Slot,
    SynchronizeDevice,
)
from quiesce.model.outcomes import (
    ILLEGAL_STATE,
    INVALID_VALUE,
    Allocated,
    Done,
    Outcome,
    OutOfMemory,
    Rejected,
    Unsupported,
)
from quiesce.model.wording import bytes_in_words


class Limiting:
    """``wrapped``, within ``DeviceProfile.capacity_bytes`` of device memory, counted as it was asked for."""

    def __init__(self, wrapped: Backend) -> None:
        self._wrapped = wrapped

    def describe(self) -> Description:
        """Say what the wrapped backend says, with a capacity that is honoured. Raises what it raises."""
        backing = self._wrapped.describe()
        return replace(
            backing,
            capabilities=backing.capabilities | {Capability.CAPACITY},
            promises=backing.promises | {Promise.CAPACITY_LIMIT},
        )

    def open(self, profile: DeviceProfile) -> Context:
        """Open the wrapped backend and limit it. Raises what the wrapped backend raises."""
        observed = Capability.BACKING_LEDGER in self._wrapped.describe().capabilities
        return LimitingContext(self._wrapped.open(profile), profile.capacity_bytes, observed=observed)


class LimitingContext:
    """An opened backend within a limit. ``observed``: a refusal is shown in the reply, as in the backend's ledger."""

    def __init__(self, wrapped: Context, capacity_bytes: int, *, observed: bool) -> None:
        self._wrapped = wrapped
        self._capacity_bytes = capacity_bytes
        self._observed = observed
        self._held: dict[Slot, int] = {}
        self._held_bytes = 0

    def perform(self, operation: Operation) -> Reply:
        """Refuse an allocation that does not fit; leave everything else to the wrapped backend."""
        if isinstance(operation, Allocate) and operation.kind is MemoryKind.DEVICE:
            size_bytes = operation.size_bytes
            if self._held_bytes + size_bytes > self._capacity_bytes:
                return Reply(OutOfMemory(), (BackingRefused(size_bytes),) if self._observed else ())
            reply = self._wrapped.perform(operation)
            if isinstance(reply.outcome, Allocated):
                self._held[operation.slot] = size_bytes
                self._held_bytes += size_bytes
            return reply
        reply = self._wrapped.perform(operation)
        if isinstance(operation, Free) and isinstance(reply.outcome, Done):
            self._held_bytes -= self._held.pop(operation.slot, 0)
        return reply

    def readings(self) -> Readings:
        """Read the wrapped backend's gauges."""
        return self._wrapped.readings()

    def close(self) -> Closing:
        """Close the wrapped backend."""
        return self._wrapped.close()


EDGE_BYTES: Final = 64
"""How much of either end of a block is filled and checked: enough for an overrun, and the same for every size."""

_GAUGES: Final[Mapping[Gauge, frozenset[Source]]] = {
    Gauge.LIVE: frozenset(Source),
    Gauge.BLOCKS: frozenset(Source),
    Gauge.RESERVED: frozenset({Source.LEDGER}),
    Gauge.RETAINED: frozenset({Source.LEDGER}),
    Gauge.BACKING_CALLS: frozenset({Source.LEDGER}),
}


@dataclass(slots=True)
class _Block:
    """A block that the sequence owns, and what its edges must hold."""

    address: int
    size_bytes: int
    edges: tuple[bytes, bytes] = (b"", b"")
    damaged: bool = False

    @property
    def edge_bytes(self) -> int:
        return min(self.size_bytes, EDGE_BYTES)

    @property
    def tail_address(self) -> int:
        return self.address + self.size_bytes - self.edge_bytes

    def read_edges(self) -> tuple[bytes, bytes]:
        length = self.edge_bytes
        return ctypes.string_at(self.address, length), ctypes.string_at(self.tail_address, length)

    def sign(self, serial: int) -> None:
        """Fill both edges with ``serial``, which no other block carries, so that shared memory shows."""
        signature = serial.to_bytes(8, "little") * (EDGE_BYTES // 8)
        ctypes.memmove(self.address, signature, self.edge_bytes)
        ctypes.memmove(self.tail_address, signature, self.edge_bytes)
        self.edges = self.read_edges()


class HeapContext:
    """An opened C heap."""

    def __init__(self, heap: CHeap) -> None:
        self._heap = heap
        self._blocks: dict[Slot, _Block] = {}
        self._live_bytes = 0
        self._serial = 0
        self._wrote = False
        self._closed = False

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation; raises :class:`quiesce.model.backend.BackendFault` when a block was damaged."""
        before = self._take_completion()
        outcome = Rejected(ILLEGAL_STATE) if self._closed else self._answer(operation)
        return Reply(outcome, before + self._heap.take())

    def _take_completion(self) -> tuple[Observation, ...]:
        """Say, before anything else happens, that the copy or fill just before this is complete: the host waited."""
        wrote, self._wrote = self._wrote, False
        return (DeviceSynchronized(),) if wrote else ()

    def _answer(self, operation: Operation) -> Outcome:
        match operation:
            case Allocate(stream=None, pool=None, kind=MemoryKind.DEVICE | MemoryKind.PAGEABLE):
                return self._allocate(operation)
            case Allocate(stream=None, pool=None):
                return Unsupported(f"a C heap has no {operation.kind} memory")
            case Free(slot, None):
                return self._free(slot)
            case Copy(stream=None):
                return self._copy(operation)
            case Fill(slot, value, None):
                return self._fill(slot, value)
            case SelectDevice(0) | SynchronizeDevice() | Mark():
                return Done()
        return Unsupported("a C heap is one device without streams, pools or anything else of a GPU's runtime")

    def _allocate(self, request: Allocate) -> Outcome:
        if request.slot in self._blocks:
            return Rejected(INVALID_VALUE)
        address = self._heap.allocate(request.size_bytes, request.alignment_bytes, request.kind)
        if address is None:
            return OutOfMemory()
        block = _Block(address, request.size_bytes)
        self._blocks[request.slot] = block
        self._live_bytes += block.size_bytes
        self._serial += 1
        block.sign(self._serial)
        return Allocated(address)

    def _free(self, slot: Slot) -> Outcome:
        if slot not in self._blocks:
            return Rejected(INVALID_VALUE)
        self._inspect(slot)
        self._give_back(slot)
        return Done()

    def _give_back(self, slot: Slot) -> None:
        block = self._blocks.pop(slot)
        self._live_bytes -= block.size_bytes
        self._heap.free(block.address)

    def _copy(self, request: Copy) -> Outcome:
        if request.source not in self._blocks or request.destination not in self._blocks:
            return Rejected(INVALID_VALUE)
        source = self._inspect(request.source)
        destination = self._inspect(request.destination)
        smaller = min(source.size_bytes, destination.size_bytes)
        size_bytes = smaller if request.size_bytes is None else request.size_bytes
        if size_bytes > smaller:
            return Rejected(INVALID_VALUE)
        ctypes.memmove(destination.address, source.address, size_bytes)
        destination.edges = destination.read_edges()
        self._wrote = True
        return Done()

    def _fill(self, slot: Slot, value: int) -> Outcome:
        if slot not in self._blocks:
            return Rejected(INVALID_VALUE)
        block = self._inspect(slot)
        ctypes.memset(block.address, value, block.size_bytes)
        edge = bytes([value]) * block.edge_bytes
        block.edges = (edge, edge)
        self._wrote = True
        return Done()

    def _inspect(self, slot: Slot) -> _Block:
        """Return the block, or raise :class:`BackendFault` when its edges are not what the sequence left there."""
        block = self._blocks[slot]
        observed = block.read_edges()
        if observed == block.edges:
            return block
        block.damaged = True
        end, expected, found = next(
            (end, expected, found)
            for end, expected, found in zip(("first", "last"), block.edges, observed, strict=True)
            if expected != found
        )
        raise BackendFault(
            "block_contents_survive",
            f"the {end} {bytes_in_words(block.edge_bytes)} of '{slot}', which has {bytes_in_words(block.size_bytes)}, "
            "changed, although the sequence did not write them",
            f"expected {expected.hex()}\nobserved {found.hex()}\nthe block stays allocated: "
            "the C library ends the process when it frees a damaged one",
        )

    def readings(self) -> Readings:
        """Read every gauge: claims by slot, the ledger by address."""
        heap = self._heap
        return {
            (Gauge.LIVE, Source.CLAIM): self._live_bytes,
            (Gauge.LIVE, Source.LEDGER): heap.held_bytes,
            (Gauge.BLOCKS, Source.CLAIM): len(self._blocks),
            (Gauge.BLOCKS, Source.LEDGER): heap.blocks,
            (Gauge.RESERVED, Source.LEDGER): heap.device_bytes,
            (Gauge.RETAINED, Source.LEDGER): heap.blocks,
            (Gauge.BACKING_CALLS, Source.LEDGER): heap.calls,
        }

    def close(self) -> Closing:
        """Free every block that is whole, and read the gauges."""
        before = self._take_completion()
        if not self._closed:
            self._closed = True
            for slot in [slot for slot, block in self._blocks.items() if not block.damaged]:
                self._give_back(slot)
        return Closing(before + self._heap.take(), self.readings())


class Heap:
    """The C heap without a limit: it takes whatever the system promises."""

    def describe(self) -> Description:
        """Say what a C heap can do; raises :class:`BackendUnavailable` without glibc."""
        provider = identify_provider()
        return Description(
            name="host",
            version=provider.version,
            capabilities=frozenset(
                {
                    Capability.MEMORY,
                    Capability.ALIGNMENT,
                    Capability.PAGEABLE,
                    Capability.COPY,
                    Capability.FILL,
                    Capability.BACKING_LEDGER,
                }
            ),
            # nothing is cached, so nothing can be in the way of a request or take more than it
            promises=frozenset({Promise.RECLAIMS_BEFORE_OOM, Promise.EXACT_FOOTPRINT}),
            gauges=_GAUGES,
            alignment_bytes=provider.alignment_bytes,
            chunk_bytes=0,
            footprint_factor=1,
        )

    def open(self, profile: DeviceProfile) -> Context:
        """Open the heap.

        Raises :class:`BackendUnavailable` without glibc, and for a capacity that this machine does
        not have: Linux would promise it, and end the process when it is written to.
        """
        identify_provider()
        functions = c_library()
        physical_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        # untouched, a block of the whole capacity costs nothing; a limit on the process refuses it
        whole = functions.allocate(profile.capacity_bytes) if profile.capacity_bytes <= physical_bytes else None
        if whole is None:
            raise BackendUnavailable(
                "host",
                f"the profile's capacity of {bytes_in_words(profile.capacity_bytes)} can't be had here "
                f"(the machine has {bytes_in_words(physical_bytes)}, less what limits this process)",
                "choose a profile with a smaller capacity",
            )
        functions.free(whole)
        return HeapContext(CHeap(functions))


def backend() -> Backend:
    """Return the host backend: the C heap within the profile's capacity."""
    return Limiting(Heap())

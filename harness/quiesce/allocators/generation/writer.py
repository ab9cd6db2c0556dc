"""The writer of a sequence: it appends operations, keeps the state up to date, and picks what a byte points at.

A byte of 0 always picks the simplest thing: the newest block, the default stream, the first size. So sequences get
simpler as their bytes get smaller, and stay themselves when an operation far away is removed.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

from quiesce.allocators.generation.legality import may_free, may_use
from quiesce.allocators.generation.state import State
from quiesce.allocators.generation.things import Block, Event, Stream
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile
from quiesce.model.operations import MemoryKind, Operation, Slot

_Thing = TypeVar("_Thing")

STREAMS_MAX: Final = 5
EVENTS_MAX: Final = 6


class Writer:
    """Writes one sequence for a backend; ``sizes`` are the sizes in bytes that it likes best."""

    def __init__(self, description: Description, device: DeviceProfile, sizes: Sequence[int]) -> None:
        self.state = State(description, device)
        self.sizes = sizes
        self.written: list[Operation] = []
        self.capabilities = description.capabilities
        self.chunk_bytes = description.chunk_bytes
        self._numbers = itertools.count()
        limited = Capability.CAPACITY in description.capabilities
        self.full_bytes = device.capacity_bytes * 5 // 4 if limited else UNLIMITED_LIVE_BYTES_MAX
        """With more in hand than this, a sequence frees rather than allocates."""
        self.dead_blocks: list[Slot] = []
        self.dead_streams: list[Slot] = []

    def write(self, operation: Operation) -> None:
        """Append an operation."""
        self.written.append(operation)
        self.state.apply(operation)

    def fresh(self, kind: str) -> Slot:
        """Return a slot that nothing has had yet."""
        return f"{kind}{next(self._numbers)}"

    def can(self, *capabilities: Capability) -> bool:
        """Whether the backend has all of the capabilities."""
        return all(capability in self.capabilities for capability in capabilities)

    # -- picking ---------------------------------------------------------------------------------------------------

    def block(self, byte: int) -> Block | None:
        """Return a block that can be used on the current device, the newest for 0."""
        return self._among(self.state.blocks, byte)

    def _among(self, blocks: Mapping[Slot, Block], byte: int) -> Block | None:
        if self.state.profile.devices == 1:
            return newest(blocks.values(), byte)
        return newest([block for block in blocks.values() if self._is_within_reach(block)], byte)

    def _is_within_reach(self, block: Block) -> bool:
        """Whether work on the current device can use a block: its own memory, and what is no device's."""
        return block.device == self.state.device or block.kind is not MemoryKind.DEVICE

    def kernel_block(self, byte: int) -> Block | None:
        """Return a block that a kernel can use."""
        block = self.block(byte)
        if block is None or block.kind is not MemoryKind.PAGEABLE:
            return block
        usable = [each for each in self.state.blocks.values() if each.kind is not MemoryKind.PAGEABLE]
        return newest([each for each in usable if self._is_within_reach(each)], byte)

    def stream(self, byte: int) -> Stream:
        """Return a stream of the current device that is not being captured, the default one for 0."""
        state = self.state
        streams = [s for s in state.streams.values() if s.device == state.device and s.capture is None]
        if not state.captures:
            streams.insert(0, state.order.defaults[state.device])
        return streams[byte % len(streams)] if streams else state.captures[0].origin

    def working_stream(self, byte: int) -> Stream:
        """Return a stream to put work on: while there is a capture, mostly one that takes part."""
        captures = self.state.captures
        if captures and byte % 4:
            members = captures[0].members
            return members[byte % len(members)]
        return self.stream(byte)

    def named_stream(self, byte: int) -> Stream | None:
        """Return a stream of the sequence's own on the current device, the oldest for 0."""
        return pick([stream for stream in self.state.streams.values() if stream.device == self.state.device], byte)

    def event(self, byte: int) -> Event:
        """Return an event of the current device; a new one where there is none."""
        events = [event for event in self.state.events.values() if event.device == self.state.device]
        if not events or (byte % 8 == 7 and len(events) < EVENTS_MAX):
            slot = self.fresh("e")
            self.write(ops.CreateEvent(slot))
            return self.state.events[slot]
        return events[byte % len(events)]

    def size(self, byte: int) -> int:
        """Return a size in bytes: mostly one of those that the sequence likes, sometimes one beside it."""
        size = self.sizes[byte % len(self.sizes)]
        match byte >> 5:
            case 5:
                return size + 1
            case 6:
                return max(1, size - 1)
            case 7:
                return max(1, size >> (byte & 3))
        return size

    # -- order -----------------------------------------------------------------------------------------------------

    def order_use(self, block: Block, stream: Stream) -> bool:
        """Let ``stream`` come behind the allocation of ``block``; return whether that can be had."""
        if stream.capture is not None or may_use(self.state, block, stream):
            return True
        return self._order(block.stream, stream) and may_use(self.state, block, stream)

    def order_free(self, block: Block, stream: Stream) -> bool:
        """Let a free on ``stream`` come behind what it has to; return whether that can be had."""
        if may_free(self.state, block, stream):
            return True
        if block.kind is MemoryKind.DEVICE:
            for user in (block.stream, *list(block.uses)):
                if user is not stream and not self._order(user, stream):
                    break
        if not may_free(self.state, block, stream) and not self.state.captures:
            self.synchronize_device(block.device)
        return may_free(self.state, block, stream)

    def _order(self, first: Stream, then: Stream) -> bool:
        """Record an event on one stream and let the other wait for it, or wait for the first on the host."""
        state = self.state
        if state.captures and not (first.capture is None and then.capture is None and first.slot and then.slot):
            return False
        recordable = first.alive and (first.slot is not None or first in state.order.defaults)
        if recordable and first.device == then.device == state.device and self.can(Capability.EVENTS):
            event = self.event(0)
            self.write(ops.RecordEvent(event.slot, first.slot))
            self.write(ops.WaitEvent(event.slot, then.slot))
            return True
        if state.captures:
            return False
        self.synchronize_device(first.device)
        return self.can(Capability.STREAMS)

    def synchronize_device(self, device: int) -> None:
        """Wait for a device, where that can be had, and come back to the current one."""
        if not self.can(Capability.STREAMS):
            return
        before = self.state.device
        if before != device:
            self.write(ops.SelectDevice(device))
        self.write(ops.SynchronizeDevice())
        if before != device:
            self.write(ops.SelectDevice(before))


UNLIMITED_LIVE_BYTES_MAX: Final = 64 << 20


def pick(things: Sequence[_Thing], byte: int) -> _Thing | None:
    """Return one of the things, the first for 0; None where there is none."""
    return things[byte % len(things)] if things else None


def newest(things: Iterable[_Thing], byte: int) -> _Thing | None:
    """Return one of the things, the last for 0; None where there is none."""
    ordered = list(things)
    return ordered[-1 - byte % len(ordered)] if ordered else None

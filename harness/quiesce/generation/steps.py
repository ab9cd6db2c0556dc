"""The steps that actions which reach a deep state in one record have in common."""

from __future__ import annotations

from typing import Final

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.things import Block, Stream
from quiesce.generation.writer import STREAMS_MAX, Writer
from quiesce.operations import MemoryKind, Slot

_SMALL_COPY_BYTES: Final = 4096
UNIT_BYTES: Final = 512
"""Blocks of whole units lie side by side on most allocators."""


def allocate_block(
    writer: Writer,
    size_bytes: int,
    stream: Stream,
    *,
    kind: MemoryKind = MemoryKind.DEVICE,
    pool: Slot | None = None,
    alignment_bytes: int | None = None,
) -> Block:
    """Allocate a block and return it."""
    slot = writer.fresh("b")
    on = stream.slot if kind is MemoryKind.DEVICE else None
    writer.write(ops.Allocate(slot, size_bytes, kind, alignment_bytes, stream=on, pool=pool))
    return writer.state.blocks[slot]


def work_on(writer: Writer, block: Block, stream: Stream) -> None:
    """Put work that uses a block on a stream, if the backend can do some."""
    if block.kind is MemoryKind.PINNED:
        if not writer.can(Capability.COPY, Capability.MEMORY):
            return
        size = min(_SMALL_COPY_BYTES, block.size_bytes)
        destination = allocate_block(writer, size, stream)
        writer.write(ops.Copy(block.slot, destination.slot, size, stream.slot))
    elif writer.can(Capability.LAUNCH) and writer.order_use(block, stream):
        writer.write(ops.Launch(writes=(block.slot,), stream=stream.slot))


def some_streams(writer: Writer, count: int, byte: int) -> list[Stream]:
    """Return so many streams of the current device, those of the sequence's own first, some of them made for it."""
    state = writer.state
    named = [stream for stream in state.streams.values() if stream.device == state.device]
    while len(named) < count and len(state.streams) < STREAMS_MAX:
        named.append(create_stream(writer, nonblocking=bool(byte & 1)))
    if not named:
        named = [state.order.defaults[state.device]]
    first = byte // 2 % len(named)
    return [*named[first:], *named[:first], *named][:count]


def stream_beside_default(writer: Writer, other: Stream) -> Stream | None:
    """Return a stream of the current device that the default one has no order with, and that is not ``other``."""
    state = writer.state
    streams = [stream for stream in state.streams.values() if stream.device == state.device and stream.nonblocking]
    found = next((stream for stream in streams if stream is not other), None)
    if found is None and len(state.streams) < STREAMS_MAX:
        return create_stream(writer, nonblocking=True)
    return found


def create_stream(writer: Writer, *, nonblocking: bool, slot: Slot | None = None) -> Stream:
    """Create a stream and return it; ``slot`` may be the name of one that is gone."""
    slot = slot or writer.fresh("s")
    writer.write(ops.CreateStream(slot, nonblocking=nonblocking))
    return writer.state.streams[slot]

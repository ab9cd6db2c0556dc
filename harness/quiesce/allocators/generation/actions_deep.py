"""Actions that reach a deep state in one record: memory freed in flight, reshaped; streams replaced; graphs' memory.

What a capture or a graph allocated, used and freed is theirs or comes back.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.generation.actions_memory import (
    UNIT_BYTES,
    allocate_block,
    create_stream,
    free_block,
    free_on,
    pool_slot,
    some_streams,
    stream_beside_default,
    work_on,
)
from quiesce.allocators.generation.things import Block, Stream
from quiesce.allocators.generation.writer import STREAMS_MAX, Writer, pick
from quiesce.model import operations as ops
from quiesce.model.backend import Capability
from quiesce.model.operations import CaptureMode, MemoryKind

_CAPABILITY: Final = {MemoryKind.PINNED: Capability.PINNED, MemoryKind.PAGEABLE: Capability.PAGEABLE}
_ELSEWHERE: Final = 2 | 16 | 32
"""The bits of a block in flight that put work on other streams than its own."""


def free_in_flight(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block with work on up to three streams, on a stalled one where that can be had; ask for as much again."""
    stream = some_streams(writer, 1 + (c >> 3 & 1), b)[-1]
    pinned = c & 4 and writer.can(Capability.PINNED, Capability.COPY)
    block = allocate_block(writer, writer.size(a), stream, kind=MemoryKind.PINNED if pinned else MemoryKind.DEVICE)
    if c & 1 and writer.can(Capability.STALL) and stream.slot is not None:
        writer.write(ops.Stall(stream.slot))
    work_on(writer, block, stream)
    others = some_streams(writer, 3 if c & 16 else 2, b)[1:] if c & 18 else []
    for other in others:
        work_on(writer, block, other)
    free_on(writer, block, others[-1] if c & 128 and others and not pinned else None)
    if c & 32:
        next_owner = some_streams(writer, 1 + (c >> 6 & 1), b)[-1]
        work_on(writer, allocate_block(writer, block.size_bytes, next_owner, kind=block.kind), next_owner)


def free_on_default(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block with work on the default stream, which another one holds; ask for as much where nothing waits.

    The default stream cannot be stalled, so one that can be holds it. Asked in the end, the next owner's stream may say
    that it is done, which the default stream then cannot be.
    """
    default = writer.state.order.defaults[writer.state.device]
    before = some_streams(writer, 1, b)[0]
    after = stream_beside_default(writer, before)
    if before.slot is None or after is None:
        return
    if c & 1 and writer.can(Capability.STALL):
        writer.write(ops.Stall(before.slot))
    if writer.can(Capability.EVENTS):
        event = writer.event(a)
        writer.write(ops.RecordEvent(event.slot, before.slot))
        writer.write(ops.WaitEvent(event.slot))
    pinned = c & 32 and writer.can(Capability.PINNED, Capability.COPY)
    kind = MemoryKind.PINNED if pinned else MemoryKind.DEVICE
    block = allocate_block(writer, writer.size(a), after if c & 8 else default, kind=kind)
    work_on(writer, block, default)
    if c & 16 and not before.stalled:  # which has no work behind this one: the wait says nothing of it
        writer.write(ops.SynchronizeStream(before.slot))
    free_on(writer, block, before if c & 2 and not pinned else None)
    work_on(writer, allocate_block(writer, block.size_bytes, after, kind=kind), after)
    if c & 4:
        writer.write(ops.QueryStream(after.slot))


def wait_too_early(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a stream or the host wait for a record older than work on a block; free that, and ask for as much there."""
    first, later = some_streams(writer, 2, b)
    if first is later:
        return
    block = allocate_block(writer, writer.size(a), later if b & 128 else first)
    if c & 1:
        work_on(writer, block, first)
    elif not writer.order_use(block, first):
        return
    event = writer.event(c >> 5)
    writer.write(ops.RecordEvent(event.slot, first.slot))
    wait = ops.SynchronizeEvent(event.slot) if c & 2 else ops.WaitEvent(event.slot, later.slot)
    if c & 4:
        writer.write(wait)
    if c & 8 and writer.can(Capability.STALL) and first.slot is not None:
        writer.write(ops.Stall(first.slot))
    work_on(writer, block, first)
    if not c & 4:
        writer.write(wait)
    free_block(writer, block)
    if c & 16:
        writer.write(ops.RecordEvent(event.slot, first.slot))
    _take_over(writer, block, later, first)


def run_graph_twice(writer: Writer, a: int, b: int, c: int) -> None:
    """Run one graph on two streams, free what it uses on one of them, and ask for as much there or on a third."""
    streams = some_streams(writer, 3, b)
    if len(set(streams)) < 3:
        return
    first, second, third = streams
    assert first.slot is not None
    block = allocate_block(writer, writer.size(a), first)
    graph = writer.fresh("g")
    writer.write(ops.BeginCapture(first.slot, CaptureMode.GLOBAL))
    work_on(writer, block, first)
    writer.write(ops.EndCapture(graph, first.slot))
    runs = (second, first) if c & 1 else (first, second)
    for stream in runs:
        if writer.order_use(block, stream):
            if c & 2 and stream is runs[c >> 2 & 1] and writer.can(Capability.STALL) and stream.slot is not None:
                writer.write(ops.Stall(stream.slot))
            writer.write(ops.LaunchGraph(graph, stream.slot))
    if c & 8:
        writer.write(ops.DestroyGraph(graph))
    free_on(writer, block, second if c & 16 else None)
    _take_over(writer, block, first if c & 32 else third, runs[c >> 2 & 1])


def _take_over(writer: Writer, block: Block, stream: Stream, stalled: Stream) -> None:
    """Ask for as much as a freed block had, use it, and ask who is done: a stream that is held cannot be."""
    work_on(writer, allocate_block(writer, block.size_bytes, stream), stream)
    if stalled.stalled:
        writer.write(ops.QueryStream(stream.slot))
        writer.write(ops.QueryStream(stalled.slot))


def reshape(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a large block follow on small ones that streams still use, or small ones of several streams on a large."""
    parts = 2 + c % 3
    small = -(-writer.size(a) // UNIT_BYTES) * UNIT_BYTES
    streams = some_streams(writer, parts, b)
    sizes, later = [small] * parts, [small * parts]
    if c & 64:
        sizes, later = later, sizes
    blocks = []
    for size, stream in zip(sizes, streams, strict=False):
        blocks.append(allocate_block(writer, size, stream))
        if c & 128 and writer.can(Capability.STALL) and stream.slot is not None:
            writer.write(ops.Stall(stream.slot))
        work_on(writer, blocks[-1], stream)
    for block in blocks:
        free_block(writer, block)
    for size, stream in zip(later, reversed(streams), strict=False):
        work_on(writer, allocate_block(writer, size, stream), stream)


def replace_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a stream with work on blocks that are freed before or after; ask for as much on a new or the default one.

    The new stream may have the old one's handle, and sometimes has its name. Another stream may still use the blocks
    when theirs is gone.
    """
    if len(writer.state.streams) >= STREAMS_MAX:
        return
    old = create_stream(writer, nonblocking=bool(c & 2))
    assert old.slot is not None
    size = writer.size(a)
    outlives = bool(c & 4)
    count = 1 + (c >> 3 & 3)
    pool = pool_slot(writer, a) if c & 128 else None
    blocks = [allocate_block(writer, size, writer.stream(b) if outlives else old, pool=pool) for _ in range(count)]
    if c & 1 and writer.can(Capability.STALL):
        writer.write(ops.Stall(old.slot))
    is_shared = c & 96 == 96
    others = some_streams(writer, 2, b) if is_shared else []
    users = [old, *(stream for stream in others if stream is not old)]
    for block in blocks:
        for user in users:
            work_on(writer, block, user)
    for block in () if outlives else blocks:
        free_block(writer, block)
    again = None
    if not writer.state.is_needed(old):
        writer.write(ops.DestroyStream(old.slot))
        if b & 2 and not is_shared:
            again = old.slot
        else:
            writer.dead_streams.append(old.slot)
    for block in blocks if outlives else ():
        free_block(writer, block)
    default = writer.state.order.defaults[writer.state.device]
    asker = default if is_shared else create_stream(writer, nonblocking=bool(b & 1), slot=again)
    for _ in range(count):
        work_on(writer, allocate_block(writer, size, asker, pool=pool), asker)


def stage_on_brief_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Stage a block on a stream that goes at once, whatever of the copy is left to do; then use buffers again.

    Some host memory is asked for that a staging buffer may have had, or staged, or trimmed.
    """
    kinds = [kind for kind in (MemoryKind.PINNED, MemoryKind.PAGEABLE) if writer.can(_CAPABILITY[kind])]
    if not kinds or len(writer.state.streams) >= STREAMS_MAX:
        return
    source = allocate_block(writer, writer.size(a), writer.stream(0), kind=kinds[c % len(kinds)])
    stream, slot = create_stream(writer, nonblocking=bool(c & 2)), writer.fresh("b")
    assert stream.slot is not None
    if c & 4 and writer.can(Capability.STALL):
        writer.write(ops.Stall(stream.slot))
    writer.write(ops.Stage(slot, source.slot, stream.slot))
    free_block(writer, writer.state.blocks[slot])
    if not writer.state.is_needed(stream):
        writer.write(ops.DestroyStream(stream.slot))
        writer.dead_streams.append(stream.slot)
    if c & 8 and writer.can(Capability.PINNED):
        allocate_block(writer, source.size_bytes, writer.stream(0), kind=MemoryKind.PINNED)
    if c & 16:
        other = allocate_block(writer, source.size_bytes, writer.stream(0), kind=source.kind)
        writer.write(ops.Stage(writer.fresh("b"), other.slot, writer.stream(b).slot))
    if c & 32 and writer.can(Capability.POOL, Capability.PINNED):
        writer.write(ops.Trim(MemoryKind.PINNED))


def settle_partly(writer: Writer, a: int, b: int, c: int) -> None:
    """Wait for one stream while others are busy, and trim."""
    for turn in range(2 - len(_busy(writer))):
        free_in_flight(writer, a, b + 2 * turn, c & ~_ELSEWHERE | (0 if turn else 1))
    stream = pick(_busy(writer), a)
    if stream is None:
        return
    writer.write(ops.SynchronizeStream(stream.slot))
    if c & 4 and writer.can(Capability.PINNED, Capability.POOL):
        writer.write(ops.Trim(MemoryKind.PINNED))
    elif writer.can(Capability.POOL):
        writer.write(ops.Trim(pool=pool_slot(writer, b)))


def _busy(writer: Writer) -> list[Stream]:
    """Return the sequence's own streams of the current device that the host has not waited for, newest first."""
    state = writer.state
    known = state.order.known
    streams = [stream for stream in state.streams.values() if stream.device == state.device]
    return [stream for stream in streams if stream.passed > known.get(stream, 0)][::-1]


def run_on_own_memory(writer: Writer, a: int, b: int, c: int) -> None:
    """Capture two owners of as much memory, on one stream or on two; run the graph, and ask for as much beside it.

    In the end the graph may go, and the stream that it ran on before, and somebody may ask for as much once more.
    """
    streams = some_streams(writer, 3, b)
    if len(set(streams)) < 3 or any(stream.stalled for stream in streams[:2]):
        return
    first, second, third = streams
    assert first.slot is not None
    graph, size = writer.fresh("g"), writer.size(a)
    writer.write(ops.BeginCapture(first.slot, CaptureMode.RELAXED if c & 1 else CaptureMode.GLOBAL))
    forks = bool(c & 2) and writer.can(Capability.EVENTS)
    if forks:
        _order(writer, first, second)
    owner, other = (second, first) if forks and b & 64 else (first, second)
    blocks = [_own(writer, size, owner)]
    if forks and c & 4:
        _order(writer, owner, other)
        work_on(writer, blocks[0], other)
        _order(writer, other, owner)
    free_block(writer, blocks[0])
    blocks.append(_own(writer, size, other if forks and c & 8 else owner))
    if c & 16:
        free_block(writer, blocks[1])
    if forks:
        _order(writer, second, first)
    writer.write(ops.EndCapture(graph, first.slot))
    runs_alone = bool(b & 128) and len(writer.state.streams) < STREAMS_MAX
    runner = create_stream(writer, nonblocking=True) if runs_alone else first if c & 32 else third
    for on in (runner, runner if b & 32 else first):
        if all(writer.order_use(block, on) for block in blocks):
            writer.write(ops.LaunchGraph(graph, on.slot))
        work_on(writer, allocate_block(writer, size, third), third)
    if blocks[1].alive:
        free_block(writer, blocks[1])
    if runs_alone and runner.slot is not None:
        writer.write(ops.DestroyStream(runner.slot))
        writer.dead_streams.append(runner.slot)
    if c & 64:
        writer.write(ops.DestroyGraph(graph))
        work_on(writer, allocate_block(writer, size, second if c & 128 else third), second if c & 128 else third)


def reuse_on_forks(writer: Writer, a: int, b: int, c: int) -> None:
    """Use a block on one fork of a capture and free it; ask for as much on another, behind that work or beside it."""
    streams = some_streams(writer, 3, b)
    if len(set(streams)) < 3 or any(stream.stalled for stream in streams):
        return
    first, second, third = streams
    assert first.slot is not None
    size, graph = writer.size(a), writer.fresh("g")
    writer.write(ops.BeginCapture(first.slot, CaptureMode.RELAXED if c & 1 else CaptureMode.GLOBAL))
    block = allocate_block(writer, size, first)
    _order(writer, first, second)
    _order(writer, first, third)
    if c & 2:
        work_on(writer, block, first)
    work_on(writer, block, second)
    if c & 4:
        work_on(writer, block, second)
    _order(writer, second, first)
    free_block(writer, block)
    if c & 8:
        _order(writer, first, third)
    _own(writer, size, third)
    _order(writer, third, first)
    writer.write(ops.EndCapture(graph, first.slot))


def fill_pool_in_capture(writer: Writer, a: int, b: int, c: int) -> None:
    """Capture allocations of a new pool, more than its limit if it has one; let graph and blocks go, and trim it."""
    (stream,) = some_streams(writer, 1, b)
    if stream.slot is None or stream.stalled:
        return
    pool, graph, size = writer.fresh("p"), writer.fresh("g"), writer.size(a)
    limited = bool(c & 1) and writer.can(Capability.POOL_LIMIT)
    writer.write(ops.CreatePool(pool, 2 * size if limited else None))
    writer.write(ops.BeginCapture(stream.slot, CaptureMode.GLOBAL))
    blocks = [allocate_block(writer, size, stream, pool=pool) for _ in range(3 if limited else 1 + (c >> 1 & 1))]
    work_on(writer, blocks[0], stream)
    within = blocks if c & 4 else blocks[1:]
    for block in within:
        free_block(writer, block)
    writer.write(ops.EndCapture(graph, stream.slot))
    if not c & 4:
        free_block(writer, blocks[0])
    if c & 8:
        writer.write(ops.DestroyGraph(graph))
    writer.synchronize_device(writer.state.device)
    writer.write(ops.Trim(pool=pool))
    if c & 16:
        writer.write(ops.DestroyPool(pool))


def lose_capture(writer: Writer, a: int, b: int, c: int) -> None:
    """Capture the owner of some memory, end the capture so that no graph comes of it, and trim."""
    streams = some_streams(writer, 2, b)
    if len(set(streams)) < 2 or any(stream.stalled for stream in streams):
        return
    first, second = streams
    assert first.slot is not None
    writer.write(ops.BeginCapture(first.slot, CaptureMode.GLOBAL))
    forks = bool(c & 1) and writer.can(Capability.EVENTS)
    if forks:
        _order(writer, first, second)
    block = _own(writer, writer.size(a), first)
    if forks and c & 2:
        work_on(writer, block, second)
        _order(writer, second, first)
    free_block(writer, block)
    if forks:
        _own(writer, writer.size(a), second)  # which nothing joins
    else:
        writer.write(ops.SynchronizeStream(first.slot))
    writer.write(ops.EndCapture(writer.fresh("g"), first.slot))
    writer.synchronize_device(writer.state.device)
    if writer.can(Capability.POOL):
        writer.write(ops.Trim())


def _own(writer: Writer, size_bytes: int, stream: Stream) -> Block:
    """Return a new block that ``stream`` uses."""
    block = allocate_block(writer, size_bytes, stream)
    work_on(writer, block, stream)
    return block


def _order(writer: Writer, before: Stream, after: Stream) -> None:
    event = writer.event(0)
    writer.write(ops.RecordEvent(event.slot, before.slot))
    writer.write(ops.WaitEvent(event.slot, after.slot))

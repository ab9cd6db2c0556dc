"""Actions for the memory of captures, and of graphs: what they allocated, used and freed, is theirs or comes back."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.actions_memory import free_block
from quiesce.generation.steps import allocate_block, create_stream, some_streams, work_on
from quiesce.generation.things import Block, Stream
from quiesce.generation.writer import STREAMS_MAX, Writer
from quiesce.operations import CaptureMode


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

"""Rules for graphs that run on memory of their own: what their capture allocated, used and freed."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.rules_memory import free_block
from quiesce.generation.steps import allocate_block, some_streams, work_on
from quiesce.generation.things import Block, Stream
from quiesce.generation.writer import Writer
from quiesce.operations import CaptureMode


def run_on_own_memory(writer: Writer, a: int, b: int, c: int) -> None:
    """Capture two owners of as much memory, on one stream or on two; run the graph, and ask for as much beside it.

    In the end the graph may go, and somebody may ask for as much once more.
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
    runner = first if c & 32 else third
    for _ in range(2):
        if all(writer.order_use(block, runner) for block in blocks):
            writer.write(ops.LaunchGraph(graph, runner.slot))
        work_on(writer, allocate_block(writer, size, third), third)
    if blocks[1].alive:
        free_block(writer, blocks[1])
    if c & 64:
        writer.write(ops.DestroyGraph(graph))
        work_on(writer, allocate_block(writer, size, second if c & 128 else third), second if c & 128 else third)


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
    free_block(writer, _own(writer, writer.size(a), first))
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

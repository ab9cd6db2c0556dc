"""Actions that propose misuse: requests that a backend has to refuse, or to survive where their answer is left open.

None of them is a race, and nothing that may or may not have happened is relied on afterwards.
"""

from __future__ import annotations

from typing import Final

from quiesce.allocators.cases import FOREIGN_SLOT
from quiesce.allocators.generation.actions_memory import (
    allocate_block,
    create_stream,
    free_block,
    some_streams,
    work_on,
)
from quiesce.allocators.generation.things import Block
from quiesce.allocators.generation.writer import STREAMS_MAX, Writer, newest, pick
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Initialization, Promise
from quiesce.model.operations import CaptureMode, MemoryKind
from quiesce.model.requests import SIZE_BYTES_MAX

_HUGE_BYTES: Final = (SIZE_BYTES_MAX, SIZE_BYTES_MAX - 510, SIZE_BYTES_MAX // 2 + 1, 1 << 50, SIZE_BYTES_MAX - 4096)
_BEYOND_32_BITS: Final = ((1 << 32) + 512, 1 << 32, (1 << 33) + 4096)
"""Sizes whose low 32 bits are small; only where the capacity is honoured are they certain to be refused."""


def double_free(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block twice."""
    slot = newest(writer.dead_blocks, a)
    if slot is None:
        foreign_pointer(writer, a, b, c)
        return
    stream = writer.named_stream(b) if c & 1 else None
    writer.write(ops.Free(slot, None if stream is None else stream.slot))


def use_after_free(writer: Writer, a: int, b: int, c: int) -> None:
    """Use a block that was freed."""
    slot, block = newest(writer.dead_blocks, a), writer.kernel_block(b)
    if slot is None:
        foreign_pointer(writer, a, b, c)
    elif c % 3 == 1 and writer.can(Capability.COPY) and block is not None:
        writer.write(ops.Copy(block.slot, slot))
    elif c % 3 == 2 and writer.can(Capability.LAUNCH):
        writer.write(ops.Launch(reads=(slot,)))
    elif writer.can(Capability.FILL):
        writer.write(ops.Fill(slot, 0))


def foreign_pointer(writer: Writer, a: int, b: int, c: int) -> None:
    """Name a block that nobody ever made."""
    if a % 3 == 1 and writer.can(Capability.FILL):
        writer.write(ops.Fill(FOREIGN_SLOT, 0))
    elif a % 3 == 2 and writer.can(Capability.STAGING):
        writer.write(ops.Stage(writer.fresh("b"), FOREIGN_SLOT))
    else:
        writer.write(ops.Free(FOREIGN_SLOT))


def free_on_dead_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Free a block on a stream that was destroyed."""
    stream, block = newest(writer.dead_streams, a), writer.block(b)
    if stream is None or block is None or block.kind is not MemoryKind.DEVICE or not _is_free_anyway(writer, block):
        dead_stream(writer, a, b, c)
    else:
        writer.write(ops.Free(block.slot, stream))


def _is_free_anyway(writer: Writer, block: Block) -> bool:
    """Whether a free is legal whenever it may happen: whether this one happens is left open."""
    return not writer.state.captures and writer.order_free(block, block.stream)


def dead_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Ask something of a stream that was destroyed."""
    stream = newest(writer.dead_streams, a)
    if stream is None:
        double_free(writer, a, b, c)
        return
    requests: list[ops.Operation] = [
        ops.DestroyStream(stream),
        ops.SynchronizeStream(stream),
        ops.QueryStream(stream),
    ]
    if writer.can(Capability.MEMORY):
        requests.append(ops.Allocate(writer.fresh("b"), writer.size(b), stream=stream))
    if writer.can(Capability.LAUNCH):
        requests.append(ops.Launch(stream=stream))
    if writer.can(Capability.STALL):
        requests.append(ops.Stall(stream))
    if writer.can(Capability.CAPTURE):
        requests.append(ops.BeginCapture(stream))
    if writer.can(Capability.EVENTS):
        requests.append(ops.RecordEvent(writer.event(b).slot, stream))
    writer.write(requests[c % len(requests)])


def orphan_blocks(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a stream with work on its blocks, some of them freed; ask for as much where its order is not known.

    It may go beside a capture. What is left of its blocks is freed afterwards, or stays.
    """
    if writer.state.captures or len(writer.state.streams) >= STREAMS_MAX:
        return
    old = create_stream(writer, nonblocking=bool(c & 1))
    assert old.slot is not None
    size = writer.size(a)
    blocks = [allocate_block(writer, size, old) for _ in range(2 + (c >> 1 & 1))]
    if c & 4 and writer.can(Capability.STALL):
        writer.write(ops.Stall(old.slot))
    for block in blocks:
        work_on(writer, block, old)
    kept = blocks[c >> 3 & 1]
    for block in blocks:
        if block is not kept:
            free_block(writer, block)
    beside = some_streams(writer, 1, b)[0] if c & 64 and writer.can(Capability.CAPTURE) else old
    if beside is not old and beside.slot is not None:
        writer.write(ops.BeginCapture(beside.slot, CaptureMode.GLOBAL))
    writer.write(ops.DestroyStream(old.slot))
    writer.dead_streams.append(old.slot)
    if writer.state.captures and beside.slot is not None:
        writer.write(ops.EndCapture(writer.fresh("g"), beside.slot))
    if c & 16:
        writer.write(ops.Free(kept.slot))
        writer.dead_blocks.append(kept.slot)
    if c & 128 and writer.can(Capability.POOL):
        writer.write(ops.Trim())
    asker = some_streams(writer, 1, b)[0] if c & 32 else writer.state.order.defaults[writer.state.device]
    for block in blocks:
        work_on(writer, allocate_block(writer, block.size_bytes, asker), asker)


def zero_size(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate nothing, or free it."""
    slot = newest(writer.state.empty_blocks, b)
    if slot is not None and a & 1:
        writer.write(ops.Free(slot))
    else:
        writer.write(ops.Allocate(writer.fresh("b"), 0))


def huge_size(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate more than there is; nothing uses the block, whatever the answer."""
    sizes = [*_HUGE_BYTES]
    if writer.can(Capability.CAPACITY):
        sizes += [*_BEYOND_32_BITS, writer.state.profile.capacity_bytes + 1]
    kinds = [MemoryKind.DEVICE]
    kinds += [MemoryKind.PINNED] if writer.can(Capability.PINNED) else []
    kinds += [MemoryKind.MANAGED] if writer.can(Capability.MANAGED) else []
    writer.written.append(ops.Allocate(writer.fresh("b"), sizes[a % len(sizes)], kinds[b % len(kinds)]))


def copy_too_long(writer: Writer, a: int, b: int, c: int) -> None:
    """Copy more than the smaller block holds."""
    source, destination = writer.block(a), writer.block(b)
    if source is None or destination is None or source is destination or writer.state.captures:
        double_free(writer, a, b, c)
        return
    smaller = min(source.size_bytes, destination.size_bytes)
    writer.write(ops.Copy(source.slot, destination.slot, smaller + (1 if c % 2 == 0 else smaller)))


def stage_device_memory(writer: Writer, a: int, b: int, c: int) -> None:
    """Stage from a block that is on the device already."""
    source = newest([block for block in writer.state.blocks.values() if block.kind is MemoryKind.DEVICE], a)
    if source is not None and not writer.state.captures:
        writer.write(ops.Stage(writer.fresh("b"), source.slot))


def misuse_pool(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a pool with blocks out, or use it afterwards."""
    pool = pick(list(writer.state.pools.values()), a)
    if pool is None or writer.state.captures:
        return
    if b % 2 == 0 and writer.can(Capability.STREAMS):
        writer.synchronize_device(pool.device)  # blocks die with the pool: no work may be left on them
    else:
        for block in [block for block in writer.state.blocks.values() if block.pool is pool]:
            if writer.order_free(block, block.stream):
                writer.write(ops.Free(block.slot))
    writer.dead_blocks += [block.slot for block in writer.state.blocks.values() if block.pool is pool]
    writer.write(ops.DestroyPool(pool.slot))
    requests: list[ops.Operation] = [
        ops.Allocate(writer.fresh("b"), writer.size(b), pool=pool.slot),
        ops.DestroyPool(pool.slot),
    ]
    if writer.can(Capability.POOL):
        requests.append(ops.Trim(pool=pool.slot))
    writer.write(requests[c % len(requests)])


def misuse_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Use an event that was destroyed."""
    event = writer.event(a)
    requests = (
        ops.QueryEvent(event.slot),
        ops.WaitEvent(event.slot),
        ops.RecordEvent(event.slot),
        ops.SynchronizeEvent(event.slot),
        ops.DestroyEvent(event.slot),
    )
    if not writer.state.captures:
        writer.write(ops.DestroyEvent(event.slot))
        writer.write(requests[c % 5])


def misuse_device(writer: Writer, a: int, b: int, c: int) -> None:
    """Select a device that is not there, record an event on another device than its own, or ask one for too much."""
    state = writer.state
    strangers = [event for event in state.events.values() if event.device != state.device]
    elsewhere = [stream for stream in state.streams.values() if stream.device != state.device]
    if a & 2 and elsewhere and not state.captures and writer.can(Capability.MEMORY):
        writer.write(ops.Allocate(writer.fresh("b"), _HUGE_BYTES[b % 5], stream=elsewhere[c % len(elsewhere)].slot))
        writer.write(ops.Allocate(writer.fresh("b"), writer.size(b)))
    elif a % 2 == 0 or not strangers or state.captures:
        writer.write(ops.SelectDevice(state.profile.devices))
    else:
        writer.write(ops.RecordEvent(strangers[b % len(strangers)].slot))


def misuse_capture(writer: Writer, a: int, b: int, c: int) -> None:
    """Make a call that a capture forbids."""
    state = writer.state
    capture = state.captures[0]
    origin = capture.members[0].slot
    member = capture.members[a % len(capture.members)].slot
    assert origin is not None
    assert member is not None
    captured = pick([event for event in state.events.values() if event.capture is capture], b)
    requests: list[ops.Operation] = [
        ops.SynchronizeStream(member),
        ops.SynchronizeDevice(),
        ops.QueryStream(member),
        ops.BeginCapture(origin),
        ops.EndCapture(writer.fresh("g"), member),
        ops.DestroyStream(origin),
    ]
    if capture.unjoined and not capture.spoiled:
        requests += [ops.EndCapture(writer.fresh("g"), origin)] * 4
    if captured is not None:
        requests += [ops.QueryEvent(captured.slot), ops.SynchronizeEvent(captured.slot)]
    if writer.can(Capability.LEGACY_DEFAULT_STREAM, Capability.LAUNCH) and state.device == capture.origin.device:
        requests.append(ops.Launch())
    operation = requests[c % len(requests)]
    if isinstance(operation, ops.DestroyStream):
        for block in [block for block in state.blocks.values() if block.stream is capture.origin]:
            free_block(writer, block)
        if state.is_needed(capture.origin):
            return
    if isinstance(operation, ops.Launch):
        state.spoil_captures()
    writer.write(operation)
    if isinstance(operation, ops.DestroyStream):
        writer.dead_streams.append(operation.slot)


def misuse_captured_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Use an event that was recorded in a capture that is over."""
    captured = [e for e in writer.state.events.values() if e.capture is not None and e.capture.over]
    event = pick(captured, a)
    if event is not None and not writer.state.captures:
        requests = (ops.QueryEvent(event.slot), ops.SynchronizeEvent(event.slot), ops.WaitEvent(event.slot))
        writer.write(requests[c % 3])


def misuse_runtime(writer: Writer, a: int, b: int, c: int) -> None:
    """Initialise twice, or use the runtime while it is down."""
    state = writer.state
    once = state.profile.initialization is Initialization.ONCE and Promise.INITIALIZES_ONCE in state.promises
    if state.initialized or (state.finalized and once and a % 2 == 0):
        writer.write(ops.Initialize())
    else:
        requests = (ops.Finalize(), ops.CreatePolicy(), ops.Partition((writer.fresh("x"),)))
        writer.write(requests[c % 3])


def misuse_tape(writer: Writer, a: int, b: int, c: int) -> None:
    """Use a node that was given up."""
    node = newest(writer.state.nodes.values(), a)
    if node is None:
        return
    for _ in range(node.holds):
        writer.write(ops.Drop(node.slot))
    requests = (
        ops.Drop(node.slot),
        ops.Backward(node.slot),
        ops.Node(writer.fresh("n"), (node.slot,)),
        ops.Hold(node.slot),
    )
    writer.write(requests[c % 4])

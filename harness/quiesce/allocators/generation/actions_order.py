"""Actions that propose legal operations on streams, events, captures and devices.

Several devices: what is left on one of them while another is current.
"""

from __future__ import annotations

from quiesce.allocators.generation.actions_memory import (
    POOLS_MAX,
    allocate_block,
    free_block,
    launch,
    some_streams,
    work_on,
)
from quiesce.allocators.generation.legality import may_run
from quiesce.allocators.generation.things import Block, Stream
from quiesce.allocators.generation.writer import STREAMS_MAX, Writer, newest, pick
from quiesce.model import operations as ops
from quiesce.model.backend import Capability
from quiesce.model.operations import CaptureMode, Slot

_MODES = (CaptureMode.GLOBAL, CaptureMode.RELAXED, CaptureMode.THREAD_LOCAL)


def create_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Create a stream; work on one where there are enough of them."""
    if len(writer.state.streams) >= STREAMS_MAX:
        launch(writer, a, b | 1, c)
    else:
        writer.write(ops.CreateStream(writer.fresh("s"), nonblocking=a % 4 == 1))


def destroy_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a stream that nothing the sequence owns belongs to."""
    state = writer.state
    stream = newest([stream for stream in state.streams.values() if not state.is_needed(stream)], a)
    if stream is None or stream.slot is None:
        create_stream(writer, a, b, c)
    else:
        writer.write(ops.DestroyStream(stream.slot))
        writer.dead_streams.append(stream.slot)


def synchronize_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Wait for a stream."""
    writer.write(ops.SynchronizeStream(writer.stream(a).slot))


def query_stream(writer: Writer, a: int, b: int, c: int) -> None:
    """Ask a stream."""
    writer.write(ops.QueryStream(writer.stream(a).slot))


def synchronize_device(writer: Writer, a: int, b: int, c: int) -> None:
    """Wait for the current device."""
    writer.write(ops.SynchronizeDevice())


def create_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Create an event."""
    writer.event(7)


def destroy_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy an event, and sometimes make another under its name, which may have its handle."""
    slot = writer.event(a & ~7 | a % 7).slot
    writer.write(ops.DestroyEvent(slot))
    if b & 1:
        writer.write(ops.CreateEvent(slot))
        if c & 1:
            writer.write(ops.QueryEvent(slot))


def record_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Record an event."""
    writer.write(ops.RecordEvent(writer.event(a).slot, writer.working_stream(b).slot))


def wait_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a stream wait for an event whose stream still exists."""
    event = pick([event for event in writer.state.events.values() if _is_waitable(event.recorded_on)], a)
    stream = writer.stream(b)
    if event is None or event.capture is not None or stream.capture is not None:
        record_event(writer, a, b, c)
    else:
        writer.write(ops.WaitEvent(event.slot, stream.slot))


def _is_waitable(stream: Stream | None) -> bool:
    return stream is None or stream.alive


def query_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Ask an event."""
    event = pick([e for e in writer.state.events.values() if e.capture is None and _is_waitable(e.recorded_on)], a)
    if event is None:
        record_event(writer, a, b, c)
    else:
        writer.write(ops.QueryEvent(event.slot))


def synchronize_event(writer: Writer, a: int, b: int, c: int) -> None:
    """Wait for an event."""
    event = pick([e for e in writer.state.events.values() if e.capture is None and _is_waitable(e.recorded_on)], a)
    if event is None:
        record_event(writer, a, b, c)
    else:
        writer.write(ops.SynchronizeEvent(event.slot))


def merge(writer: Writer, a: int, b: int, c: int) -> None:
    """Let one stream come behind two others that have work: three streams and a merge."""
    while len([s for s in writer.state.streams.values() if s.device == writer.state.device]) < 2:
        create_stream(writer, a >> 2 << 2, b, c)
        if len(writer.state.streams) >= STREAMS_MAX:
            return
    target = writer.stream(a)
    for byte in (b, c):
        launch(writer, byte, byte, 0)
        other = writer.stream(byte)
        if other is not target:
            event = writer.event(byte & 6)
            writer.write(ops.RecordEvent(event.slot, other.slot))
            writer.write(ops.WaitEvent(event.slot, target.slot))
    launch(writer, c, a, 0)


def stall(writer: Writer, a: int, b: int, c: int) -> None:
    """Hold a stream, and give it work that stays pending."""
    stream = writer.named_stream(a)
    if stream is None or stream.slot is None:
        create_stream(writer, a, b, c)
        return
    writer.write(ops.Stall(stream.slot))
    if b & 1:
        block = writer.kernel_block(c)
        if block is not None and writer.can(Capability.LAUNCH) and writer.order_use(block, stream):
            writer.write(ops.Launch(writes=(block.slot,), stream=stream.slot))


def release(writer: Writer, a: int, b: int, c: int) -> None:
    """Let a stalled stream go."""
    stream = pick([stream for stream in writer.state.streams.values() if stream.stalled], a)
    if stream is None or stream.slot is None:
        stall(writer, a, b, c)
    else:
        writer.write(ops.Release(stream.slot))


def begin_capture(writer: Writer, a: int, b: int, c: int) -> None:
    """Begin to capture a stream."""
    stream = writer.named_stream(a)
    if stream is None or stream.slot is None:
        create_stream(writer, a, b, c)
    else:
        writer.write(ops.BeginCapture(stream.slot, _MODES[b % 3]))


def fork_capture(writer: Writer, a: int, b: int, c: int) -> None:
    """Let another stream join the capture."""
    capture = writer.state.captures[0]
    device = capture.origin.device
    outside = [s for s in writer.state.streams.values() if s.capture is None and s.device == device and not s.stalled]
    stream = pick(outside, a)
    if stream is None or writer.state.device != device or capture.spoiled or len(capture.members) > 2:
        launch(writer, a, b | 1, c)
        return
    event = writer.event(b)
    writer.write(ops.RecordEvent(event.slot, capture.members[c % len(capture.members)].slot))
    writer.write(ops.WaitEvent(event.slot, stream.slot))


def end_capture(writer: Writer, a: int, b: int, c: int) -> None:
    """Join what was forked, and end the capture."""
    capture = writer.state.captures[0]
    for member in list(capture.unjoined):
        if writer.state.device == capture.origin.device and not capture.spoiled:
            event = writer.event(b)
            writer.write(ops.RecordEvent(event.slot, member.slot))
            writer.write(ops.WaitEvent(event.slot, capture.origin.slot))
    if capture.origin.slot is not None:
        writer.write(ops.EndCapture(writer.fresh("g"), capture.origin.slot))


def launch_graph(writer: Writer, a: int, b: int, c: int) -> None:
    """Run a graph whose memory nobody else can have."""
    state = writer.state
    whole = [g for g in state.graphs.values() if g.device == state.device and may_run(g)]
    graph, stream = newest(whole, a), writer.stream(b)
    if graph is None:
        begin_capture(writer, a, b, c)
    elif all(writer.order_use(block, stream) for block in graph.blocks):
        writer.write(ops.LaunchGraph(graph.slot, stream.slot))


def destroy_graph(writer: Writer, a: int, b: int, c: int) -> None:
    """Destroy a graph, beside a capture as well."""
    graph = pick(list(writer.state.graphs.values()), a)
    if graph is None and writer.state.captures:
        launch(writer, a, b | 1, c)
    elif graph is None:
        begin_capture(writer, a, b, c)
    else:
        writer.write(ops.DestroyGraph(graph.slot))


def select_device(writer: Writer, a: int, b: int, c: int) -> None:
    """Make another device current."""
    writer.write(ops.SelectDevice(_another_device(writer, a)))


def _another_device(writer: Writer, byte: int) -> int:
    devices = writer.state.profile.devices
    return (writer.state.device + 1 + byte % (devices - 1)) % devices if devices > 1 else 0


def work_from_afar(writer: Writer, a: int, b: int, c: int) -> None:
    """Leave work, a freed block or a pool on one device; wait for it, destroy it or trim it while another is current.

    Back on its own device, somebody asks for as much memory, or for what can go.
    """
    home, away = writer.state.device, _another_device(writer, a)
    (stream,) = some_streams(writer, 1, b)
    if stream.slot is None or away == home:
        return
    trims = c >> 6 == 3 and writer.can(Capability.POOL, Capability.POOLS) and len(writer.state.pools) < POOLS_MAX
    pool = writer.fresh("p") if trims else None
    if pool is not None:
        writer.write(ops.CreatePool(pool))
    block = allocate_block(writer, writer.size(a), stream, pool=pool)
    if c & 1 and writer.can(Capability.STALL):
        writer.write(ops.Stall(stream.slot))
    work_on(writer, block, stream)
    event = writer.event(b) if writer.can(Capability.EVENTS) else None
    if event is not None:
        writer.write(ops.RecordEvent(event.slot, stream.slot))
    if c & 2:
        free_block(writer, block)
    if c & 4:
        writer.synchronize_device(home)
    writer.write(ops.SelectDevice(away))
    match c >> 6:
        case 0:
            writer.write(ops.SynchronizeStream(stream.slot))
            writer.write(ops.QueryStream(stream.slot))
        case 1 if not writer.state.is_needed(stream):
            writer.write(ops.DestroyStream(stream.slot))
            writer.dead_streams.append(stream.slot)
        case 2 if event is not None:
            _wait_there(writer, event.slot, b)
        case 3 if pool is not None:
            writer.write(ops.Trim(pool=pool))
        case _:
            pass
    if c & 8:
        writer.write(ops.SelectDevice(home))
        _ask_again(writer, block, stream, c)


def _wait_there(writer: Writer, event: Slot, byte: int) -> None:
    """Let a stream of the current device wait for an event of another's, and ask it whether it is done."""
    (waiter,) = some_streams(writer, 1, byte >> 2)
    writer.write(ops.WaitEvent(event, waiter.slot))
    if writer.can(Capability.LAUNCH):
        writer.write(ops.Launch(stream=waiter.slot))
    for _ in range(1 + byte % 4):
        writer.write(ops.QueryStream(waiter.slot))


def _ask_again(writer: Writer, block: Block, stream: Stream, byte: int) -> None:
    if byte & 16 and writer.can(Capability.POOL):
        writer.write(ops.Trim())
        return
    asker = stream if stream.alive else writer.state.order.defaults[writer.state.device]
    work_on(writer, allocate_block(writer, block.size_bytes, asker), asker)

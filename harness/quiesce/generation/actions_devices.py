"""Actions about several devices: what is left on one of them while another is current."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.backend import Capability
from quiesce.generation.actions_memory import POOLS_MAX, free_block
from quiesce.generation.steps import allocate_block, some_streams, work_on
from quiesce.generation.things import Block, Stream
from quiesce.generation.writer import Writer
from quiesce.operations import Slot


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

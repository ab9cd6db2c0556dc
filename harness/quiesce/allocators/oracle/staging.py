"""How a library brings the host's data to the device: straight from the block, or through a buffer of its own.

The host fills a buffer as soon as something is to be staged, so what was in it must have been read by then. That is so
of pinned ones: of pageable memory a copy has read all when it returns (CUDA Runtime API, "API synchronization
behavior").
"""

from __future__ import annotations

from collections.abc import Collection

from quiesce.allocators.oracle.blocks import BlockState, Freed
from quiesce.allocators.oracle.change import Change, OwnCopy, Piece
from quiesce.allocators.oracle.clocks import Clock, StreamState, merge
from quiesce.allocators.oracle.facts import Facts
from quiesce.allocators.oracle.observation_effects import places_of_copies, without_later
from quiesce.allocators.oracle.reuse import allocate, is_pageable, meet, use
from quiesce.model import operations as ops
from quiesce.model.backend import Promise
from quiesce.model.observations import CopyEnqueued, Observation
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import Allocated


def stage(facts: Facts, operation: ops.Stage, outcome: Allocated, change: Change) -> None:
    """Enter a block that was made of a host block; the source is in use where the copy reads it."""
    source = facts.blocks.get(operation.source)
    size = source.size_bytes if source is not None else 0
    allocate(facts, ops.Allocate(operation.slot, size, stream=operation.stream), outcome, change)
    facts.staged = True
    used = [operation.slot]
    if source is not None and _is_read_on_the_stream(facts, source, change):
        used.append(operation.source)
    stream = facts.stream(operation.stream)
    if stream is not None and facts.sees_order and facts.captures.of(stream) is None:
        _enter_pieces(facts, stream, change)
    use(facts, [slot for slot in used if not is_pageable(facts, slot)], stream, change)
    if is_pageable(facts, operation.source) and not _is_read_elsewhere(source, change.observations):
        facts.order.doubt_stalls()  # as by any copy from it
    made = facts.blocks.get(operation.slot)
    if (
        made is None
        or source is None
        or stream is None
        or facts.captures.of(stream) is not None
        or not facts.sees_order
    ):
        return
    pieces = dict(change.pieces)
    for place, seen in enumerate(change.observations):
        if not isinstance(seen, CopyEnqueued):
            continue
        copying = tuple(facts.observed_streams(seen.stream))
        if stream in copying:
            reading = without_later(pieces.get(place, made.uses), place, change.own_copies)
            _read_buffer(facts, source, made, seen, reading, change)
        elif len(copying) == 1 and made.address <= seen.destination_address < made.end:
            meet(facts, made, copying[0], change)  # the copy is the library's: nobody else orders its stream
    for copy in change.own_copies:
        _enter_own_copy(facts, source, made, copy, change)


def _enter_pieces(facts: Facts, stream: StreamState, change: Change) -> None:
    """Enter what is staged piece by piece: of two buffers in turn, one is filled while the other is still read."""
    for place in places_of_copies(facts, change.observations, stream)[:-1]:
        facts.order.enqueue(stream)
        change.pieces += (Piece(place, dict(stream.clock)),)


def _enter_own_copy(facts: Facts, source: BlockState, made: BlockState, copy: OwnCopy, change: Change) -> None:
    """Let what uses a block come behind a copy to it that is the library's own: nobody else orders its stream.

    A source that it reads is in use until it is done.
    """
    seen, work = copy.observation, {copy.stream.timeline: copy.number}
    if made.address <= seen.destination_address < made.end:
        name = f"the copy that made {made.slot}"
        copied = BlockState(
            name, made.address, made.size_bytes, made.kind, made.stream, None, made.device, change.origin
        )
        made.inherited.append(Freed(work, copied))
    if source.address <= seen.source_address < source.end:
        merge(source.uses, work)


def _read_buffer(
    facts: Facts, source: BlockState, made: BlockState, seen: CopyEnqueued, reading: Clock, change: Change
) -> None:
    """Enter a copy out of a buffer of the library's own: its memory is in use until ``reading`` is done.

    Its content is the source's. Who fills it with something else has waited for the copies of what was in it.
    """
    start, end = seen.source_address, seen.source_address + seen.size_bytes
    is_content = made.address <= seen.destination_address < made.end  # and no padding
    if not is_content or facts.memory.live.overlapping(start, end) or not facts.memory.is_pinned_backing(start, end):
        return
    buffer = BlockState(
        f"the staging buffer of {source.slot}",
        start,
        seen.size_bytes,
        MemoryKind.PINNED,
        made.stream,
        None,
        facts.device,
        change.origin,
        staged_from=source,
    )
    earlier = facts.memory.guarded.cut(start, end)
    buffer.inherited = [each for each in earlier if each.block.staged_from is not source]
    meet(facts, buffer, None, change)
    guard = facts.order.work(reading)
    for each in earlier:
        merge(guard, facts.order.work(each.guard))
    facts.memory.guard(start, end, Freed(guard, buffer))


def _is_read_on_the_stream(facts: Facts, source: BlockState, change: Change) -> bool:
    """Whether a source is read in the order of the request's stream, and not only by copies of the library's own."""
    own = tuple(copy.observation for copy in change.own_copies)
    places = {copy.place for copy in change.own_copies}
    others = tuple(seen for place, seen in enumerate(change.observations) if place not in places)
    promised = source.kind is MemoryKind.PINNED and facts.promises(Promise.STAGES_PINNED_DIRECTLY)
    return (promised and not _is_read(source, own)) or _is_read(source, others)


def _is_read(source: BlockState, observations: Collection[Observation]) -> bool:
    return any(
        isinstance(seen, CopyEnqueued) and source.address <= seen.source_address < source.end for seen in observations
    )


def _is_read_elsewhere(source: BlockState | None, observations: Collection[Observation]) -> bool:
    """Whether what is copied was put into another buffer before."""
    copied = any(isinstance(seen, CopyEnqueued) for seen in observations)
    return copied and source is not None and not _is_read(source, observations)

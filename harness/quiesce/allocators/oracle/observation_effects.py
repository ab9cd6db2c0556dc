"""What observations say: records, waits, completions and the backing calls that an independent ledger saw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias

from quiesce.allocators.oracle.captures import CaptureState
from quiesce.allocators.oracle.change import Ask, Change, OwnCopy, Piece, Suspect
from quiesce.allocators.oracle.clocks import Clock, StreamState, merge
from quiesce.allocators.oracle.facts import Facts
from quiesce.model import operations as ops
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    BackingRefused,
    CopyEnqueued,
    DeviceSynchronized,
    EventCompleted,
    EventRecorded,
    EventWaited,
    HandleDestroyed,
    HandleKind,
    Observation,
    StreamSynchronized,
)
from quiesce.model.operations import MemoryKind, Slot

_Sighting: TypeAlias = Callable[[Facts, Any], None]  # each takes the one observation type it is filed under


def see(facts: Facts, observations: tuple[Observation, ...], pool: Slot | None, change: Change) -> None:
    """Enter observations, in order; what is taken from the backing allocator is for ``pool``."""
    for place, observation in enumerate(observations):
        if isinstance(observation, _OF_BACKING):
            _see_backing(facts, observation, pool, change)
        elif isinstance(observation, CopyEnqueued):
            _see_copy(facts, observation, place, change)
        elif (sighting := _SIGHTINGS.get(type(observation))) is not None:
            sighting(facts, observation)


def places_of_copies(facts: Facts, observations: tuple[Observation, ...], stream: StreamState) -> list[int]:
    """Return where among the observations copies on a stream are told."""
    copies = ((place, seen) for place, seen in enumerate(observations) if isinstance(seen, CopyEnqueued))
    return [place for place, seen in copies if stream in facts.observed_streams(seen.stream)]


def see_behind(
    facts: Facts,
    observations: tuple[Observation, ...],
    stream: StreamState,
    pieces: Iterable[Piece],
    own_copies: tuple[OwnCopy, ...],
) -> None:
    """Let what was seen beside work on ``stream`` be about that work as well, where it may have come behind it.

    A copy says where it came, and what came behind it if it is one of several ``pieces``; so do those on streams of the
    library's own (``own_copies``). Of other work nobody knows. So this excuses, and makes nothing sure.
    """
    last = max(places_of_copies(facts, observations, stream), default=-1)
    of_pieces = dict(pieces)
    behind: Clock = {}
    recorded: set[str] = set()
    for place, seen in enumerate(observations):
        if place <= last:
            behind = of_pieces.get(place, behind)
        elif place == last + 1 or any(place == copy.place for copy in own_copies):
            behind = facts.order.snapshot(stream)
        behind = without_later(behind, place, own_copies)
        match seen:
            case EventRecorded(event, name) if event not in facts.events and stream in facts.observed_streams(name):
                merge(facts.observed_event(event).clock, behind)
                recorded.add(event)
            case EventWaited(event, None) | EventCompleted(event) if event in recorded:
                facts.order.complete(facts.observed_event(event).clock)
            case EventWaited(event, str(waiter)) if event in recorded:
                for state in facts.observed_streams(waiter):
                    facts.order.join(state, facts.observed_event(event).clock)
            case StreamSynchronized(name) if stream in facts.observed_streams(name):
                facts.order.complete(facts.order.encompassed(stream) if place > last else behind)
            case DeviceSynchronized(device) if device == stream.device:
                facts.order.complete(behind)


def without_later(clock: Clock, place: int, own_copies: tuple[OwnCopy, ...]) -> Clock:
    """Return the part of a clock that was there at a ``place`` among the observations, before later copies."""
    for copy in own_copies:
        timeline = copy.stream.timeline
        if place < copy.place and clock.get(timeline, 0) >= copy.number:
            clock = {**clock, timeline: copy.number - 1}
    return clock


def see_captured_behind(
    facts: Facts, observations: tuple[Observation, ...], stream: StreamState, capture: CaptureState
) -> None:
    """Let what a library captured beside captured work be about that work as well: it may have come behind it."""
    recorded: set[str] = set()
    for seen in observations:
        match seen:
            case EventRecorded(event, name) if event not in facts.events and stream in facts.observed_streams(name):
                observed = facts.observed_event(event)
                if observed.capture is capture:
                    merge(observed.clock, capture.snapshot(stream))
                    recorded.add(event)
                    capture.is_order_doubtful = True
            case EventWaited(event, str(waiter)) if event in recorded:
                for state in facts.observed_streams(waiter):
                    facts.captures.order(state, capture, facts.observed_event(event).clock)


def needless_waits(facts: Facts, observations: tuple[Observation, ...]) -> tuple[EventWaited, ...]:
    """Return the waits of a library for events of dead streams: HIP reads the stream, CUDA allows them.

    A wait for an event of the sequence is one that it asked for.
    """
    waits = (seen for seen in observations if isinstance(seen, EventWaited) and not seen.stream_alive)
    return tuple(wait for wait in waits if wait.event not in facts.events)


def _see_wait(facts: Facts, seen: EventWaited) -> None:
    if seen.waiter is None:
        _complete(facts, seen.event, forced=True)
        facts.order.doubt_stalls()  # nobody is forbidden to wait for more
    elif seen.event not in facts.events:  # or the operation itself says the same
        if facts.is_ambiguous(seen.waiter):
            facts.order.doubt_stalls()  # some device's default stream was not made to wait
        event = facts.observed_event(seen.event)
        for state in facts.observed_streams(seen.waiter):
            if event.capture is not None:
                facts.captures.order(state, event.capture, event.clock)
                continue
            facts.order.wait(state, event.clock)
            if event.stream is not None:
                facts.memory.may_move(event.stream.timeline, state.timeline)


def _see_complete(facts: Facts, seen: EventCompleted) -> None:
    _complete(facts, seen.event, forced=False)


def _complete(facts: Facts, name: str, *, forced: bool) -> None:
    event = facts.observed_event(name)
    if event.capture is not None:
        return  # it stands for captured work, which does not run
    facts.order.note_sure(event.certain)
    facts.doubts.completion |= event.ambiguous
    if forced:
        facts.order.complete(event.clock)
    else:
        facts.order.complete(event.clock, asked=event.stream or facts.default_streams[facts.device])


def _see_record(facts: Facts, seen: EventRecorded) -> None:
    if seen.event in facts.events:
        return  # the operation itself says the same
    clock: Clock = {}
    event = facts.observed_event(seen.event)
    ambiguous = facts.is_ambiguous(seen.stream)
    for state in facts.observed_streams(seen.stream):
        if (capture := facts.captures.of(state)) is not None:
            event.capture, event.clock = capture, capture.snapshot(state)
            return
        merge(clock, facts.order.record(state))
        event.stream = state
        event.certain = {} if ambiguous else dict(state.certain)
    event.clock, event.ambiguous, event.capture = clock, ambiguous, None


def _see_stream_synchronized(facts: Facts, seen: StreamSynchronized) -> None:
    facts.doubts.completion |= facts.is_ambiguous(seen.stream)
    for state in facts.observed_streams(seen.stream):
        facts.order.complete(facts.order.encompassed(state))
        facts.order.release(state)
    facts.order.doubt_stalls()  # nobody is forbidden to wait for more


def _see_device_synchronized(facts: Facts, seen: DeviceSynchronized) -> None:
    facts.order.complete_device(seen.device)
    facts.order.doubt_stalls()  # nobody is forbidden to wait for more


def _see_destroyed(facts: Facts, seen: HandleDestroyed) -> None:
    if seen.kind is HandleKind.EVENT:
        facts.internal.events.pop(seen.name, None)


def _see_copy(facts: Facts, seen: CopyEnqueued, place: int, change: Change) -> None:
    """Put what is staged on another stream than the request's on that one: what is recorded there then stands for it.

    A copy from ordinary memory of the host may be waited for by itself.
    """
    operation = change.operation
    if not isinstance(operation, ops.Stage) or not facts.sees_order:
        return
    stream, copying = facts.stream(operation.stream), tuple(facts.observed_streams(seen.stream))
    if stream is None or len(copying) != 1 or stream in copying:
        return
    (own,) = copying
    source = facts.blocks.get(operation.source)
    if source is not None and source.kind is MemoryKind.PAGEABLE and source.address <= seen.source_address < source.end:
        return
    if facts.captures.of(own) is None and facts.captures.of(stream) is None:
        number = facts.order.enqueue(own)
        change.own_copies += (OwnCopy(place, seen, own, number),)


def _see_backing(
    facts: Facts, seen: BackingAllocated | BackingRefused | BackingFreed, pool: Slot | None, change: Change
) -> None:
    if not isinstance(seen, BackingFreed):
        change.asks += (Ask(seen, facts.memory.held_bytes),)
    if facts.intact is not None and not isinstance(seen, BackingRefused):
        facts.intact.take(seen.address, seen.address + seen.size_bytes)
    if isinstance(seen, BackingFreed):
        change.taken_from_graphs += tuple(facts.kept.take(seen.address, seen.address + seen.size_bytes, None))
    for returned in facts.memory.see_backing(seen, pool, facts.captures.memories):
        if returned.guard is None:
            change.returned += (returned,)
        elif not facts.order.is_ordered(returned.guard, None):
            if facts.sees_order:
                change.returned += (returned,)
            else:
                facts.evidence.suspect(Suspect(returned, facts.order.work(returned.guard)))


_OF_BACKING: Final = (BackingAllocated, BackingRefused, BackingFreed)
_SIGHTINGS: Final[Mapping[type[Observation], _Sighting]] = {
    EventRecorded: _see_record,
    EventWaited: _see_wait,
    EventCompleted: _see_complete,
    StreamSynchronized: _see_stream_synchronized,
    DeviceSynchronized: _see_device_synchronized,
    HandleDestroyed: _see_destroyed,
}

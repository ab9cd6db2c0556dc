"""Faults of order: memory goes to its next owner, or is released, before the work on it is done."""

from __future__ import annotations

import itertools

from quiesce.model.backend import DeviceProfile
from quiesce.model.operations import MemoryKind, Slot
from quiesce.model.outcomes import Outcome

from .arenas import Buddy, Bump, Coarse, _Bump
from .bench import Bench, Block, Trial
from .caching import Polling, PowersOfTwo
from .machine import Event, Stream
from .policy import Area, Use
from .slabs import CountedSlabs


class TwoDependencies(Coarse):
    """A range that was merged of three streams' blocks keeps two events: the list of dependencies has two places."""

    def insert(self, area: Area) -> None:
        super().insert(area)
        for kept in self.ranges:
            for event in kept.guards[:-2]:
                self.drop(event)
            kept.guards = kept.guards[-2:]


class BareRemainder(Coarse):
    """What is left of a range that was cut forgets what the range had to wait for."""

    def cut(self, area: Area, size: int, align: int, stream: Stream) -> Area:
        taken = super().cut(area, size, align, stream)
        for kept in self.ranges:
            if kept.address == taken.address + taken.size:
                for event in kept.guards:
                    self.drop(event)
                kept.guards = []
        return taken


class SameStreamNeedsNothing(PowersOfTwo):
    """A block freed on the stream that asks is taken to be ready, wherever it was used."""

    def wait_for(self, area: Area, stream: Stream) -> None:
        if area.stream is not stream:
            super().wait_for(area, stream)


class LastEventDecides(Polling):
    """Of all events of a freed block only the newest is asked."""

    def is_idle(self, area: Area) -> bool:
        if area.guards and not self.machine.own_query(area.guards[-1]):
            return False
        for event in area.guards:
            self.drop(event)
        area.guards = []
        return True


class HandlesAreStreams(PowersOfTwo):
    """Streams are told apart by their handles, which the runtime hands out again."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.handles: dict[Stream, int] = {}
        self.handle_of: dict[Event, int] = {}

    def handle(self, stream: Stream) -> int:
        self.handles = {known: number for known, number in self.handles.items() if known.alive}
        if stream not in self.handles:
            self.handles[stream] = next(n for n in itertools.count() if n not in self.handles.values())
        return self.handles[stream]

    def guard(self, area: Area, uses: list[Use]) -> list[Event]:
        events = super().guard(area, uses)
        for event in events:
            if event.stream is not None and event not in self.handle_of:
                self.handle_of[event] = self.handle(event.stream)
        return events

    def wait_for(self, area: Area, stream: Stream) -> None:
        others = [event for event in area.guards if self.host or self.handle_of.get(event) != self.handle(stream)]
        own = [event for event in area.guards if event not in others]
        area.guards = others
        super().wait_for(area, stream)
        area.guards += own


class SqueezesInFlight(PowersOfTwo):
    """When memory runs out, every cached block is released, whether or not its work is done."""

    def squeeze(self) -> None:
        for area in [area for entries in self.cached.values() for area in entries]:
            for event in area.guards:
                self.drop(event)
            area.guards = []
        self.trim()


class StartsOverEarly(Bump):
    """A chunk starts over once everything in it was freed, done or not."""

    def reset(self, bump: _Bump) -> None:
        if not bump.owned:
            bump.position = bump.chunk


class HastyBuddies(Buddy):
    """When memory runs out, freed blocks that still wait are taken as they are."""

    def force_idle(self, area: Area) -> None:
        for event in area.guards:
            self.drop(event)
        area.guards = []


class DefaultStreamWaitsForAll(PowersOfTwo):
    """The default stream is taken to come behind every stream, also behind those that do not block."""

    def wait_for(self, area: Area, stream: Stream) -> None:
        if self.host or stream.name:
            super().wait_for(area, stream)


class DeadStreamsAreDone(Polling):
    """Work on a stream that was destroyed is taken to be done."""

    def guard(self, area: Area, uses: list[Use]) -> list[Event]:
        return super().guard(area, [use for use in uses if use.stream.alive])


class HostWaitsLikeAStream(PowersOfTwo):
    """Pinned memory is handed out in the order of a stream, although the host touches it at once."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.host = False


class ReleasesAtOnce(PowersOfTwo):
    """A pool that is destroyed gives its memory back without waiting for anything."""

    def release(self) -> None:
        for event in list(self.events):
            self.machine.own_destroy(event)
        self.events.clear()
        self.clear()
        for address in list(self.chunks):
            self.give_back(address)


class RecordsOnTheDefaultStream(PowersOfTwo):
    """The event of a use is recorded on the first device's default stream."""

    def guard(self, area: Area, uses: list[Use]) -> list[Event]:
        return super().guard(area, [Use(self.machine.defaults[0]) for _ in uses])


class BuffersAreReadAtOnce(Bench):
    """A staging buffer is free as soon as the copy out of it was asked for."""

    def uses_of_buffer(self, copied: Use) -> list[Use]:
        return []


class GuardsItsUsesAlone(CountedSlabs):
    """A freed block waits for its own uses, and no longer for those of an owner before."""

    def guard(self, area: Area, uses: list[Use]) -> list[Event]:
        for event in area.guards:
            self.drop(event)
        area.guards = []
        return super().guard(area, uses)


class OneRecordBetweenRequests(CountedSlabs):
    """A stream has one event for all that is freed between two requests: it may be older than the work."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        self.recorded: dict[Stream, Event] = {}

    def allocate(self, size: int, align: int, stream: Stream) -> Area:
        self.recorded.clear()
        return super().allocate(size, align, stream)

    def guard(self, area: Area, uses: list[Use]) -> list[Event]:
        if any(not use.stream.alive for use in uses):
            return super().guard(area, uses)
        events = list(area.guards)
        for use in uses:
            event = self.recorded.get(use.stream)
            if event is None or not event.alive:
                event = self.recorded[use.stream] = self.machine.own_event(use.stream)
            else:
                self.keep([event])
            events.append(event)
        return events


class StagedBlocksAreForgotten(Bench):
    """A tracker of uses knows the blocks that were allocated through it, and not those that were staged."""

    def __init__(self, trial: Trial, profile: DeviceProfile) -> None:
        self.staged: set[Block] = set()
        super().__init__(trial, profile)

    def stage(self, slot: Slot, source: Slot, on: Slot | None) -> Outcome:
        outcome = super().stage(slot, source, on)
        self.staged.add(self.blocks[slot])
        return outcome

    def enqueue(self, blocks: list[Block], stream: Stream) -> Use:
        return super().enqueue([block for block in blocks if block not in self.staged], stream)


class ManagedBlocksAreForgotten(Bench):
    """A tracker of uses does not know managed blocks."""

    def enqueue(self, blocks: list[Block], stream: Stream) -> Use:
        return super().enqueue([block for block in blocks if block.kind is not MemoryKind.MANAGED], stream)

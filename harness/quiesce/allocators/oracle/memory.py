"""What the oracle knows of memory: blocks, what was freed and is still guarded, and the backing memory that is held.

Work may take memory for itself: out of the pool, and freed on its stream behind it. CUB's algorithms do so over
``rmm::exec_policy`` or ``cudaMallocAsync`` (``d_temp_storage``). It is seen in nothing but what stays held. Launches
are
numbered, so that none has to look at all that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from quiesce.allocators.indexes import IntervalIndex
from quiesce.allocators.oracle.blocks import BlockState, Freed, GraphMemory
from quiesce.allocators.oracle.clocks import Clock, StreamState, Timeline, merge
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused, Observation
from quiesce.model.operations import MemoryKind, Slot
from quiesce.model.wording import bytes_in_words, counted


class Scratch:
    """Where launches may have had memory of their own: in anything that was held by then."""

    def __init__(self) -> None:
        self.launches = 0
        """How many launches there were: the number of the last one."""
        self._launched_on: dict[Timeline, tuple[StreamState, int]] = {}
        self._used_on: dict[Timeline, int] = {}
        self._deferred: dict[Timeline, tuple[int, Clock]] = {}

    def launch(self, stream: StreamState) -> None:
        """Note that work was to go to ``stream``."""
        self.launches += 1
        self._launched_on[stream.timeline] = (stream, self.launches)
        self._used_on[stream.timeline] = self.launches

    def streams(self, launches_before: int) -> Iterator[StreamState]:
        """Yield the streams that had launches since: scratch memory goes back in their order."""
        for stream, launch in self._launched_on.values():
            if launch > launches_before:
                yield stream

    def is_freed_on(self, stream: StreamState) -> bool:
        """Whether scratch memory may go back in the order of a stream."""
        return stream.timeline in self._launched_on

    def defer(self, timeline: Timeline, behind: Clock) -> None:
        """Put what had to do with a stream behind an event that the library recorded there."""
        launch = self._used_on.get(timeline, 0)
        if launch:
            self._deferred[timeline] = (launch, _merged(self._deferred.get(timeline, (0, {}))[1], behind))

    def deferred(self, launches_before: int) -> Iterator[Clock]:
        """Yield what scratch memory of later launches was put behind."""
        for launch, clock in self._deferred.values():
            if launch > launches_before:
                yield clock

    def lose_stream(self, stream: StreamState, default: StreamState, behind: Clock) -> None:
        """Hand what goes back in the order of a stream that is going over to the default one, ``behind`` some work."""
        _, launched = self._launched_on.pop(stream.timeline, (stream, 0))
        _, deferred = self._deferred.pop(stream.timeline, (0, {}))
        if launched:
            _, number = self._launched_on.get(default.timeline, (default, 0))
            self._launched_on[default.timeline] = (default, max(launched, number))
        if stream.timeline in self._used_on:
            self.may_move(stream.timeline, default.timeline)
            self.defer(default.timeline, _merged(deferred, behind))
            del self._used_on[stream.timeline]

    def may_move(self, timeline: Timeline, waiter: Timeline) -> None:
        """Note that what had to do with a stream may be kept for one that was made to wait for it."""
        if timeline in self._used_on:
            self._used_on[waiter] = max(self._used_on[timeline], self._used_on.get(waiter, 0))


def _merged(clock: Clock, other: Clock) -> Clock:
    both = dict(clock)
    merge(both, other)
    return both


SOME_POOL: Final = "?"
"""Stands for the pool of memory that nobody knows whose it is yet; no slot looks like it."""

ON_THE_DEVICE: Final = (MemoryKind.DEVICE, MemoryKind.MANAGED)
"""The kinds of memory that may go back in a stream's order."""


@dataclass(slots=True, eq=False)
class BackingRange:
    """A backing allocation that is held, by ``pool``: :data:`SOME_POOL` until a block in it tells."""

    address: int
    size_bytes: int
    kind: MemoryKind
    device: int
    pool: Slot | None
    freed_behind: Clock = field(default_factory=dict)
    """The work that frees in it are ordered behind: until then they have not happened."""
    freed_on: dict[Timeline, StreamState] = field(default_factory=dict)
    """The streams of what was freed in it: memory may go back in their order, behind what they are given by then."""
    used_on: set[Timeline] = field(default_factory=set)
    """The streams that what was freed in it had to do with: events may be recorded on them for its sake."""
    graphs: list[GraphMemory] = field(default_factory=list)
    """What was freed in it may be kept for these, or was taken for them."""
    is_shared: bool = False
    """Whether blocks of several pools or kinds were in it: whose cache it belongs to, nobody knows any more."""
    last_block: Slot = ""
    """The block that was freed in it last."""
    launches_before: int = 0
    """How many launches there were when it was taken, or while a block filled it: those had no scratch memory in it."""

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size_bytes


@dataclass(slots=True, frozen=True)
class Returned:
    """Memory that was released although a block, or work in flight, was in it."""

    freed: BackingFreed
    block: BlockState
    guard: Clock | None
    """The work that the memory had to wait for; None where the block is still owned."""


class MemoryModel:
    """All memory that is known of. ``ledger``: every backing allocation and free is told.

    ``unit_bytes`` is what the backend's addresses are multiples of: nothing fits into less than that.
    """

    def __init__(self, *, ledger: bool, unit_bytes: int = 1) -> None:
        self.live: IntervalIndex[BlockState] = IntervalIndex()
        self.live_count = 0
        self.live_bytes = 0
        self.guarded: IntervalIndex[Freed] = IntervalIndex()
        self.freed_behind: Clock = {}
        self.freed_on: dict[Timeline, StreamState] = {}
        self.used_on: set[Timeline] = set()
        self.scratch = Scratch()
        self.graphs: list[GraphMemory] = []
        self.largest_freed_bytes: dict[MemoryKind, int] = {}
        """How much the largest block of each kind that was freed took, with what its alignment may have cost."""
        self.empty_uses: Clock = {}
        """The work on blocks of no bytes."""
        self.backing: IntervalIndex[BackingRange] = IntervalIndex()
        self.held_bytes = 0
        """How much is held from the backing allocator, as far as it was seen, of all kinds."""
        self.leaving: set[int] = set()
        """Where backing memory begins that may be given back at any time, once the work on it is done."""
        self._ledger = ledger
        self._unit_bytes = unit_bytes
        self._unclaimed: list[BackingRange] = []
        """What some pool took, and no block is in yet."""
        self._is_mixed = False
        """Whether memory of one pool or kind may come to hold a block of another."""
        self._kinds_seen: set[MemoryKind] = set()

    def is_backing_seen(self, kind: MemoryKind) -> bool:
        """Whether all of a kind's memory is seen at the backing allocator; a ledger may see the device alone."""
        return kind in self._kinds_seen

    @property
    def was_anything_freed(self) -> bool:
        """Whether there may be anything to give back."""
        return bool(self.largest_freed_bytes)

    def add(self, block: BlockState) -> list[BlockState]:
        """Enter a block and return the live blocks that it overlaps."""
        overlapped = [other for _, _, other in self.live.overlapping(block.address, block.end)]
        if not overlapped:
            self.live.add(block.address, block.end, block)
        block.inherited = self.guarded.cut(block.address, block.end)
        block.may_lie_in_bytes = self.largest_freed_bytes.get(block.kind, 0)
        block.launches_before = self.scratch.launches
        self._is_mixed |= block.pool is not None or not self._kinds_seen <= {block.kind}
        if self._unclaimed or self._is_mixed:
            self._claim(block)
        self.live_count += 1
        self.live_bytes += block.size_bytes
        return overlapped

    def _claim(self, block: BlockState) -> None:
        """Memory that a block is put into is its pool's."""
        for _, _, held in self.backing.overlapping(block.address, block.end):
            if held.pool == SOME_POOL:
                held.pool = block.pool
                self._unclaimed.remove(held)
            held.is_shared |= held.pool != block.pool or held.kind is not block.kind

    def remove(
        self, block: BlockState, guard: Clock, behind: Clock, stream: StreamState, users: Iterable[StreamState] = ()
    ) -> None:
        """Take a block out. Its memory must wait for ``guard``; the free, on ``stream``, is ``behind`` some work.

        What is freed may also go back in the order of its ``users``, where nobody would tell.
        """
        on_device = block.kind in ON_THE_DEVICE  # the host's goes back in no stream's order
        owners = (block.stream, stream) if on_device else ()
        streams = {each.timeline: each for each in (*owners, *users)}
        used_on = {block.stream.timeline, stream.timeline, *block.uses}
        self.used_on |= used_on
        for _, _, held in self.backing.overlapping(block.address, block.end):
            held.freed_on.update(streams)
            held.used_on |= used_on
            held.graphs += block.graphs
            held.last_block = block.slot
            merge(held.freed_behind, behind)
            if held.launches_before == block.launches_before and self._fills(block, held):
                held.launches_before = self.scratch.launches
        self.freed_on.update(streams)
        self.graphs += block.graphs
        merge(self.freed_behind, behind)
        taken = max(block.size_bytes + block.alignment_bytes, self.largest_freed_bytes.get(block.kind, 0))
        self.largest_freed_bytes[block.kind] = taken
        self.live.remove(block.address)
        self.live_count -= 1
        self.live_bytes -= block.size_bytes
        self.guard(block.address, block.end, Freed(guard, block))

    def _fills(self, block: BlockState, held: BackingRange) -> bool:
        """Whether a block leaves no room for another one in a backing range."""
        unit = self._unit_bytes
        return block.address - held.address < unit and -(-block.end // unit) * unit >= held.end

    def guard(self, start: int, end: int, freed: Freed) -> None:
        """Let whoever has ``[start, end)`` next wait for work of an earlier owner."""
        if freed.guard:
            self.guarded.cut(start, end)
            self.guarded.add(start, end, freed)

    def put_back(self, stream: StreamState, ranges: Iterable[BackingRange]) -> None:
        """Note that what is not used of ``ranges`` may have been a block on ``stream`` for a moment."""
        self.freed_on[stream.timeline] = stream
        for held in ranges:
            held.freed_on[stream.timeline] = stream

    def defer(self, block: BlockState, behind: Clock) -> None:
        """Put the free of a block behind some work, or behind what else its streams were given."""
        if not behind:
            return
        for _, _, held in self.backing.overlapping(block.address, block.end):
            merge(held.freed_behind, behind)
        merge(self.freed_behind, behind)

    def defer_used_on(self, timeline: Timeline, behind: Clock) -> None:
        """Put what was freed and had to do with a stream ``behind`` an event that the library recorded there."""
        if not behind:
            return
        self.scratch.defer(timeline, behind)
        if timeline not in self.used_on:
            return
        for _, _, held in self.backing:
            if timeline in held.used_on:
                merge(held.freed_behind, behind)
        merge(self.freed_behind, behind)

    def may_move(self, timeline: Timeline, waiter: Timeline) -> None:
        """Note that what was freed and had to do with a stream may be kept for one that was made to wait for it."""
        self.scratch.may_move(timeline, waiter)
        if timeline not in self.used_on:
            return
        self.used_on.add(waiter)
        for _, _, held in self.backing:
            if timeline in held.used_on:
                held.used_on.add(waiter)

    def streams_of(self, held: BackingRange) -> Iterator[StreamState]:
        """Yield the streams in whose order what was freed in a backing range may go back."""
        yield from held.freed_on.values()
        if held.kind in ON_THE_DEVICE:
            scratch = self.scratch.streams(held.launches_before)
            yield from (each for each in scratch if each.device == held.device or held.kind is MemoryKind.MANAGED)

    def behind_of(self, held: BackingRange) -> Iterator[Clock]:
        """Yield the work that what was freed in a backing range is behind."""
        yield held.freed_behind
        if held.kind in ON_THE_DEVICE:
            yield from self.scratch.deferred(held.launches_before)

    def is_freed_on(self, stream: StreamState) -> bool:
        """Whether memory may go back in the order of a stream."""
        return stream.timeline in self.freed_on or self.scratch.is_freed_on(stream)

    def lose_stream(self, stream: StreamState, default: StreamState, behind: Clock) -> None:
        """Put what was freed on a stream that is going ``behind`` all that this was given: a mark may come so late."""
        self.scratch.lose_stream(stream, default, behind)
        if not behind:
            return
        for _, _, held in self.backing:
            if stream.timeline in held.freed_on:
                merge(held.freed_behind, behind)
        merge(self.freed_behind, behind)

    def remove_empty(self, addresses: range, behind: Clock, streams: Iterable[StreamState]) -> None:
        """Take a block out that may not exist, or of no bytes, which may have taken some all the same.

        Nobody knows on which of ``streams`` its memory goes back.
        """
        merge(self.freed_behind, behind)
        if not addresses.start:
            return
        freed_on = {each.timeline: each for each in streams}
        self.freed_on.update(freed_on)
        for _, _, held in self.backing.overlapping(addresses.start, addresses.stop):
            merge(held.freed_behind, behind)
            held.freed_on.update(freed_on)

    def note_leaving(self) -> None:
        """Note that what nobody owns was to be given back, by a trim or for lack of memory, if not at once."""
        self.leaving |= {start for start, end, _ in self.backing if not self.live.overlapping(start, end)}

    def see_backing(self, observation: Observation, pool: Slot | None, graphs: Iterable[GraphMemory]) -> list[Returned]:
        """Enter a backing allocation or return; say which blocks and guarded ranges a return takes along.

        What is taken may be kept for ``graphs``, whether or not a block comes of it.
        """
        if isinstance(observation, BackingFreed):
            address, end = observation.address, observation.address + observation.size_bytes
            if (held := self.backing.remove(address)) is not None:
                self.held_bytes -= held.size_bytes
                if held.pool == SOME_POOL:
                    self._unclaimed.remove(held)
            taken = [Returned(observation, block, None) for _, _, block in self.live.overlapping(address, end)]
            taken += [Returned(observation, freed.block, freed.guard) for freed in self.guarded.cut(address, end)]
            return taken
        if isinstance(observation, BackingAllocated) and self._ledger:
            address, size, kind = observation.address, observation.size_bytes, observation.kind
            self._kinds_seen.add(kind)
            if not self.backing.overlapping(address, address + size):
                self._is_mixed |= pool not in (None, SOME_POOL)
                launches = self.scratch.launches
                held = BackingRange(
                    address, size, kind, observation.device, pool, graphs=list(graphs), launches_before=launches
                )
                self.backing.add(address, address + size, held)
                self.held_bytes += size
                if pool == SOME_POOL:
                    self._unclaimed.append(held)
        elif isinstance(observation, BackingRefused) and self._ledger:
            self._kinds_seen.add(observation.kind)
        return []

    def is_pinned_backing(self, start: int, end: int) -> bool:
        """Whether ``[start, end)`` is seen to lie in pinned memory."""
        ranges = self.backing.overlapping(start, end)
        covered_bytes = sum(min(end, above) - max(start, below) for below, above, _ in ranges)
        return covered_bytes == end - start and all(held.kind is MemoryKind.PINNED for _, _, held in ranges)

    def disown(self, pool: Slot) -> None:
        """Take it that nobody knows whose the memory of a pool is from now on."""
        for _, _, held in self.backing:
            if held.pool == pool:
                held.pool = SOME_POOL
                self._unclaimed.append(held)

    def bequeath(self, pool: Slot, orphan: Slot) -> None:
        """Keep the memory of a pool under another name: the pool is destroyed, and may stay for its blocks."""
        for _, _, held in self.backing:
            if held.pool == pool:
                held.pool = orphan

    def holding(self, block: BlockState) -> list[BackingRange]:
        """Return the backing memory under a block, in order; nothing after the first byte that has none."""
        reached = block.address
        holding = []
        for start, end, held in self.backing.overlapping(block.address, block.end):
            if start > reached:
                break
            reached = end
            holding.append(held)
        return holding


_NAMED_MAX: Final = 2


def held_in_words(ranges: Sequence[BackingRange]) -> str:
    """Return the sum of backing allocations, and which block was the last in each; the ranges are not empty."""
    size = bytes_in_words(sum(held.size_bytes for held in ranges))
    names = list(dict.fromkeys(held.last_block for held in ranges if held.last_block))
    where = "one backing allocation" if len(ranges) == 1 else f"{len(ranges):,} backing allocations"
    if not names:
        return f"{size} in {where}, in which no block was"
    shown = " and ".join(f"'{name}'" for name in names[:_NAMED_MAX])
    more = len(names) - _NAMED_MAX
    also = f" and {counted(more, 'other block')}" if more > 0 else ""
    return f"{size} in {where}, in which {shown}{also} {'was' if len(names) == 1 else 'were'} last"

"""Races between streams, from the observations of a ledger: two uses of one byte, one of them a write, and no order.

Order is the oracle's (:mod:`quiesce.oracle.clocks`): the ledger observes every record, wait and synchronisation, so a
use is either ordered or it is not, whatever schedule ran it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from quiesce.observations import DEFAULT_STREAM
from quiesce.oracle.clocks import Clock, HappensBefore, StreamState
from quiesce.simulator.ledger import Flag, Record, Seen, Thing


@dataclass(frozen=True, slots=True)
class Race:
    """Two uses of the same memory that nothing orders."""

    earlier: Record
    later: Record
    address: int
    size_bytes: int


@dataclass(slots=True)
class _Use:
    start: int
    end: int
    writes: bool
    clock: Clock
    record: Record


@dataclass(slots=True)
class _Block:
    """A live block and the uses of it that the host does not know to be complete."""

    start: int
    end: int
    uses: list[_Use] = field(default_factory=list)


class RaceDetector:
    """Takes observations in order; :meth:`see` yields the races that each completes."""

    def __init__(self) -> None:
        self._order = HappensBefore(legacy_default_stream=True)
        self._streams: dict[int, StreamState] = {}
        self._defaults: dict[int, StreamState] = {}
        self._events: dict[int, tuple[Clock, StreamState]] = {}
        self._blocks: dict[int, _Block] = {}
        self._pages: dict[int, list[_Block]] = {}

    def see(self, record: Record) -> Iterator[Race]:
        """Enter one observation."""
        match record.seen:
            case Seen.ALLOCATED:
                yield from self._allocate(record)
            case Seen.FREED:
                yield from self._free(record)
            case Seen.COPIED:
                state = self._work(record)
                if not record.flags & Flag.STAGED:
                    yield from self._use(record, record.other, record.other_bytes, state, writes=False)
                yield from self._use(record, record.address, record.size_bytes, state, writes=True)
            case Seen.READ | Seen.WRITTEN:
                state, writes = self._work(record), record.seen is Seen.WRITTEN
                yield from self._use(record, record.address, record.size_bytes, state, writes=writes)
            case _:
                self._see_order(record)

    def _see_order(self, record: Record) -> None:
        if record.flags & Flag.CAPTURED:
            return
        match record.seen:
            case Seen.CREATED if record.thing is Thing.STREAM:
                nonblocking = bool(record.flags & Flag.NONBLOCKING)
                name = f"internal:{record.object}"
                self._streams[record.object] = self._order.new_stream(name, record.device, nonblocking=nonblocking)
            case Seen.RECORDED:
                state = self._stream(record)
                self._events[record.object] = (self._order.record(state), state)
            case Seen.STREAM_WAITED if record.object in self._events:
                self._order.wait(self._stream(record), self._events[record.object][0])
            case Seen.EVENT_WAITED | Seen.EVENT_COMPLETE if record.object in self._events:
                self._order.complete(self._events[record.object][0])
            case Seen.STREAM_WAITED_FOR | Seen.STREAM_COMPLETE:
                self._order.complete(self._order.encompassed(self._stream(record)))
            case Seen.HOST_WAITED_WORK:
                self._order.complete(dict(self._stream(record).clock))
            case Seen.DEVICE_WAITED_FOR:
                self._order.complete_device(record.device)
            case Seen.DESTROYED if record.thing is Thing.EVENT:
                self._events.pop(record.object, None)
            case _:
                pass

    def _stream(self, record: Record) -> StreamState:
        if record.stream in self._streams:
            return self._streams[record.stream]
        if record.device not in self._defaults:
            self._defaults[record.device] = self._order.new_stream(DEFAULT_STREAM, record.device)
        return self._defaults[record.device]

    def _work(self, record: Record) -> StreamState:
        state = self._stream(record)
        self._order.enqueue(state)
        return state

    # -- memory ----------------------------------------------------------------------------------------------------

    def _allocate(self, record: Record) -> Iterator[Race]:
        """Begin a block without a past: whoever hands memory out again has waited for its last use."""
        block = _Block(record.address, record.address + record.size_bytes)
        self._blocks[record.address] = block
        for page in _pages(block.start, block.end):
            self._pages.setdefault(page, []).append(block)
        if record.flags & Flag.ORDERED:
            yield from self._use(record, block.start, record.size_bytes, self._work(record), writes=True)

    def _free(self, record: Record) -> Iterator[Race]:
        block = self._blocks.pop(record.address, None)
        if block is None:
            return
        state = self._work(record) if record.flags & Flag.ORDERED else None
        yield from self._conflicts(record, block, block.start, block.end, state, writes=True)
        for page in _pages(block.start, block.end):
            self._pages[page].remove(block)
            if not self._pages[page]:
                del self._pages[page]

    def _use(self, record: Record, start: int, size_bytes: int, state: StreamState, *, writes: bool) -> Iterator[Race]:
        """Enter a use, which goes on from one block to the next where mappings lie side by side."""
        end = start + size_bytes
        while start < end and (block := self._block_at(start)) is not None:
            inside = min(end, block.end)
            yield from self._conflicts(record, block, start, inside, state, writes=writes)
            # Whatever is unordered with an earlier use of the same stream is unordered with this one as well.
            block.uses = [each for each in block.uses if not _covers(start, inside, writes, state, each)]
            block.uses.append(_Use(start, inside, writes, {state.timeline: state.enqueued}, record))
            start = inside

    def _block_at(self, address: int) -> _Block | None:
        return next((each for each in self._pages.get(_page(address), ()) if each.start <= address < each.end), None)

    def _conflicts(
        self, record: Record, block: _Block, start: int, end: int, state: StreamState | None, *, writes: bool
    ) -> Iterator[Race]:
        kept = []
        for use in block.uses:
            if not self._order.unfinished(use.clock):
                continue
            kept.append(use)
            touches = use.start < end and start < use.end
            if touches and (writes or use.writes) and not self._is_before(use.clock, state):
                low, high = max(start, use.start), min(end, use.end)
                yield Race(use.record, record, low, high - low)
        block.uses = kept

    def _is_before(self, clock: Clock, state: StreamState | None) -> bool:
        """Whether a use comes before the work just enqueued on a stream (None: before the host goes on)."""
        known = state.clock if state is not None else {}
        return all(number <= known.get(timeline, 0) for timeline, number in self._order.unfinished(clock).items())


def _covers(start: int, end: int, writes: bool, state: StreamState, use: _Use) -> bool:
    """Whether a use on that stream's present has every conflict that an earlier ``use`` has."""
    return state.timeline in use.clock and start <= use.start and use.end <= end and (writes or not use.writes)


_PAGE_BITS = 20


def _page(address: int) -> int:
    return address >> _PAGE_BITS


def _pages(start: int, end: int) -> range:
    return range(_page(start), _page(max(start, end - 1)) + 1)

"""Races between streams, from the records of a ledger: two uses of one byte, one of them a write, and no order.

Order is the oracle's (:mod:`quiesce.oracle.clocks`): the ledger observes every record, wait and synchronisation, so a
use is either ordered or it is not, whatever schedule ran it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quiesce.observations import DEFAULT_STREAM
from quiesce.oracle.clocks import Clock, HappensBefore, StreamState
from quiesce.simulator.ledger import Flag, Record, Seen, Thing
from quiesce.traces.uses import Use, Uses


@dataclass(frozen=True, slots=True)
class Race:
    """Two uses of the same memory that nothing orders."""

    earlier: Record
    later: Record
    address: int
    size_bytes: int


@dataclass(slots=True)
class _Block:
    """A live block and the uses of it."""

    start: int
    end: int
    uses: Uses


class RaceDetector:
    """Takes records in order; :meth:`see` yields the races that each completes."""

    def __init__(self) -> None:
        self._order = HappensBefore(legacy_default_stream=True)
        self._streams: dict[int, StreamState] = {}
        self._defaults: dict[int, StreamState] = {}
        self._events: dict[int, tuple[Clock, StreamState]] = {}
        self._blocks: dict[int, _Block] = {}
        self._pages: dict[int, list[_Block]] = {}

    def see(self, record: Record) -> Iterator[Race]:
        """Enter one record."""
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
        block = _Block(record.address, record.address + record.size_bytes, Uses(self._order))
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
        for use, low, high in block.uses.unordered(block.start, block.end, state, writes=True):
            yield Race(use.record, record, low, high - low)
        for page in _pages(block.start, block.end):
            self._pages[page].remove(block)
            if not self._pages[page]:
                del self._pages[page]

    def _use(self, record: Record, start: int, size_bytes: int, state: StreamState, *, writes: bool) -> Iterator[Race]:
        """Enter a use, which goes on from one block to the next where mappings lie side by side."""
        end = start + size_bytes
        while start < end and (block := self._block_at(start)) is not None:
            inside = min(end, block.end)
            for use, low, high in block.uses.unordered(start, inside, state, writes=writes):
                yield Race(use.record, record, low, high - low)
            block.uses.enter(start, inside, Use(state, state.enqueued, writes, record))
            start = inside

    def _block_at(self, address: int) -> _Block | None:
        return next((each for each in self._pages.get(_page(address), ()) if each.start <= address < each.end), None)


_PAGE_BITS = 20


def _page(address: int) -> int:
    return address >> _PAGE_BITS


def _pages(start: int, end: int) -> range:
    return range(_page(start), _page(max(start, end - 1)) + 1)

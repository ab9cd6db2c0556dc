"""Races between streams, from the records of a ledger: two uses of one byte, one of them a write, and no order.

Order is the oracle's (:mod:`quiesce.oracle.clocks`): the ledger observes every record, wait and synchronisation, so a
use is either ordered or it is not, whatever schedule ran it. Copies, fills and frees say what they use when they are
called for; of kernels the bytes are known that they touched (:mod:`quiesce.simulator.touched_log`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain

from quiesce.observations import DEFAULT_STREAM
from quiesce.oracle.clocks import Clock, HappensBefore, StreamState
from quiesce.simulator.ledger import Flag, Record, Seen, Thing
from quiesce.simulator.touched_log import Piece, Touch, Touched
from quiesce.traces.footprints import Mask, shared_bytes
from quiesce.traces.uses import Use, Uses


@dataclass(frozen=True, slots=True)
class Race:
    """Two uses of the same memory that nothing orders."""

    earlier: Use
    later: Use
    address: int
    """The first byte that both use."""
    size_bytes: int
    allocated: Record

    def is_like(self, other: Race) -> bool:
        """Whether both calls do the same to the bytes of another race of these calls, in the same block."""
        kinds = ((each.earlier.touch, each.later.touch, each.allocated) for each in (self, other))
        return next(kinds) == next(kinds)


@dataclass(slots=True)
class _Block:
    """A live block and the uses of it."""

    start: int
    end: int
    uses: Uses
    allocated: Record

    def races(self, start: int, end: int, later: Use) -> Iterator[Race]:
        """Yield the uses of ``[start, end)`` that a later one is not ordered with."""
        for earlier, address, size_bytes in self.uses.unordered(start, end, later):
            yield Race(earlier, later, address, size_bytes, self.allocated)


class RaceDetector:
    """Takes records in order; :meth:`see` yields the races that each completes.

    ``touched`` returns what a launch touched, by the number of its record.
    """

    def __init__(self, touched: Callable[[int], Touched | None] = lambda _: None) -> None:
        self._touched = touched
        self._order = HappensBefore(legacy_default_stream=True)
        self._streams: dict[int, StreamState] = {}
        self._defaults: dict[int, StreamState] = {}
        self._events: dict[int, tuple[Clock, StreamState]] = {}
        self._blocks: dict[int, _Block] = {}
        self._pages: dict[int, list[_Block]] = {}
        self._large: list[_Block] = []

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
                    yield from self._use(record.other, record.other_bytes, _use_of(record, state, Touch.READ))
                yield from self._use(record.address, record.size_bytes, _use_of(record, state, Touch.WRITE))
            case Seen.READ | Seen.WRITTEN:
                touch = Touch.WRITE if record.seen is Seen.WRITTEN else Touch.READ
                yield from self._use(record.address, record.size_bytes, _use_of(record, self._work(record), touch))
            case Seen.LAUNCHED:
                yield from self._launch(record, self._work(record))
            case _:
                self._see_order(record)

    def _launch(self, record: Record, state: StreamState) -> Iterator[Race]:
        """Enter what a launch touched; with each other call yield one race, over all bytes that race in that way."""
        touched = self._touched(record.number)
        found: dict[int, Race] = {}
        for piece in touched.pieces if touched else ():
            mask = Mask(piece.start, piece.mask) if piece.mask else None
            use = Use(state, state.enqueued, piece.touch, record, touched, piece.place, mask)
            for race in self._use(piece.start, piece.end - piece.start, use):
                number = race.earlier.record.number
                if number not in found and not _may_signal(race.earlier, use):
                    found[number] = race
                elif number in found and found[number].is_like(race):
                    found[number] = replace(found[number], size_bytes=found[number].size_bytes + race.size_bytes)
        yield from found.values()

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
            case Seen.DESTROYED if record.object in self._streams and self._order.forget(self._streams[record.object]):
                del self._streams[record.object]
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
        block = _Block(record.address, record.address + record.size_bytes, Uses(self._order), record)
        self._blocks[record.address] = block
        if _is_large(block):
            self._large.append(block)
        else:
            for page in _pages(block.start, block.end):
                self._pages.setdefault(page, []).append(block)
        if record.flags & Flag.ORDERED:
            yield from self._use(block.start, record.size_bytes, _use_of(record, self._work(record), Touch.WRITE))

    def _free(self, record: Record) -> Iterator[Race]:
        block = self._blocks.pop(record.address, None)
        if block is None:
            return
        state = self._work(record) if record.flags & Flag.ORDERED else None
        others: set[int] = set()
        for race in block.races(block.start, block.end, _use_of(record, state, Touch.WRITE)):
            if race.earlier.record.number not in others:
                others.add(race.earlier.record.number)
                yield race
        if _is_large(block):
            self._large.remove(block)
            return
        for page in _pages(block.start, block.end):
            self._pages[page].remove(block)
            if not self._pages[page]:
                del self._pages[page]

    def _use(self, start: int, size_bytes: int, use: Use) -> Iterator[Race]:
        """Enter a use, which goes on from one block to the next where mappings lie side by side."""
        end = start + size_bytes
        while start < end and (block := self._block_at(start)) is not None:
            inside = min(end, block.end)
            yield from block.races(start, inside, use)
            block.uses.enter(start, inside, use)
            start = inside

    def _block_at(self, address: int) -> _Block | None:
        blocks = chain(self._pages.get(_page(address), ()), self._large)
        return next((each for each in blocks if each.start <= address < each.end), None)


def _use_of(record: Record, state: StreamState | None, touch: Touch) -> Use:
    return Use(state, state.enqueued if state else 0, touch, record)


def _may_signal(one: Use, other: Use) -> bool:
    """Whether two kernels may have waited for each other by volatile or atomic accesses to the same bytes."""
    if one.touched is None or other.touched is None:
        return False
    return _signals(one.touched, other.touched) or _signals(other.touched, one.touched)


def _signals(sender: Touched, receiver: Touched) -> bool:
    sent = [piece for piece in sender.pieces if piece.touch in (Touch.STRONG_WRITE, Touch.ATOMIC)]
    seen = [piece for piece in receiver.pieces if piece.touch is Touch.STRONG_READ]
    return any(_share(first, second) for first in sent for second in seen)


def _share(one: Piece, other: Piece) -> bool:
    masks = (Mask(each.start, each.mask) if each.mask else None for each in (one, other))
    return shared_bytes(max(one.start, other.start), min(one.end, other.end), *masks) is not None


_PAGE_BITS = 20


def _page(address: int) -> int:
    return address >> _PAGE_BITS


def _pages(start: int, end: int) -> range:
    return range(_page(start), _page(max(start, end - 1)) + 1)


def _is_large(block: _Block) -> bool:
    """Whether a block has so many pages that it is not listed at each of them: 64 GiB, which few blocks have."""
    return block.end - block.start > 1 << 36

"""Races between streams, from the records of a ledger: two uses of one byte, one of them a write, and no order.

The uses of a block are kept part by part. Where a kernel touched bytes with gaps, these are compared exactly. A race
becomes a finding with both calls, what each does at which line, and the bytes that both use.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from typing import Final, TypeAlias

from quiesce.allocators.indexes import IntervalIndex
from quiesce.allocators.oracle import Clock, HappensBefore, StreamState
from quiesce.model.findings import Finding
from quiesce.model.observations import DEFAULT_STREAM
from quiesce.model.program_rules import ORDERED
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words, shown_path
from quiesce.simulator.judge.drafts import Draft, order_in_words
from quiesce.simulator.judge.masks import Mask, shared_bytes
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.quoting import quoted_places
from quiesce.simulator.judge.wording import stream_in_words, thing_in_words
from quiesce.simulator.runtime import OPERAND, Flag, Piece, ProgramSources, Record, Seen, Thing, Touch, Touched


@dataclass(frozen=True, slots=True, eq=False)
class Use:
    """A use by the work that was just enqueued on a stream; by the host where ``stream`` is None.

    ``touched`` is all that a launch touched, None of other work; ``place`` is where the kernel does this. Of a use
    with a ``mask`` only the bytes that it means are used.
    """

    stream: StreamState | None
    number: int
    touch: Touch
    record: Record
    touched: Touched | None = None
    place: str = ""
    mask: Mask | None = None

    def is_before(self, order: HappensBefore, stream: StreamState | None) -> bool:
        """Whether it comes before the work just enqueued on a stream (None: before the host goes on)."""
        if self.stream is None:
            return True
        timeline = self.stream.timeline
        known = stream.clock.get(timeline, 0) if stream is not None else 0
        return self.number <= known or not order.unfinished({timeline: self.number})

    def conflicts_with(self, other: Use) -> bool:
        """Whether the two must be in order where they use the same bytes.

        Volatile and relaxed accesses are how a kernel watches copies, and is watched by them.
        """
        if not (self.touch.writes or other.touch.writes) or (self.touch.is_strong and other.touch.is_strong):
            return False
        is_watched = any(use.touch in (Touch.STRONG_READ, Touch.STRONG_WRITE) for use in (self, other))
        return not is_watched or (self.touched is not None and other.touched is not None)

    def is_superseded(self, order: HappensBefore, later: Use) -> bool:
        """Whether a later use of the same part has every conflict that this one has."""
        covers = later.mask is None or later.mask == self.mask
        return covers and later.touch in (self.touch, Touch.WRITE) and self.is_before(order, later.stream)


_Part: TypeAlias = tuple[int, int, tuple[Use, ...]]
_PARTS_MIN: Final = 64
_OF_HOST: Final = (Thing.PINNED, Thing.MANAGED, Thing.REGISTERED)
_KEPT_MAX: Final = 32
"""So many uses with masks are kept of one part, for they hardly ever supersede each other."""


class Uses:
    """What is kept of the uses of one block."""

    def __init__(self, order: HappensBefore) -> None:
        self._order = order
        self._parts: IntervalIndex[tuple[Use, ...]] = IntervalIndex()
        self._parts_max = _PARTS_MIN

    def unordered(self, start: int, end: int, later: Use) -> Iterator[tuple[Use, int, int]]:
        """Yield the uses that conflict with one of ``[start, end)``, the earliest first.

        Each comes with the first byte that both use, and how many bytes these are.
        """
        shared: dict[Use, tuple[int, int]] = {}
        known = self._parts.exactly(start, end)
        parts = self._parts.overlapping(start, end) if known is None else [(start, end, known)]
        for first, last, uses in parts:
            for use in uses:
                if not use.conflicts_with(later) or use.is_before(self._order, later.stream):
                    continue
                found = shared_bytes(max(first, start), min(last, end), use.mask, later.mask)
                if found is not None:
                    low, count = shared.get(use, (found[0], 0))
                    shared[use] = low, count + found[1]
        for use in sorted(shared, key=lambda each: each.record.number):
            yield use, *shared[use]

    def enter(self, start: int, end: int, use: Use) -> None:
        """Enter a use of ``[start, end)``; most programs use the same parts again and again."""
        known = self._parts.exactly(start, end)
        if known is not None:
            self._parts.change(start, (*self._kept(known, use), use))
            return
        before = self._parts.overlapping(start, end)
        self._parts.cut(start, end)
        self._add((low, high, (*self._kept(uses, use), use)) for low, high, uses in _divide(start, end, before))
        if len(self._parts) > self._parts_max:
            self._forget_complete()

    def _kept(self, uses: tuple[Use, ...], later: Use) -> list[Use]:
        kept = [each for each in uses if not each.is_superseded(self._order, later)]
        masked = [each for each in kept if each.mask is not None]
        dropped = set(masked[:-_KEPT_MAX])
        return [each for each in kept if each not in dropped]

    def _forget_complete(self) -> None:
        parts = list(self._parts)
        self._parts = IntervalIndex()
        self._add(
            (low, high, tuple(each for each in uses if not each.is_before(self._order, None)))
            for low, high, uses in parts
        )
        self._parts_max = max(_PARTS_MIN, 2 * len(self._parts))

    def _add(self, parts: Iterable[_Part]) -> None:
        """Add parts in order; neighbours that the same uses touched become one, and what nobody uses none."""
        start = end = 0
        uses: tuple[Use, ...] = ()
        for low, high, touched in chain(parts, [(0, 0, ())]):
            if touched == uses and low == end:
                end = high
                continue
            if uses:
                self._parts.add(start, end, uses)
            start, end, uses = low, high, touched


def _divide(start: int, end: int, parts: Iterable[_Part]) -> Iterator[_Part]:
    """Yield the parts within ``[start, end)``, and between them what nobody has used."""
    for first, last, uses in parts:
        if start < first:
            yield start, first, ()
        yield max(start, first), min(last, end), uses
        start = last
    if start < end:
        yield start, end, ()


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
        self._ended: deque[StreamState] = deque()
        self._blocks: dict[int, _Block] = {}
        self._pages: dict[int, list[_Block]] = {}
        self._large: list[_Block] = []
        self._met_host: set[int] = set()
        """The works that the host did not wait for: what is said of one is said once."""
        self._told = -1
        """The last launch that may tell the host something while it runs."""

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
            case Seen.HOST_READ | Seen.HOST_WROTE:
                touch = Touch.WRITE if record.seen is Seen.HOST_WROTE else Touch.READ
                for race in self._use(record.address, record.size_bytes, _use_of(record, None, touch)):
                    number = race.earlier.record.number
                    if self._told < number < record.object and number not in self._met_host:
                        self._met_host.add(number)
                        yield race
            case _:
                self._see_order(record)

    def _launch(self, record: Record, state: StreamState) -> Iterator[Race]:
        """Enter what a launch touched; with each other call yield one race, over all bytes that race in that way."""
        touched = self._touched(record.number)
        if self._may_tell_host(touched):
            self._told = record.number
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

    def _may_tell_host(self, touched: Touched | None) -> bool:
        """Whether a kernel may tell the host by volatile or atomic accesses that it and what came before is done."""
        strong = (piece for piece in touched.pieces if piece.touch.is_strong) if touched else ()
        blocks = (self._block_at(piece.start) for piece in strong)
        return any(block is not None and block.allocated.thing in _OF_HOST for block in blocks)

    def _see_order(self, record: Record) -> None:
        if record.flags & Flag.CAPTURED:
            return
        match record.seen:
            case Seen.CREATED if record.thing is Thing.STREAM:
                nonblocking = bool(record.flags & Flag.NONBLOCKING)
                name = f"internal:{record.object}"
                self._streams[record.object] = self._order.new_stream(name, record.device, nonblocking=nonblocking)
            case Seen.BRANCH_BEGAN:
                self._begin_branch(record)
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

    def _begin_branch(self, record: Record) -> None:
        if record.stream in self._streams:
            self._ended.append(self._streams[record.stream])
        while self._ended and self._order.forget(self._ended[0]):
            self._ended.popleft()
        name = f"internal:{record.stream}"
        self._streams[record.stream] = self._order.new_stream(name, record.device, nonblocking=True)

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


def race_finding(race: Race, origins: Origins, sources: ProgramSources) -> Finding:
    """Return the finding about a race, with the lines of kernels that have a part in it."""
    doings = filter(None, map(doing, (race.earlier, race.later)))
    whole = f"nothing orders the two, and both use {bytes_in_words(race.size_bytes)} at {race.address:#x}"
    earlier, later = race.earlier, race.later
    variable = origins.variable_made_by(race.allocated)
    sites = [origins.site("earlier use", earlier.record), origins.site("later use", later.record)]
    if (earlier.touched or later.touched) and not variable:
        sites.insert(0, origins.site("allocated by", race.allocated))
    order = (*_called(earlier), " before ", *_called(later))
    return Draft(
        ORDERED,
        order_in_words(order, {}),
        "; ".join([f"{whole}{_in_block(race, variable)}", *doings]),
        operation_index=later.record.number,
        request=f"{later.touched.kernel} at {_place(later)}" if later.touched else later.record.function,
        kind=Kind.RACE,
        call_sites=tuple(sites),
        quoted=tuple(
            dict.fromkeys(
                quotation
                for use in (earlier, later)
                if use.touched is not None
                for quotation in quoted_places([use.place], use.touched.kernel, sources)
            )
        ),
        order=order,
    )


def launches_unjudged(count: int) -> str:
    """Return a note about launches of which nobody knows what they touched, or an empty text."""
    if not count:
        return ""
    launches = "launches" if count > 1 else "launch"
    return f"{count:,} {launches} of kernels touched memory in too many pieces to be judged for races with other work"


def named(use: Use) -> str:
    """Return who uses bytes: a kernel, or a function of the runtime or of a library."""
    if use.touched is None:
        return use.record.function
    return use.touched.kernel if use.place.startswith(OPERAND) else f"kernel '{use.touched.kernel}'"


def _called(use: Use) -> tuple[str | int, ...]:
    record = use.record
    name = named(use)
    if record.seen in (Seen.HOST_READ, Seen.HOST_WROTE):
        return (f"{name} (call {record.number})",)
    call = f"{name} (call {record.number}) on "
    if record.seen is Seen.FREED and not record.flags & Flag.ORDERED:
        return (f"{call}the host",)
    is_stream = record.stream and not record.flags & Flag.OF_GRAPH
    return (call, record.stream) if is_stream else (f"{call}{stream_in_words(record)}",)


def doing(use: Use) -> str:
    """Return what a kernel does to the bytes, and where."""
    if use.touched is None:
        return ""
    verb = (
        "changes them atomically" if use.touch is Touch.ATOMIC else "writes them" if use.touch.writes else "reads them"
    )
    return f"{named(use)} {verb} at {_place(use)}"


def _place(use: Use) -> str:
    file, _, line = use.place.rpartition(":")
    return f"{shown_path(file)}:{line}" if file and line.isdigit() else use.place or "an unknown line"


def _in_block(race: Race, variable: str) -> str:
    if race.earlier.touched is None and race.later.touched is None:
        return ""
    block: Record = race.allocated
    offset = race.address - block.address
    into = f"{bytes_in_words(offset)} into" if offset else "at the start of"
    name = f"variable '{variable}'" if variable else f"a {thing_in_words(block.thing)} block"
    return f", {into} {name} of {bytes_in_words(block.size_bytes)}"

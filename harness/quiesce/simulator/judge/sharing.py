"""Processes that share memory: their ledgers are joined, for uses of one block by two of them.

Nobody here sees what the hosts of two processes tell each other, through a pipe or a queue. So a use is in order with a
use of another process if it could be: if the host of that one had learned that its work is complete before the later
call began, or if an event that both processes use puts the two in order. Everything else is a race: a host cannot tell
others that work is complete before it knows. The runtime numbers all calls of processes that share, in the order in
which they began.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path
from typing import Final

from quiesce.model.findings import CallSite, Finding
from quiesce.model.program_rules import ORDERED
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words
from quiesce.simulator.judge.logs import Logs, open_logs
from quiesce.simulator.judge.origins import EXPORTER, Origins
from quiesce.simulator.judge.races import Race, RaceDetector, Use, doing, named
from quiesce.simulator.judge.wording import stream_in_words
from quiesce.simulator.runtime import Piece, Record, Seen, Thing, Touch, Touched, process_of, was_begun

NOT_CHECKED: Final = (
    "processes share memory: whether their hosts wait for each other is not checked, so that uses count as ordered "
    "which one process had waited for before another one began"
)
"""What a pass does not cover."""
_SPAN: Final = 1 << 64
"""So far apart are the addresses of two processes in the joined record; numbers of all kinds are, too."""
_ABOUT_EVENTS: Final = (Seen.RECORDED, Seen.STREAM_WAITED, Seen.EVENT_WAITED, Seen.EVENT_COMPLETE)


@dataclass(slots=True)
class _Export:
    """A block that a process exported: where it lies in the joined record, and the calls that made and freed it."""

    start: int
    allocated: Record
    freed: Record | None = None


@dataclass(slots=True)
class _Process:
    """One of the processes, by its number in the report.

    ``exports`` are by their serials, ``exported`` are the records that allocated them. ``events`` has the joined number
    of each event that it imported, ``windows`` the memory: its start and end, and where it lies when joined.
    """

    number: int
    path: Path
    logs: Logs
    offset: int
    exports: dict[int, _Export] = field(default_factory=dict)
    exported: set[int] = field(default_factory=set)
    events: dict[int, int] = field(default_factory=dict)
    windows: list[tuple[int, int, int]] = field(default_factory=list)
    why_unjudged: str = ""

    def read(self) -> None:
        """Find what it exported, and what keeps races from being judged."""
        allocated: dict[int, Record] = {}
        live: dict[int, _Export] = {}
        if self.logs.ledger.lost:
            self.why_unjudged = "the record of one that shares memory is not complete"
        for record in self.logs.ledger.records():
            match record.seen:
                case Seen.ALLOCATED:
                    allocated[record.address] = record
                case Seen.EXPORTED if record.address in allocated:
                    made = _Export(self.offset + record.address, allocated[record.address])
                    self.exports[record.object] = live[record.address] = made
                    self.exported.add(made.allocated.number)
                case Seen.FREED if record.address in live:
                    live.pop(record.address).freed = record
                case Seen.STREAM_WAITED_VALUE:
                    self.why_unjudged = "one that shares memory orders streams by a value in memory"
                case Seen.TICK if not record.object:
                    self.why_unjudged = "it is not known in which order their calls began"
                case _:
                    pass

    def joined_address(self, address: int) -> int:
        for start, end, joined in self.windows:
            if start <= address < end:
                return joined + address - start
        return self.offset + address

    def joined_piece(self, piece: Piece) -> Piece:
        start = self.joined_address(piece.start)
        return replace(piece, start=start, end=start + piece.end - piece.start)

    def site_origins(self) -> Origins:
        return Origins(self.logs.stacks, self.logs.code.variables, self.logs.accesses)


@contextmanager
def joined_processes(path: Path) -> Iterator[Sharing | None]:
    """Join the process that left its ledger at ``path`` with those of its run that it shares with; None: with none."""
    if not (path.parent / "ticks").exists():
        yield None
        return
    with ExitStack() as opened:
        ledgers = sorted(path.parent.glob("*.ledger"), key=process_of)
        processes: list[_Process] = []
        for number, each in enumerate(filter(was_begun, ledgers), 1):
            logs = opened.enter_context(open_logs(each))
            if next(logs.ledger.numbers_of(Seen.TICK), None) is not None:
                processes.append(_Process(number, each, logs, len(processes) * _SPAN))
        own = next((each for each in processes if each.path == path), None)
        yield None if own is None else Sharing(processes, own)


class Sharing:
    """The processes of a run that share memory; ``own`` is the one that is judged."""

    def __init__(self, processes: Sequence[_Process], own: _Process) -> None:
        self._processes = processes
        self._own = own
        self._by_process = {each.logs.ledger.process: each for each in processes}
        self._strong: dict[int, set[tuple[int, int, Touch]]] = {each.number: set() for each in processes}
        for each in processes:
            each.read()

    @property
    def unjudged(self) -> str:
        """Why races between processes were not judged; empty where they were."""
        why = next((each.why_unjudged for each in self._processes if each.why_unjudged), "")
        if not why and may_signal(self._strong):
            why = "their kernels may have waited for each other by volatile or atomic accesses"
        return f"races between processes were not judged: {why}" if why else ""

    def _records(self) -> Iterator[tuple[int, int, Record]]:
        """Yield the records of all in the order in which their calls began, with the place of the process."""
        return heapq.merge(
            *(_ticked(place, each) for place, each in enumerate(self._processes)), key=lambda each: each[:2]
        )

    # -- races -----------------------------------------------------------------------------------------------------

    def races(self) -> list[Finding]:
        """Return the races between processes of which the judged one made the later call, one for each two places.

        After that it is known whether they were judged.
        """
        found: dict[object, Finding] = {}
        detector = RaceDetector(self._touched)
        for _, place, record in () if self.unjudged else self._records():
            process = self._processes[place]
            for race in self._see(detector, process, record):
                if process is self._own and (earlier := self._maker_of(race.earlier)) is not process:
                    finding = self._finding(race, earlier)
                    found.setdefault(tuple((site.call, site.frames) for site in finding.call_sites), finding)
        return [] if self.unjudged else list(found.values())

    def _touched(self, number: int) -> Touched | None:
        process = self._processes[number // _SPAN]
        touched = process.logs.touched.of(number % _SPAN) if process.logs.touched else None
        pieces = tuple(map(process.joined_piece, touched.pieces)) if touched else ()
        strong = {(each.start, each.end, each.touch) for each in pieces if each.touch.is_strong}
        self._strong[process.number].update(strong)
        return touched and replace(touched, pieces=pieces)

    def _maker_of(self, use: Use) -> _Process:
        return self._processes[use.record.number // _SPAN]

    def _see(self, detector: RaceDetector, process: _Process, record: Record) -> Iterable[Race]:
        match record.seen:
            case Seen.ALLOCATED if record.thing is Thing.IMPORTED:
                export = self._export_of(record)
                if export is not None:
                    process.windows.append((record.address, record.address + record.size_bytes, export.start))
            case Seen.FREED if record.thing is Thing.IMPORTED:
                process.windows = [each for each in process.windows if each[0] != record.address]
            case Seen.IMPORTED:
                exporter = self._by_process.get(record.other)
                if exporter is not None:
                    process.events[record.object] = exporter.offset + record.address
            case Seen.FREED:
                list(detector.see(_joined(process, record)))  # FREED_WHILE_OPEN tells of it
            case Seen.ALLOCATED if record.number not in process.exported:
                pass
            case Seen.DESTROYED if record.thing is Thing.EVENT and record.object in process.events:
                pass
            case _:
                return detector.see(_joined(process, record))
        return ()

    def _export_of(self, record: Record) -> _Export | None:
        exporter = self._by_process.get(record.other)
        return exporter.exports.get(record.object) if exporter else None

    def _finding(self, race: Race, earlier: _Process) -> Finding:
        sites = [
            process.site_origins().site_with_stack(f"{role} use, in process {process.number},", _local(use.record))
            for role, process, use in (("earlier", earlier, race.earlier), ("later", self._own, race.later))
        ]
        offset = race.address - race.allocated.address
        into = f"{bytes_in_words(offset)} into" if offset else "at the start of"
        whole = (
            f"nothing orders the two, and both use {bytes_in_words(race.size_bytes)} of memory that the processes "
            f"share, {into} a block of {bytes_in_words(race.allocated.size_bytes)}"
        )
        return Finding(
            ORDERED,
            f"{_called(race.earlier)} in process {earlier.number} before {_called(race.later)} in process "
            f"{self._own.number}",
            "; ".join(filter(None, (whole, doing(race.earlier), doing(race.later)))),
            operation_index=_local(race.later.record).number,
            request=race.later.record.function,
            kind=Kind.RACE,
            call_sites=tuple(sites),
        )

    # -- frees -----------------------------------------------------------------------------------------------------

    def told(self, findings: Iterable[Finding]) -> tuple[Finding, ...]:
        """Return findings, those about memory that its exporter freed with the call that did."""
        return tuple(
            replace(finding, call_sites=tuple(map(self._with_free, finding.call_sites))) for finding in findings
        )

    def _with_free(self, site: CallSite) -> CallSite:
        records = self._own.logs.ledger.records(site.number) if site.call == EXPORTER else iter(())
        seen = next(records, None)
        export = self._export_of(seen) if seen else None
        if seen is None or export is None or export.freed is None:
            return site
        exporter = self._by_process[seen.other]
        return exporter.site_origins().site_with_stack(f"freed in process {exporter.number} by", export.freed)


def may_signal(strong: Mapping[int, Iterable[tuple[int, int, Touch]]]) -> bool:
    """Say whether two processes use the same bytes by volatile or atomic accesses, of which one writes.

    These are the first byte and the end of each such use, by process. What one has done before it may be in order then
    with what the other does after it, whatever does it.
    """
    return any(
        max(start, other_start) < min(end, other_end) and (touch.writes or other_touch.writes)
        for one, other in combinations(strong.values(), 2)
        for start, end, touch in one
        for other_start, other_end, other_touch in other
    )


def _joined(process: _Process, record: Record) -> Record:
    """Return a record with numbers and addresses that mean the same in all processes."""
    about = record.object
    if record.seen in _ABOUT_EVENTS:
        about = process.events.get(about, about + process.offset)
    elif record.seen in (Seen.CREATED, Seen.DESTROYED):
        about += process.offset
    return record._replace(
        number=record.number + process.offset,
        device=record.device + process.offset,
        stream=record.stream + process.offset if record.stream else 0,
        object=about,
        address=process.joined_address(record.address),
        other=process.joined_address(record.other),
    )


def _local(record: Record) -> Record:
    stream = record.stream % _SPAN
    return record._replace(number=record.number % _SPAN, device=record.device % _SPAN, stream=stream)


def _called(use: Use) -> str:
    record = _local(use.record)
    name = named(use)
    return f"{name} (call {record.number}) on {stream_in_words(record)}"


def _ticked(place: int, process: _Process) -> Iterator[tuple[int, int, Record]]:
    tick = 0
    for record in process.logs.ledger.records():
        if record.seen is Seen.TICK:
            tick = record.object
        yield tick, place, record

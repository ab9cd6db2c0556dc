"""What a ledger says about the program that left it: findings, under the names of the rules that were broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.allocators.oracle.oracle import Oracle
from quiesce.model.backend import Capability, Description, DeviceProfile, Reply
from quiesce.model.findings import Finding
from quiesce.model.operations import Mark
from quiesce.model.outcomes import Done, Flavour
from quiesce.model.program_rules import (
    AFTER_UNCHANGED,
    COPIED_DIRECTLY,
    COPIES_DIRECTED,
    COPIES_READ_WRITTEN,
    FREED_ONCE,
    INSIDE,
    LIVE_HANDLES,
    NOT_USED_FREED,
    OWN_FREED,
)
from quiesce.model.program_run import OutOfMemory
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words, counted
from quiesce.simulator.judge.causes import Causes, bounded, left_out
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.growth import LiveSet, Marks
from quiesce.simulator.judge.kernel_accesses import wrong_access
from quiesce.simulator.judge.leftovers import held_lines, leak_findings
from quiesce.simulator.judge.memory_use import Exhaustion, MemoryRecorder
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.quoting import quotations
from quiesce.simulator.judge.races import RaceDetector, launches_unjudged, race_finding
from quiesce.simulator.judge.unchecked import (
    effect_of,
    effects_missing,
    functions_missing,
    kernels_unchecked,
    leaks_not_judged,
)
from quiesce.simulator.judge.wording import thing_in_words
from quiesce.simulator.runtime.device_code import NO_CODE, DeviceCode
from quiesce.simulator.runtime.kernel_logs import LoggedAccess, Touched, TouchedLog
from quiesce.simulator.runtime.ledger import OF_KERNELS, Flag, Ledger, LiveThing, Record, Seen, Thing
from quiesce.simulator.runtime.observed import observations_of
from quiesce.simulator.runtime.stacks import CallStacks

_DIRECTIONS: Final = ("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice")
"""By their numbers in ``cudaMemcpyKind`` and ``hipMemcpyKind``."""
_PLACES: Final = ("host memory", "pinned host memory", "device memory", "managed memory")
"""By the numbers of ``native/order/transfer.c``."""
_DEVICE: Final = 2


def wrong_copy(record: Record) -> Finding | None:
    """Return the finding about such a record; None for another one, and for what is no more than a note."""
    if record.seen is Seen.COPY_MISDIRECTED:
        return _misdirected(record)
    if record.seen is Seen.COPIED_UNWRITTEN and record.flags & Flag.STRICT:
        return _unwritten(record)
    return None


def unwritten_in_words(record: Record) -> str:
    """Return what a copy reads that nobody has written, in words that follow the call."""
    offset = record.address - record.other
    where = f"{bytes_in_words(offset)} into" if offset else "at the start of"
    block = f"a {thing_in_words(record.thing)} block of {bytes_in_words(record.other_bytes)}"
    return f"copies {bytes_in_words(record.size_bytes)} to the host that nobody has written, the first {where} {block}"


def _unwritten(record: Record) -> Finding:
    return Finding(
        COPIES_READ_WRITTEN,
        "device memory that was written before",
        f"{record.function} {unwritten_in_words(record)}",
        operation_index=record.object,
        request=record.function,
        kind=Kind.UNWRITTEN,
    )


def _misdirected(record: Record) -> Finding:
    kind, source, target = (record.object >> shift & 0xFF for shift in (0, 8, 16))
    fitting = (2 if source == _DEVICE else 0) + (1 if target == _DEVICE else 0)
    return Finding(
        COPIES_DIRECTED,
        f"a direction that fits the addresses: {_direction(record, fitting)}",
        f"{record.function} copies {bytes_in_words(record.size_bytes)} as {_direction(record, kind)}, "
        f"from {record.other:#x}, which is {_PLACES[source]}, to {record.address:#x}, which is {_PLACES[target]}",
        operation_index=record.number,
        request=record.function,
        kind=Kind.WRONG_DIRECTION,
    )


def _direction(record: Record, kind: int) -> str:
    flavour = "hip" if record.function.startswith("hip") else "cuda"
    return f"{flavour}Memcpy{_DIRECTIONS[kind]}"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What one process did. ``notes`` are no findings: what was not simulated, not judged; ``held`` is what it held.

    ``out_of_memory`` says who held the memory when a request first ran out of memory. ``left_out`` has the
    rules of which there were more findings than these, each with how many more. ``not_checked`` are those of the notes
    that a pass does not cover, ``unjudged`` those that leave no room for one.
    """

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    held: tuple[str, ...] = ()
    out_of_memory: OutOfMemory | None = None
    left_out: tuple[tuple[str, int], ...] = ()
    not_checked: tuple[str, ...] = ()
    unjudged: tuple[str, ...] = ()


class RunningJudgement:
    """Takes records in order and judges each with what came before; races only where none is missing."""

    def __init__(
        self,
        flavour: Flavour,
        stacks: CallStacks | None,
        *,
        judges_races: bool,
        accesses: Callable[[], Sequence[LoggedAccess]] = tuple,
        touched: Callable[[int], Touched | None] = lambda _: None,
        code: DeviceCode = NO_CODE,
    ) -> None:
        self.origins = Origins(stacks, code.variables, accesses)
        self._sources = code.sources
        self._accesses = accesses
        self._logged: Sequence[LoggedAccess] = ()
        self._wrong: dict[int, Finding] = {}
        self._races = RaceDetector(touched) if judges_races else None
        self._oracle = Oracle(_description(), DeviceProfile(flavour=flavour))
        self._missing: Counter[str] = Counter()
        self._broken: dict[int, str] = {}
        self._unwritten: list[Record] = []
        self._valued = ""
        self._streams = 1

    def see(self, record: Record) -> Iterator[Finding]:
        """Enter one record and yield the rules that it breaks."""
        if record.seen is Seen.NOT_SIMULATED:
            self._missing[record.function] += 1
        elif record.seen is Seen.STREAM_WAITED_VALUE:
            self._valued = self._valued or f"call {record.number:,} on: {record.function}"
            self.stop_judging_races()
        elif record.seen is Seen.CREATED:
            self._streams += record.thing is Thing.STREAM
        elif record.seen is Seen.CONTEXT_BROKEN:
            self._broken[record.device] = f"device {record.device} became unusable with error {record.other}"
        if record.seen in OF_KERNELS:
            yield self._wrong_access(record)
        elif record.seen is Seen.COPIED_UNWRITTEN and not record.flags & Flag.STRICT:
            self._unwritten.append(record)
        elif (finding := wrong_copy(record)) is not None:
            made = record._replace(number=finding.operation_index) if finding.operation_index is not None else record
            yield self.origins.explain(finding, made)
        yield from self._broken_at_once(record)
        self.origins.see(record)
        yield from _broken_rules_of_order(self._oracle, record, self.origins)
        if self._races is not None:
            yield from (race_finding(race, self.origins, self._sources) for race in self._races.see(record))

    def _broken_at_once(self, record: Record) -> Iterator[Finding]:
        if (rule := _rule_at_once(record)) is not None:
            yield self.origins.explain(_broken_at_once(record, rule, self.origins), record)

    def _wrong_access(self, record: Record) -> Finding:
        if record.object >= len(self._logged):
            self._logged = self._accesses()
        finding, launch = wrong_access(record, self._logged, self.origins.variable_of(record))
        if record.object < len(self._logged):
            finding = replace(finding, quoted=quotations(self._logged[record.object], self._sources))
        finding = self._wrong[record.object] = self.origins.explain(finding, record._replace(number=launch))
        return finding

    def wrong_accesses(self, told: Sequence[int]) -> Iterator[Finding]:
        """Yield a finding for each wrong access that was made since there were as many of each as ``told`` says."""
        self._logged = self._accesses()
        for number, logged in enumerate(self._logged):
            more = logged.count - (told[number] if number < len(told) else 0)
            if more and number in self._wrong:
                yield replace(self._wrong[number], seen=more)

    def counts(self) -> list[int]:
        """Return how many wrong accesses of each kind there were when they were read last."""
        return [logged.count for logged in self._logged]

    def told(self, causes: Causes) -> tuple[tuple[Finding, ...], tuple[tuple[str, int], ...]]:
        """Return as many findings as a reader can take in, with the stacks of the calls that they are about.

        The second part has the rules of which there are more findings, each with how many more.
        """
        findings = causes.findings()
        shown = tuple(self.origins.told(bounded(findings, causes.beyond)))
        return shown, left_out(findings, causes.beyond)

    def held(self, things: Iterable[LiveThing]) -> Iterator[str]:
        """Yield what some live things are and where they were made, a line for each place."""
        return held_lines(things, self.origins)

    def stop_judging_races(self) -> None:
        """Note that from now on records are missing, or order is made in ways that they do not tell."""
        self._races = None

    def left(self, things: Iterable[LiveThing], *, moment: str, looked: bool) -> Iterator[Finding]:
        """Yield a finding for each origin of things that should have been given back before a moment.

        ``looked`` says whether the process was searched for their addresses then. What lies on a device that became
        unusable can't be given back.
        """
        accused = (thing for thing in things if thing.device not in self._broken)
        return leak_findings(accused, self.origins, moment, looked)

    def missing(self) -> Mapping[str, int]:
        """Return how often each function was called that is not simulated."""
        return dict(sorted(self._missing.items()))

    def not_checked(self) -> str:
        """Return which functions were called that are not simulated, and that only ask."""
        return functions_missing([function for function in self.missing() if effect_of(function) is None])

    def unjudged(self) -> str:
        """Return which functions were called whose effects are missing, and which races were not judged."""
        return "; ".join(filter(None, (effects_missing(self.missing()), self._waits_for_values())))

    def _waits_for_values(self) -> str:
        return f"races were not judged from {self._valued} orders streams by a value in memory" if self._valued else ""

    @property
    def has_streams(self) -> bool:
        """Whether work of two streams could race."""
        return self._streams > 1

    def notes(self) -> list[str]:
        """Return what was called and is not simulated, and what could not be judged."""
        missing = [
            f"not simulated: {name} (called {counted(count, 'time')})" for name, count in sorted(self._missing.items())
        ]
        broken = [
            f"{text}: memory and handles that were on it are not judged" for _, text in sorted(self._broken.items())
        ]
        valued = self._waits_for_values()
        return [*missing, *broken, *self._copied_unwritten(), *filter(None, [valued, self.origins.note()])]

    def _copied_unwritten(self) -> Iterator[str]:
        """Yield what the host read although nobody had written it: programs also copy what they do not look at."""
        for record, place in zip(
            self._unwritten, self.origins.made_at([each.stack for each in self._unwritten]), strict=True
        ):
            where = f", {place}" if place else ""
            yield f"{record.function} (call {record.object:,}{where}) {unwritten_in_words(record)}"


def judge(
    ledger: Ledger,
    at_exit: AtExit,
    stacks: CallStacks | None = None,
    memory: MemoryRecorder | None = None,
    accesses: Callable[[], Sequence[LoggedAccess]] = tuple,
    touched: TouchedLog | None = None,
    code: DeviceCode = NO_CODE,
) -> Judgement:
    """Judge one process's ledger; ``stacks`` is the log of call stacks next to it, where one was kept.

    ``memory`` takes the records in the same pass. ``accesses`` returns those of kernels that were wrong, from the log
    of these; ``touched`` is the log of what each launch touched, ``code`` what is known of device code.
    """
    touched = touched or TouchedLog(lambda: None)
    races, of = not ledger.lost, touched.of
    running = RunningJudgement(ledger.flavour, stacks, judges_races=races, accesses=accesses, touched=of, code=code)
    causes = Causes(running.origins)
    live = None if ledger.lost else LiveSet()
    marks, exhaustion = Marks(running.origins), Exhaustion()
    for record in ledger.records():
        if record.seen is Seen.MARK:
            marks.see(record, live)
        elif live is not None and (maker := live.see(record)) is not None:
            marks.change(maker)
        exhaustion.see(record)
        if memory is not None:
            memory.see(record)
        causes.add(running.see(record))
    held, kernels = list[str](), kernels_unchecked(ledger.launches, ledger.computed, ledger.checked)
    launches = launches_unjudged(touched.lost)
    notes = [*filter(None, [kernels, _calls_lost(ledger), launches])]
    causes.add(marks.findings(live))
    notes.extend(marks.notes())
    left = list(ledger.live())
    if not ledger.exited:
        notes.append(leaks_not_judged(ledger))
        held.extend(f"held at its end: {text}" for text in running.held(left))
    else:
        accused = [thing for thing in left if _is_accused(thing, at_exit)]
        causes.add(running.left(accused, moment="the program exits", looked=True))
        kept = {thing.serial for thing in left} - {thing.serial for thing in accused}
        held.extend(f"held at exit: {text}" for text in running.held(thing for thing in left if thing.serial in kept))
    told, more = running.told(causes)
    exhausted = exhaustion.told(ledger, running.origins)
    unjudged = (running.unjudged(), _calls_lost(ledger), launches if running.has_streams else "")
    not_checked = (running.not_checked(), kernels, "" if running.has_streams else launches)
    all_notes = (*running.notes(), *notes)
    left_open = (tuple(filter(None, each)) for each in (not_checked, unjudged))
    return Judgement(told, all_notes, tuple(held), exhausted, more, *left_open)


def _is_accused(thing: LiveThing, at_exit: AtExit) -> bool:
    """Say whether something that lives at the exit is a finding.

    Most clients retain a device's primary context for as long as they live, and whoever asks for it has it.
    """
    if at_exit is AtExit.ALL:
        return not thing.is_primary_context
    return at_exit is AtExit.LOST and thing.is_lost


def _calls_lost(ledger: Ledger) -> str:
    if not ledger.lost:
        return ""
    return (
        f"races were not judged: the record of the first {counted(ledger.lost, 'call')} was overwritten, for it found "
        "no room on the disk; set TMPDIR to a folder with more room, or choose a larger --disk"
    )


def _description() -> Description:
    return Description("simulated", "1", frozenset({Capability.STREAMS, Capability.EVENTS, Capability.ORDER_LEDGER}))


_WAITS: Final = (Seen.STREAM_WAITED, Seen.EVENT_WAITED)


def _broken_rules_of_order(oracle: Oracle, record: Record, origins: Origins) -> Iterator[Finding]:
    if record.seen not in _WAITS:  # memory and order are judged by byte, not by slot
        return
    if observations := tuple(observations_of(record, {})):
        for finding in oracle.judge(Mark("call"), Reply(Done(), observations), {}, {}, ""):
            sites = (origins.site("waited by", record),)
            yield replace(finding, operation_index=record.number, request=record.function, call_sites=sites)


# -- what the runtime saw at once --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    kind: Kind
    expected: str
    observed: str


_AT_ONCE: Final = {
    Seen.FREED_TWICE: _Rule(
        FREED_ONCE, Kind.DOUBLE_FREE, "one free of each block", "{function} of {address:#x}, which was freed before"
    ),
    Seen.FREED_FOREIGN: _Rule(
        OWN_FREED,
        Kind.INVALID_FREE,
        "the first address of a block that the same family of functions allocated",
        "{function} of {address:#x}, where no such block begins",
    ),
    Seen.USED_AFTER_FREE: _Rule(
        NOT_USED_FREED,
        Kind.USE_AFTER_FREE,
        "live memory",
        "{function} uses {size} at {address:#x}, freed before",
    ),
    Seen.OUT_OF_BOUNDS: _Rule(
        INSIDE,
        Kind.OUT_OF_BOUNDS,
        "a use that stays inside its block",
        "{function} uses {size} at {address:#x}; the block ends at {other:#x}",
    ),
    Seen.DAMAGED: _Rule(
        AFTER_UNCHANGED,
        Kind.OVERFLOW,
        "unchanged bytes after the block at {address:#x}",
        "the byte at {other:#x} was changed; {function} detected it",
    ),
    Seen.DEAD_HANDLE: _Rule(
        LIVE_HANDLES,
        Kind.DEAD_HANDLE,
        "a live handle",
        "{function} {of} {thing} {address:#x}, which was destroyed before",
    ),
    Seen.STAGED_AGAIN: _Rule(
        COPIED_DIRECTLY,
        Kind.NEEDLESS_COPY,
        "a direct copy from the pinned block at {other:#x}, which the program asked about",
        "{function} copies the same {size} from another pinned block, at {address:#x}",
    ),
}

_NOT_MAPPED: Final = _Rule(
    NOT_USED_FREED,
    Kind.USE_AFTER_FREE,
    "host memory that stays mapped until the copy is complete",
    "a copy still has {size} to go at {address:#x}, where no memory is mapped; {function} detected it",
)
_OF_HEAP: Final = _Rule(
    OWN_FREED,
    Kind.INVALID_FREE,
    "a block that the host allocated; a kernel has to free what a kernel allocated",
    "{function} of {address:#x}, a block of the device's heap{maker}",
)
_OF_VARIABLES: Final = {
    Seen.FREED_FOREIGN: "{function} of {address:#x}, which is variable '{variable}'",
    Seen.USED_AFTER_FREE: "{function} uses {size} at {address:#x}, variable '{variable}' of a module that was unloaded",
    Seen.OUT_OF_BOUNDS: "{function} uses {size} at {address:#x}; variable '{variable}' ends at {other:#x}",
}
"""What is observed where the block is a variable of device code."""


def _rule_at_once(record: Record) -> _Rule | None:
    if record.seen is Seen.FREED_FOREIGN and record.thing is Thing.HEAP:
        return _OF_HEAP
    is_of_host = record.seen is Seen.USED_AFTER_FREE and record.thing is Thing.REGISTERED
    return _NOT_MAPPED if is_of_host else _AT_ONCE.get(record.seen)


def _broken_at_once(record: Record, rule: _Rule, origins: Origins) -> Finding:
    variable = origins.variable_of(record)
    words = {
        "function": record.function,
        "address": record.address,
        "other": record.other,
        "size": bytes_in_words(record.size_bytes),
        "thing": thing_in_words(record.thing),
        "of": "in" if record.thing is Thing.CONTEXT and not record.function.startswith("cuCtx") else "of",
        "variable": variable,
        "maker": origins.allocation_in_kernel(record.object) if rule is _OF_HEAP else "",
    }
    observed = _OF_VARIABLES.get(record.seen, rule.observed) if variable else rule.observed
    return Finding(
        rule.name,
        rule.expected.format(**words),
        observed.format(**words),
        operation_index=record.number,
        request=record.function,
        kind=rule.kind,
    )

"""What a ledger says about the program that left it: findings, under the names of the rules that were broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from quiesce.model.findings import Finding
from quiesce.model.outcomes import Flavour
from quiesce.model.program_run import OutOfMemory
from quiesce.model.wording import counted
from quiesce.simulator.judge.call_rules import (
    broken_at_once,
    broken_rules_of_order,
    oracle_of_order,
    unwritten_in_words,
    wrong_copy,
)
from quiesce.simulator.judge.causes import Causes, bounded, left_out
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.growth import LiveSet, Marks
from quiesce.simulator.judge.kernel_accesses import with_source, wrong_access
from quiesce.simulator.judge.leftovers import held_lines, leak_findings
from quiesce.simulator.judge.memory_use import Exhaustion, MemoryRecorder
from quiesce.simulator.judge.origins import Origins
from quiesce.simulator.judge.races import RaceDetector, launches_unjudged, race_finding
from quiesce.simulator.judge.unchecked import (
    effect_of,
    effects_missing,
    functions_missing,
    kernels_unchecked,
    leaks_not_judged,
)
from quiesce.simulator.runtime import (
    NO_CODE,
    OF_KERNELS,
    CallStacks,
    DeviceCode,
    Flag,
    Ledger,
    LiveThing,
    LoggedAccess,
    Record,
    Seen,
    Thing,
    Touched,
    TouchedLog,
)


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
        self._oracle = oracle_of_order(flavour)
        self._missing: Counter[str] = Counter()
        self._broken: dict[int, str] = {}
        self._unwritten: list[Record] = []
        self._valued = ""
        self._unseen = ""
        self._streams = 1

    def see(self, record: Record) -> Iterator[Finding]:
        """Enter one record and yield the rules that it breaks."""
        if record.seen is Seen.NOT_SIMULATED:
            self._missing[record.function] += 1
        elif record.seen is Seen.STREAM_WAITED_VALUE:
            self._valued = self._valued or f"call {record.number:,} on: {record.function}"
            self.stop_judging_races()
        elif record.seen is Seen.HOST_UNSEEN:
            self._unseen = (
                "the program handles SIGSEGV itself, so accesses of the host to pinned memory were not judged"
            )
        elif record.seen is Seen.CREATED:
            self._streams += record.thing is Thing.STREAM
        elif record.seen is Seen.BRANCH_BEGAN:
            self._streams += 1
        elif record.seen is Seen.CONTEXT_BROKEN:
            self._broken[record.device] = f"device {record.device} became unusable with error {record.other}"
        if record.seen in OF_KERNELS:
            yield self._wrong_access(record)
        elif record.seen is Seen.COPIED_UNWRITTEN and not record.flags & Flag.STRICT:
            self._unwritten.append(record)
        elif (finding := wrong_copy(record)) is not None:
            made = record._replace(number=finding.operation_index) if finding.operation_index is not None else record
            yield self.origins.explain(finding, made)
        if (at_once := broken_at_once(record, self.origins)) is not None:
            yield self.origins.explain(at_once, record)
        self.origins.see(record)
        yield from broken_rules_of_order(self._oracle, record, self.origins)
        if self._races is not None:
            yield from (race_finding(race, self.origins, self._sources) for race in self._races.see(record))

    def _wrong_access(self, record: Record) -> Finding:
        if record.object >= len(self._logged):
            self._logged = self._accesses()
        finding, launch = wrong_access(record, self._logged, self.origins.variable_of(record))
        finding = with_source(finding, record, self._logged, self._sources)
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
        return "; ".join(filter(None, (effects_missing(self.missing()), self._waits_for_values(), self._unseen)))

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
        return [
            *missing,
            *broken,
            *self._copied_unwritten(),
            *filter(None, [valued, self._unseen, self.origins.note()]),
        ]

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

"""The page of ``quiesce exec``: the verdict, then for each process what it did, then how the program was run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from quiesce.model.program_run import Conditions, ProgramRun
from quiesce.model.results import Report, Result, Verdict
from quiesce.model.wording import bytes_in_words, counted
from quiesce.reporting.glossary import KNOWN, VERDICTS, Reference, reference, sentence_of
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.page.scale import Axis
from quiesce.reporting.page.summary import Mood
from quiesce.reporting.program_page.findings import (
    FailedTable,
    FindingCard,
    JudgedTest,
    make_failed,
    make_findings,
    make_tests,
    noted,
)
from quiesce.reporting.program_page.holders import Exhaustion, HeldAtEnd, make_exhaustion, make_held, things_of
from quiesce.reporting.program_page.memory_plot import MemoryPlot, make_memory_plot
from quiesce.reporting.program_page.wording import title_of
from quiesce.reporting.result_lists import ENDED
from quiesce.reporting.text import clean_line

WHOLE_PROCESSES_MAX: Final = 24
"""Of so many processes the page has everything."""
_RUN: Final = {
    "machine": "Machine",
    "python": "Python that runs quiesce",
    "started": "Started",
    "system": "System",
    "version of quiesce": "quiesce",
}
"""What the keys of a run are called here."""


@dataclass(frozen=True, slots=True)
class Process:
    """One process. ``prefix`` begins its anchors, '' where there is only one; ``facts`` are numbers and their names."""

    prefix: str
    name: str
    verdict: Verdict
    reason: str
    facts: tuple[tuple[str, str, str], ...]
    findings: tuple[FindingCard, ...]
    plot: MemoryPlot | None
    exhaustion: Exhaustion | None
    failed: FailedTable | None
    held: HeldAtEnd | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that was broken, and issues about such faults."""

    name: str
    sentence: str
    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class ProgramPage:
    """All that the page says. ``meaning`` explains a verdict that has neither findings nor reasons, or is ''."""

    mood: Mood
    verdict: Verdict
    headline: str
    meaning: str
    command: str
    reasons: tuple[str, ...]
    processes: tuple[Process, ...]
    tests: tuple[JudgedTest, ...]
    conditions: tuple[tuple[str, str], ...]
    reproduce: str
    rules: tuple[Rule, ...]


def is_of_programs(report: Report) -> bool:
    """Whether there are processes of a program, so that this page says more than a matrix.

    The other results are then what pytest found in that program.
    """
    return any(result.program is not None for result in report.results)


def make_program_page(report: Report) -> ProgramPage:
    """Return the page of a report for which :func:`is_of_programs` holds."""
    results = report.results
    verdict = _verdict(results)
    programs = [(result, result.program) for result in results if result.program is not None]
    conditions = programs[0][1].conditions
    broken = Counter(finding.rule for result in results for finding in result.findings)
    for result, program in programs:
        if result.findings:
            broken.update(dict(program.findings_left_out))
    return ProgramPage(
        mood={Verdict.PASSED: Mood.GOOD, Verdict.INCONCLUSIVE: Mood.DOUBTFUL}.get(verdict, Mood.BAD),
        verdict=verdict,
        headline=_headline(verdict, broken),
        meaning=VERDICTS[verdict] if verdict is Verdict.PASSED else "",
        command=clean_line(conditions.command),
        reasons=tuple(
            dict.fromkeys(
                clean_line(result.reason)
                for result in results
                if result.reason and (result.is_unresolved or len(results) == 1)
            )
        ),
        processes=tuple(_processes(programs)),
        tests=make_tests(results),
        conditions=_conditions(conditions, report),
        reproduce=clean_line(programs[0][0].reproduce),
        rules=tuple(_rules(broken)),
    )


def _verdict(results: Iterable[Result]) -> Verdict:
    """Return the verdict of the run: a process without one takes it from the run only where that matters."""
    kept = list(results)
    if any(result.verdict.is_failure for result in kept):
        return Verdict.FAILED
    return Verdict.INCONCLUSIVE if any(result.is_unresolved for result in kept) else Verdict.PASSED


def _headline(verdict: Verdict, broken: Counter[str]) -> str:
    if broken:
        text = _listed([f"{count:,} {title_of(rule, count)}" for rule, count in broken.items()])
        return text[:1].upper() + text[1:]
    return "Inconclusive" if verdict is Verdict.INCONCLUSIVE else "Nothing broke a rule"


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _processes(programs: Sequence[tuple[Result, ProgramRun]]) -> Iterable[Process]:
    """Yield the processes in their order; of very many, those with findings are shown whole before others."""
    ranked = sorted(range(len(programs)), key=lambda number: not programs[number][0].findings)
    whole = set(ranked[:WHOLE_PROCESSES_MAX])
    for number, (result, program) in enumerate(programs):
        prefix = f"p{number + 1}-" if len(programs) > 1 else ""
        yield _process(result, program, prefix) if number in whole else _in_short(result, program, prefix)


def _in_short(result: Result, program: ProgramRun, prefix: str) -> Process:
    note = f"This page shows {WHOLE_PROCESSES_MAX} processes; report.json has what this one did."
    whole = _process(replace(result, findings=()), program, prefix)
    facts = tuple(_facts(result, program))
    return replace(whole, facts=facts, plot=None, exhaustion=None, failed=None, held=None, notes=(note,))


def _process(result: Result, program: ProgramRun, prefix: str) -> Process:
    axis = Axis(program.first_call, result.operations - program.first_call)
    findings = make_findings(result, prefix)
    return Process(
        prefix=prefix,
        name=clean_line(result.case),
        verdict=result.verdict,
        reason=clean_line(result.reason),
        facts=tuple(_facts(result, program)),
        findings=findings,
        plot=make_memory_plot(program.memory, axis, program.conditions.devices, noted(findings)),
        exhaustion=make_exhaustion(program.out_of_memory) if program.out_of_memory else None,
        failed=make_failed(program.failed_calls),
        held=make_held(program.holdings),
        notes=tuple(map(shorten, program.notes)),
    )


def _facts(result: Result, program: ProgramRun) -> Iterable[tuple[str, str, str]]:
    """Yield names, numbers and what there is to say of them."""
    memory, holdings = program.memory, program.holdings
    if not result.operations:
        return
    when = f"at call {memory.peak_call:,}" if memory.moments else ""
    more = sum(count for _, count in program.findings_left_out)
    shown = f"{len(result.findings):,} shown here" if more else ""
    seen = sum(finding.seen for finding in result.findings)
    again = f"seen {seen:,} times" if seen > len(result.findings) else ""
    yield "Findings", f"{len(result.findings) + more:,}", ", ".join(filter(None, [shown, again]))
    yield "Peak of memory", bytes_in_words(memory.peak_bytes), when
    held = "Held at exit" if holdings.at_exit else "Held when it ended"
    yield held, bytes_in_words(holdings.size_bytes), things_of(holdings.kept, holdings.count)
    if memory.refused_count:
        yield "Refused requests", f"{memory.refused_count:,}", ""
    kept = f"kept from {program.first_call:,} on" if program.first_call else ""
    yield "Calls recorded", f"{result.operations:,}", kept
    if program.launches:
        yield "Kernels launched", f"{program.launches:,}", ""


def _conditions(conditions: Conditions, report: Report) -> tuple[tuple[str, str], ...]:
    name, _, version = conditions.flavour.partition(":")
    run = {key: value for key, value in report.run.items() if key != ENDED}
    return tuple(
        (key, clean_line(value))
        for key, value in (
            ("Program", conditions.command),
            ("Simulated runtime", f"{name.upper()} {version}" if version else conditions.flavour),
            ("Devices", _devices(conditions)),
            ("Schedule", conditions.schedule),
            ("Seed", str(conditions.seed)),
            ("Addresses used again", conditions.recycle),
            ("Judged at exit", conditions.at_exit),
            ("Failures asked for", ", ".join(conditions.failures)),
            *((_RUN.get(key, clean_line(key)), value) for key, value in sorted(run.items())),
        )
        if value
    )


def _devices(conditions: Conditions) -> str:
    size = f", {bytes_in_words(conditions.capacity_bytes)} each" if conditions.capacity_bytes else ""
    return f"{counted(conditions.devices, 'device')}{size}"


def _rules(broken: Iterable[str]) -> Iterable[Rule]:
    for rule in broken:
        yield Rule(clean_line(rule), sentence_of(rule), tuple(map(reference, KNOWN.get(rule, ()))))

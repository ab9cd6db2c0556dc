"""What went wrong in a process: its findings, its calls that failed, and its tests that the plugin reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.model.findings import CallSite, Finding
from quiesce.model.program_run import FailedCall, FailedCalls, ObservedCall, Surroundings
from quiesce.model.results import Result, Verdict
from quiesce.reporting.glossary import sentence_of
from quiesce.reporting.page.excerpt import Gap, QuotedSource, quoted_sources, shorten
from quiesce.reporting.program_page.memory_plot import Noted
from quiesce.reporting.program_page.wording import Site, heading_of, make_site, short_place
from quiesce.reporting.text import clean_line, unsaid_evidence

WHOLE_MAX: Final = 60
"""So many findings of a process have stacks and surroundings on the page; report.json has those of all."""
EVIDENCE_LENGTH_MAX: Final = 4_000


@dataclass(frozen=True, slots=True)
class Row:
    """A call in words; ``role`` is '' where it has nothing to do with the finding."""

    number: int
    thread: int
    call: str
    text: str
    role: str


@dataclass(frozen=True, slots=True)
class FindingCard:
    """One finding. ``call_number`` is None for what was found at the end.

    ``note`` says why stacks are missing, ``seen`` how often it was seen.
    """

    number: int
    anchor: str
    title: str
    rule: str
    sentence: str
    call_number: int | None
    call: str
    expected: str
    observed: str
    evidence: str
    sources: tuple[QuotedSource, ...]
    sites: tuple[Site, ...]
    note: str
    rows: tuple[Row | Gap, ...]
    has_threads: bool
    seen: str
    tests: tuple[str, ...]


def make_findings(result: Result, prefix: str) -> tuple[FindingCard, ...]:
    """Return the cards of a result, in the order of its findings. ``prefix`` begins their anchors."""
    around: Mapping[int, Surroundings] = (
        {each.finding: each for each in result.program.surroundings} if result.program else {}
    )
    return tuple(
        _card(finding, number, prefix, around.get(number - 1)) for number, finding in enumerate(result.findings, 1)
    )


def noted(cards: Sequence[FindingCard]) -> Iterator[Noted]:
    """Yield what the plot marks of findings."""
    return (Noted(card.number, card.title, card.anchor, card.call_number) for card in cards)


def _card(finding: Finding, number: int, prefix: str, around: Surroundings | None) -> FindingCard:
    is_whole = number <= WHOLE_MAX
    sites = finding.call_sites if is_whole else ()
    rows = tuple(_rows_around(around.calls)) if around is not None and is_whole else ()
    return FindingCard(
        number=number,
        anchor=f"{prefix}finding-{number}",
        title=heading_of(finding.rule),
        rule=shorten(finding.rule),
        sentence=sentence_of(finding.rule),
        call_number=finding.operation_index,
        call=shorten(finding.request),
        expected=clean_line(finding.expected),
        observed=clean_line(finding.observed),
        evidence=_evidence(finding),
        sources=quoted_sources(finding) if is_whole else (),
        sites=tuple(map(make_site, sites)),
        note=_note(sites, is_whole),
        rows=rows,
        has_threads=len({row.thread for row in rows if isinstance(row, Row)}) > 1,
        seen=finding.repetition,
        tests=tuple(map(shorten, finding.tests)),
    )


def _note(sites: Sequence[CallSite], is_whole: bool) -> str:
    if not is_whole:
        return f"The first {WHOLE_MAX} findings have call stacks here, and the calls around them; report.json has all."
    if sites and not any(site.frames for site in sites):
        return "No call stacks were kept; run it without --no-stacks to see who made the call."
    return ""


def _evidence(finding: Finding) -> str:
    """Return what evidence says beyond the calls, which have a place of their own."""
    lines = unsaid_evidence(finding)
    if finding.allocated_by and not finding.call_sites:
        lines = [f"allocated: {clean_line(finding.allocated_by)}", *lines]
    return "\n".join(lines)[-EVIDENCE_LENGTH_MAX:]


def _rows_around(calls: Sequence[ObservedCall]) -> Iterator[Row | Gap]:
    following = calls[0].number if calls else 0
    for call in calls:
        if call.number > following:
            yield Gap(call.number - following)
        role = shorten(call.role)
        yield Row(call.number, call.thread, shorten(call.call), shorten(call.text), role)
        following = call.number + 1


_ROWS_MAX: Final = 30


@dataclass(frozen=True, slots=True)
class FailedRow:
    """One function that failed with one error at one place. ``about`` is what else there is to say, or empty."""

    call: str
    error: str
    times: str
    about: str
    place: str
    site: Site


@dataclass(frozen=True, slots=True)
class FailedTable:
    """The rows, and how many found no room."""

    rows: tuple[FailedRow, ...]
    left_out: int


def make_failed(calls: FailedCalls) -> FailedTable | None:
    """Return the table; None where no call failed."""
    rows = tuple(_failed_rows(calls.kept[:_ROWS_MAX]))
    return FailedTable(rows, calls.count - len(rows)) if rows else None


def _failed_rows(calls: tuple[FailedCall, ...]) -> Iterator[FailedRow]:
    for each in calls:
        yield FailedRow(
            call=shorten(each.site.call),
            error=shorten(f"{each.code} {each.error}".rstrip()),
            times=f"{each.count:,}",
            about=shorten(each.remark),
            place=short_place(each.site),
            site=make_site(each.site),
        )


_SHOWN: Final = frozenset({Verdict.FAILED, Verdict.BROKEN_CASE, Verdict.INCONCLUSIVE})


@dataclass(frozen=True, slots=True)
class JudgedTest:
    """One test. ``reproduce`` is the command that runs it alone."""

    anchor: str
    name: str
    verdict: Verdict
    reason: str
    findings: tuple[FindingCard, ...]
    reproduce: str


def make_tests(results: Iterable[Result]) -> tuple[JudgedTest, ...]:
    """Return the tests among ``results`` that a reader has to look at, in their order."""
    shown = [result for result in results if result.program is None and result.verdict in _SHOWN]
    return tuple(
        JudgedTest(
            anchor=f"t{number}",
            name=clean_line(result.case),
            verdict=result.verdict,
            reason=clean_line(result.reason),
            findings=make_findings(result, f"t{number}-"),
            reproduce=clean_line(result.reproduce),
        )
        for number, result in enumerate(shown, 1)
    )

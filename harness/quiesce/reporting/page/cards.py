"""A card for each result that needs a reader: its findings, how to run it again, its timeline and its operations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.findings import Finding
from quiesce.reporting.names import split_case
from quiesce.reporting.page.excerpt import Excerpt, OperationLine, make_excerpt
from quiesce.reporting.page.glossary import sentence_of
from quiesce.reporting.page.matrix import SEVERITY
from quiesce.reporting.page.packing import pack
from quiesce.reporting.page.timeline import make_timeline
from quiesce.reporting.record import TIMELINE_VERDICTS
from quiesce.reporting.text import clean, clean_line, place
from quiesce.results import Result, Verdict

TIMELINES_MAX: Final = 500
"""So many cards carry a timeline and operations; of the rest the page has the findings, and report.json everything."""
EVIDENCE_LENGTH_MAX: Final = 20_000
"""Characters of evidence that are shown, from its end."""


@dataclass(frozen=True, slots=True)
class FindingText:
    """One finding in clean words; what is '' is not shown."""

    invariant: str
    sentence: str
    grade: str
    fault_class: str
    where: str
    moment: str
    request: str
    expected: str
    observed: str
    allocated_by: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Card:
    """One result. ``invariants`` are those it broke and how often; ``timeline`` is packed JSON for the page, or ''.

    ``note`` says why the operations are missing.
    """

    anchor: str
    verdict: Verdict
    case: str
    topic: str
    name: str
    title: str
    backend: str
    where: str
    upstream: tuple[str, ...]
    reason: str
    operations: int
    skipped: int
    reproduce: str
    invariants: tuple[tuple[str, int], ...]
    findings: tuple[FindingText, ...]
    excerpt: Excerpt | None
    timeline: str
    note: str


def needs_card(result: Result) -> bool:
    """Whether a reader needs more of a result than its verdict."""
    return bool(result.findings) or result.verdict in TIMELINE_VERDICTS


def anchors(results: Sequence[Result]) -> dict[int, str]:
    """Return the anchor of each card by the position of its result, in the order of the cards: worst first."""
    wanted = [position for position, result in enumerate(results) if needs_card(result)]
    wanted.sort(key=lambda position: SEVERITY[results[position].verdict])
    return {position: f"finding-{number}" for number, position in enumerate(wanted, 1)}


def make_cards(results: Sequence[Result]) -> Iterator[Card]:
    """Return the cards one by one, in the order of :func:`anchors`."""
    timelines = 0
    for position, anchor in anchors(results).items():
        has_timeline = results[position].verdict in TIMELINE_VERDICTS and bool(results[position].timeline)
        timelines += has_timeline
        yield _card(anchor, results[position], has_timeline, is_whole=timelines <= TIMELINES_MAX)


def _card(anchor: str, result: Result, has_timeline: bool, is_whole: bool) -> Card:
    excerpt, timeline, note = None, "", ""
    if not has_timeline:
        note = "None was recorded." if result.operations else ""
    elif not is_whole:
        note = f"The first {TIMELINES_MAX} findings carry their operations here; report.json holds those of all."
    else:
        excerpt = make_excerpt(result.timeline, result.findings, result.operations)
        timeline = _timeline(result, excerpt)
        note = "" if timeline else "Nobody counts bytes on this backend, so there is no timeline."
    topic, name = map(clean_line, split_case(result.case))
    return Card(
        anchor=anchor,
        verdict=result.verdict,
        case=clean_line(result.case),
        topic=topic,
        name=name,
        title=clean_line(result.title),
        backend=clean_line(result.backend),
        where=place(result),
        upstream=tuple(map(clean_line, result.upstream)),
        reason=clean_line(result.reason),
        operations=result.operations,
        skipped=result.skipped,
        reproduce=clean_line(result.reproduce),
        invariants=tuple(Counter(clean_line(finding.invariant) for finding in result.findings).items()),
        findings=tuple(_finding(result, finding) for finding in result.findings),
        excerpt=excerpt,
        timeline=timeline,
        note=note,
    )


def _timeline(result: Result, excerpt: Excerpt) -> str:
    listed = [line.index for line in excerpt.lines if isinstance(line, OperationLine)]
    timeline = make_timeline(result.timeline, result.findings, listed)
    if timeline is None:
        return ""
    return pack(json.dumps(timeline.as_json(), sort_keys=True, separators=(",", ":")))


def _finding(result: Result, finding: Finding) -> FindingText:
    index = finding.operation_index
    evidence = clean(finding.evidence).strip("\n")
    if len(evidence) > EVIDENCE_LENGTH_MAX:
        evidence = f"… (report.json holds all of it)\n{evidence[-EVIDENCE_LENGTH_MAX:]}"
    return FindingText(
        invariant=clean_line(finding.invariant),
        sentence=sentence_of(finding.invariant),
        grade=str(finding.grade),
        fault_class=clean_line(finding.fault_class),
        where=place(result, finding),
        moment=f"operation {index}" if index is not None else "at closing" if result.operations else "",
        request=clean_line(finding.request),
        expected=clean_line(finding.expected),
        observed=clean_line(finding.observed),
        allocated_by=clean_line(finding.allocated_by),
        evidence=evidence,
    )

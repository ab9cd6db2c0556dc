"""A card for each result that needs a reader: its findings, how to run it again, its timeline and its operations."""

from __future__ import annotations

import base64
import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import SENTENCES
from quiesce.reporting.glossary import sentence_of
from quiesce.reporting.leak_checks import leaked_bytes
from quiesce.reporting.page.excerpt import Excerpt, OperationLine, QuotedSource, make_excerpt, quoted_sources, shorten
from quiesce.reporting.page.matrix import SEVERITY
from quiesce.reporting.page.picture import Picture
from quiesce.reporting.page.plots import draw_growth, draw_timeline, growth_words, make_growth_plot, make_timeline
from quiesce.reporting.record import TIMELINE_VERDICTS
from quiesce.reporting.result_lists import attempt_note, split_case
from quiesce.reporting.text import clean_line, place, unsaid_evidence

PLOTTED_MAX: Final = 500
"""So many cards carry plots and operations; of the rest the page has the findings, and report.json everything."""
EVIDENCE_LENGTH_MAX: Final = 20_000
"""Characters of evidence that are shown, from its end."""


@dataclass(frozen=True, slots=True)
class FindingText:
    """One finding in clean words; what is '' is not shown.

    ``growth`` is what its ``picture`` shows, in words, and ``plot`` packed JSON from which a script reads it out.
    """

    rule: str
    sentence: str
    remark: str
    kind: str
    where: str
    moment: str
    request: str
    expected: str
    observed: str
    allocated_by: str
    kept: str
    evidence: str
    sources: tuple[QuotedSource, ...]
    growth: str
    picture: Picture | None
    plot: str


@dataclass(frozen=True, slots=True)
class Card:
    """One result. ``rules`` are those it broke and how often.

    ``gist`` says what grows, where readings show it, and ``note`` why operations or plots are missing. ``timeline`` is
    packed JSON from which a script reads out the ``picture``, or ''.
    """

    anchor: str
    verdict: Verdict
    case: str
    topic: str
    name: str
    title: str
    gist: str
    backend: str
    where: str
    upstream: tuple[str, ...]
    reason: str
    operations: int
    skipped: int
    reproduce: str
    rules: tuple[tuple[str, int], ...]
    findings: tuple[FindingText, ...]
    excerpt: Excerpt | None
    picture: Picture | None
    timeline: str
    note: str


def needs_card(result: Result) -> bool:
    """Whether a reader needs more of a result than its verdict."""
    return bool(result.findings) or result.verdict in TIMELINE_VERDICTS


def anchors(results: Sequence[Result]) -> dict[int, str]:
    """Return the anchor of each card by the position of its result, in the order of the cards."""
    wanted = [position for position, result in enumerate(results) if needs_card(result)]
    wanted.sort(key=lambda position: _urgency(results[position]))
    return {position: f"finding-{number}" for number, position in enumerate(wanted, 1)}


def _urgency(result: Result) -> tuple[int, bool, float]:
    """Return what cards are sorted by: the worst verdict first, and of leaking tests the largest leak."""
    return SEVERITY[result.verdict], result.is_leak_check, -leaked_bytes(result)


def make_cards(results: Sequence[Result]) -> Iterator[Card]:
    """Return the cards one by one, in the order of :func:`anchors`."""
    plotted = 0
    for position, anchor in anchors(results).items():
        result = results[position]
        has_plot = _has_timeline(result) or any(finding.readings for finding in result.findings)
        plotted += has_plot
        yield _card(anchor, result, is_whole=plotted <= PLOTTED_MAX or not has_plot)


def _has_timeline(result: Result) -> bool:
    return result.verdict in TIMELINE_VERDICTS and bool(result.timeline)


def _card(anchor: str, result: Result, is_whole: bool) -> Card:
    excerpt, timeline, note = None, None, ""
    if not is_whole:
        note = f"The first {PLOTTED_MAX} findings carry plots and operations here; report.json holds those of all."
    elif not _has_timeline(result):
        note = "None was recorded." if result.operations else ""
    else:
        excerpt = make_excerpt(result.timeline, result.findings, result.operations)
        listed = [line.index for line in excerpt.lines if isinstance(line, OperationLine)]
        timeline = make_timeline(result.timeline, result.findings, listed)
        note = "" if timeline else "Nobody counts bytes on this backend, so there is no timeline."
    topic, name = map(clean_line, split_case(result.case))
    return Card(
        anchor=anchor,
        verdict=result.verdict,
        case=clean_line(result.case),
        topic=topic,
        name=name,
        title=clean_line(result.title),
        gist=shorten("; ".join(finding.observed for finding in result.findings if finding.readings)),
        backend=clean_line(result.backend),
        where=place(result),
        upstream=tuple(map(clean_line, result.upstream)),
        reason="; ".join(filter(None, (clean_line(result.reason), attempt_note(result)))),
        operations=result.operations,
        skipped=result.skipped,
        reproduce=clean_line(result.reproduce),
        rules=tuple(Counter(clean_line(finding.rule) for finding in result.findings).items()),
        findings=tuple(_finding(result, finding, is_whole) for finding in result.findings),
        excerpt=excerpt,
        picture=None if timeline is None else draw_timeline(timeline),
        timeline="" if timeline is None else _packed(timeline.as_json()),
        note=note,
    )


def _packed(plot: Mapping[str, Any]) -> str:
    """Return values that only a script reads, small and without a character that could end an element.

    It is compressed (RFC 1950) and in base64, for ``atob`` and ``DecompressionStream("deflate")``.
    """
    text = json.dumps(plot, sort_keys=True, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("utf-8"), level=9)).decode("ascii")


def _kind(kind: str) -> str:
    """Return a kind with its sentence; a kind that a third party named is shown alone."""
    sentence = SENTENCES.get(kind)
    return clean_line(kind) if sentence is None else f"{kind}. {sentence}"


def _finding(result: Result, finding: Finding, is_plotted: bool) -> FindingText:
    index, readings = finding.operation_index, finding.readings
    plot = None if readings is None or not is_plotted else make_growth_plot(readings)
    evidence = "\n".join(unsaid_evidence(finding))
    if len(evidence) > EVIDENCE_LENGTH_MAX:
        evidence = f"… (report.json holds all of it)\n{evidence[-EVIDENCE_LENGTH_MAX:]}"
    return FindingText(
        rule=clean_line(finding.rule),
        sentence=sentence_of(finding.rule),
        remark=finding.remark,
        kind=_kind(finding.kind),
        where=place(result, finding),
        moment=f"operation {index}" if index is not None else "at the end" if result.operations else "",
        request=clean_line(finding.request),
        expected=clean_line(finding.expected),
        observed=clean_line(finding.observed),
        allocated_by=clean_line(finding.allocated_by),
        kept="; ".join(map(clean_line, finding.kept.splitlines())),
        evidence=evidence,
        sources=quoted_sources(finding),
        growth="" if readings is None else growth_words(readings),
        picture=None if plot is None else draw_growth(plot),
        plot="" if plot is None else _packed(plot.as_json()),
    )

"""A conformance run as text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from quiesce.conformance.result import Conformance, Standing
from quiesce.reporting.repetition import told_once
from quiesce.reporting.text import clean_line, plural
from quiesce.results import Result, Verdict


def summarize(conformance: Conformance) -> str:
    """Return the findings, a line for each part, what was not exercised, and what it means; ends in a line feed."""
    lines = [line for failure in told_once(conformance.results) for line in (failure.text(), "")]
    name, version = clean_line(conformance.backend), conformance.description and conformance.description.version
    lines.append(f"{name}{f', version {clean_line(version)}' if version else ''}, seed {conformance.seed}")
    lines += [
        f"  contract:   {_counts(conformance.contract, 'rule')}",
        f"  corpus:     {_counts(conformance.corpus, 'case')}",
        f"  sweep:      {_counts(conformance.sweep, 'trial')}",
    ]
    for campaign in conformance.campaigns:
        kind = "hostile" if campaign.hostile else "valid"
        reached = len(campaign.coverage.pairs)
        lines.append(
            f"  generated:  {campaign.operations:,} operation{'' if campaign.operations == 1 else 's'} in "
            f"{campaign.sequences:,} {kind} sequence{'' if campaign.sequences == 1 else 's'}, "
            f"{plural(len(campaign.coverage.actions()), 'kind')} of request in {plural(reached, 'situation')}"
        )
    if conformance.not_exercised:
        lines.append("not exercised:")
        lines += [f"  {clean_line(gap.what)}: {clean_line(gap.why)}" for gap in conformance.not_exercised]
    lines.append(f"{name}: {_meaning(conformance)}")
    return "\n".join(lines) + "\n"


def _meaning(conformance: Conformance) -> str:
    if conformance.standing is Standing.DOES_NOT_CONFORM:
        return f"{conformance.standing}, {plural(len(conformance.findings), 'finding')}"
    if conformance.standing is Standing.UNPROVEN:
        return f"{conformance.standing}: {'; '.join(map(clean_line, conformance.unproven))}. This is not a pass."
    return str(conformance.standing)


def _counts(results: Sequence[Result], thing: str) -> str:
    counts = Counter(result.verdict for result in results)
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict if counts[verdict]]
    return f"{plural(len(results), thing)}: {', '.join(parts)}{_lacking(results)}" if results else "nothing ran"


def _lacking(results: Iterable[Result]) -> str:
    """Say what the unsupported ones lack, most often first."""
    lacking: Counter[str] = Counter()
    for result in results:
        if result.verdict is Verdict.UNSUPPORTED and result.reason.startswith("lacks "):
            lacking.update(result.reason.removeprefix("lacks ").split(", "))
    shown = ", ".join(
        f"{what} {count}" for what, count in sorted(lacking.items(), key=lambda each: (-each[1], each[0]))
    )
    return f" (lacks {shown})" if shown else ""

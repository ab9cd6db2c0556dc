"""The first words of the page: what the run means. A run that is empty or incomplete never looks green."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from quiesce.reporting.conclusion import conclusions
from quiesce.reporting.counts import BackendCounts
from quiesce.reporting.run_keys import ENDED, NAMED, PLANNED, SKIPPED, UNREADABLE
from quiesce.reporting.terminal import empty_warnings
from quiesce.reporting.text import clean_line
from quiesce.results import Report


class Mood(enum.StrEnum):
    """The colour of the headline."""

    GOOD = "good"
    BAD = "bad"
    DOUBTFUL = "doubtful"


@dataclass(frozen=True, slots=True)
class Headline:
    """``text`` is one line; ``warnings`` say what is missing, ``left_out`` which backends did not take part and why."""

    mood: Mood
    text: str
    warnings: tuple[str, ...]
    left_out: tuple[tuple[str, str], ...]


def headline(report: Report, counts: Sequence[BackendCounts]) -> Headline:
    """Return what the run means, from its results and its ``run`` object."""
    warnings = (*_incomplete(report), *empty_warnings(counts, named_backends(report)), *_unreadable(report))
    text = ". ".join(line[:1].upper() + line[1:] for line in conclusions(report.results))
    if any(each.failures for each in counts):
        mood = Mood.BAD
    elif warnings or not any(each.executed for each in counts) or any(each.unresolved for each in counts):
        mood = Mood.DOUBTFUL
    else:
        mood = Mood.GOOD
    has_cases = not report.results or any(not each.is_leak_check for each in report.results)
    return Headline(mood, text, warnings, _with_prefix(report, SKIPPED) if has_cases else ())


def named_backends(report: Report) -> tuple[str, ...]:
    """Return the backends that the user asked for by name."""
    return tuple(key.removeprefix(NAMED) for key in sorted(report.run) if key.startswith(NAMED))


def _incomplete(report: Report) -> tuple[str, ...]:
    ended = report.run.get(ENDED, "completed")
    planned = report.run.get(PLANNED, str(len(report.results)))
    is_complete = ended == "completed" or (ended == "killed" and PLANNED in report.run)
    if is_complete and planned == str(len(report.results)):
        return ()
    how = "" if ended == "completed" else f" (it ended: {clean_line(ended)})"
    many = f"{len(report.results)} of {clean_line(planned)}" if PLANNED in report.run else str(len(report.results))
    return (f"THE RUN IS INCOMPLETE{how}: this page holds {many} results.",)


def _unreadable(report: Report) -> tuple[str, ...]:
    return tuple(f"A CASE FILE COULD NOT BE READ: {why}" for _, why in _with_prefix(report, UNREADABLE))


def _with_prefix(report: Report, prefix: str) -> tuple[tuple[str, str], ...]:
    return tuple(
        (clean_line(key.removeprefix(prefix)), clean_line(value))
        for key, value in sorted(report.run.items())
        if key.startswith(prefix)
    )

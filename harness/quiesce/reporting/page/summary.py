"""The top of a page: what the run means, the words for it, and why results have no verdict.

A run that is empty or incomplete never looks green.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.model.results import LEAK_CHECK, Report, Result, Verdict
from quiesce.reporting.glossary import VERDICTS, rules_in_order
from quiesce.reporting.result_lists import ENDED, NAMED, PLANNED, SKIPPED, UNREADABLE, BackendCounts
from quiesce.reporting.terminal import conclusions, empty_warnings
from quiesce.reporting.text import clean_line


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


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason on one backend, and the cases that it holds for, in order."""

    backend: str
    verdict: Verdict
    reason: str
    cases: tuple[str, ...]

    @property
    def count(self) -> int:
        """How many cases it holds for."""
        return len(self.cases)


def reasons(results: Iterable[Result]) -> tuple[Reason, ...]:
    """Return the reasons, ordered by backend, verdict and how many cases they hold for."""
    groups: defaultdict[tuple[str, Verdict, str], list[str]] = defaultdict(list)
    for result in results:
        if result.verdict is Verdict.INCONCLUSIVE or not result.verdict.executed:
            why = clean_line(result.reason) or "no reason was recorded"
            groups[clean_line(result.backend), result.verdict, why].append(clean_line(result.case))
    grouped = [Reason(*key, tuple(sorted(cases))) for key, cases in groups.items()]
    return tuple(sorted(grouped, key=lambda each: (each.backend, each.verdict, -len(each.cases), each.reason)))


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """``noun`` is what a row of the matrix is, and ``verdicts`` says what each verdict means for it.

    ``of_cases`` says whether the page has all verdicts and rules; the others have those that occur.
    """

    noun: str
    verdicts: Mapping[Verdict, str]
    of_cases: bool

    def backend(self, name: str) -> str:
        """Return a backend's name as the page shows it."""
        return "leak check" if name == LEAK_CHECK else name

    def listed(self, counts: Iterable[BackendCounts], verdicts: Iterable[Verdict]) -> tuple[Verdict, ...]:
        """Return which of some verdicts the page lists."""
        kept = tuple(counts)
        return tuple(each for each in verdicts if self.of_cases or any(one.by_verdict[each] for one in kept))

    def run(self, facts: Mapping[str, str]) -> list[tuple[str, str]]:
        """Return the facts of a run in order; without the backends that were left out where none was to take part."""
        return [(key, value) for key, value in sorted(facts.items()) if self.of_cases or not key.startswith(SKIPPED)]

    def rules(self, broken: Iterable[str]) -> tuple[tuple[str, str, bool], ...]:
        """Return the rules of the glossary: name, sentence, and whether it was broken."""
        return tuple(each for each in rules_in_order(broken) if self.of_cases or each[2])


OF_CASES: Final = Vocabulary("case", VERDICTS, of_cases=True)
OF_CHECKS: Final = Vocabulary(
    "test",
    {
        Verdict.PASSED: "The test was repeated, and nothing grew from round to round.",
        Verdict.FAILED: "The test leaks, or fails by itself. A finding says what grows and where it comes from.",
        Verdict.BROKEN_CASE: VERDICTS[Verdict.BROKEN_CASE],
        Verdict.UNSUPPORTED: "The test was not checked: it was skipped, is expected to fail, or is marked so.",
        Verdict.NOT_PROMISED: VERDICTS[Verdict.NOT_PROMISED],
        Verdict.KNOWN_UPSTREAM: "The test leaks as expected: it is marked xfail, or its leak is known.",
        Verdict.INCONCLUSIVE: "The leak check came to no verdict; the reason says why.",
    },
    of_cases=False,
)


def vocabulary_of(results: Iterable[Result]) -> Vocabulary:
    """Return the words for a page of some results."""
    kept = tuple(results)
    return OF_CHECKS if kept and all(each.is_leak_check for each in kept) else OF_CASES

"""Why results have no verdict: what was unsupported, not promised or inconclusive, grouped by reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from quiesce.reporting.text import clean_line
from quiesce.results import Result, Verdict


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

"""Lists of results as every report takes them: ordered, counted, attempts told apart, and of several runs merged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.model.results import Report, Result, Verdict


def ordered(results: Iterable[Result]) -> list[Result]:
    """Return results by backend, case and path; what is equal in all three is ordered by everything else it says."""
    return sorted(results, key=lambda result: (result.backend, result.case, result.path, repr(result)))


@dataclass(frozen=True, slots=True)
class BackendCounts:
    """One backend's results, counted by verdict; a verdict that did not occur is counted as 0.

    ``unresolved`` counts those that leave the run without a verdict; they are among the inconclusive ones.
    """

    backend: str
    by_verdict: Mapping[Verdict, int]
    unresolved: int = 0

    @property
    def executed(self) -> int:
        """Results whose operations ran. 0 means that the run says nothing about this backend."""
        return sum(count for verdict, count in self.by_verdict.items() if verdict.executed)

    @property
    def failures(self) -> int:
        """Results that make the run fail."""
        return sum(count for verdict, count in self.by_verdict.items() if verdict.is_failure)

    @property
    def total(self) -> int:
        """All results."""
        return sum(self.by_verdict.values())


def count_by_backend(results: Iterable[Result], backends: Iterable[str] = ()) -> tuple[BackendCounts, ...]:
    """Count results, ordered by backend. ``backends`` names those that count even where they have no result."""
    counters: dict[str, Counter[Verdict]] = {backend: Counter() for backend in backends}
    unresolved: Counter[str] = Counter()
    for result in results:
        counters.setdefault(result.backend, Counter())[result.verdict] += 1
        unresolved[result.backend] += result.is_unresolved
    return tuple(
        BackendCounts(backend, {verdict: counter[verdict] for verdict in Verdict}, unresolved[backend])
        for backend, counter in sorted(counters.items())
    )


def executed_count(results: Iterable[Result]) -> int:
    """Return how many results come from operations that ran."""
    return sum(result.verdict.executed for result in results)


def split_case(case: str) -> tuple[str, str]:
    """Return the topic and the behaviour: ``pool/trim`` gives ``pool`` and ``trim``.

    A test's name, ``unit/test_pool.py::test_trim[a/b]``, is divided within its path: its parameters may hold anything.
    """
    path, mark, inside = case.partition("::")
    topic, _, name = path.rpartition("/")
    return topic, name + mark + inside


def shorten_middle(name: str, length_max: int) -> str:
    """Return a name of at most ``length_max`` characters, its middle left out: a command's end tells it from others."""
    if len(name) <= length_max:
        return name
    head = length_max // 3
    return f"{name[:head]}…{name[head + 1 - length_max :]}"


def last_attempts(results: Iterable[Result]) -> list[Result]:
    """Return results in the order they came in, without those that a later attempt took the place of.

    An attempt takes the place of one earlier attempt, a failed one before others: where every worker of a run makes
    results of its own, each worker's last attempt stays.
    """
    kept: dict[int, Result] = {}
    positions: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for position, result in enumerate(results):
        same = positions[result.backend, result.case, result.path]
        earlier = [each for each in same if kept[each].attempt < result.attempt]
        if earlier:
            replaced = max(earlier, key=lambda each: (kept[each].verdict.is_failure, each))
            same.remove(replaced)
            del kept[replaced]
        same.append(position)
        kept[position] = result
    return list(kept.values())


def attempt_note(result: Result) -> str:
    """Return what came of earlier attempts, such as ``attempt 3; attempts 1 and 2 failed``; empty for the first."""
    before = result.attempt - 1
    if not before:
        return ""
    failed = {1: "attempt 1", 2: "attempts 1 and 2"}.get(before, f"attempts 1 to {before}")
    return f"attempt {result.attempt}; {failed} failed"


ENDED: Final = "ended"
"""How a run ended: ``completed``, ``interrupted`` or ``failed``, or ``killed`` where its journal has no end."""
PLANNED: Final = "planned results"
"""How many results a complete run has."""
SKIPPED: Final = "skipped "
"""The prefix of the keys that name the backends that were left out; the value says why."""
NAMED: Final = "named "
"""The prefix of the keys that name the backends that the user asked for by name; the value says where."""
UNREADABLE: Final = "unreadable "
"""The prefix of the keys that name the case files that could not be read; the value says why."""


COUNT: Final = "merged runs"
"""How many runs a report has the results of."""


def merged_report(reports: Sequence[Report]) -> Report:
    """Return one report with the results of all, in their order.

    Of what is known of the runs it keeps what all of them say alike. Planned results are added up.
    """
    first, *others = reports
    run = {key: value for key, value in first.run.items() if all(other.run.get(key) == value for other in others)}
    run.pop(ENDED, None)
    planned = [report.run.get(PLANNED, "") for report in reports]
    if all(each.isdigit() for each in planned):
        run[PLANNED] = str(sum(int(each) for each in planned))
    else:
        run.pop(PLANNED, None)
    run[COUNT] = str(len(reports))
    results = tuple(result for report in reports for result in report.results)
    return Report(seed=first.seed, results=results, run=run)

"""How many results of each kind a backend has, counted from the results and from nothing else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from quiesce.results import Result, Verdict


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

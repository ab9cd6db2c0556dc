"""Attempts: a test that failed may be run again, and its last attempt is its result."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from quiesce.results import Result


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

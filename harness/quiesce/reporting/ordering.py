"""The one order in which every report lists results, whatever order they came in."""

from __future__ import annotations

from collections.abc import Iterable

from quiesce.results import Result


def ordered(results: Iterable[Result]) -> list[Result]:
    """Return results by backend, case and path; what is equal in all three is ordered by everything else it says."""
    return sorted(results, key=lambda result: (result.backend, result.case, result.path, repr(result)))

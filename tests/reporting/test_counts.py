from __future__ import annotations

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.result_lists import count_by_backend, executed_count


def test_every_verdict_is_counted_for_every_backend(report: Report) -> None:
    counts = {each.backend: each for each in count_by_backend(report.results)}
    assert list(counts) == ["host", "leak-check", "opencl", "reference"]
    numbers = [(each.executed, each.failures, each.total) for each in counts.values()]
    assert numbers == [(0, 0, 2), (1, 0, 1), (2, 0, 2), (3, 2, 3)]
    assert counts["reference"].by_verdict[Verdict.BROKEN_CASE] == 1
    assert counts["host"].by_verdict[Verdict.PASSED] == 0


def test_a_backend_without_results_is_counted_as_empty() -> None:
    (only,) = count_by_backend((), ["host"])
    assert (only.backend, only.executed, only.total) == ("host", 0, 0)


def test_executed_counts_operations_that_ran(report: Report) -> None:
    assert executed_count(report.results) == 6


def test_what_leaves_the_run_without_a_verdict_is_counted_apart(report: Report, unresolved: Result) -> None:
    counts = {each.backend: each for each in count_by_backend((*report.results, unresolved))}
    assert (counts["cuda:12"].unresolved, counts["cuda:12"].executed, counts["cuda:12"].failures) == (1, 1, 0)
    assert counts["opencl"].unresolved == 0

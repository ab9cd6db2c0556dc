"""An error in the wire protocol is told once for each driver, with a count; anything else is told each time."""

from __future__ import annotations

from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import IN_PROTOCOL, SURVIVES
from quiesce.reporting.terminal import render_summary, told_once


def failing(number: int, rule: str = IN_PROTOCOL, backend: str = "command:pool") -> Result:
    finding = Finding(rule, "an answer", f"in reply to 'free b{number}': the reply lacks the key 'outcome'")
    return Result(f"pool/case_{number:02}", "", f"{number}.case", backend, Verdict.FAILED, findings=(finding,))


def test_twelve_cases_are_one_failure_with_a_count() -> None:
    (failure,) = told_once([failing(number) for number in range(12)])
    assert failure.result == failing(0)
    assert failure.text().count(IN_PROTOCOL) == 1
    assert failure.text().endswith(
        "\n  also in:   11 other cases of this driver program: pool/case_01, pool/case_02, pool/case_03, pool/case_04, "
        "pool/case_05 and 6 more"
    )


def test_one_case_has_no_others() -> None:
    (failure,) = told_once([failing(1)])
    assert "also in" not in failure.text()
    (first,) = told_once([failing(1), failing(2)])
    assert first.text().endswith("1 other case of this driver program: pool/case_02")


def test_each_driver_is_told_of() -> None:
    results = [failing(1), failing(2), failing(1, backend="command:other"), failing(2, backend="command:other")]
    assert [failure.result for failure in told_once(results)] == [results[0], results[2]]


def test_what_is_no_error_in_the_protocol_is_told_each_time() -> None:
    results = [failing(1, SURVIVES), failing(2), failing(3, SURVIVES), failing(4)]
    assert [failure.result for failure in told_once(results)] == results[:3]


def test_the_summary_of_a_run_tells_it_once_and_counts_every_case() -> None:
    summary = render_summary([failing(number) for number in range(12)])
    assert summary.count("lacks the key") == 1
    assert "12 of 12 cases failed on command:pool" in summary

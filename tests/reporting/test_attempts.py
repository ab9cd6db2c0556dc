"""Attempts: the last one of a test is its result, and says what came of the earlier ones."""

from __future__ import annotations

import pytest

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.junit import render_junit
from quiesce.reporting.page.matrix import make_matrix
from quiesce.reporting.record import result_from_record, result_record
from quiesce.reporting.result_lists import attempt_note, last_attempts


def attempt(number: int, verdict: Verdict = Verdict.FAILED, case: str = "pool/a", backend: str = "host") -> Result:
    return Result(case, "", "", backend, verdict, attempt=number)


def test_a_later_attempt_takes_the_place_of_an_earlier_one_of_its_own_case() -> None:
    results = [attempt(1), attempt(1, case="pool/b"), attempt(1, backend="cupy"), attempt(2), attempt(3)]
    assert last_attempts(results) == [*results[1:3], results[4]]


def test_an_attempt_that_had_no_successor_stays() -> None:
    assert last_attempts([attempt(1), attempt(2)]) == [attempt(2)]


def test_results_of_two_workers_that_ran_the_same_stay_apart() -> None:
    passed = attempt(1, Verdict.PASSED)
    assert last_attempts([attempt(1), passed, attempt(2)]) == [passed, attempt(2)]
    assert last_attempts([attempt(1), attempt(1), attempt(2), attempt(2)]) == [attempt(2), attempt(2)]


@pytest.mark.parametrize(
    ("number", "note"),
    [
        (1, ""),
        (2, "attempt 2; attempt 1 failed"),
        (3, "attempt 3; attempts 1 and 2 failed"),
        (9, "attempt 9; attempts 1 to 8 failed"),
    ],
)
def test_a_result_says_in_every_report_which_attempt_it_is(number: int, note: str) -> None:
    result = attempt(number, Verdict.PASSED)
    assert attempt_note(result) == note
    assert result_from_record(result_record(result)) == result
    assert ("attempt" in result_record(result)) == bool(note)
    assert (f'value="{note}"' in render_junit(Report(0, (result,)))) == bool(note)
    (row,) = make_matrix([result], {}).rows
    assert [cell.note for cell in row.cells if cell is not None] == [f"passed: {note}" if note else ""]

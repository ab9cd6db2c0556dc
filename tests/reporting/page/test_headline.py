from __future__ import annotations

import pytest

from quiesce.model.results import Report, Result, Verdict
from quiesce.reporting.page.summary import Headline, Mood, headline
from quiesce.reporting.result_lists import count_by_backend


def of(run: dict[str, str], *verdicts: Verdict) -> Headline:
    results = tuple(Result(f"a/{index}", "T", "", "host", verdict) for index, verdict in enumerate(verdicts))
    return headline(Report(0, results, run), count_by_backend(results))


def test_a_complete_run_without_failures_is_good() -> None:
    assert of({"ended": "completed", "planned results": "1"}, Verdict.PASSED) == Headline(
        Mood.GOOD, "1 result from 1 backend: no failures", (), ()
    )


@pytest.mark.parametrize("verdicts", [(), (Verdict.UNSUPPORTED,), (Verdict.NOT_PROMISED, Verdict.UNSUPPORTED)])
def test_nothing_executed_is_never_good(verdicts: tuple[Verdict, ...]) -> None:
    found = of({}, *verdicts)
    assert found.mood is Mood.DOUBTFUL
    assert found.text == "Nothing was executed: no verdict"


def test_a_backend_that_was_named_and_on_which_nothing_ran_spoils_a_green_run() -> None:
    results = (Result("a", "T", "", "host", Verdict.PASSED), Result("a", "T", "", "idle", Verdict.UNSUPPORTED))
    found = headline(Report(0, results, {"named idle": "--backend"}), count_by_backend(results))
    assert found.mood is Mood.DOUBTFUL
    assert found.warnings[0].startswith("NOTHING WAS EXECUTED on 'idle': 1 unsupported")
    assert headline(Report(0, results), count_by_backend(results)).mood is Mood.GOOD


@pytest.mark.parametrize(
    ("run", "warning"),
    [
        ({"ended": "completed", "planned results": "9"}, "THE RUN IS INCOMPLETE: this page holds 1 of 9 results."),
        ({"ended": "interrupted"}, "THE RUN IS INCOMPLETE (it ended: interrupted): this page holds 1 results."),
        ({"ended": "killed"}, "THE RUN IS INCOMPLETE (it ended: killed): this page holds 1 results."),
        ({"unreadable x.case": "x.case:1: odd"}, "A CASE FILE COULD NOT BE READ: x.case:1: odd"),
    ],
)
def test_what_is_missing_is_said(run: dict[str, str], warning: str) -> None:
    assert of(run, Verdict.PASSED).warnings == (warning,)
    assert of(run, Verdict.PASSED).mood is Mood.DOUBTFUL


def test_a_journal_that_holds_everything_makes_a_complete_report() -> None:
    assert of({"ended": "killed", "planned results": "1"}, Verdict.PASSED).mood is Mood.GOOD


def test_a_failure_outweighs_what_is_missing() -> None:
    assert of({"ended": "interrupted"}, Verdict.FAILED).mood is Mood.BAD


def test_backends_left_out_are_named() -> None:
    assert of({"skipped cupy": "no\x1b[31m device"}, Verdict.PASSED).left_out == (("cupy", "no device"),)

"""What the page of a program says before anything else, and when it is this page."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.model.findings import Finding
from quiesce.model.program_rules import ORDERED
from quiesce.model.program_run import FailedCalls
from quiesce.model.results import LEAK_CHECK, Report, Result, Verdict
from quiesce.reporting.page.summary import Mood
from quiesce.reporting.program_page.page import WHOLE_PROCESSES_MAX, is_of_programs, make_program_page


def test_programs_have_this_page_and_cases_have_another(program: Result, failing: Result) -> None:
    assert is_of_programs(Report(0, (program,)))
    assert is_of_programs(Report(0, (failing, program))), "it is a test that the program ran"
    assert not is_of_programs(Report(0, (failing,)))
    assert not is_of_programs(Report(0, ()))


def test_a_test_in_the_program_that_leaks_is_the_headline_and_has_a_card(program: Result) -> None:
    leak = Finding(
        "a_repeated_test_leaves_nothing_behind", "memory does not grow", "memory grows", allocated_by="a.py:1"
    )
    leaky = Result("a.py::test_a", "", "a.py", LEAK_CHECK, Verdict.FAILED, findings=(leak,), reproduce="pytest a.py")
    green = replace(leaky, case="a.py::test_b", verdict=Verdict.PASSED, findings=())
    passed = replace(program, verdict=Verdict.PASSED, findings=())
    page = make_program_page(Report(0, (passed, leaky, green)))
    assert (page.mood, page.verdict, page.headline) == (Mood.BAD, Verdict.FAILED, "1 leaking test")
    (test,) = page.tests
    (card,) = test.findings
    assert (test.name, test.reproduce, card.title) == ("a.py::test_a", "pytest a.py", "Leaking test")
    assert "allocated: a.py:1" in card.evidence
    assert page.reproduce == program.reproduce


@pytest.mark.parametrize(
    ("verdict", "reason", "mood", "headline"),
    [
        (Verdict.PASSED, "", Mood.GOOD, "Nothing broke a rule"),
        (Verdict.INCONCLUSIVE, "the program ended with status 4", Mood.DOUBTFUL, "Inconclusive"),
    ],
)
def test_the_headline_is_the_verdict(verdict: Verdict, reason: str, mood: Mood, headline: str, program: Result) -> None:
    page = make_program_page(
        Report(0, (replace(program, verdict=verdict, reason=reason, must_conclude=True, findings=()),))
    )
    assert (page.mood, page.headline, page.reasons) == (mood, headline, (reason,) if reason else ())


def test_findings_are_counted_by_what_they_are_called(program: Result) -> None:
    race = Finding(ORDERED, "this", "that")
    page = make_program_page(Report(0, (replace(program, findings=(race, *program.findings, race)),)))
    assert (page.mood, page.headline) == (Mood.BAD, "2 races and 3 uses after free")
    assert [rule.name for rule in page.rules] == [ORDERED, "freed_memory_is_not_used"]
    assert all(each.url.startswith("https://github.com/") for each in page.rules[0].references)


def test_the_worst_process_decides(program: Result) -> None:
    passed = replace(program, case="a (process 1)", verdict=Verdict.PASSED, findings=())
    page = make_program_page(Report(0, (passed, replace(program, case="a (process 2)"))))
    assert (page.mood, page.verdict) == (Mood.BAD, Verdict.FAILED)
    assert [(each.prefix, each.verdict) for each in page.processes] == [
        ("p1-", Verdict.PASSED),
        ("p2-", Verdict.FAILED),
    ]


def test_conditions_say_how_to_run_it_again(program: Result) -> None:
    page = make_program_page(Report(4, (program,), {"version of quiesce": "1.2", "ended": "completed", "other": "x"}))
    conditions = dict(page.conditions)
    assert conditions["Program"] == "python train.py"
    assert conditions["Simulated runtime"] == "CUDA 12"
    assert conditions["Devices"] == "2 devices, 17,179,869,184 bytes (16 GiB) each"
    assert (conditions["Schedule"], conditions["Seed"]) == ("seeded", "4")
    assert (conditions["quiesce"], conditions["other"]) == ("1.2", "x")
    assert "ended" not in conditions
    assert page.reproduce == "quiesce exec -- python train.py"


def test_facts_are_whole_numbers(program: Result) -> None:
    facts = {name: (value, note) for name, value, note in make_program_page(Report(4, (program,))).processes[0].facts}
    assert facts["Peak of memory"] == ("8,388,608 bytes (8 MiB)", "at call 3")
    assert facts["Held at exit"] == ("8,388,608 bytes (8 MiB)", "2 blocks and 2 handles and 1 more thing")
    assert facts["Findings"] == ("3", "1 shown here, seen 25 times")
    assert facts["Refused requests"] == ("1", "")


def test_of_very_many_processes_those_with_findings_are_whole(program: Result) -> None:
    passed = replace(program, verdict=Verdict.PASSED, findings=())
    page = make_program_page(Report(0, (*[passed] * WHOLE_PROCESSES_MAX, program, program)))
    shown = [each.plot is not None for each in page.processes]
    assert shown == [True] * (WHOLE_PROCESSES_MAX - 2) + [False] * 2 + [True] * 2
    assert "report.json" in page.processes[-3].notes[0]
    assert [len(each.findings) for each in page.processes[-2:]] == [1, 1]
    assert page.headline == "6 uses after free"


def test_calls_that_failed_are_a_table(program: Result) -> None:
    table = make_program_page(Report(4, (program,))).processes[0].failed
    assert table is not None
    assert [(each.call, each.error, each.times, each.about, each.place) for each in table.rows] == [
        (
            "cudaMemset",
            "1 cudaErrorInvalidValue",
            "1,200",
            "the program did not look at the error",
            "train.py:12 in clear",
        ),
        ("cudaMalloc", "2 cudaErrorMemoryAllocation", "1", "--fail asked for it", ""),
    ]
    assert table.left_out == 1
    assert program.program is not None
    none = replace(program, program=replace(program.program, failed_calls=FailedCalls()))
    assert make_program_page(Report(4, (none,))).processes[0].failed is None

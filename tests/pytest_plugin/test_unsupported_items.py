"""A case that a backend cannot run makes no item there, and is in every report."""

from __future__ import annotations

import json

import pytest

from .conftest import BAD, GOOD, Project

BACKENDS = ("--quiesce-backend=host", "--quiesce-backend=bare")
REGRESSION = """\
title:    A free is counted
upstream: example/project#2
fault:    {fault}
finds:    {finds}
needs:    {needs}

{body}
"""


def verdicts(project: Project) -> dict[tuple[str, str], tuple[str, str]]:
    report = json.loads((project.path / "out/report.json").read_text(encoding="utf-8"))
    return {(each["case"], each["backend"]): (each["verdict"], each["reason"]) for each in report["results"]}


@pytest.mark.parametrize("workers", ["0", "2"])
def test_it_makes_no_item_and_is_in_the_report_once(project: Project, workers: str) -> None:
    project.write("cases/pool/more.case", GOOD)
    result = project.run_apart("-n", workers, "--quiesce-report=out", *BACKENDS)
    result.assert_outcomes(passed=2)
    assert verdicts(project) == {
        ("pool/good", "bare"): ("unsupported", "lacks memory"),
        ("pool/more", "bare"): ("unsupported", "lacks memory"),
        ("pool/good", "host"): ("passed", ""),
        ("pool/more", "host"): ("passed", ""),
    }
    result.stdout.fnmatch_lines(
        [
            "quiesce: 2 cases on 2 backends, seed 0",
            "  host  2 of 2  *",
            "  bare  0 of 2",
            "bare            0       0       0       0            2 *",
            "NOTHING WAS EXECUTED on 'bare': 2 unsupported, 0 not promised. This is not a pass. "
            "Most common: lacks memory (2 cases).",
            "2 cases passed on host",
        ]
    )
    said = [line for line in result.outlines if line.startswith("quiesce: 2 cases")]
    assert len(said) == 1


def test_pytest_counts_the_items_that_are_left(project: Project) -> None:
    result = project.run(*BACKENDS)
    result.stdout.fnmatch_lines(["collected 1 item"])


@pytest.mark.parametrize(
    "selection", [("-k", "more"), ("--deselect", "cases/pool/good.case"), ("cases/pool/more.case",)]
)
def test_what_is_not_selected_is_not_in_the_report(project: Project, selection: tuple[str, ...]) -> None:
    project.write("cases/pool/more.case", GOOD)
    project.run(*BACKENDS, "--quiesce-report=out", *selection).assert_outcomes(
        passed=1, deselected=0 if len(selection) == 1 else 2
    )
    assert {case for case, _ in verdicts(project)} == {"pool/more"}


def test_no_leak_check_is_no_case(project: Project) -> None:
    result = project.run(*BACKENDS, "-m", "not leak")
    result.assert_outcomes(deselected=2)


@pytest.mark.parametrize("workers", ["0", "1"])
def test_an_item_that_is_named_is_skipped_with_its_reason(project: Project, workers: str) -> None:
    result = project.run_apart("-n", workers, "cases/pool/good.case::bare", *BACKENDS, "--quiesce-report=out")
    result.assert_outcomes(skipped=1)
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["not run on 'bare': cases/pool/good.case: unsupported: lacks memory"])
    assert verdicts(project) == {("pool/good", "bare"): ("unsupported", "lacks memory")}


def test_a_backend_that_can_do_nothing_is_no_success(project: Project) -> None:
    result = project.run("--quiesce-backend=bare")
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    result.stdout.fnmatch_lines(["NOTHING WAS EXECUTED on 'bare'*", "nothing was executed: no verdict"])


def test_a_policy_can_have_it_run(project: Project) -> None:
    project.write(
        "conftest.py",
        "import dataclasses\nfrom quiesce.model.results import Verdict\n"
        "def pytest_quiesce_adjust_result(result):\n"
        "    return dataclasses.replace(result, verdict=Verdict.FAILED, reason='it has to run everywhere')\n",
    )
    result = project.run("--quiesce-backend=bare")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*it has to run everywhere*"])


def test_collecting_alone_says_nothing_of_it(project: Project) -> None:
    result = project.run(*BACKENDS, "--collect-only", "-q")
    result.stdout.fnmatch_lines(["cases/pool/good.case::host"])
    result.stdout.no_fnmatch_line("*bare*")


def regression(fault: str) -> str:
    body = "a = allocate 4MiB\nfree a"
    return REGRESSION.format(fault=fault, finds="request_fits_but_out_of_memory", needs="pool", body=body)


def test_a_case_that_does_not_catch_its_fault_is_broken(project: Project) -> None:
    project.write("cases/pool/idle.case", regression("pool.no_squeeze"))
    result = project.run("--quiesce-backend=reference", "cases/pool/idle.case")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*broken case on 'reference': its fault breaks nothing, not exactly request_fits_but_out_of_memory",
            "1 of 1 case is broken",
        ]
    )


def test_a_failing_case_ends_with_where_it_fails(project: Project) -> None:
    project.write("cases/pool/refused.case", BAD)
    project.run("--quiesce-backend=host").stdout.fnmatch_lines(["1 of 2 cases failed on host"])


def test_tests_that_are_checked_for_leaks_are_told_apart(project: Project) -> None:
    project.write("test_it.py", "import pytest\n@pytest.mark.leak\ndef test_it(): pass\n")
    result = project.run_apart("-m", "leak", "--quiesce-backend=host", "test_it.py", "cases")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "quiesce: 1 case on 1 backend, seed 0",
            "quiesce: 1 test is checked for leaks: it is repeated at least 3 times",
            "1 case passed on host",
            "1 test checked for leaks: 1 clean; * s",
        ]
    )

"""A test that asks for a leak check fails if the check has no verdict; scripted judgements stand for the checks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .conftest import Project

SCRIPT = """
from quiesce.leaks import Judgement, LeakChecker, Outcome

def check(self, run_round, plan, own=()):
    outcomes = [run_round(), run_round()]
    unstable = Outcome.PASSED in outcomes and Outcome.FAILED in outcomes
    over = Outcome.OVER in outcomes
    return Judgement(
        Outcome.OVER if over else outcomes[0],
        97,
        inconclusive="" if over else "a list may hold 200 entries (test_it.py:3)",
        unstable=unstable,
    )

LeakChecker.check = check
"""
"""Judges nothing: each check has no verdict."""

OPEN = "no leak verdict: a list may hold 200 entries (test_it.py:3)"

SUITE = """
import pytest

RUNS = []

@pytest.mark.leak(seconds=3)
def test_marked(): pass

def test_with_the_fixture(leak_check): pass

def test_other(): pass
"""

AS_BEFORE = """
import pytest

RUNS = []

pytestmark = pytest.mark.leak

def test_fails(): assert RUNS == [0]

@pytest.mark.xfail
def test_unexpectedly_passes(): pass

@pytest.mark.xfail(strict=True)
def test_is_fixed(): pass

@pytest.mark.xfail
def test_expected(): assert RUNS == [0]

def test_differs():
    RUNS.append(1)
    assert len(RUNS) == 1

def test_in_parts(subtests):
    with subtests.test("one"): assert RUNS == [0]

@pytest.fixture
def broken():
    yield
    raise OSError("no")

def test_ends_badly(broken): pass

def test_skipped(): pytest.skip("not here")
"""


def results(project: Project) -> dict[str, dict[str, Any]]:
    lines = (project.path / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    records = [record for record in map(json.loads, lines) if "case" in record]
    return {each["case"].partition("::")[2]: each for each in records}


@pytest.fixture
def scripted(project: Project) -> Project:
    """A project whose leak checks never have a verdict."""
    project.write("conftest.py", SCRIPT)
    return project


def test_a_test_that_asks_for_a_check_fails_without_a_verdict_and_says_what_to_write(scripted: Project) -> None:
    scripted.write("test_it.py", SUITE)
    result = scripted.run_apart("test_it.py", "--quiesce-leak", "--quiesce-report=out")
    result.assert_outcomes(failed=2, passed=1, warnings=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_marked has no leak verdict; it was run 97 times",
            "  rule:      a_leak_check_comes_to_a_verdict *",
            "  observed:  no verdict: a list may hold 200 entries (test_it.py:3)",
            "*@pytest.mark.leak(seconds=12)",
            "*@pytest.mark.leak(rounds=…), twice the bound",
            '*@pytest.mark.leak(limit="2 KiB")',
            '*@pytest.mark.leak(skip="the reason")',
            "* LeakCheckWarning: no leak verdict: a list may hold 200 entries *",
            "3 tests checked for leaks: 3 have no verdict; *",
        ]
    )
    said = results(scripted)
    assert {each["verdict"] for each in said.values()} == {"inconclusive"}
    assert [name for name, each in said.items() if each.get("must_conclude")] == [
        "test_marked",
        "test_with_the_fixture",
    ]
    rules = [finding["rule"] for each in said.values() for finding in each["findings"]]
    assert rules == ["a_leak_check_comes_to_a_verdict"] * 2
    assert json.loads((scripted.path / "out/leaks.sarif").read_text(encoding="utf-8"))["runs"][0]["results"] == []


@pytest.mark.parametrize("arguments", [(), ("-n1",)])
def test_a_strict_run_fails_every_test_without_a_verdict(scripted: Project, arguments: tuple[str, ...]) -> None:
    if arguments:
        pytest.importorskip("xdist")
    scripted.write("test_it.py", SUITE)
    result = scripted.run_apart("test_it.py", "--quiesce-leak", "--quiesce-strict", "-rf", *arguments)
    result.assert_outcomes(failed=3)
    failed = [line for line in result.outlines if line.startswith("FAILED ")]
    assert sorted(line.split()[1] for line in failed) == [
        "test_it.py::test_marked",
        "test_it.py::test_other",
        "test_it.py::test_with_the_fixture",
    ]
    assert "--quiesce-strict" not in str(result.stdout), "each test says itself that it fails"


@pytest.mark.parametrize("arguments", [(), ("-n2",)])
def test_tests_that_ask_for_nothing_are_named_and_counted_at_the_end(
    scripted: Project, arguments: tuple[str, ...]
) -> None:
    if arguments:
        pytest.importorskip("xdist")
    names = ("test_a", "test_b", "test_c")
    scripted.write("test_it.py", "".join(f"def {name}(): pass\n" for name in names))
    result = scripted.run_apart("test_it.py", "--quiesce-leak", *arguments)
    result.assert_outcomes(passed=3, warnings=3)
    result.stdout.fnmatch_lines(
        [
            "3 tests have no verdict: a list may hold 200 entries (test_it.py:3)",
            *(f"  test_it.py::{name}" for name in names),
            "3 tests checked for leaks: 3 have no verdict; *",
        ],
        consecutive=True,
    )


def test_a_test_that_fails_or_is_expected_to_ends_as_before(scripted: Project) -> None:
    scripted.write("test_it.py", AS_BEFORE)
    result = scripted.run_apart("test_it.py", "--quiesce-report=out")
    assert result.parseoutcomes() == {
        "failed": 5,  # of these, one is a subtest, and one the test that it is part of
        "passed": 1,
        "skipped": 1,
        "xfailed": 1,
        "xpassed": 1,
        "errors": 1,
        "warnings": 1,
    }
    assert "a_leak_check_comes_to_a_verdict" not in str(result.stdout)
    assert "not all runs of this one ended alike" in str(result.stdout)
    said = {name: each["verdict"] for name, each in results(scripted).items()}
    assert said["test_unexpectedly_passes"] == "inconclusive"
    assert {name for name, verdict in said.items() if verdict == "inconclusive"} == {"test_unexpectedly_passes"}


def test_a_run_that_must_have_verdicts_fails_for_an_expected_failure_that_passes(scripted: Project) -> None:
    scripted.write("test_it.py", "import pytest\n\n@pytest.mark.xfail\ndef test_passes(): pass\n")
    result = scripted.run_apart("test_it.py", "--quiesce-leak", "--quiesce-strict")
    assert (result.parseoutcomes()["xpassed"], result.ret) == (1, 1)
    result.stdout.fnmatch_lines(["the run fails: tests without a verdict, and --quiesce-strict"])


def test_what_state_of_an_earlier_run_spoils_has_its_own_remedy(scripted: Project) -> None:
    scripted.write("test_it.py", "RUNS = []\ndef test_once():\n    RUNS.append(1)\n    assert len(RUNS) == 1\n")
    result = scripted.run_apart("test_it.py", "--quiesce-leak", "--quiesce-strict")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["    - let the test, or a fixture of function scope, make anew the state *"])
    assert "leak(seconds=" not in str(result.stdout)

"""Leak checks next to plugins that end, repeat or vary a test."""

from __future__ import annotations

import sys

import pytest

from .conftest import Project

SLOW = """
import time
KEPT = []
def test_slow():
    KEPT.append(bytes(100))
    time.sleep(0.02)
"""

EXAMPLES = """
from hypothesis import given, settings, strategies as st

SEEN = []

@given(st.integers())
@settings(max_examples=20, deadline=None)
def test_examples(number): SEEN.append(number)

def test_what_was_seen():
    import pathlib
    runs = [SEEN[start:start + 20] for start in range(0, len(SEEN), 20)]
    pathlib.Path("seen.txt").write_text(f"{len(runs)} {len(set(map(tuple, runs[1:])))}")
"""


def test_a_time_limit_is_that_of_each_round(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.write("test_it.py", SLOW)
    result = project.run_beside("timeout", "test_it.py", "--quiesce-leak", "--timeout=2", "--quiesce-leak-rounds=12")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_slow - leaks * B/round (Python) at test_it.py:5*"])


def test_a_first_round_that_takes_too_long_is_a_failure_of_the_test(project: Project) -> None:
    pytest.importorskip("pytest_timeout")
    project.write("test_it.py", "import time\ndef test_it(): time.sleep(60)\n")
    result = project.run_beside("timeout", "test_it.py", "--quiesce-leak", "--timeout=1")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["FAILED test_it.py::test_it - Failed: Timeout *"])


@pytest.mark.long
def test_hypothesis_draws_the_same_in_each_repetition(project: Project) -> None:
    pytest.importorskip("hypothesis")
    project.write("test_it.py", EXAMPLES)
    project.run_apart("test_it.py", "--quiesce-leak", "--quiesce-leak-gauges=descriptors").assert_outcomes(passed=2)
    runs, different = map(int, (project.path / "seen.txt").read_text(encoding="utf-8").split())
    assert (runs > 2, different) == (True, 1)


def test_a_slow_check_is_named(project: Project) -> None:
    project.write("test_it.py", "import time\ndef test_it(): time.sleep(0.1)\n")
    result = project.run("test_it.py", "--quiesce-leak", "--quiesce-leak-seconds=0.2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it took * s, more than its 0.2 s"])


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere descriptors have other names")
def test_a_leak_whose_check_has_no_time_has_no_verdict(project: Project) -> None:
    project.write("test_it.py", "import os, time\ndef test_it():\n    os.open('/dev/null', 0)\n    time.sleep(0.1)\n")
    result = project.run("test_it.py", "--quiesce-leak", "--quiesce-leak-seconds=0.2", "--quiesce-strict")
    result.assert_outcomes(passed=1, warnings=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    why = "something still grows after * rounds, and its 0.2 s are over; raise --quiesce-leak-seconds"
    result.stdout.fnmatch_lines([f"test_it.py::test_it has no verdict: {why}"])

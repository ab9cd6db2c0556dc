"""Leaks of one run in up to twenty: found in quick tests that ask for a check."""

from __future__ import annotations

import pytest

from quiesce.leaks.stages.screening import RUNS_EACH

from .conftest import Project

SUITE = """
import itertools, os, threading, time, pytest

pytestmark = pytest.mark.leak(rounds=12, seconds=120)
KEPT, runs = [], itertools.count(1)
LOGS = [[]]
RECENT = []

@pytest.mark.parametrize("every", [7, 20])
def test_keeps(every):
    if next(runs) % every == 0:
        KEPT.append(bytes(100))

def test_opens():
    if next(runs) % 20 == 0:
        os.open("/dev/null", os.O_RDONLY)

def test_clean(): pass

def test_begins_anew():
    if next(runs) % 20 == 0:
        LOGS[0] = []
    LOGS[0].append(bytes(100))

def test_has_a_bound():
    if next(runs) % 7 == 0:
        RECENT.append(bytes(100))
        del RECENT[:-8]

def test_sets_a_variable(monkeypatch): monkeypatch.setenv("HOME", f"/home/{next(runs)}")
"""


@pytest.mark.long
def test_what_leaks_in_one_of_up_to_twenty_runs_is_found(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run_apart("test_it.py", "--tb=short")
    result.assert_outcomes(failed=3, passed=4)
    result.stdout.fnmatch_lines(
        [
            "  observed:  Python's memory grows by * bytes per round",
            "  allocated: test_it.py:12: KEPT.append(bytes(100))",
            "  kept by:   test_it.KEPT (* entries, +0.1* a run)",
            "  observed:  Python's memory grows by * bytes per round",
            "  allocated: test_it.py:12: KEPT.append(bytes(100))",
            "  kept by:   test_it.KEPT (* entries, +0.0* a run)",
            "  observed:  open file descriptors grow by 0.05* per round*",
        ]
    )


@pytest.mark.parametrize(("marker", "option"), [("", "--quiesce-leak"), ("@pytest.mark.leak(limit=1024)", "-v")])
def test_tests_that_do_not_ask_for_it_or_may_grow_are_not_run_twenty_times(
    project: Project, marker: str, option: str
) -> None:
    project.write("test_it.py", f"import pytest\nRUNS = [0]\n{marker}\ndef test_runs(): RUNS[0] += 1\n")
    project.write("conftest.py", "def pytest_sessionfinish(): import test_it; print('\\nruns', *test_it.RUNS)\n")
    result = project.run_apart("test_it.py", "-s", "--quiesce-leak-seconds=120", option)
    result.assert_outcomes(passed=1)
    (runs,) = (int(line.split()[-1]) for line in result.stdout.lines if line.startswith("runs "))
    assert 3 <= runs < RUNS_EACH

"""References to None that native code gives back without owning them."""

from __future__ import annotations

import pytest

from quiesce.leaks.meters.none_references import ARE_COUNTED

from .conftest import Project

pytestmark = pytest.mark.skipif(not ARE_COUNTED, reason="None is immortal from CPython 3.12 on")

SUITE = """
import ctypes, pytest

pytestmark = pytest.mark.leak(rounds=12, seconds=120)
lose = ctypes.pythonapi.Py_DecRef
lose.argtypes, lose.restype = [ctypes.py_object], None
FULL, TABLE = [None] * 10_000, dict.fromkeys(range(10_000))

def test_loses(): lose(None)

def test_loses_many():
    for _ in range(3):
        lose(None)

def test_takes_from_a_list(): FULL.pop()

def test_takes_from_a_table(): TABLE.popitem()

def test_clears():
    for structure in ([None] * 1000, dict.fromkeys(range(1000))):
        structure.clear()

def test_clean(): pass
"""


def test_lost_references_are_found_and_those_of_objects_do_not_count(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run_apart("test_it.py", "--tb=short")
    result.assert_outcomes(failed=2, passed=4)
    result.stdout.fnmatch_lines(
        [
            "  expected:  the test loses no references to None",
            "  observed:  the test loses 1 reference to None per round",
            "  kind:      lost references",
            "test_it.py::test_loses loses 1 reference to None/round*",
            "test_it.py::test_loses_many loses 3 references to None/round*",
        ]
    )


def test_a_test_that_does_not_ask_for_a_check_is_not_run_more_often(project: Project) -> None:
    project.write("test_it.py", SUITE.replace("pytestmark =", "MARKED ="))
    project.run_apart("test_it.py", "--quiesce-leak", "-k", "loses").assert_outcomes(passed=2)

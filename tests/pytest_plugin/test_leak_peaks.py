"""Limits of what a test uses at a time."""

from __future__ import annotations

from typing import Final

import pytest

from .conftest import Project

SUITE: Final = """
import pytest

@pytest.mark.leak(limit_peak="1 MiB")
def test_uses_too_much(): bytes(3 << 20)

@pytest.mark.leak(limit_peak="4 MiB")
def test_uses_less(): bytes(3 << 20)

@pytest.mark.leak(limit_peak={"device": "1 MiB"})
def test_has_no_device(): bytes(3 << 20)

@pytest.fixture(scope="module")
def table(): return bytes(3 << 20)

@pytest.mark.leak(limit_peak="1 MiB")
def test_finds_a_table(table): assert table
"""


@pytest.mark.long
def test_a_test_that_uses_too_much_at_a_time_fails(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run("test_it.py", "--quiesce-leak-rounds=3", "--quiesce-leak-seconds=120")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py::test_uses_too_much uses more memory than its limit; it was run * times",
            "  rule:      a_test_keeps_to_its_peak",
            "  expected:  Python's memory in use rises by at most 1,048,576 bytes (1 MiB) during the test",
            "  observed:  Python's memory in use rises by 3,1* bytes (3.0 MiB) during the test",
            "4 tests checked for leaks: 3 clean, 1 uses more memory than its limit; * s",
            "FAILED test_it.py::test_uses_too_much - Python's memory in use rises by *",
        ]
    )

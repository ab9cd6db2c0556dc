"""The marker on ordinary tests: what grows round by round is a failure, what was warmed up once is not."""

from __future__ import annotations

from .conftest import Project

SUITE = """
import pytest

KEPT = []
WARM = {}

@pytest.mark.leak
def test_keeps(): KEPT.append(bytearray(4096))

@pytest.mark.leak
def test_gives_back(): bytearray(4096)

@pytest.mark.leak
def test_warms_up_once(): WARM.setdefault("table", bytearray(1 << 20))

@pytest.mark.leak
def test_cycle():
    cycle = [bytearray(4096)]
    cycle.append(cycle)
"""


def test_only_what_grows_fails_and_names_the_site(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run("test_it.py")
    result.assert_outcomes(failed=1, passed=3)
    result.stdout.fnmatch_lines(
        [
            "  invariant: a_repeated_test_leaves_nothing_behind (growth per iteration)",
            "  observed:  Python's memory grows by * bytes per round",
            "  allocated: test_it.py:8: def test_keeps(): KEPT.append(bytearray(4096))",
        ]
    )

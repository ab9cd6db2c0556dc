"""Sentences of the pages that say how often something happens: it happens so often."""

from __future__ import annotations

import re

import pytest
from tests.documentation.pages import ROOT

TUTORIAL = (ROOT / "docs" / "tutorials" / "find_a_leak_in_your_tests.md").read_text(encoding="utf-8")
NUMBERS = {"three": 3, "six": 6}

COUNTED = """
import atexit, pathlib, pytest

RUNS = {"marked": 0, "plain": 0}
atexit.register(lambda: pathlib.Path("runs.txt").write_text(f"{RUNS['marked']} {RUNS['plain']}"))

@pytest.mark.leak
def test_marked():
    RUNS["marked"] += 1

def test_plain():
    RUNS["plain"] += 1
"""


def test_the_first_tutorial_says_how_often_tests_are_run(pytester: pytest.Pytester) -> None:
    plain = re.search(r"A test that leaves nothing behind is run (\w+) times", TUTORIAL)
    marked = re.search(r"A marked test is checked more closely, and is run at least (\w+) times", TUTORIAL)
    assert plain
    assert marked
    pytester.makepyfile(COUNTED)
    assert _runs(pytester, "--quiesce-leak-gauges=threads")[1] == NUMBERS[plain[1]]  # no other gauge asks for more
    assert _runs(pytester)[0] >= NUMBERS[marked[1]]


def _runs(pytester: pytest.Pytester, *options: str) -> tuple[int, int]:
    """Return how often the marked test and the other one are run."""
    done = pytester.runpytest_subprocess("--quiesce-leak", "-p", "no:cacheprovider", *options)
    done.assert_outcomes(passed=2)
    marked, plain = (pytester.path / "runs.txt").read_text(encoding="utf-8").split()
    return int(marked), int(plain)

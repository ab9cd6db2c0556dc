"""How a program ended, in words."""

from __future__ import annotations

import signal

import pytest

from quiesce.cli.judging import end_of
from quiesce.reporting.pytest_handover import Session


@pytest.mark.parametrize(
    ("status", "command", "said"),
    [
        (0, "pytest", ""),
        (5, "pytest tests", "the program ended with status 5: pytest ran no test"),
        (5, "venv/bin/python -m pytest tests", "the program ended with status 5: pytest ran no test"),
        (5, "client pytest", "the program ended with status 5"),
        (1, "pytest", "the program ended with status 1"),
        (-signal.SIGABRT, "client", "the program ended with SIGABRT"),
    ],
)
def test_an_end_is_told_as_far_as_it_is_known(status: int, command: str, said: str) -> None:
    assert end_of(status, command.split()) == said


FOUND = Session(seen=1, counted=1, ended=1)
OWN = Session(own=["a.py::test_a", "b.py::test_b"], seen=3, counted=3, ended=1)
KILLED = Session(own=["a.py::test_a"], seen=1)
ITS_OWN = "2 tests failed in the program itself: a.py::test_a, b.py::test_b"


@pytest.mark.parametrize(
    ("status", "sessions", "said"),
    [
        (1, [FOUND], ""),
        (1, [FOUND, Session(ended=0)], ""),
        (1, [Session(ended=0)], "the program ended with status 1"),
        (1, [Session(seen=1, counted=2, ended=1)], "the program ended with status 1"),
        (1, [FOUND, Session(seen=1, counted=1)], "the program ended with status 1"),
        (3, [FOUND], "the program ended with status 3"),
        (1, [OWN, FOUND], ITS_OWN),
        (2, [OWN], f"the program ended with status 2; {ITS_OWN}"),
        (
            -signal.SIGKILL,
            [KILLED],
            "the program ended with SIGKILL; 1 test failed in the program itself: a.py::test_a",
        ),
        (5, [Session(ended=5)], "the program ended with status 5: pytest ran no test"),
        (
            2,
            [Session(uncollected=[f"{name}.py" for name in "abcdefg"], seen=7, counted=7, ended=2)],
            "the program ended with status 2: pytest could not collect a.py, b.py, c.py, d.py, e.py and 2 more",
        ),
        (1, [Session(uncollected=["a.py"], seen=1, counted=1, ended=1)], "pytest could not collect a.py"),
    ],
)
def test_the_end_of_pytest_is_told_by_the_tests_that_failed(status: int, sessions: list[Session], said: str) -> None:
    assert end_of(status, ["make"], sessions) == said

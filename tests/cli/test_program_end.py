"""How a program ended, in words."""

from __future__ import annotations

import signal

import pytest

from quiesce.cli.program_end import end_of


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

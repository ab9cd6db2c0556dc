"""What a person at a terminal sees while a test is checked."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from _pytest._io import TerminalWriter

from quiesce.leaks.judgement import Outcome
from quiesce.pytest_plugin.leak_progress import LeakProgress, progress_writer

from .conftest import Project

NAME = "test_it.py::test_keeps"

CHECKED = """
import pytest

@pytest.mark.leak(gauges=["threads"])
def test_keeps(): print("captured")
"""

AT_ONCE = "import quiesce.pytest_plugin.leak_progress as it\nit.QUIET_SECONDS = it.PAUSE_SECONDS = -1.0\n"


class Screen:
    """A terminal of one line that understands the control sequences which are used."""

    def __init__(self) -> None:
        self.line = ""
        self.column = 0

    def take(self, text: str) -> str:
        """Return the line after a text, which may have colours."""
        while text:
            if text.startswith("\x1b["):
                end = next(index for index, each in enumerate(text[2:], 2) if each.isalpha())
                self._control(text[2:end], text[end])
                text = text[end + 1 :]
            else:
                self._put(text[0])
                text = text[1:]
        return self.line.rstrip()

    def _control(self, number: str, action: str) -> None:
        if action == "K":
            self.line = self.line[: self.column]
        elif action == "D":
            self.column -= int(number)

    def _put(self, character: str) -> None:
        if character in "\r\n":
            self.column = 0
            self.line = "" if character == "\n" else self.line
            return
        self.line = self.line[: self.column].ljust(self.column) + character + self.line[self.column + 1 :]
        self.column += 1


def writer(columns: int = 80, before: str = "test_it.py ..") -> tuple[TerminalWriter, io.StringIO]:
    stream = io.StringIO()
    made = TerminalWriter(stream)
    made.fullwidth = columns
    made.write(before)
    return made, stream


def shown(times: list[float], columns: int = 80, name: str = NAME) -> Iterator[str]:
    """Yield what the line says after each round, and at the end."""
    made, stream = writer(columns)
    clock = iter([0.0, *times])
    progress = LeakProgress(made, name, 10.0, lambda: next(clock))
    run = progress.following(lambda: Outcome.PASSED)
    screen = Screen()
    seen = 0
    for _ in times:
        assert run() is Outcome.PASSED
        yield screen.take(stream.getvalue()[seen:])
        seen = len(stream.getvalue())
    progress.end()
    yield screen.take(stream.getvalue()[seen:])
    assert screen.column == len("test_it.py ..")


def test_a_check_is_shown_after_a_second_and_each_text_stays_for_a_moment() -> None:
    lines = list(shown([0.5, 1.0, 1.25, 1.3, 3.15]))
    text = "test_it.py ..  checking test_it.py::test_keeps for leaks:"
    assert lines == [
        "test_it.py ..",
        "test_it.py ..",
        f"{text} 3 runs, 1.2 of 10 s",
        f"{text} 3 runs, 1.2 of 10 s",
        f"{text} 5 runs, 3.1 of 10 s",
        "test_it.py ..",
    ]


@pytest.mark.parametrize(
    ("columns", "name", "text"),
    [
        (60, NAME, "  leak check: 1 run, 2.0 of 10 s"),
        (35, NAME, " 1 run, 2.0 of 10 s"),
        (30, NAME, ""),
        (80, "test_it.py::test[\N{SNOWMAN}]", "  leak check: 1 run, 2.0 of 10 s"),
    ],
)
def test_a_text_that_has_no_room_is_shortened_or_left_out(columns: int, name: str, text: str) -> None:
    assert next(shown([2.0], columns, name)) == f"test_it.py ..{text}"


def config(*, isatty: bool = True, **options: Any) -> Any:
    made, _ = writer()
    reporter = SimpleNamespace(isatty=isatty)
    return SimpleNamespace(
        pluginmanager=SimpleNamespace(get_plugin=lambda name: reporter if name == "terminalreporter" else None),
        option=SimpleNamespace(**{"verbose": 0, "capture": "fd", **options}),
        get_terminal_writer=lambda: made,
    )


@pytest.mark.parametrize(
    ("made", "environ", "is_shown"),
    [
        (config(), {"TERM": "xterm"}, True),
        (config(verbose=1), {"TERM": "xterm", "CI": ""}, True),
        (config(isatty=False), {"TERM": "xterm"}, False),
        (config(verbose=-1), {"TERM": "xterm"}, False),
        (config(capture="no"), {"TERM": "xterm"}, False),
        (config(), {"TERM": "dumb"}, False),
        (config(), {"TERM": "xterm", "CI": "true"}, False),
    ],
)
def test_only_a_person_at_a_terminal_is_shown_progress(made: Any, environ: dict[str, str], is_shown: bool) -> None:
    assert (progress_writer(made, environ) is not None) == is_shown


def on_a_terminal(project: Project, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Return what a run of pytest writes to a pseudo terminal."""
    pty = pytest.importorskip("pty")
    project.write("test_it.py", CHECKED)
    project.write("conftest.py", AT_ONCE)
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "pytest", *project.plugin_arguments, "test_it.py", *arguments]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL, cwd=project.path) as run:
        os.close(theirs)
        written = b""
        while chunk := _read(ours):
            written += chunk
    os.close(ours)
    assert run.returncode == 0, written
    return written.decode()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65_536)
    except OSError:  # Linux has no end of file for a terminal whose other side is closed
        return b""


def test_progress_reaches_the_terminal_of_a_run_that_captures(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = on_a_terminal(project, monkeypatch)
    assert "  checking test_it.py::test_keeps for leaks: 3 runs, " in written
    line = next(line for line in written.splitlines() if line.startswith("test_it.py "))
    screen = Screen().take(line)
    assert screen.startswith("test_it.py .  ")
    assert "check" not in screen
    assert screen.endswith("[100%]")


def test_a_quiet_run_shows_no_progress(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    written = on_a_terminal(project, monkeypatch, "-q")
    assert " runs, " not in written

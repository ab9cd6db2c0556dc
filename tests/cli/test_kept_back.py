from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.cli.console import FILE_NAME, Console, kept_back

PROGRAM = """\
import os, pathlib, signal, sys
from quiesce.cli.console import Console
from quiesce.cli.console import kept_back

console = Console(sys.stdout, sys.stderr, os.environ)
directory = pathlib.Path(sys.argv[1]) if sys.argv[1:] else None
with kept_back(console, directory):
{}
print("after", file=sys.stderr)
"""
NOISE = """\
    os.write(2, b"vendor: one\\n")
    print("vendor: two", file=sys.stderr)
    console.complain("of the command")
"""


def run(body: str, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(body), *words],
        check=False,
        text=True,
        capture_output=True,
        env={**os.environ, "TMPDIR": str(folder)},
        timeout=60,
    )


def test_noise_of_libraries_goes_to_a_file_that_the_command_names(tmp_path: Path) -> None:
    ended = run(NOISE, tmp_path)
    (kept,) = tmp_path.iterdir()
    assert kept.read_text() == "vendor: one\nvendor: two\n"
    assert ended.stderr == (
        "quiesce: of the command\n"
        f"quiesce: 2 lines that libraries wrote to standard error are in {kept}; --verbose shows them here\n"
        "after\n"
    )


def test_the_file_stands_beside_the_reports_and_replaces_an_old_one(tmp_path: Path) -> None:
    reports = tmp_path / "reports"
    reports.mkdir()
    (reports / FILE_NAME).write_text("of an earlier run")
    assert (
        f"1 line that libraries wrote to standard error is in {reports / FILE_NAME};"
        in run('    os.write(2, b"vendor\\n")', tmp_path, str(reports)).stderr
    )
    assert (reports / FILE_NAME).read_text() == "vendor\n"
    run("    pass", tmp_path, str(reports))
    assert list(reports.iterdir()) == []


def test_without_noise_there_is_no_file_and_no_line(tmp_path: Path) -> None:
    assert run('    console.complain("of the command")', tmp_path).stderr == "quiesce: of the command\nafter\n"
    assert list(tmp_path.iterdir()) == []


def test_an_exception_is_told_after_the_noise_is_kept(tmp_path: Path) -> None:
    ended = run('    os.write(2, b"vendor\\n")\n    raise ValueError("wrong")', tmp_path)
    assert re.match(r"quiesce: 1 line .*\nTraceback", ended.stderr)
    assert ended.stderr.endswith("ValueError: wrong\n")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGABRT, signal.SIGSEGV])
def test_the_last_words_of_a_killed_command_are_shown(number: signal.Signals, tmp_path: Path) -> None:
    ended = run(f"{NOISE}    sys.stderr.flush()\n    os.kill(os.getpid(), {int(number)})", tmp_path)
    assert ended.returncode == -number
    assert ended.stderr == "quiesce: of the command\nvendor: one\nvendor: two\n"
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_is_not_the_process_own_is_left_alone(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with kept_back(Console(sys.stdout, sys.stderr, {}), tmp_path):
        sys.stderr.write("seen\n")
    assert capsys.readouterr().err == "seen\n"

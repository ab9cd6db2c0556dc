"""Commands run without a shell, and what a failing one wrote is kept and shown."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quiesce.model.errors import SubjectNotBuilt
from quiesce.subjects.commands import perform


def run(tmp_path: Path, code: str) -> Path:
    log = tmp_path / "log.txt"
    perform([sys.executable, "-c", code], log, tmp_path, {"WHERE": "here"})
    return log


def test_a_command_finds_its_folder_and_environment(tmp_path: Path) -> None:
    log = run(tmp_path, "import os; print(os.environ['WHERE'], os.getcwd())")
    assert f"here {tmp_path}" in log.read_text(encoding="utf-8")


def test_a_failing_command_shows_both_ends_of_what_it_wrote(tmp_path: Path) -> None:
    with pytest.raises(SubjectNotBuilt, match=r"ended with status 3; see .*log\.txt") as raised:
        run(tmp_path, "for n in range(100): print('line', n)\nraise SystemExit(3)")
    shown = raised.value.output
    assert "line 0\n" in shown
    assert "line 99" in shown
    assert "68 lines are in the log" in shown
    assert "line 50\n" in raised.value.log.read_text(encoding="utf-8")


def test_a_command_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    with pytest.raises(SubjectNotBuilt, match="'no-such-program' ended with No such file"):
        perform(["no-such-program"], tmp_path / "log.txt", tmp_path, {})

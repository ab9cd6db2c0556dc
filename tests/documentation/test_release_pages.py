"""Commands of pages that build releases do what the pages say; tox's environment 'subjects-all' asks for it."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from tests.documentation.pages import ROOT
from tests.documentation.running import run_page
from tests.documentation.test_readme import Row, rows
from tests.documentation.unrun import OF_RELEASES, reason_not_to_run

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main

pytestmark = pytest.mark.skipif("QUIESCE_RELEASES" not in os.environ, reason="it downloads and builds releases")
TUTORIAL = "docs/tutorials/from_a_bug_report_to_a_regression_case.md"


def _reason(command: str) -> str | None:
    """Return why a command is not run: those that build releases are."""
    found = reason_not_to_run(command)
    return None if found == OF_RELEASES else found


def test_the_tutorial_sees_its_bug_in_the_affected_release_alone(tmp_path: Path) -> None:
    run_page(TUTORIAL, (ROOT / TUTORIAL).read_text(encoding="utf-8"), tmp_path, reason_not_to_run=_reason)


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.report)
def test_a_bug_of_readme_is_in_the_affected_release_and_not_in_the_fixed_one(
    row: Row, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    code = main(shlex.split(row.on_releases)[1:])
    said = capsys.readouterr().out
    if code == ExitCode.COULD_NOT_RUN and "skipped '" in said:
        pytest.skip(said)
    assert code == ExitCode.NOTHING_FOUND, said
    (line,) = (line for line in said.splitlines() if row.report in line)
    assert line.split()[1:3] == ["red", "green"]

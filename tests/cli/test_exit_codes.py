from __future__ import annotations

import re
from pathlib import Path

import pytest

from quiesce.cli.endings import ExitCode, exit_code
from quiesce.model.results import Result, Verdict


@pytest.mark.parametrize(
    ("verdicts", "incomplete", "code"),
    [
        ([Verdict.PASSED], False, ExitCode.NOTHING_FOUND),
        ([Verdict.PASSED, Verdict.UNSUPPORTED], False, ExitCode.NOTHING_FOUND),
        ([Verdict.KNOWN_UPSTREAM, Verdict.INCONCLUSIVE], False, ExitCode.NOTHING_FOUND),
        ([Verdict.PASSED, Verdict.FAILED], True, ExitCode.FINDINGS),
        ([Verdict.BROKEN_CASE], False, ExitCode.FINDINGS),
        ([Verdict.PASSED], True, ExitCode.COULD_NOT_RUN),
        ([], False, ExitCode.COULD_NOT_RUN),
    ],
)
def test_exit_codes(verdicts: list[Verdict], incomplete: bool, code: ExitCode) -> None:
    assert exit_code([Result("a/b", "T", "", "host", verdict) for verdict in verdicts], incomplete=incomplete) == code


def test_the_reference_lists_every_exit_code() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
    table = page.read_text(encoding="utf-8").partition("## Exit codes")[2].partition("\n## ")[0]
    assert [int(number) for number in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == sorted(ExitCode)

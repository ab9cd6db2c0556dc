from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main


def test_a_clean_corpus_has_no_errors(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", "cases"]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().out == "3 cases read: no errors\n"


def test_grammar_and_rules_are_listed_in_order(corpus: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (corpus / "cases" / "tape" / "wrong.case").write_text("titel: x\n", encoding="utf-8")
    trim = corpus / "cases" / "pool" / "trim.case"
    trim.write_text(trim.read_text(encoding="utf-8").replace("Behaviour of", "This should be"), encoding="utf-8")
    assert main(["lint", "cases"]) == ExitCode.FINDINGS
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("cases/pool/trim.case:1: the title says 'should'")
    assert second.startswith("cases/tape/wrong.case:1: ")
    assert last == "4 cases read: 2 errors"

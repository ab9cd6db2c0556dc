"""A user's own regression: a case of a bug that is not in the museum, from the file to the last line of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

import pytest

from quiesce.allocators.cases.case import CaseKind
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.cases.writer import write_case
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main

CASE: Final = """\
title: A freed chunk is handed out again

a = allocate 1MiB
free a
b = allocate 1MiB
free b
"""
KEEPS_THE_SECOND: Final = """\
from quiesce.model.backend import Reply
from quiesce.backends.host import backend as host
from quiesce.model.operations import Free
from quiesce.model.outcomes import Done


class Context:
    def __init__(self, inner):
        self.inner, self.frees = inner, 0

    def perform(self, operation):
        self.frees += isinstance(operation, Free)
        return Reply(Done()) if self.frees == 2 else self.inner.perform(operation)

    def readings(self):
        return self.inner.readings()

    def close(self):
        return self.inner.close()


class Pool:
    def describe(self):
        return host().describe()

    def open(self, profile):
        return Context(host().open(profile))
"""


@pytest.fixture(autouse=True)
def case(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in a folder of its own, which is the current one."""
    monkeypatch.chdir(tmp_path)
    path = Path("mine", "chunk_is_handed_out_again.case")
    path.parent.mkdir()
    path.write_text(CASE, encoding="utf-8")
    return path


def test_it_is_a_regression_that_is_read_back_as_it_was_written() -> None:
    case = parse_text(CASE, "a/b.case")
    assert case.kind is CaseKind.REGRESSION
    assert case.is_own
    assert parse_text(write_case(case), "a/b.case") == case


def test_lint_offers_what_fits(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(case)]) == ExitCode.NOTHING_FOUND
    note, last = capsys.readouterr().out.splitlines()
    assert note.startswith(
        f"{case}:1: the case does not say which bug it is about; for a bug of your own, write 'finds:"
    )
    assert "'fault: NAME' as well ('quiesce list faults'); for legal behaviour, 'kind: control'" in note
    assert last == "1 case read: no errors"
    case.write_text(CASE.replace("\n\n", "\nfinds: live_blocks_do_not_overlap\n\n", 1), encoding="utf-8")
    assert main(["lint", str(case)]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().out == "1 case read: no errors\n"


def test_lint_knows_the_rules_that_it_may_name(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case.write_text(CASE.replace("\n\n", "\nfinds: live_blocks_do_overlap\n\n", 1), encoding="utf-8")
    assert main(["lint", str(case)]) == ExitCode.FINDINGS
    assert "'finds: live_blocks_do_overlap' is no rule; write 'live_blocks_do_not_overlap'" in capsys.readouterr().out


def test_a_run_counts_no_historic_bug_that_was_not_switched_on(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    case.write_text(CASE.replace("\n\n", "\nupstream: me/mine#7\n\n", 1), encoding="utf-8")
    assert main(["run", str(case), "--backend", "reference"]) == ExitCode.NOTHING_FOUND
    text = capsys.readouterr().out
    assert text.endswith("\n1 case passed on reference\n")
    assert "historic" not in text
    assert main(["run", str(case), "pool/trim_spares_owned_chunks", "--backend", "reference"]) == ExitCode.NOTHING_FOUND
    assert capsys.readouterr().out.endswith(
        "\n2 cases passed on reference; 1 historic bug, switched on in the reference, was caught\n"
    )


def test_it_fails_on_a_backend_with_the_bug_and_says_what_kind_it_is(
    case: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("pool.py").write_text(KEEPS_THE_SECOND, encoding="utf-8")
    assert main(["run", str(case), "--backend", "python:pool.py:Pool"]) == ExitCode.FINDINGS
    text = capsys.readouterr().out
    assert "  rule:      block_count_follows_the_sequence\n" in text
    assert "  kind:      wrong counter\n" in text
    assert text.endswith("\n1 of 1 case failed on python:pool.py:Pool\n")


def test_a_proof_says_how_to_see_it_fail(case: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["prove", str(case)]) == ExitCode.NOTHING_FOUND
    text = capsys.readouterr().out
    assert "  passed   (own)\n" in text
    assert text.endswith(
        "\n1 case without a fault passed on the reference (to see it fail, run it on a backend with its bug)\n"
    )
    assert main(["prove", str(case), "--json"]) == ExitCode.NOTHING_FOUND
    assert json.loads(capsys.readouterr().out)["proofs"][0]["kind"] == "regression"

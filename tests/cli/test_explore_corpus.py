"""``quiesce explore --corpus``: what was found runs first the next time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FAULTY = "reference:pool.accepts_double_free"
FIXED = '''
from dataclasses import replace

from quiesce.backends.reference import backend, faulty


class Fixed:
    """The reference under the name of the faulty one."""

    def describe(self):
        return replace(backend().describe(), name=faulty("pool.accepts_double_free").describe().name)

    def open(self, profile):
        return backend().open(profile)
'''
MULTIPLEXED = """
from hypothesis.database import DirectoryBasedExampleDatabase, MultiplexedDatabase, ReadOnlyDatabase


def database():
    theirs = ReadOnlyDatabase(DirectoryBasedExampleDatabase("corpus"))
    return MultiplexedDatabase(DirectoryBasedExampleDatabase("mine"), theirs)


def number():
    return 1
"""


def explore(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", "explore", "--hostile", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def find(cwd: Path) -> None:
    found = explore("--backend", FAULTY, "--operations", "2000", "--corpus", "corpus", cwd=cwd)
    assert found.returncode == 1
    assert "of the corpus" not in found.stdout


@pytest.mark.long
def test_what_was_found_runs_first_until_it_passes(tmp_path: Path) -> None:
    find(tmp_path)
    again = explore("--backend", FAULTY, "--operations", "1", "--corpus", "corpus", "--report", "out", cwd=tmp_path)
    assert again.returncode == 1
    assert again.stdout.startswith("invalid_requests_are_refused is still broken by a sequence of the corpus\n")
    assert "1 of 1 sequence of the corpus still fails\n" in again.stdout
    assert "found/kept_" in (tmp_path / "out" / "report.json").read_text(encoding="utf-8")
    (tmp_path / "fixed.py").write_text(FIXED, encoding="utf-8")
    backend = ("--backend", "python:fixed.py:Fixed", "--operations", "1", "--corpus", "corpus")
    for jobs in ("1", "2"):
        fixed = explore(*backend, "--jobs", jobs, cwd=tmp_path)
        assert fixed.returncode == 0, fixed.stdout + fixed.stderr
        assert fixed.stdout.startswith("0 of 1 sequence of the corpus still fail\n")


def test_a_database_of_a_file_is_read_and_something_else_is_refused(tmp_path: Path) -> None:
    find(tmp_path)
    (tmp_path / "shared.py").write_text(MULTIPLEXED, encoding="utf-8")
    words = ("--backend", FAULTY, "--operations", "1", "--corpus")
    shared = explore(*words, "python:shared.py:database", cwd=tmp_path)
    assert "1 of 1 sequence of the corpus still fails\n" in shared.stdout
    assert not (tmp_path / "mine").exists()
    refused = explore(*words, "python:shared.py:number", cwd=tmp_path)
    assert refused.returncode == 2
    assert "'python:shared.py:number' makes int, which is none of Hypothesis' databases" in refused.stderr

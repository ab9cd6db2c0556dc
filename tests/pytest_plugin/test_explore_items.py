"""``--quiesce-explore``: generated sequences without a test file find what ``quiesce explore`` finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FAULTY = "reference:pool.no_squeeze"


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", *words], cwd=cwd, capture_output=True, text=True, check=False)


def files_of(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}


@pytest.mark.long
def test_each_item_finds_what_its_shard_finds_whatever_the_number_of_workers(tmp_path: Path) -> None:
    words = ("pytest", "--quiesce-explore", "12000", f"--quiesce-backend={FAULTY}", "-p", "no:cacheprovider")
    found = []
    for workers in ("0", "2"):
        folder = tmp_path / workers
        folder.mkdir()
        done = run(*words, "-n", workers, cwd=folder)
        assert done.returncode == 1, done.stdout
        assert f"FAILED ::sequences[{FAULTY}-2/2]" in done.stdout
        assert "2 failed" in done.stdout
        found.append(files_of(folder / "found" / "shard_2_of_2"))
    assert found[0] == found[1]
    explore = ("quiesce", "explore", "--backend", FAULTY, "--operations", "12000", "--shard", "2/2")
    assert run(*explore, cwd=tmp_path).returncode == 1
    assert files_of(tmp_path / "found") == found[0] != {}


def test_sequences_that_pass_count_as_executed_and_a_wrong_number_is_refused(tmp_path: Path) -> None:
    words = ("pytest", "--quiesce-backend=reference", "-p", "no:cacheprovider", "--quiesce-explore")
    passed = run(*words, "100", cwd=tmp_path)
    assert passed.returncode == 0, passed.stdout
    assert "1 result from 1 backend: no failures" in passed.stdout
    refused = run(*words, "many", cwd=tmp_path)
    assert refused.returncode == 4
    assert "--quiesce-explore: 'many' is no number of operations; write one such as 200000" in refused.stderr

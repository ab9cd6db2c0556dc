"""``quiesce explore`` and ``quiesce shrink`` on real backends, as a user runs them."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

FAULTY = "reference:pool.accepts_double_free"
SLOW_TO_SHRINK = "reference:reuse.drops_dependency"


def quiesce(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "quiesce.cli.main", *words], cwd=cwd, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_what_is_found_is_saved_and_fails_when_it_is_run(tmp_path: Path) -> None:
    explored = quiesce("explore", "--backend", FAULTY, "--hostile", "--operations", "2000", cwd=tmp_path)
    assert explored.returncode == 1
    assert "saved as found/invalid_requests_are_refused_seed_0.case" in explored.stdout
    last = explored.stdout.splitlines()[-1]
    assert last.startswith(f"invalid_requests_are_refused is broken on {FAULTY}: found in ")
    program, *words = shlex.split(explored.stdout.splitlines()[-3])
    assert program == "quiesce"
    ran = quiesce(*words, cwd=tmp_path)
    assert ran.returncode == 1
    assert "invalid_requests_are_refused" in ran.stdout
    assert quiesce("run", "found", "--backend", "reference", cwd=tmp_path).returncode == 0


def test_a_run_that_is_killed_leaves_no_older_report(tmp_path: Path) -> None:
    assert (
        quiesce("explore", "--backend", "reference", "--operations", "100", "--report", "out", cwd=tmp_path).returncode
        == 0
    )
    assert (tmp_path / "out" / "report.json").exists()
    killing = "python:killing.py:make"
    (tmp_path / "killing.py").write_text(
        "import os\nfrom quiesce.backends.registry import load_backend\n"
        "class Killing:\n"
        "    def __init__(self): self.inner = load_backend('reference')\n"
        "    def describe(self): return self.inner.describe()\n"
        "    def open(self, profile): os.kill(os.getpid(), 9)\n"
        "make = Killing\n",
        encoding="utf-8",
    )
    killed = quiesce("explore", "--backend", killing, "--operations", "100", "--report", "out", cwd=tmp_path)
    assert killed.returncode == -signal.SIGKILL
    assert list((tmp_path / "out").iterdir()) == []


def test_where_it_is_saved_is_a_choice(tmp_path: Path) -> None:
    explored = quiesce(
        "explore", "--backend", FAULTY, "--hostile", "--operations", "2000", "--save", "my cases/new", cwd=tmp_path
    )
    assert explored.returncode == 1
    assert len(list((tmp_path / "my cases" / "new").glob("*.case"))) == 1
    assert not (tmp_path / "found").exists()
    _, *words = shlex.split(explored.stdout.splitlines()[-3])
    assert quiesce(*words, cwd=tmp_path).returncode == 1


def test_what_cannot_be_saved_is_shown_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "found" / "invalid_requests_are_refused_seed_0.case").mkdir(parents=True)
    explored = quiesce("explore", "--backend", FAULTY, "--hostile", "--operations", "2000", cwd=tmp_path)
    assert explored.returncode == 1
    assert "finds:    invalid_requests_are_refused\n" in explored.stdout
    taken = "'found/invalid_requests_are_refused_seed_0.case'"
    told, complaint = explored.stderr.splitlines()
    assert told.startswith("quiesce: invalid_requests_are_refused is broken after ")
    assert complaint == f"quiesce: a case is not saved: {taken}: Is a directory"
    assert len(list((tmp_path / "found").iterdir())) == 1, "a temporary file is left"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_coverage_on_a_full_disk_names_the_file(tmp_path: Path) -> None:
    words = ("explore", "--backend", "reference", "--operations", "50", "--coverage-json", "/dev/full")
    explored = quiesce(*words, cwd=tmp_path)
    assert explored.returncode == 2
    assert explored.stderr == "quiesce: the coverage is not written: '/dev/full': No space left on device\n"


def test_nothing_found_saves_nothing(tmp_path: Path) -> None:
    explored = quiesce("explore", "--backend", "reference", "--operations", "300", cwd=tmp_path)
    assert explored.returncode == 0
    said = r"(\d+) operations in \d+ valid sequences? with seed 0 break no rule on reference\n"
    counted = re.fullmatch(said, explored.stdout)
    assert counted
    assert int(counted[1]) >= 300
    assert list(tmp_path.iterdir()) == []


def test_coverage_is_shown_and_written_alike_for_equal_seeds(tmp_path: Path) -> None:
    words = ("explore", "--backend", "reference", "--operations", "1500", "--seed", "4", "--coverage")
    first = quiesce(*words, "--coverage-json", "out/a.json", cwd=tmp_path)
    second = quiesce(*words, "--coverage-json", "out/b.json", cwd=tmp_path)
    assert first.returncode == second.returncode == 0
    assert "pairs of" in first.stdout
    texts = [(tmp_path / "out" / name).read_text() for name in ("a.json", "b.json")]
    assert texts[0] == texts[1]
    document = json.loads(texts[0])
    assert document["seed"] == 4
    assert document["reached"]["Allocate"]["few"] > 0


def _saved_soon(process: subprocess.Popen[str], folder: Path) -> Path:
    for _ in range(1200):
        if found := list(folder.glob("*.case")):
            return found[0]
        assert process.poll() is None, "it ended without saving anything"
        time.sleep(0.05)
    pytest.fail("nothing was saved")


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_a_kill_while_shrinking_leaves_the_whole_sequence(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "quiesce.cli.main", "explore", "--backend", SLOW_TO_SHRINK]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        path = _saved_soon(process, tmp_path / "found")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    assert quiesce("run", path.as_posix(), "--backend", SLOW_TO_SHRINK, cwd=tmp_path).returncode == 1


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
def test_an_interruption_while_shrinking_saves_the_best_so_far(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "quiesce.cli.main", "explore", "--backend", SLOW_TO_SHRINK]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        path = _saved_soon(process, tmp_path / "found")
        os.kill(process.pid, signal.SIGINT)
        output, _ = process.communicate()
    if process.returncode == 1:  # else it came between the saving and the shrinking, and the whole sequence is there
        assert f"saved as found/{path.name}" in output
    assert quiesce("run", path.as_posix(), "--backend", SLOW_TO_SHRINK, cwd=tmp_path).returncode == 1


def test_a_case_is_shortened(tmp_path: Path) -> None:
    (tmp_path / "long.case").write_text(
        "title: x\nkind: control\nneeds: memory\n\na = allocate 1MiB\nb = allocate 1MiB\nfree a\nfree b\nfree a\n"
    )
    done = quiesce("shrink", "long.case", "--backend", FAULTY, cwd=tmp_path)
    assert done.returncode == 1
    assert "a = allocate 1\nfree a\nfree a\n" in done.stdout
    assert quiesce("shrink", "long.case", "--backend", "reference", cwd=tmp_path).returncode == 0


def test_a_case_that_is_not_executed_has_not_found_nothing(tmp_path: Path) -> None:
    (tmp_path / "pooled.case").write_text("title: x\nkind: control\nneeds: pool\n\na = allocate 1MiB\nfree a\n")
    done = quiesce("shrink", "pooled.case", "--backend", "host", cwd=tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == (
        "quiesce: pooled.case is unsupported on 'host' (lacks pool), so it cannot fail there; "
        "name a backend that it fails on\n"
    )

"""``quiesce explore --resume``: what was found outlives a kill, and the rest is found as if there had been none."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from quiesce.cli.version import version

from .test_explore_jobs import quiesce

ENDS = """
import os
from pathlib import Path
from quiesce.backends.reference import faulty

FAULTY = faulty("pool.accepts_double_free")


class Backend:
    def describe(self):
        return FAULTY.describe()

    def open(self, profile):
        if Path("signal").exists() and any(Path("found").glob("*.case")):
            number = int(Path("signal").read_text())
            Path("signal").unlink()
            os.kill(os.getpid(), number)
        return FAULTY.open(profile)
"""
"""Ends its process in the sequence after the one that fails first and is saved, if it is told to."""
EXPLORE = ("explore", "--backend", "python:ends.py:Backend", "--hostile", "--operations", "2500")


def folder_with_backend(folder: Path) -> Path:
    folder.mkdir()
    (folder / "ends.py").write_text(ENDS, encoding="utf-8")
    return folder


def texts_below(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")
    return {path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def report_in(folder: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return document


def left_by(folder: Path) -> tuple[object, ...]:
    """Return the cases, the corpus and the results that a campaign left."""
    return texts_below(folder / "found"), texts_below(folder / "corpus"), report_in(folder / "out")["results"]


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_campaign_that_was_ended_goes_on_to_the_findings_of_one_that_was_not(
    number: signal.Signals, tmp_path: Path
) -> None:
    words = (*EXPLORE, "--report", "out", "--corpus", "corpus")
    whole, ended = (folder_with_backend(tmp_path / name) for name in ("whole", "ended"))
    undisturbed = quiesce(*words, cwd=whole)
    (ended / "signal").write_text(str(int(number)), encoding="utf-8")
    first = quiesce(*words, cwd=ended)
    assert texts_below(ended / "found").keys() == {"invalid_requests_are_refused_seed_0.case"}
    assert len(texts_below(ended / "corpus")) == len(texts_below(whole / "corpus"))
    assert [result["verdict"] for result in report_in(ended / "out")["results"]] == ["failed"]
    if number == signal.SIGTERM:
        told = first.stderr.splitlines()[-1].removeprefix("quiesce: this goes on where it ended: ")
        assert shlex.split(told) == ["quiesce", *words, "--resume"]
    else:
        assert first.returncode == -number
    resumed = quiesce(*words, "--resume", cwd=ended)
    assert re.search(r"goes on after [0-9,]+ operations in [0-9]+ sequences, 1 of which failed", resumed.stderr)
    assert (resumed.returncode, resumed.stdout) == (undisturbed.returncode, undisturbed.stdout)
    assert left_by(ended) == left_by(whole)


def test_without_a_state_the_campaign_begins_and_says_so(tmp_path: Path) -> None:
    words = ("explore", "--backend", "reference", "--operations", "1", "--corpus", "corpus", "--resume")
    first = quiesce(*words, cwd=tmp_path)
    assert first.returncode == 0
    assert "begins with the first sequence: there is no corpus/campaign_" in first.stderr
    again = quiesce(*words, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert "goes on after 55 operations in 1 sequence, 0 of which failed" in again.stderr
    further = quiesce(*words, "--operations", "100", cwd=tmp_path)
    assert "254 operations in 2 valid sequences with seed 0 break no rule on reference" in further.stdout
    other_seed = quiesce(*words, "--seed", "1", cwd=tmp_path)
    assert "begins with the first sequence" in other_seed.stderr


def test_a_state_that_cannot_go_on_is_refused(tmp_path: Path) -> None:
    words = ("explore", "--backend", "reference", "--operations", "1", "--resume")
    assert "which campaign goes on? Write its --report DIR or --corpus DIR" in quiesce(*words, cwd=tmp_path).stderr
    with_report = (*words, "--report", "out")
    quiesce(*with_report, cwd=tmp_path)
    (state,) = (tmp_path / "out").glob("campaign_*.json")
    state.write_text(state.read_text(encoding="utf-8").replace(version(), "0.0.1", 1), encoding="utf-8")
    refused = quiesce(*with_report, cwd=tmp_path)
    assert refused.returncode == 2
    assert f"is of quiesce 0.0.1, and this is {version()}; other versions generate other sequences" in refused.stderr
    state.write_text("[]", encoding="utf-8")
    assert "run without --resume" in quiesce(*with_report, cwd=tmp_path).stderr

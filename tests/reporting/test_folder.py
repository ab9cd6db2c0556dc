from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import Any

import pytest

from quiesce.reporting.folder import ReportFolder, read_folder, write_reports
from quiesce.reporting.journal import Journal
from quiesce.results import Report, Result


def run(directory: Path, report: Report, error: type[BaseException] | None = None) -> None:
    with ReportFolder(directory, seed=report.seed, run=report.run) as folder:
        for result in report.results[:3]:
            folder.add(result)
        if error is not None:
            raise error
        for result in report.results[3:]:
            folder.add(result)


def rebuild(directory: Path) -> Report:
    report = read_folder(directory)
    write_reports(report, directory)
    return report


def written(directory: Path) -> Any:
    return json.loads((directory / "report.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", [False, True])
def test_a_complete_run_leaves_its_files(
    page: bool, report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if page:
        pytest.importorskip("jinja2")
        pytest.importorskip("plotly")
    else:
        monkeypatch.setattr("quiesce.reporting.folder.why_unavailable", lambda: "Plotly is missing")
    run(tmp_path / "deep" / "out", report)
    names = sorted(path.name for path in (tmp_path / "deep" / "out").iterdir())
    assert names == ["junit.xml", "leaks.sarif", *(["report.html"] if page else []), "report.json", "results.jsonl"]
    assert written(tmp_path / "deep" / "out")["run"]["ended"] == "completed"


@pytest.mark.parametrize(("error", "ended"), [(KeyboardInterrupt, "interrupted"), (ZeroDivisionError, "failed")])
def test_a_run_cut_short_keeps_what_was_finished(
    error: type[BaseException], ended: str, report: Report, tmp_path: Path
) -> None:
    with pytest.raises(error):
        run(tmp_path, report, error)
    assert written(tmp_path)["run"]["ended"] == ended
    assert len(written(tmp_path)["results"]) == 3
    assert (tmp_path / "junit.xml").exists()


def test_a_new_run_removes_the_old_reports_before_it_begins(report: Report, tmp_path: Path) -> None:
    run(tmp_path, report)
    with ReportFolder(tmp_path, seed=0, run={}):
        assert sorted(path.name for path in tmp_path.iterdir()) == ["results.jsonl"]


def test_reports_are_rebuilt_from_the_journal(report: Report, tmp_path: Path) -> None:
    run(tmp_path, report)
    before, junit = written(tmp_path), (tmp_path / "junit.xml").read_bytes()
    for name in ("report.json", "junit.xml"):
        (tmp_path / name).unlink()
    with (tmp_path / "results.jsonl").open("ab") as stream:
        stream.write(b'{"backend": "refer')
    assert rebuild(tmp_path).run["ended"] == "completed"
    assert written(tmp_path) == before
    assert (tmp_path / "junit.xml").read_bytes() == junit


def test_a_journal_without_an_end_is_that_of_a_killed_run(report: Report, tmp_path: Path) -> None:
    run(tmp_path, report)
    journal = tmp_path / "results.jsonl"
    *lines, end = journal.read_bytes().splitlines(keepends=True)
    assert json.loads(end) == {"ended": "completed"}
    journal.write_bytes(b"".join(lines))
    assert rebuild(tmp_path).run["ended"] == "killed"
    assert len(written(tmp_path)["results"]) == len(report.results)


def test_a_journal_that_cannot_be_written_leaves_the_reports_every_result(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def disk_full(journal: Journal, result: Result) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "results.jsonl")

    with ReportFolder(tmp_path, seed=report.seed, run=report.run) as folder:
        folder.add(report.results[0])
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "add", disk_full)
            with pytest.raises(OSError, match="No space left"):
                folder.add(report.results[1])
        for result in report.results[2:]:
            folder.add(result)
    assert len(written(tmp_path)["results"]) == len(report.results)
    assert (tmp_path / "results.jsonl").read_bytes().count(b"\n") == 2, "what follows a torn line cannot be read"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_journal_on_a_full_disk_names_itself(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").symlink_to("/dev/full")
    with pytest.raises(OSError, match=r"No space left on device: '.*/results\.jsonl'"):
        ReportFolder(tmp_path, seed=0, run={}).__enter__()

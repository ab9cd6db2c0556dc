from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.cli.main import main
from quiesce.model.errors import ConfigurationError
from quiesce.model.findings import CallSite, Finding, Frame
from quiesce.model.results import LEAK_CHECK, Report, Result, Verdict
from quiesce.reporting.folder import FILE_NAMES, ReportFolder, read_folder, replace_reports, write_reports
from quiesce.reporting.journal import Journal


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
    else:
        monkeypatch.setattr("quiesce.reporting.folder.why_unavailable", lambda: "Jinja2 is missing")
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


def test_links_in_a_folder_are_replaced_and_not_followed(report: Report, tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.write_text("precious", encoding="utf-8")
    parts = [f".{name}.{os.getpid()}.part" for name in FILE_NAMES]
    for name in (*FILE_NAMES, *parts):
        (folder / name).symlink_to(elsewhere)
    run(folder, report)
    assert elsewhere.read_text(encoding="utf-8") == "precious"
    assert not any(path.is_symlink() for path in folder.iterdir() if path.name in FILE_NAMES)
    assert len(written(folder)["results"]) == len(report.results)


def test_a_journal_is_not_read_through_a_link_or_from_what_has_no_end(report: Report, tmp_path: Path) -> None:
    run(tmp_path / "true", report)
    for name in ("link", "pipe", "device"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "results.jsonl").symlink_to(tmp_path / "true" / "results.jsonl")
    (tmp_path / "device" / "results.jsonl").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "pipe" / "results.jsonl")
    for name, why in (
        ("link", "it is a symbolic link, and none is followed"),
        ("device", "it is a symbolic link, and none is followed"),
        ("pipe", r"it is a pipe \(FIFO\), and no regular file"),
    ):
        with pytest.raises(ConfigurationError, match=rf"results\.jsonl' can't be read: {why}; name a folder"):
            read_folder(tmp_path / name)


def test_a_folder_that_a_run_writes_to_is_nobody_elses(
    report: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    busy = "another run of quiesce writes its reports here until it ends"
    run(tmp_path / "other", report)
    with ReportFolder(tmp_path / "out", seed=report.seed, run=report.run) as folder:
        folder.add(report.results[0])
        with pytest.raises(OSError, match=busy):
            ReportFolder(tmp_path / "out", seed=0, run={}).__enter__()
        for words in ([], ["--merge", str(tmp_path / "other")]):
            assert main(["report", str(tmp_path / "out"), *words]) in (1, 2), "the results have a failure, too"
            assert busy in capsys.readouterr().err
        folder.add(report.results[1])
    assert len(read_folder(tmp_path / "out").results) == 2
    assert len(written(tmp_path / "out")["results"]) == 2
    main(["report", str(tmp_path / "out")])
    assert busy not in capsys.readouterr().err


def test_what_a_killed_run_has_begun_goes_with_the_next_one(report: Report, tmp_path: Path) -> None:
    parts = [tmp_path / f".{name}.7.part" for name in FILE_NAMES]
    for write in (run, lambda folder, whole: replace_reports(whole, folder)):
        for part in parts:
            part.write_text("torn", encoding="utf-8")
        write(tmp_path, report)
        assert not any(part.exists() for part in parts)
        assert len(read_folder(tmp_path).results) == len(report.results)


LIMITED: Final = """
import resource, sys
from quiesce.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
raise SystemExit(main(sys.argv[2:]))
"""
"""A command that can't write a file of more bytes, as on a disk that is full after so many."""


def test_a_merge_in_place_that_finds_no_room_loses_nothing(report: Report, tmp_path: Path) -> None:
    run(tmp_path / "out", report)
    run(tmp_path / "more", report)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    journal = len(before["results.jsonl"])
    for limit in (100, journal):
        done = limited(limit, "report", tmp_path / "out", "--merge", tmp_path / "out", tmp_path / "more")
        assert done.returncode in (1, 2), done.stderr
        assert "the reports are not complete: " in done.stderr
        assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before
    done = limited(2 * journal, "report", tmp_path / "out", "--merge", tmp_path / "out", tmp_path / "more")
    assert len(read_folder(tmp_path / "out").results) == 2 * len(report.results)
    assert {path.name for path in (tmp_path / "out").iterdir()} <= set(FILE_NAMES)


def test_a_journal_that_can_not_be_begun_leaves_the_older_reports(report: Report, tmp_path: Path) -> None:
    run(tmp_path / "out", report)
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    done = limited(10, "run", "--report", tmp_path / "out", "events/finished_event_says_so")
    assert done.returncode == 2
    assert f"'{tmp_path / 'out' / 'results.jsonl'}': File too large" in done.stderr
    assert {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()} == before


def test_a_merge_that_is_killed_at_any_step_leaves_whole_files(
    report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "quiesce.reporting.folder.why_unavailable", lambda: "a page takes long, and is a file as others"
    )
    run(tmp_path / "before", report)
    merged = replace(report, results=(*report.results, *report.results))
    sizes = set()
    for step in range(1, 100):
        folder = tmp_path / str(step)
        shutil.copytree(tmp_path / "before", folder)
        child = os.fork()
        if not child:
            _replace_and_die(merged, folder, step)
        _, status = os.waitpid(child, 0)
        sizes.add(len(read_folder(folder).results))
        for name in ("report.json", "leaks.sarif"):
            if (folder / name).exists():
                assert json.loads((folder / name).read_bytes()), (name, step)
        if not status:
            break
    assert step > 10, "it has fewer steps than files"
    assert sizes == {len(report.results), 2 * len(report.results)}
    assert len(written(folder)["results"]) == 2 * len(report.results)


def _replace_and_die(report: Report, folder: Path, step: int) -> None:
    """Replace reports in a process that ends at a step of those that change what a folder has. Never returns."""
    left = [step]

    def count(event: str, _: object) -> None:
        if event in ("open", "os.rename", "os.remove"):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
        replace_reports(report, folder)
    finally:
        os._exit(0)


def limited(limit: int, *words: object) -> subprocess.CompletedProcess[str]:
    # -B: Python would leave files of code that end at the limit, and read them the next time.
    command = [sys.executable, "-B", "-c", LIMITED, str(limit), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


OPENED: Final = """
import sys
from quiesce.cli.main import main
main(["report", sys.argv[1], "--merge", sys.argv[2]])  # once before, for what is imported
opened = []
sys.addaudithook(lambda event, arguments: opened.append(str(arguments[0])) if event == "open" else None)
code = main(["report", sys.argv[1], "--merge", sys.argv[2]])
sys.stderr.write("\\n".join(sorted({path for path in opened if path.startswith(sys.argv[3])})))
raise SystemExit(code)
"""


def test_a_report_that_is_merged_opens_no_file_that_it_names(report: Report, tmp_path: Path) -> None:
    named = tmp_path / "config"
    named.write_text('[http "https://example.org/"]\n\textraheader = secret\n', encoding="utf-8")
    place = f'{named}:1: [http "https://example.org/"]'
    sites = (CallSite("used by", "f", 0, (Frame("main", str(named), 1),)),)
    findings = (
        Finding("a_rule", "nothing", "something", allocated_by=place, evidence=place, kind="memory leak (Python)"),
        Finding("a_rule", "nothing", "something", request=f"k at {named}:1", call_sites=sites),
    )
    leak = Result("t.py::t", "", "t.py", LEAK_CHECK, Verdict.FAILED, findings=findings)
    run(tmp_path / "source", replace(report, results=(leak,)))
    words = (tmp_path / "out", tmp_path / "source", tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", OPENED, *map(str, words)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1, done.stderr
    opened = {str(Path(line).relative_to(tmp_path).parent) for line in done.stderr.splitlines()}
    assert opened == {"out", "source", "."}, done.stderr
    assert str(named) not in done.stderr, "of the folder above, only the folder of reports is opened: it is locked"
    for path in (tmp_path / "out").iterdir():
        assert "secret" not in path.read_text(encoding="utf-8"), path.name

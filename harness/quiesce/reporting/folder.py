"""One folder of reports: the journal while the run lasts, the others when it ends, however it ends."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from quiesce.files import locked_folder
from quiesce.model.errors import ConfigurationError
from quiesce.model.results import Report, Result
from quiesce.reporting.html import why_unavailable, write_html
from quiesce.reporting.journal import Journal, read_journal
from quiesce.reporting.junit import write_junit
from quiesce.reporting.record import write_json
from quiesce.reporting.result_lists import ENDED, last_attempts
from quiesce.reporting.sarif import has_leak_checks, write_sarif

JSON_NAME: Final = "report.json"
JUNIT_NAME: Final = "junit.xml"
HTML_NAME: Final = "report.html"
SARIF_NAME: Final = "leaks.sarif"
JOURNAL_NAME: Final = "results.jsonl"
FILE_NAMES: Final = (JSON_NAME, JUNIT_NAME, HTML_NAME, SARIF_NAME, JOURNAL_NAME)


class ReportFolder:
    """A context manager: results go to the journal as they come in, the reports are written on leaving.

    Entering locks the folder against other runs, and removes the reports of an earlier run once the new journal is
    begun, so that a killed run never leaves an old green report behind.
    Every method raises :class:`OSError`, which names the file, where the folder cannot be written. A journal that could
    not be written to is not written to again: its last line may be torn. The reports still hold every result.
    """

    def __init__(self, directory: Path, *, seed: int, run: Mapping[str, str]) -> None:
        self._opened = ExitStack()
        self._directory = directory
        self._seed = seed
        self._run = dict(run)
        self._results: list[Result] = []
        self._is_torn = False

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        with ExitStack() as opened:
            opened.enter_context(locked_folder(self._directory))
            _remove_parts(self._directory)
            journal = Journal(self._directory / JOURNAL_NAME, seed=self._seed, run=self._run)
            self._journal = opened.enter_context(journal)
            _remove_written(self._directory)
            self._opened = opened.pop_all()
        return self

    def add(self, result: Result) -> None:
        """Keep one result; it survives a kill from here on."""
        self._results.append(result)
        if self._is_torn:
            return
        try:
            self._journal.add(result)
        except OSError:
            self._is_torn = True
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        ended = _how_it_ended(kind)
        run = {**self._run, ENDED: ended}
        with self._opened:
            try:
                if not self._is_torn:
                    self._journal.end(ended)
            finally:
                report = Report(seed=self._seed, results=tuple(last_attempts(self._results)), run=run)
                _write_reports(report, self._directory)


def clear_folder(directory: Path) -> None:
    """Remove an older run's files, for a run that writes its reports when it has ended: it may be killed before.

    Raises :class:`OSError` where another run has the folder.
    """
    if not directory.is_dir():
        return
    with locked_folder(directory):
        _remove_parts(directory)
        _remove_written(directory)
        (directory / JOURNAL_NAME).unlink(missing_ok=True)


def _remove_written(directory: Path) -> None:
    """Remove what is made from a journal: what follows it can't be old then."""
    for name in (JSON_NAME, JUNIT_NAME, HTML_NAME, SARIF_NAME):
        (directory / name).unlink(missing_ok=True)


def _remove_parts(directory: Path) -> None:
    """Remove the beginnings of files that a killed run left; the folder is locked, so that nobody writes them."""
    for name in FILE_NAMES:
        for part in directory.glob(f".{name}.*.part"):
            part.unlink(missing_ok=True)


def replace_reports(report: Report, directory: Path) -> None:
    """Write a whole report to a folder in place of the one there, which may be a part of it.

    The folder is made where it is missing. Raises :class:`OSError`; up to the moment in which all results are on disk,
    nothing of the older report is lost.
    """
    directory.mkdir(parents=True, exist_ok=True)
    ended = report.run.get(ENDED, "completed")
    run = {key: value for key, value in report.run.items() if key != ENDED}
    with locked_folder(directory):
        _remove_parts(directory)
        with Journal(directory / JOURNAL_NAME, seed=report.seed, run=run, whole=True) as journal:
            for result in report.results:
                journal.add(result)
            journal.end(ended)
        _remove_written(directory)
        results = tuple(last_attempts(report.results))
        _write_reports(Report(seed=report.seed, results=results, run={**run, ENDED: ended}), directory)


def _how_it_ended(kind: type[BaseException] | None) -> str:
    if kind is None:
        return "completed"
    return "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"


def write_reports(report: Report, directory: Path) -> None:
    """Write ``report.json``, ``junit.xml`` and, where its libraries are there, ``report.html`` into an existing folder.

    A report with leak checks of tests is written as ``leaks.sarif``, too.
    :func:`quiesce.reporting.html.why_unavailable` says why the last one was not written. Raises :class:`OSError`.
    """
    with locked_folder(directory):
        _write_reports(report, directory)


def _write_reports(report: Report, directory: Path) -> None:
    write_json(report, directory / JSON_NAME)
    write_junit(report, directory / JUNIT_NAME)
    if has_leak_checks(report):
        write_sarif(report, directory / SARIF_NAME)
    if not why_unavailable():
        write_html(report, directory / HTML_NAME)


def read_folder(directory: Path) -> Report:
    """Return what a run's journal holds, also that of a run that was killed.

    Raises :class:`ConfigurationError` for a folder without a journal that can be read.
    """
    journal = directory / JOURNAL_NAME
    try:
        return read_journal(journal)
    except (FileNotFoundError, NotADirectoryError):
        why = f"'{directory}' holds no {JOURNAL_NAME}"
    except OSError as error:
        why = f"'{journal}' can't be read: {error.strerror or error}"
    raise ConfigurationError(f"{why}; name a folder that 'quiesce run --report' wrote")

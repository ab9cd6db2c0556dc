"""The reports of a command while it runs: where they cannot be written any more, what it finds is still told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from quiesce.cli.console import Console
from quiesce.cli.endings import explain
from quiesce.model.results import Result
from quiesce.reporting.folder import ReportFolder


class ReportWriting:
    """A context manager: results go to the folder of reports, if one is asked for.

    Entering raises :class:`OSError` where there can be no reports; that is before anything runs. Later failures are one
    line, and ``failed``.
    """

    def __init__(self, directory: Path | None, console: Console, *, seed: int, run: Mapping[str, str]) -> None:
        self._folder = None if directory is None else ReportFolder(directory, seed=seed, run=run)
        self._directory, self._console = directory, console
        self.failed = False

    @property
    def kept_in(self) -> Path | None:
        """The folder that holds every result so far, if one was asked for and could be written."""
        return None if self.failed else self._directory

    def __enter__(self) -> Self:
        if self._folder is not None:
            self._folder.__enter__()
        return self

    def add(self, result: Result) -> None:
        """Keep one result; it survives a kill from here on."""
        if self._folder is None:
            return
        try:
            self._folder.add(result)
        except OSError as error:
            self._complain(error)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._folder is None:
            return
        try:
            self._folder.__exit__(kind, error, trace)
        except OSError as unwritten:
            self._complain(unwritten)

    def _complain(self, error: OSError) -> None:
        """Say it once: a full disk refuses one file after another."""
        if not self.failed:
            self._console.end_progress()
            self._console.complain(f"the reports are not complete: {explain(error)}")
        self.failed = True


def write_reports(
    directory: Path,
    results: Iterable[Result],
    console: Console,
    *,
    seed: int,
    run: Mapping[str, str],
    ending: Exception | None = None,
) -> bool:
    """Write the reports of what is known already, and return whether they could be written.

    ``ending`` is the error in quiesce itself that ended the run, if one did.
    """
    writing = ReportWriting(directory, console, seed=seed, run=run)
    try:
        writing.__enter__()
        for result in results:
            writing.add(result)
        writing.__exit__(None if ending is None else type(ending), ending, None)
    except OSError as error:
        console.complain(f"the reports are not complete: {explain(error)}")
        return False
    return not writing.failed

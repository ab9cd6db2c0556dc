"""The reports of a command: their writing, and the ``run`` object, which has all that may differ between equal runs.

Where reports cannot be written any more, what a command finds is still told.
"""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from quiesce.backends.registry import Usable
from quiesce.cli.console import Console
from quiesce.cli.endings import explain
from quiesce.cli.selection import Choice, check_described
from quiesce.cli.version import version
from quiesce.model.errors import CaseError
from quiesce.model.results import Report, Result
from quiesce.reporting import ENDED, NAMED, PLANNED, SKIPPED, UNREADABLE, ReportFolder


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
    ending: BaseException | None = None,
) -> bool:
    """Write the reports of what is known already, and return whether they could be written.

    ``ending`` is what ended the run, if it did not come to its end.
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


def describe_run(planned: int | None, backends: Choice, errors: Iterable[CaseError]) -> dict[str, str]:
    """Return what is known before the first case runs: time, machine, versions, what was left out and why.

    ``planned`` is how many results a complete run has, or None where nobody knows yet.
    """
    described = [each for each in backends.usable if isinstance(check_described(each), Usable)]
    versions = {f"version of {each.name}": each.description.version for each in described}
    skipped = {f"{SKIPPED}{each.name}": each.explanation for each in backends.skipped}
    named = {f"{NAMED}{name}": "--backend" for name in backends.named}
    unreadable = {f"{UNREADABLE}{error.path}": str(error) for error in errors}
    return {
        **({} if planned is None else {PLANNED: str(planned)}),
        **describe_machine(),
        **versions,
        **named,
        **skipped,
        **unreadable,
    }


def describe_machine() -> dict[str, str]:
    """Return when and on what a command runs."""
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "system": _system(),
        "version of quiesce": version(),
    }


def _system() -> str:
    """Return the operating system and its release, with the distribution where it says which it is."""
    kernel = f"{platform.system()} {platform.release()}"
    try:
        return f"{platform.freedesktop_os_release()['PRETTY_NAME']}, {kernel}"
    except (OSError, KeyError):
        return kernel


def is_finished(report: Report) -> bool:
    """Whether the report holds every result that the run set out for; where that is not known, whether it ended."""
    if PLANNED in report.run:
        return report.run[PLANNED] == str(len(report.results))
    return report.run.get(ENDED) == "completed"


def has_unreadable(report: Report) -> bool:
    """Whether the run left case files out because they could not be read."""
    return any(key.startswith(UNREADABLE) for key in report.run)

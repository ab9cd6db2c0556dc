"""Judges what a run of ``quiesce exec`` has left that was killed; and names and removes the folders of such runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path

from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode
from quiesce.cli.exec import known_errors_of
from quiesce.cli.exec_options import ExecOptions, read_options
from quiesce.cli.judging import end_of, judge_processes
from quiesce.model import wording
from quiesce.model.errors import ConfigurationError
from quiesce.model.wording import bytes_in_words, counted
from quiesce.reporting import clean_line, read_sessions, render_summary
from quiesce.simulator.runtime import (
    OWNER,
    DamagedFile,
    LeftFolder,
    ended_before,
    is_owned,
    left_folders,
    members,
    read_left,
    refuse_open_to_others,
    refuse_other_kinds,
)


def judge_killed_run(folder: Path, console: Console) -> ExitCode:
    """Judge and summarise: findings are shown, and the run as a whole has no verdict.

    Raises :class:`ConfigurationError` for a run that is still going on, for a folder that others
    can
    change, and for one that says of its run what ``quiesce exec`` does not take.
    """
    refuse_open_to_others(folder)
    refuse_other_kinds(folder)
    if is_owned(folder):
        raise ConfigurationError(f"the run in {folder} is still going on; wait until quiesce exec has judged it")
    left = read_left(folder)
    options = _options_of(left)
    sessions = read_sessions(folder)
    when = "before the program ended" if left.status is None else "before it had judged the program"
    said = "" if left.status is None else end_of(left.status, options.words, sessions)
    end = "; ".join(filter(None, (f"quiesce exec was killed {when}", said)))
    judged = judge_processes(ended_before(left), options, end, console, known_errors_of(options))
    results = [*judged.results, *(each for session in sessions for each in session.results)]
    console.write(render_summary(results, palette=console.palette))
    console.complain(end)
    return ExitCode.COULD_NOT_RUN


def _options_of(left: LeftFolder) -> ExecOptions:
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            return read_options([*left.options, "--", *(left.command or ("program",))])
    except SystemExit:  # what the parser raises for --help, too, whose exit code says that nothing was found
        raise DamagedFile(left.folder / OWNER) from None


def tell_left_folders(console: Console, *, clean: bool) -> None:
    """Name the folders that killed runs of this user left, or remove those that no process uses."""
    lines = [line for left in left_folders() for line in (_removed(left) if clean else _told(left))]
    if lines:
        console.write("".join(f"{line}\n" for line in lines))
    if lines and not clean:
        console.complain("killed runs left folders; to remove them, run quiesce doctor --clean")


def _told(left: LeftFolder) -> Iterator[str]:
    yield f"{clean_line(str(left.folder))}: left by a killed run"
    yield f"  size:         {bytes_in_words(left.size_bytes)}"
    yield f"  command:      {clean_line(wording.join(left.command)) or 'not known'}"
    yield f"  to judge it:  {clean_line(wording.join(['quiesce', 'report', str(left.folder)]))}"


def _removed(left: LeftFolder) -> Iterator[str]:
    using, size_bytes = members(left.folder), left.size_bytes
    if using:
        yield f"{clean_line(str(left.folder))}: kept, for {counted(len(using), 'process')} of its run did not end"
        return
    shutil.rmtree(left.folder)
    yield f"{clean_line(str(left.folder))}: removed ({bytes_in_words(size_bytes)})"

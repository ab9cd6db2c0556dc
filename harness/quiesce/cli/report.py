"""``quiesce report``: write the reports of a run that was killed, from its journal, or of several runs together."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from quiesce.cli.arguments import nonempty_path
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode, exit_code, explain
from quiesce.cli.report_writing import has_unreadable, is_finished
from quiesce.model.results import Report
from quiesce.reporting import (
    PLANNED,
    merged_report,
    named_backends,
    read_folder,
    render_summary,
    replace_reports,
    why_unavailable,
    write_reports,
)
from quiesce.simulator.runtime import is_run_folder


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "directory",
        type=nonempty_path,
        metavar="DIR",
        help="folder that holds results.jsonl, or one that a killed quiesce exec left in the temporary folder",
    )
    parser.add_argument(
        "--merge",
        type=nonempty_path,
        nargs="+",
        metavar="FOLDER",
        help="write to DIR what the runs in these folders found together, such as the shards of one run",
    )


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Rebuild and summarise; an incomplete run without a failure could not run.

    Raises :class:`ConfigurationError` for a journal that is none.
    """
    if is_run_folder(arguments.directory):
        from quiesce.cli.killed_run import judge_killed_run

        return judge_killed_run(arguments.directory, console)
    if arguments.merge:
        return _merge(arguments.directory, arguments.merge, console)
    report = read_folder(arguments.directory)
    is_written = _try_writing(lambda: write_reports(report, arguments.directory), report, console)
    if note := why_unavailable():
        console.complain(note)
    finished = is_finished(report)
    if not finished:
        planned = report.run.get(PLANNED, "an unknown number of")
        console.complain(f"the run did not complete: the journal holds {len(report.results)} of {planned} results")
    return exit_code(report.results, incomplete=not (finished and is_written) or has_unreadable(report))


def _merge(directory: Path, folders: Sequence[Path], console: Console) -> ExitCode:
    """Write one report of several runs. It is complete if each of them is."""
    reports = [read_folder(folder) for folder in folders]
    merged = merged_report(reports)
    is_written = _try_writing(lambda: replace_reports(merged, directory), merged, console)
    unfinished = [str(folder) for folder, report in zip(folders, reports, strict=True) if not is_finished(report)]
    for folder in unfinished:
        console.complain(f"the run in {folder} did not complete")
    unread = any(has_unreadable(each) for each in reports)
    return exit_code(merged.results, incomplete=bool(unfinished) or unread or not is_written)


def _try_writing(write: Callable[[], None], report: Report, console: Console) -> bool:
    """Write reports and summarise; return whether they could be written."""
    try:
        write()
        is_written = True
    except OSError as error:
        console.complain(f"the reports are not complete: {explain(error)}")
        is_written = False
    console.write(render_summary(report.results, named=named_backends(report), palette=console.palette))
    return is_written

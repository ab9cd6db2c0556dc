"""``quiesce subjects``: build upstream releases, run the cases on them; compare with the results that are expected."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from quiesce.amounts import counted
from quiesce.cli.arguments import job_count, nonempty, report_folder
from quiesce.cli.console import Console
from quiesce.cli.exit_codes import ExitCode, exit_code
from quiesce.cli.report_writing import ReportWriting
from quiesce.cli.saved_cases import save_or_complain
from quiesce.cli.version import version
from quiesce.generation.saving import FOLDER
from quiesce.reporting.html import why_unavailable
from quiesce.subjects import catalogue
from quiesce.subjects.manifest import Subject
from quiesce.subjects.matrix import Matrix
from quiesce.subjects.row import Row, RowResult, rows_of
from quiesce.subjects.schedule import Ended, Unready, run_rows


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument(
        "names", nargs="*", type=nonempty, metavar="NAME", help="a subject, or a folder that holds one (default: all)"
    )
    parser.add_argument(
        "--version",
        action="append",
        default=[],
        metavar="V",
        help="a release; may be repeated, and no manifest has to list it (default: those of the default matrix)",
    )
    parser.add_argument("--all-versions", action="store_true", help="every release that the manifests list")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME", help="only this variant of a subject")
    parser.add_argument(
        "--case", action="append", default=[], metavar="PATTERN", help="only results with such a name, as in pool/*"
    )
    parser.add_argument(
        "--jobs",
        type=job_count,
        default=os.cpu_count() or 1,
        metavar="N",
        help="how many at a time (default: processors)",
    )
    parser.add_argument("--list", action="store_true", help="list the subjects, and run nothing")
    parser.add_argument(
        "--report",
        type=report_folder,
        metavar="DIR",
        help=f"write reports here, and failing sequences as cases to DIR/{FOLDER}",
    )


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Build, run and compare. Raises :class:`quiesce.errors.QuiesceError` where nothing can run."""
    subjects = catalogue.find_subjects(arguments.names, Path(catalogue.FOLDER))
    for error in subjects.errors:
        console.complain(str(error))
    if arguments.list:
        console.write("\n".join(map(_listed, subjects.subjects)))
        return ExitCode.COULD_NOT_RUN if subjects.errors else ExitCode.NOTHING_FOUND
    rows = [
        row
        for subject in subjects.subjects
        for row in rows_of(subject, arguments.version, arguments.variant, all_versions=arguments.all_versions)
    ]
    run = _Run(console, len(rows))
    reports = ReportWriting(arguments.report, console, seed=0, run=_facts())
    try:
        with reports:
            for ended in run_rows(rows, arguments.case, arguments.jobs, run.say):
                run.keep(ended, reports)
    except KeyboardInterrupt:
        console.end_progress()
        console.write(run.matrix(rows).text(console.palette))
        console.complain(f"interrupted: {len(run.ended)} of {counted(len(rows), 'row')} finished")
        return ExitCode.INTERRUPTED
    console.end_progress()
    matrix = run.matrix(rows)
    console.write(matrix.text(console.palette))
    if arguments.report:
        _save_found(matrix, arguments.report, console)
        if note := why_unavailable():
            console.complain(note)
    return exit_code(matrix.results, incomplete=bool(subjects.errors or matrix.unbuilt or reports.failed))


class _Run:
    """What came of the rows so far."""

    def __init__(self, console: Console, planned: int) -> None:
        self._console = console
        self._planned = planned
        self.ended: dict[str, Ended] = {}

    def keep(self, ended: Ended, reports: ReportWriting) -> None:
        """Keep a row that ended, in the report as well."""
        name, outcome = ended.row.name, ended.outcome
        self.ended[name] = ended
        if isinstance(outcome, Unready):
            self.say(name, "skipped" if outcome.is_skip else "did not run")
        else:
            for each in outcome.results:
                reports.add(each)
            failures = sum(each.verdict.is_failure for each in outcome.results)
            self.say(name, f"{failures} not as expected" if failures else "as expected")

    def say(self, name: str, what: str) -> None:
        """Say what became of something, and how far the run is."""
        self._console.end_progress()
        self._console.complain(f"{name}: {what}")
        self._console.progress(len(self.ended), self._planned, "rows")

    def matrix(self, rows: Iterable[Row]) -> Matrix:
        """Return what there is, in the order of the rows."""
        ended = [self.ended[row.name] for row in rows if row.name in self.ended]
        unready = {each.row.name: each.outcome for each in ended if isinstance(each.outcome, Unready)}
        return Matrix(
            [each.outcome for each in ended if isinstance(each.outcome, RowResult)],
            {name: each.reason for name, each in unready.items() if each.is_skip},
            {name: each.reason for name, each in unready.items() if not each.is_skip},
        )


def _save_found(matrix: Matrix, directory: Path, console: Console) -> None:
    for each in matrix.rows:
        for case in each.found:
            folder = directory / FOLDER / each.row.name.replace("/", "-").replace(" ", "-")
            if path := save_or_complain(case, folder, console):
                console.complain(f"saved as {path}")


def _listed(subject: Subject) -> str:
    releases = [
        f"{each.version}{f' ({each.label})' if each.label else ''}{'' if each.is_default else ', on request'}"
        for each in subject.releases
    ]
    details = [
        ("title", subject.title),
        ("kind", subject.kind),
        ("upstream", ", ".join(subject.upstream)),
        ("releases", "; ".join(releases)),
        ("variants", ", ".join(variant.name for variant in subject.variants)),
        ("needs", ", ".join(subject.needs.programs) or "nothing"),
    ]
    return "\n".join([f"{subject.name}:", *(f"  {f'{name}:':<10}{text}" for name, text in details)]) + "\n"


def _facts() -> dict[str, str]:
    return {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "version of quiesce": version(),
    }

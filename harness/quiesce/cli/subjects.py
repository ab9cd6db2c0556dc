"""``quiesce subjects``: build upstream releases, run the cases on them; compare with the results that are expected."""

from __future__ import annotations

import argparse
import fnmatch
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from quiesce.allocators.cases import did_you_mean, near_names
from quiesce.allocators.generation import FOLDER
from quiesce.cli.arguments import add_report, job_count, nonempty
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode, end_early, exit_code, is_early_end
from quiesce.cli.report_writing import ReportWriting, describe_machine
from quiesce.cli.saved_cases import save_or_complain
from quiesce.model.wording import counted
from quiesce.reporting import why_unavailable
from quiesce.subjects import Ended, Matrix, Row, RowResult, Subject, Unready, catalogue, result_names, rows_of, run_rows


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
    add_report(parser, f"write reports here, and failing sequences as cases to DIR/{FOLDER}")


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Build, run and compare. Raises :class:`QuiesceError` where nothing can run."""
    subjects = catalogue.find_subjects(arguments.names, *catalogue.folders())
    for error in subjects.errors:
        console.complain(str(error))
    if arguments.list:
        console.write("\n".join(map(listed, subjects.subjects)))
        return ExitCode.COULD_NOT_RUN if subjects.errors else ExitCode.NOTHING_FOUND
    for complaint in _unmatched(arguments.case, subjects.subjects):
        console.complain(complaint)
    rows = [
        row
        for subject in subjects.subjects
        for row in rows_of(subject, arguments.version, arguments.variant, all_versions=arguments.all_versions)
    ]
    run = _Run(console, len(rows))
    facts = {name: fact for name, fact in describe_machine().items() if name != "system"}
    reports = ReportWriting(arguments.report, console, seed=0, run=facts)
    try:
        with reports:
            for ended in run_rows(rows, arguments.case, arguments.jobs, run.say):
                run.keep(ended, reports)
    except (KeyboardInterrupt, Exception) as ending:
        if not is_early_end(ending):
            raise
        console.end_progress()
        console.write(run.matrix(rows).text(console.palette))
        finished = f"{len(run.ended)} of {counted(len(rows), 'row')}"
        return end_early(ending, finished, reports.kept_in, console)
    console.end_progress()
    matrix = run.matrix(rows)
    console.write(matrix.text(console.palette))
    if arguments.report:
        _save_found(matrix, arguments.report, console)
        if note := why_unavailable():
            console.complain(note)
    return exit_code(matrix.results, incomplete=bool(subjects.errors or matrix.unbuilt or reports.failed))


def _unmatched(patterns: Iterable[str], subjects: Iterable[Subject]) -> Iterator[str]:
    """Yield a line for each pattern that no result can have a name of, with the names that are near."""
    known = {name for subject in subjects for name in result_names(subject)}
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            near = near_names(pattern, known)
            yield f"--case '{pattern}' names no result; {did_you_mean(near) if near else 'see quiesce list cases'}"


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


def listed(subject: Subject) -> str:
    """Return what is known of a subject: a line, and indented lines below it."""
    record = subject_record(subject)
    releases = [
        f"{each.version}{f' ({each.label})' if each.label else ''}{'' if each.is_default else ', on request'}"
        for each in subject.releases
    ]
    details = [
        ("title", subject.title),
        ("kind", subject.kind),
        ("upstream", ", ".join(subject.upstream)),
        ("releases", "; ".join(releases)),
        ("variants", ", ".join(record["variants"])),
        ("needs", ", ".join(subject.needs.programs) or "nothing"),
        ("backend", record["backends"][0] if record["backends"] else "none: its programs are run to their end"),
    ]
    return "\n".join([f"{subject.name}:", *(f"  {f'{name}:':<10}{text}" for name, text in details)]) + "\n"


def subject_record(subject: Subject) -> dict[str, Any]:
    """Return what is known of a subject as JSON values; ``backends`` are names for ``--backend``."""
    variants = [each.name for each in subject.variants]
    names = variants if len(variants) > 1 else [""]
    return {
        "name": subject.name,
        "title": subject.title,
        "kind": str(subject.kind),
        "upstream": list(subject.upstream),
        "releases": [
            {"version": each.version, "label": each.label, "is_default": each.is_default} for each in subject.releases
        ],
        "variants": variants,
        "needs": list(subject.needs.programs),
        "backends": [
            f"subject:{subject.name}{f'/{name}' if name else ''}@{each.version}"
            for name in names
            for each in subject.releases
            if subject.run is not None
        ],
    }

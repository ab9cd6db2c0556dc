"""``quiesce subjects``: build upstream releases, run the cases on them, and hold them to what is expected of each."""

from __future__ import annotations

import argparse
import platform
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path

from quiesce.cli.console import Console
from quiesce.cli.exit_codes import ExitCode, exit_code
from quiesce.cli.version import version
from quiesce.errors import BackendUnavailable, QuiesceError, SubjectNotBuilt
from quiesce.generation.saving import FOLDER, save
from quiesce.reporting.folder import ReportFolder
from quiesce.reporting.html import why_unavailable
from quiesce.reporting.text import plural
from quiesce.subjects import catalogue
from quiesce.subjects.build import Built, build
from quiesce.subjects.manifest import Subject
from quiesce.subjects.matrix import Matrix
from quiesce.subjects.row import Row, RowResult, rows_of, run_row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("names", nargs="*", metavar="NAME", help="a subject, or a folder that holds one (default: all)")
    parser.add_argument(
        "--version",
        action="append",
        default=[],
        metavar="V",
        help="a release, also one that no manifest lists; may be repeated (default: those of the default matrix)",
    )
    parser.add_argument("--all-versions", action="store_true", help="every release that the manifests list")
    parser.add_argument("--variant", action="append", default=[], metavar="NAME", help="only this variant of a subject")
    parser.add_argument(
        "--case", action="append", default=[], metavar="PATTERN", help="only results that are named so, such as pool/*"
    )
    parser.add_argument("--list", action="store_true", help="say which subjects there are, and run nothing")
    parser.add_argument(
        "--report", type=Path, metavar="DIR", help=f"write reports here, and failing sequences as cases to DIR/{FOLDER}"
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
    run = _Run(console, arguments.case)
    try:
        with _folder(arguments.report, rows) as folder:
            for row in rows:
                run.perform(row, folder)
    except KeyboardInterrupt:
        console.end_progress()
        console.write(run.matrix().text(console.palette))
        console.complain(f"interrupted: {len(run.rows)} of {plural(len(rows), 'row')} finished")
        return ExitCode.INTERRUPTED
    matrix = run.matrix()
    console.write(matrix.text(console.palette))
    if arguments.report:
        for each in run.rows:
            for case in each.found:
                saved = save(case, arguments.report / FOLDER / each.row.name.replace("/", "-").replace(" ", "-"))
                console.complain(f"saved as {saved}")
        if note := why_unavailable():
            console.complain(note)
    return exit_code(matrix.results, incomplete=bool(subjects.errors or run.unbuilt))


class _Run:
    """Rows, one after the other; what one of them breaks, the others outlive."""

    def __init__(self, console: Console, only: list[str]) -> None:
        self._console = console
        self._only = only
        self.rows: list[RowResult] = []
        self.skipped: dict[str, str] = {}
        self.unbuilt: dict[str, str] = {}
        self._built: dict[tuple[str, str], Built] = {}

    def perform(self, row: Row, folder: ReportFolder | None) -> None:
        try:
            result = run_row(row, self._build(row), self._only, self._console.progress)
        except BackendUnavailable as missing:
            self._end(row, "skipped", self.skipped, f"{missing.reason}; {missing.remedy}")
        except SubjectNotBuilt as failed:
            self._end(row, "not built", self.unbuilt, f"{failed}\n{failed.output}".rstrip())
        except QuiesceError as error:
            self._end(row, "did not run", self.unbuilt, str(error))
        else:
            self.rows.append(result)
            if folder is not None:
                for each in result.results:
                    folder.add(each)
            failures = sum(each.verdict.is_failure for each in result.results)
            self._say(row, f"{failures} not as expected" if failures else "as expected")

    def _build(self, row: Row) -> Built:
        key = row.subject.name, row.release.version
        if key not in self._built:
            self._say(row, "building, unless it is kept from before")
            self._built[key] = build(row.subject, row.release)
        return self._built[key]

    def _end(self, row: Row, how: str, kept: dict[str, str], why: str) -> None:
        kept[row.name] = why
        self._say(row, how)

    def _say(self, row: Row, what: str) -> None:
        self._console.end_progress()
        self._console.complain(f"{row.name}: {what}")

    def matrix(self) -> Matrix:
        """Return what there is so far."""
        return Matrix(self.rows, self.skipped, self.unbuilt)


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


def _folder(directory: Path | None, rows: list[Row]) -> AbstractContextManager[ReportFolder | None]:
    if directory is None:
        return nullcontext()
    run: Mapping[str, str] = {
        "machine": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
        "version of quiesce": version(),
    }
    return ReportFolder(directory, seed=0, run=run)

"""``quiesce conformance``: contract, corpus, failures below and generated sequences, on one backend."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Final

from quiesce.cases.writer import write_case
from quiesce.cli.arguments import Once, folder, operation_count, whole_number
from quiesce.cli.console import Console
from quiesce.cli.exit_codes import ExitCode
from quiesce.cli.interruption import describe_interruption
from quiesce.cli.run import complain_about
from quiesce.cli.run_record import describe_run
from quiesce.cli.selection import Choice, choose_backends, select_cases
from quiesce.conformance import Conformance, Standing, run_conformance
from quiesce.conformance.run import OPERATIONS_DEFAULT
from quiesce.generation.saving import FOLDER, save
from quiesce.reporting.folder import ReportFolder
from quiesce.reporting.html import why_unavailable
from quiesce.reporting.text import clean_line
from quiesce.results import Result

_EXIT_CODES: Final = {
    Standing.CONFORMS: ExitCode.NOTHING_FOUND,
    Standing.DOES_NOT_CONFORM: ExitCode.FINDINGS,
    Standing.UNPROVEN: ExitCode.COULD_NOT_RUN,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("--backend", action=Once, required=True, metavar="NAME", help="the backend to examine")
    parser.add_argument("--seed", type=whole_number, default=0, metavar="N", help="seed of the sequences (default: 0)")
    parser.add_argument(
        "--operations",
        type=operation_count,
        default=OPERATIONS_DEFAULT,
        metavar="N",
        help=f"perform so many in valid sequences, and as many in hostile ones (default: {OPERATIONS_DEFAULT:,})",
    )
    parser.add_argument(
        "--report",
        type=folder,
        metavar="DIR",
        help=f"write reports here, and failing sequences as cases to DIR/{FOLDER}",
    )


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Examine and say what was found. Raises :class:`quiesce.errors.QuiesceError` where nothing can run."""
    choice = choose_backends([arguments.backend])
    catalogue = select_cases([])
    complain_about(catalogue.errors, console)
    usable = choice.usable[0]
    results: list[Result] = []
    try:
        with _folder(arguments.report, arguments.seed, choice) as folder:
            conformance = run_conformance(
                usable.backend,
                seed=arguments.seed,
                operations=arguments.operations,
                cases=catalogue.cases,
                name=usable.name,
                progress=console.progress,
                report=_both(results.append, folder.add if folder is not None else None),
            )
    except KeyboardInterrupt as interruption:
        console.end_progress()
        kept = f"; they are in {arguments.report}" if arguments.report else ""
        where = describe_interruption(interruption)
        console.complain(f"interrupted: {len(results)} results finished{kept}{where}")
        return ExitCode.INTERRUPTED
    finally:
        console.end_progress()
    console.write(conformance.text())
    _show_found(conformance, arguments.report, console)
    if arguments.report and (note := why_unavailable()):
        console.complain(note)
    code = _EXIT_CODES[conformance.standing]
    return ExitCode.COULD_NOT_RUN if catalogue.errors and code is ExitCode.NOTHING_FOUND else code


def _folder(directory: Path | None, seed: int, choice: Choice) -> AbstractContextManager[ReportFolder | None]:
    if directory is None:
        return nullcontext()
    return ReportFolder(directory, seed=seed, run=describe_run(None, choice, ()))


def _both(first: Callable[[Result], None], second: Callable[[Result], None] | None) -> Callable[[Result], None]:
    def keep(result: Result) -> None:
        first(result)
        if second is not None:
            second(result)

    return keep


def _show_found(conformance: Conformance, directory: Path | None, console: Console) -> None:
    """Save the failing sequences, or show them."""
    for case in conformance.found:
        if directory is not None:
            console.write(f"saved as {clean_line(save(case, directory / FOLDER).as_posix())}\n")
        else:
            console.write("\n" + write_case(case))

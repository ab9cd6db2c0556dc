"""``quiesce conformance``: contract, corpus, failures below and generated sequences, on one backend."""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Final

from quiesce.allocators.cases import write_case
from quiesce.allocators.conformance import OPERATIONS_DEFAULT, Conformance, Standing, run_conformance
from quiesce.allocators.generation import FOLDER
from quiesce.backends.registry import Usable, is_driver_program
from quiesce.cli.arguments import (
    Once,
    add_report,
    add_seed,
    add_timeout,
    add_verbose,
    jobs_number,
    operation_count,
)
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode, end_early, is_early_end
from quiesce.cli.report_writing import ReportWriting, describe_run
from quiesce.cli.run import complain_about
from quiesce.cli.saved_cases import save_or_complain, tell_shrinking
from quiesce.cli.selection import choose_backends, select_cases
from quiesce.cli.workers import Workers
from quiesce.model.results import Result
from quiesce.model.rules import IN_TIME
from quiesce.model.wording import counted
from quiesce.reporting import clean_line, why_unavailable

_OPERATIONS_OF_A_JOB: Final = 10_000
"""Fewer cost less than it costs to start a process and to load a backend there."""
_EXIT_CODES: Final = {
    Standing.CONFORMS: ExitCode.NOTHING_FOUND,
    Standing.DOES_NOT_CONFORM: ExitCode.FINDINGS,
    Standing.UNPROVEN: ExitCode.COULD_NOT_RUN,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("--backend", action=Once, required=True, metavar="NAME", help="the backend to examine")
    add_seed(parser, "seed of the sequences")
    parser.add_argument(
        "--operations",
        type=operation_count,
        default=OPERATIONS_DEFAULT,
        metavar="N",
        help=f"how many to perform at least in valid and again in hostile sequences (default: {OPERATIONS_DEFAULT:,})",
    )
    parser.add_argument(
        "--jobs",
        type=jobs_number,
        metavar="N",
        help="run generated sequences in so many processes, or 'all': one a core (default: 'all' for a driver program, "
        f"but at most one for each {_OPERATIONS_OF_A_JOB:,} operations; 1 for other backends)",
    )
    add_report(parser, f"write reports here, and failing sequences as cases to DIR/{FOLDER}")
    add_timeout(parser)
    add_verbose(parser)


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Examine and say what was found. Raises :class:`QuiesceError` where nothing can run."""
    choice = choose_backends([arguments.backend], arguments.timeout, console.preparing)
    catalogue = select_cases([])
    complain_about(catalogue.errors, console)
    usable = choice.usable[0]
    results: list[Result] = []
    reports = ReportWriting(arguments.report, console, seed=arguments.seed, run=describe_run(None, choice, ()))

    def keep(result: Result) -> None:
        results.append(result)
        for finding in result.findings:
            if finding.rule == IN_TIME:  # said at once: what follows may take as long
                console.end_progress()
                console.complain(f"{result.case}: {finding.observed}; --timeout N waits N seconds")
        reports.add(result)

    try:
        with reports, contextlib.ExitStack() as stack:
            count = arguments.jobs or _jobs_that_help(usable, arguments.operations)
            jobs = Workers(count, arguments.backend, arguments.timeout, console.complain) if count > 1 else None
            conformance = run_conformance(
                usable.backend,
                seed=arguments.seed,
                operations=arguments.operations,
                cases=catalogue.cases,
                name=usable.name,
                progress=console.progress,
                report=keep,
                found=lambda case: tell_shrinking(case, console),
                jobs=None if jobs is None else stack.enter_context(jobs),
            )
    except (KeyboardInterrupt, Exception) as ending:
        if not is_early_end(ending):
            raise
        console.end_progress()
        return end_early(ending, counted(len(results), "result"), reports.kept_in, console)
    finally:
        console.end_progress()
    console.write(conformance.account())
    _show_found(conformance, arguments.report, console)
    console.write(f"{conformance.conclusion}\n")
    if arguments.report and (note := why_unavailable()):
        console.complain(note)
    code = _EXIT_CODES[conformance.standing]
    is_incomplete = bool(catalogue.errors) or reports.failed
    return ExitCode.COULD_NOT_RUN if is_incomplete and code is ExitCode.NOTHING_FOUND else code


def _jobs_that_help(usable: Usable, operations: int) -> int:
    """Return how many processes to use where nobody said it.

    Each context of a driver program is a process anyway. Other backends may be alone with a device.
    """
    if not is_driver_program(usable):
        return 1
    return max(1, min(jobs_number("all"), operations // _OPERATIONS_OF_A_JOB))


def _show_found(conformance: Conformance, directory: Path | None, console: Console) -> None:
    """Save the failing sequences, or show them."""
    for case in conformance.found:
        path = None if directory is None else save_or_complain(case, directory / FOLDER, console)
        if path is not None:
            console.write(f"saved as {clean_line(path.as_posix())}\n")
        else:
            console.write(f"\n{write_case(case)}\n")

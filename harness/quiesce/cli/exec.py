"""``quiesce exec``: run a program on the simulated CUDA or HIP runtime, and judge what it did with memory.

The program waits for what is imported here; what judges and reports is imported while it runs.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Final

from quiesce.cli.console import Console, tell_github
from quiesce.cli.endings import ExitCode
from quiesce.cli.exec_options import ExecOptions, add_arguments, options_of
from quiesce.model.errors import ConfigurationError
from quiesce.model.results import Result
from quiesce.model.wording import EXEC_VARIABLE
from quiesce.simulator.runtime import (
    INSTALL_KERNELS,
    INSTALL_LIBRARIES,
    build_all,
    computed_functions,
    describe_replacement,
    kernels_can_run,
    libraries_can_run,
    run_program,
)

if TYPE_CHECKING:
    from quiesce.simulator.judge import KnownError

__all__ = ["add_arguments", "command"]

_CURRENT_TEST: Final = "PYTEST_CURRENT_TEST"
"""Where pytest names the test that runs. The simulated runtime reads it, to name the test that launched a kernel."""


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Run, judge and report. Raises :class:`QuiesceError` where nothing can run."""
    options = options_of(arguments)
    kernels = _runs_kernels(options)
    known = known_errors_of(options)
    settings = options.machine(kernels=kernels, libraries=_runs_libraries(options, kernels=kernels))
    if options.report:
        from quiesce.reporting import clear_folder

        clear_folder(options.report)  # where another run writes its reports, this one does not begin
    prepare_cache(console)
    environment = {**options.environment(), EXEC_VARIABLE: options.command}
    environment.pop(_CURRENT_TEST, None)  # a test that runs this command is none of the program's
    again = shlex.split(options.command)[2:-1]
    with run_program(options.words, settings, environment, meanwhile=_import_judges, options=again) as ended:
        from quiesce.cli.judging import end_of, judge_processes
        from quiesce.reporting import read_sessions

        sessions = read_sessions(ended.folder)
        end = end_of(ended.status, options.words, sessions)
        judged = judge_processes(ended, options, end, console, known)
    results = [*judged.results, *(each for session in sessions for each in session.results)]
    is_reported = not options.report or _report(options.report, results, console, options.seed)
    from quiesce.reporting import render_summary

    told = [each for session in sessions if session.ended is not None for each in session.results]
    console.write(render_summary(results, palette=console.palette, told=told))
    tell_github(judged.results, console)
    code = _exit_code(results, end, console)
    if judged.left_kernels_out and options.kernels is None and not kernels_can_run():
        console.complain(f"CUDA kernels did not compute; to let them compute, run {INSTALL_KERNELS}")
    if judged.not_simulated and options.libraries is None and options.kernels != "off" and not libraries_can_run():
        _tell_of_libraries(judged.not_simulated, console)
    return ExitCode.COULD_NOT_RUN if code is ExitCode.NOTHING_FOUND and not is_reported else code


def _runs_kernels(options: ExecOptions) -> bool:
    """Say whether kernels are to compute. Raises ConfigurationError where that was asked for and can't be."""
    can_run = options.kernels != "off" and kernels_can_run()
    if options.kernels == "run" and not can_run:
        raise ConfigurationError(f"--kernels run needs packages that are not installed; run {INSTALL_KERNELS}")
    return can_run


def _runs_libraries(options: ExecOptions, *, kernels: bool) -> bool:
    """Say whether functions of libraries are to compute. Raises ConfigurationError like the other."""
    can_run = kernels and options.libraries != "off" and libraries_can_run()
    if options.libraries == "run" and not can_run:
        raise ConfigurationError(
            f"--libraries run needs packages that are not installed; run {INSTALL_LIBRARIES}"
            if kernels
            else "--libraries run can't be had: it needs kernels that compute; leave out --kernels off"
        )
    return can_run


def _tell_of_libraries(functions: frozenset[str], console: Console) -> None:
    """Say which functions would compute if what they need were installed."""
    names = sorted(functions & computed_functions())
    if names:
        more = f" and {len(names) - 1:,} more" if len(names) > 1 else ""
        console.complain(
            f"{names[0]}{more} did not compute; to let functions of libraries compute, run {INSTALL_LIBRARIES}"
        )


def known_errors_of(options: ExecOptions) -> tuple[KnownError, ...]:
    """Return the errors that are expected. Raises ConfigurationError for a file that makes no sense."""
    if options.known_errors is None:
        return ()
    from quiesce.simulator.judge import read_known_errors

    return read_known_errors(options.known_errors)


def _report(folder: Path, results: list[Result], console: Console, seed: int) -> bool:
    """Write the reports, and return whether they could be written."""
    from quiesce.cli.report_writing import describe_machine, write_reports

    return write_reports(folder, results, console, seed=seed, run=describe_machine())


def _import_judges() -> None:
    import quiesce.cli.judging
    import quiesce.reporting.terminal  # noqa: F401


def _exit_code(results: list[Result], end: str, console: Console) -> ExitCode:
    """Return 1 for findings; 2 where something has no verdict, or the program itself says that it failed."""
    if any(result.verdict.is_failure for result in results):
        return ExitCode.FINDINGS
    if end:
        console.complain(end)
    unresolved = any(result.is_unresolved for result in results)
    return ExitCode.COULD_NOT_RUN if unresolved else ExitCode.NOTHING_FOUND


def prepare_cache(console: Console) -> None:
    """Compile what a program needs before it begins, and say what a user has to know; nothing where all is as usual.

    Raises :class:`BackendUnavailable` where it can't be compiled.
    """
    replacement = describe_replacement()
    if replacement:
        console.complain(replacement)
    build_all(console.complain)

"""``quiesce shrink``: a case that fails on a backend becomes a shorter one that breaks the same rule there."""

from __future__ import annotations

import argparse

from quiesce.allocators.cases import parse_case, write_case
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation import TRIALS_MAX, named_case, shrink
from quiesce.cli.arguments import Once, add_timeout, add_verbose, folder, nonempty_path
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode
from quiesce.cli.saved_cases import save_or_complain
from quiesce.cli.selection import choose_described
from quiesce.model.errors import ConfigurationError
from quiesce.model.wording import counted
from quiesce.reporting import clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("file", type=nonempty_path, metavar="CASE", help="the case file")
    parser.add_argument("--backend", action=Once, required=True, metavar="NAME", help="the backend that it fails on")
    parser.add_argument("--save", type=folder, metavar="DIR", help="write the shorter case here (default: show it)")
    add_timeout(parser)
    add_verbose(parser)


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Shrink one case. Raises :class:`QuiesceError` where it cannot be read or run."""
    case = parse_case(arguments.file)
    usable = choose_described(arguments.backend, arguments.timeout, console.preparing)
    try:
        shrunk = shrink(
            usable.backend,
            case,
            progress=lambda trials, lines: console.progress(trials, TRIALS_MAX, f"{counted(lines, 'line')} left"),
        )
    finally:
        console.end_progress()
    if shrunk is None:
        result = run_case(case, usable.backend)
        if not result.verdict.executed:
            raise ConfigurationError(
                f"{case.path} is {result.verdict} on '{usable.name}' ({result.reason}), so it cannot fail there; "
                "name a backend that it fails on"
            )
        console.write(f"{clean_line(case.path)} passes on {clean_line(usable.name)}: there is nothing to shorten\n")
        return ExitCode.NOTHING_FOUND
    if shrunk.interrupted:
        console.complain("shrinking was interrupted; this is the best so far")
    name = f"{case.identifier.rpartition('/')[2]}_shrunk"
    short = named_case(shrunk.case, shrunk.finding, usable.description, found_by=f"shrinking {case.path}", name=name)
    path = None if arguments.save is None else save_or_complain(short, arguments.save, console)
    if path is None:
        console.write(write_case(short))
    else:
        console.write(f"saved as {clean_line(path.as_posix())}\n")
    return ExitCode.FINDINGS

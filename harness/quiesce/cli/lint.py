"""``quiesce lint``: the grammar, and what a corpus asks of its cases beyond it."""

from __future__ import annotations

import argparse

from quiesce.allocators.cases import lint_cases, notes
from quiesce.allocators.oracle import NAMES
from quiesce.allocators.reference import FAULTS
from quiesce.cli.arguments import add_cases
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode
from quiesce.cli.selection import select_cases
from quiesce.model.wording import counted
from quiesce.reporting import clean_line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_cases(parser)


def command(arguments: argparse.Namespace, console: Console) -> ExitCode:
    """Check and list. Raises :class:`ConfigurationError` where there is no case."""
    catalogue = select_cases(arguments.targets)
    errors = [*catalogue.errors, *lint_cases(catalogue.cases, rules=NAMES, faults=FAULTS)]
    errors.sort(key=lambda error: (error.path, error.line, error.what))
    files = len({case.path for case in catalogue.cases} | {error.path for error in errors})
    lines = [clean_line(str(error)) for error in errors]
    lines += [f"{clean_line(str(note))} (a note, not an error)" for note in notes(catalogue.cases)]
    found = counted(len(errors), "error") if errors else "no errors"
    console.write("\n".join([*lines, f"{counted(files, 'case')} read: {found}"]) + "\n")
    return ExitCode.FINDINGS if errors else ExitCode.NOTHING_FOUND

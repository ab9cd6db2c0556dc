"""The ``quiesce`` program: it reads the arguments, runs one command, and turns every ending into an exit code."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Final

from quiesce.cli.arguments import OneLineParser
from quiesce.cli.console import Console
from quiesce.cli.endings import ExitCode, describe_interruption, explain, interrupted_by_signals
from quiesce.model.errors import QuiesceError, reproducing

COMMANDS: Final = {
    "run": "run cases on backends and report what was found",
    "exec": "run a program without a GPU, and report leaks, double frees, use after free and races",
    "explore": "run generated sequences on a backend and shrink what fails to a case file for each cause",
    "conformance": "examine a backend: its contract, the corpus, failures below it, generated sequences",
    "subjects": "build upstream releases, run the cases on them, and compare the results with those that are expected",
    "shrink": "shorten a case file that fails on a backend",
    "prove": "show that every case fails with its fault switched on, and passes without it",
    "list": "list the cases, faults, backends, subjects and rules that there are",
    "doctor": "say which backends work here, and what to do about those that don't",
    "lint": "check case files against the rules of the corpus",
    "import": "take the reports of Valgrind, LeakSanitizer and MSVC's debug runtime as findings",
    "report": "write the reports of a killed run from its journal, or one report of several runs",
}
"""The commands in the order of the help text; each is the module of that name beside this one."""
MODULES: Final = {"import": "import_reports", "list": "listing"}
"""Those whose module has another name."""
_NEAR: Final = 0.8
"""How alike an unknown option and the one that is meant are at least, by :mod:`difflib`."""


class _ShowVersion(argparse.Action):
    """Print the version, and end; what reads it costs more to import than all the rest."""

    def __init__(self, option_strings: Sequence[str], dest: str) -> None:
        super().__init__(option_strings, dest, nargs=0, help="show the version, and exit")

    def __call__(self, parser: argparse.ArgumentParser, *unused: object) -> None:
        from quiesce.cli.version import version

        sys.stdout.write(f"quiesce {version()}\n")
        parser.exit()


def build_parser(command: str | None = None) -> OneLineParser:
    """Return the parser. Only ``command``'s module is imported, so that one command cannot break another."""
    parser = OneLineParser(
        prog="quiesce",
        description="Find memory bugs, with or without a GPU: cases, generated sequences, leak checks, GPU programs.",
        epilog="exit codes: 0 nothing found, 1 findings, 2 could not run, 3 an error in quiesce itself",
    )
    parser.add_argument("--version", action=_ShowVersion)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, text in COMMANDS.items():
        subparser = commands.add_parser(name, help=text, description=text)
        if name == command:
            module = importlib.import_module(f"quiesce.cli.{MODULES.get(name, name)}")
            module.add_arguments(subparser)
            subparser.set_defaults(function=module.command)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Raises :class:`SystemExit` for usage errors, help and the version."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character must not end the run
            stream.reconfigure(errors="backslashreplace")
    console = Console(sys.stdout, sys.stderr, os.environ)
    try:
        return _run(words, console)
    except BrokenPipeError:
        return ExitCode.OUTPUT_CLOSED
    except KeyboardInterrupt as interruption:
        console.complain(f"interrupted{describe_interruption(interruption)}")
        return ExitCode.INTERRUPTED
    except QuiesceError as error:
        console.complain(str(error))
        return ExitCode.COULD_NOT_RUN
    except OSError as error:
        console.complain(explain(error))
        return ExitCode.COULD_NOT_RUN
    except Exception as error:  # the interpreter's own exit code for it is 1, which would say that something was found
        with contextlib.suppress(OSError):
            traceback.print_exc()
        console.complain(f"this command shows it again: {reproducing(error) or _typed(words)}")
        console.complain("this is an error in quiesce itself, not a finding; please report it with the lines above")
        return ExitCode.OWN_ERROR
    finally:
        console.settle()


def _typed(words: Sequence[str]) -> str:
    from quiesce.model import wording

    return wording.join(["quiesce", *words])


def _open_closed_streams() -> None:
    """Open what the caller closed (``>&-``): else a report or a driver program may get its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", encoding="utf-8", closefd=False))


def _meant(unknown: Sequence[str], command: str | None) -> str:
    """Return the options of a command that unknown ones are near to, as a question; empty where none is."""
    import difflib
    import re

    parser = OneLineParser(add_help=False)
    importlib.import_module(f"quiesce.cli.{MODULES.get(command or '', command)}").add_arguments(parser)
    options = re.findall(r"--[a-z][a-z-]*", parser.format_usage())
    words = [word.partition("=")[0] for word in unknown if word.startswith("--")]
    near = dict.fromkeys(each for word in words for each in difflib.get_close_matches(word, options, 1, _NEAR))
    return f"; did you mean {' and '.join(near)}?" if near else ""


def _run(words: Sequence[str], console: Console) -> ExitCode:
    command = next((word for word in words if not word.startswith("-")), None)
    parser = build_parser(command)
    if not words:
        console.write(parser.format_help())
        return ExitCode.COULD_NOT_RUN
    if command is not None and command not in COMMANDS:
        from quiesce.allocators.cases import instead_of

        parser.error(f"there is no command '{command}'; {instead_of(command, COMMANDS)}")
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        parser.prog = f"quiesce {command}"
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{_meant(unknown, command)}")
    parsed.command_words = words
    with contextlib.ExitStack() as stack:
        if not getattr(parsed, "verbose", True):
            from quiesce.cli.console import kept_back

            stack.enter_context(kept_back(console, getattr(parsed, "report", None)))
        if command != "exec":  # which gives signals to its program
            stack.enter_context(interrupted_by_signals())
        code: ExitCode = parsed.function(parsed, console)
    return code


if __name__ == "__main__":
    sys.exit(main())

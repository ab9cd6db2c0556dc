"""What arguments may be. A wrong one is one line before anything runs: what is wrong, and what to write instead."""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from quiesce.cli.endings import ExitCode
from quiesce.model.rules import WATCHDOG_SECONDS, WATCHDOG_SECONDS_MAX
from quiesce.reporting import clean_line
from quiesce.simulator.judge import AtExit

SEED_MAX: Final = (1 << 64) - 1
"""The largest seed: what fits the 64 bits of every random generator that a driver program may use."""
OPERATIONS_MAX: Final = 10**12
"""What is more ends in nobody's lifetime: it is a slip."""

_DIGITS: Final = re.compile(r"-?[0-9]{1,30}\Z")


class OneLineParser(argparse.ArgumentParser):
    """A parser that complains in one line; how to use the command is a ``--help`` away."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        self.exit(ExitCode.COULD_NOT_RUN, f"{self.prog}: {clean_line(message)}; see '{self.prog} --help'\n")


class Once(argparse.Action):
    """An option of which only one value can count."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Take the value. A second one ends the program."""
        if getattr(namespace, self.dest) is not None:
            parser.error(f"argument {option_string}: it is given twice; give it once")
        setattr(namespace, self.dest, values)


def add_verbose(parser: argparse.ArgumentParser) -> None:
    """Declare the option of commands that work with vendors' libraries; :mod:`quiesce.cli.console` has the rest."""
    parser.add_argument(
        "--verbose",
        action="store_true",
        help="also show what libraries write to standard error (default: keep it in a file)",
    )


REPORTS: Final = "write report.html, report.json, junit.xml and results.jsonl here"


def add_cases(parser: argparse.ArgumentParser) -> None:
    """Declare which cases a command works on."""
    parser.add_argument(
        "targets", nargs="*", type=nonempty, metavar="CASE", help="case file, folder or identifier (default: all)"
    )


def add_topic(parser: argparse.ArgumentParser) -> None:
    """Declare that only cases of some topics are meant."""
    parser.add_argument("--topic", action="append", default=[], metavar="TOPIC", help="only cases of this topic")


def add_report(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare where reports go; ``what`` says which."""
    parser.add_argument("--report", type=report_folder, metavar="DIR", help=what)


def add_seed(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the seed; ``what`` says of what."""
    parser.add_argument("--seed", type=seed_number, default=0, metavar="N", help=f"{what} (default: 0)")


def add_timeout(parser: argparse.ArgumentParser) -> None:
    """Declare how long a driver program may take for an answer."""
    parser.add_argument(
        "--timeout",
        type=seconds_number,
        metavar="SECONDS",
        help=f"how long a driver program may take for one answer (default: {WATCHDOG_SECONDS:g})",
    )


def whole_number(text: str) -> int:
    """Return the number. Raises :class:`argparse.ArgumentTypeError` for anything else."""
    if not _DIGITS.match(text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number; write digits, such as 100000")
    return int(text)


def seed_number(text: str) -> int:
    """Return a seed. Raises :class:`argparse.ArgumentTypeError` for what is none."""
    if not _DIGITS.match(text) or not 0 <= int(text) <= SEED_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is not a seed; write a whole number from 0 to {SEED_MAX}")
    return int(text)


def seconds_number(text: str) -> float:
    """Return how many seconds a person gave: more than 0, and at most a day."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds <= WATCHDOG_SECONDS_MAX:
        raise argparse.ArgumentTypeError(
            f"'{text}' is no number of seconds; write one above 0 and up to {WATCHDOG_SECONDS_MAX:g}"
        )
    return seconds


def operation_count(text: str) -> int:
    """Return how many operations to perform. Raises :class:`argparse.ArgumentTypeError` for none and far too many."""
    operations = whole_number(text)
    if operations < 1:
        raise argparse.ArgumentTypeError(f"{operations} performs nothing; write at least 1")
    if operations > OPERATIONS_MAX:
        raise argparse.ArgumentTypeError(f"{operations} would take years; write at most {OPERATIONS_MAX}")
    return operations


def job_count(text: str) -> int:
    """Return how many to run at a time. Raises :class:`argparse.ArgumentTypeError` for none."""
    jobs = whole_number(text)
    if jobs < 1:
        raise argparse.ArgumentTypeError(f"{jobs} runs nothing; write at least 1")
    return jobs


def jobs_number(text: str) -> int:
    """Return how many processes to run at a time; ``all`` is one for each core that this process may use."""
    if text != "all":
        return job_count(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def shard_of(text: str) -> tuple[int, int]:
    """Return K and N of ``K/N``. Raises :class:`argparse.ArgumentTypeError` where K is not one of 1 to N."""
    first, slash, count = text.partition("/")
    if not slash or not _DIGITS.match(first) or not _DIGITS.match(count) or not 1 <= int(first) <= int(count):
        raise argparse.ArgumentTypeError(f"'{text}' is no shard; write K/N, such as 1/4 for the first of four")
    return int(first), int(count)


def nonempty(text: str) -> str:
    """Return a name or a path; an empty one would mean the current folder, where a shell's variable is not set.

    Raises :class:`argparse.ArgumentTypeError`.
    """
    if not text:
        raise argparse.ArgumentTypeError("'' names nothing; write a name, '.' for the current folder")
    return text


def nonempty_path(text: str) -> Path:
    """Return a path. Raises :class:`argparse.ArgumentTypeError` for an empty one."""
    return Path(nonempty(text))


def folder(text: str) -> Path:
    """Return a folder that can be written to; it need not exist yet.

    Whether it can is tried: rights alone do not tell. Raises :class:`argparse.ArgumentTypeError` where it cannot.
    """
    path = nonempty_path(text)
    missing = [each for each in (path, *path.parents) if not each.exists()]
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        why = "it is a file" if path.is_file() else error.strerror or type(error).__name__
        raise argparse.ArgumentTypeError(f"nothing can be written to '{text}' ({why}); name another folder") from None
    finally:
        for each in missing:
            with contextlib.suppress(OSError):
                each.rmdir()
    return path


def report_folder(text: str) -> Path:
    """Return a folder that reports can be written to. Raises :class:`argparse.ArgumentTypeError` where they cannot."""
    from quiesce.reporting import FILE_NAMES

    path = folder(text)
    for name in FILE_NAMES:
        if (path / name).is_dir():
            raise argparse.ArgumentTypeError(f"'{path / name}' is a folder, so no report can be written; name another")
    return path


def output_file(text: str) -> Path:
    """Return a file that can be written. Raises :class:`argparse.ArgumentTypeError` where it cannot."""
    path = nonempty_path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' is a folder; name a file")
    folder(str(path.parent))
    return path


def _named(text: str) -> AtExit:
    try:
        return AtExit(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not one of {', '.join(AtExit)}") from None


def add_at_exit(parser: argparse.ArgumentParser) -> None:
    """Declare ``--at-exit``."""
    parser.add_argument(
        "--at-exit",
        type=_named,
        metavar="WHAT",
        default=AtExit.LOST,
        help="report memory that is still allocated at exit: lost (no pointer to it is left; default), all, none",
    )

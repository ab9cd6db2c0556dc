"""What arguments may be. A wrong one is one line before anything runs: what is wrong, and what to write instead."""

from __future__ import annotations

import argparse
import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from quiesce.cli.exit_codes import ExitCode
from quiesce.reporting.text import clean_line


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
            parser.error(f"argument {option_string}: it is given twice; write the one that is meant")
        setattr(namespace, self.dest, values)


def whole_number(text: str) -> int:
    """Return the number. Raises :class:`argparse.ArgumentTypeError` for anything else."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number; write digits, such as 100000") from None


def operation_count(text: str) -> int:
    """Return how many operations to perform. Raises :class:`argparse.ArgumentTypeError` for none."""
    operations = whole_number(text)
    if operations < 1:
        raise argparse.ArgumentTypeError(f"{operations} performs nothing; write at least 1")
    return operations


def folder(text: str) -> Path:
    """Return a folder that can be written to; it need not exist yet.

    Whether it can is tried: rights alone do not tell. Raises :class:`argparse.ArgumentTypeError` where it cannot.
    """
    path = Path(text)
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
    from quiesce.reporting.folder import FILE_NAMES

    path = folder(text)
    for name in FILE_NAMES:
        if (path / name).is_dir():
            raise argparse.ArgumentTypeError(f"'{path / name}' is a folder, so no report can be written; name another")
    return path


def output_file(text: str) -> Path:
    """Return a file that can be written. Raises :class:`argparse.ArgumentTypeError` where it cannot."""
    path = Path(text)
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"'{text}' is a folder; name a file")
    folder(str(path.parent))
    return path

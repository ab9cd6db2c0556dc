"""The option that says what a program may hold when it exits."""

from __future__ import annotations

import argparse

from quiesce.traces.at_exit import AtExit


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

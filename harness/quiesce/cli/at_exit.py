"""The option that says what a program may hold when it exits."""

from __future__ import annotations

import argparse

from quiesce.traces.at_exit import AtExit


def add_at_exit(parser: argparse.ArgumentParser) -> None:
    """Declare ``--at-exit``."""
    parser.add_argument(
        "--at-exit",
        type=AtExit,
        choices=list(AtExit),
        default=AtExit.LOST,
        help="which of what lives at exit is a finding: lost (nobody can reach it, the default), all, none",
    )

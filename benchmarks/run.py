"""Ratios side by side, measured in one run on one machine: ``tox -e bench``.

A single time says little, because machines differ and are shared; what is compared is measured right after each other.
Nothing is asserted here: that the cost is flat is asserted by cases, in counted steps.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from measurements import bare_cost, lockstep_cost

from quiesce.backends.command import CommandBackend
from quiesce.backends.reference import backend as reference

DRIVER: Final = Path(__file__).resolve().parent.parent / "fixtures" / "command" / "example_pool" / "example_pool.c"
SMALLEST: Final = 1000
PIPE_LIVE: Final = 100
"""So few blocks that the example driver's own searching does not count."""


def cost_by_history(largest: int, operations: int) -> None:
    """Print what an operation costs with ever more blocks live, and how that grows from row to row."""
    print(f"cost of one operation among live blocks ({operations} operations, reference)\n")
    header = ("live blocks", "steps", "bare us", "/ first", "lockstep us", "/ first", "/ bare")
    print(" ".join(f"{name:>12}" for name in header))
    live, first = SMALLEST, None
    while live <= largest:
        bare = bare_cost(reference(), live, operations)
        judged = lockstep_cost(reference(), live, operations)
        first = first or (bare.microseconds, judged.microseconds)
        figures = (
            bare.steps or 0.0,
            bare.microseconds,
            bare.microseconds / first[0],
            judged.microseconds,
            judged.microseconds / first[1],
            judged.microseconds / bare.microseconds,
        )
        print(f"{live:>12} " + " ".join(f"{figure:>12.2f}" for figure in figures), flush=True)
        live *= 10


def requests_by_way(operations: int) -> None:
    """Print how many requests a second each way of running them takes, and the ratio to the bare reference."""
    print(f"\nrequests a second ({operations} operations among {PIPE_LIVE} live blocks)\n")
    rows = [
        ("reference, bare", bare_cost(reference(), PIPE_LIVE, operations)),
        ("reference, in lockstep", lockstep_cost(reference(), PIPE_LIVE, operations)),
    ]
    compiler = shutil.which("cc")
    with tempfile.TemporaryDirectory() as folder:
        if compiler is not None:
            program = Path(folder) / "example_pool"
            command = [compiler, "-O2", "-o", str(program), str(DRIVER)]
            subprocess.run(command, check=True)  # noqa: S603 - a list, no shell
            driver = CommandBackend([str(program)])
            rows.append(("example driver over a pipe, bare", bare_cost(driver, PIPE_LIVE, operations)))
            rows.append(("example driver over a pipe, in lockstep", lockstep_cost(driver, PIPE_LIVE, operations)))
    for name, cost in rows:
        ratio = rows[0][1].microseconds / cost.microseconds
        print(f"{name:<42} {1e6 / cost.microseconds:>10.0f} {ratio:>8.3f} of the first")
    if compiler is None:
        print("the example driver was left out: it needs a C compiler called cc")


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Ratios side by side, measured in one run.")
    parser.add_argument("--largest", type=int, default=1_000_000, metavar="N", help="the most live blocks")
    parser.add_argument("--operations", type=int, default=20_000, metavar="N", help="operations in each window")
    parsed = parser.parse_args(arguments)
    cost_by_history(parsed.largest, parsed.operations)
    requests_by_way(parsed.operations)


if __name__ == "__main__":
    main(sys.argv[1:])

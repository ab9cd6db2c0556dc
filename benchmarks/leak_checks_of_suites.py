"""What ``pytest --quiesce-leak`` costs test suites of released packages: plain and checked runs in turn, in one run.

Processor time counts, the least of several runs: others may use the machine as well. The suites are those whose tests
are in the wheel, or any folder or file of tests. What is not installed is left out, and said so. At the end come the
median of the ratios and the worst of them.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

SUITES: Final = ("toolz/tests", "networkx/classes/tests/test_graph.py", "networkx/algorithms/tests/test_dag.py")
WAYS: Final = {
    "plain": ("-p", "no:quiesce"),
    "checked": ("--quiesce-leak", "--quiesce-leak-seconds=60"),
}
QUIET: Final = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")

TESTS_RUN: Final = re.compile(r"(\d+) (?:passed|failed)")


class NotRun(Exception):
    """Why a suite could not be measured."""


def find(suite: str) -> Path | None:
    """Return where a suite is: a folder or file of this path, or else what an installed package has.

    Of a path within a package, the first part is the name of the package.
    """
    if Path(suite).exists():
        return Path(suite).resolve()
    package, _, below = suite.partition("/")
    found = importlib.util.find_spec(package) if package.isidentifier() else None
    if found is None or not found.submodule_search_locations:
        return None
    place = Path(next(iter(found.submodule_search_locations))) / below
    return place if place.exists() else None


def cost_of(options: Sequence[str], place: Path, folder: str) -> tuple[float, int]:
    """Return the processor time in seconds of a run in a process of its own, and the number of tests."""
    command = [sys.executable, "-m", "pytest", *QUIET, *options, str(place)]
    before = os.times()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - a list
    after = os.times()
    if done.returncode not in (0, 1):
        said = (done.stdout + done.stderr).strip().splitlines()
        raise NotRun(f"pytest {' '.join(options)} ended with {done.returncode}: {said[-1] if said else ''}")
    tests = sum(map(int, TESTS_RUN.findall(done.stdout.splitlines()[-1])))
    return after.children_user - before.children_user + after.children_system - before.children_system, tests


def compare(suite: str, place: Path, runs: int, folder: str) -> float:
    """Print what the checks of one suite cost, and return the ratio of both."""
    least = dict.fromkeys(WAYS, float("inf"))
    tests = 0
    for _ in range(runs):
        for way, options in WAYS.items():
            seconds, tests = cost_of(options, place, folder)
            least[way] = min(least[way], seconds)
    plain, checked = least["plain"], least["checked"]
    each = 1000 * (checked - plain) / max(1, tests)
    print(f"{suite:<40} {tests:>6} {plain:>8.2f} {checked:>8.2f} {checked / plain:>8.2f} {each:>12.1f}")
    return checked / plain


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What leak checks cost suites of released packages.")
    parser.add_argument(
        "suites",
        nargs="*",
        default=SUITES,
        metavar="PATH",
        help="folders or files, or PACKAGE/PATH of an installed package",
    )
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each, of which the least counts")
    options = parser.parse_args(arguments)
    print(f"leak checks of suites: seconds of processor time, the least of {options.runs} runs\n")
    print(f"{'suite':<40} {'tests':>6} {'plain':>8} {'checked':>8} {'ratio':>8} {'ms per test':>12}")
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for suite in options.suites:
            place = find(suite)
            if place is None:
                print(f"{suite:<40} is left out: there is no such path, and no such package is installed")
            else:
                try:
                    ratios.append(compare(suite, place, options.runs, folder))
                except NotRun as error:
                    print(f"{suite:<40} is left out: {error}")
    if ratios:
        print(f"\nratio: median {median(ratios):.2f}, worst {max(ratios):.2f}")


if __name__ == "__main__":
    main(sys.argv[1:])

"""What a leak check costs beside pytest-memray's: 300 tests of 5 ms, each way of running them in one run.

The test's work is fixed, for a tool that slows allocations down must show; it is measured out to 5 ms first. There are
two kinds of it: one that allocates a lot, and one that hardly does. The fastest of several runs counts, because the
others shared the machine with somebody. What the plugin costs unmarked tests is so little that processor time has to
tell, the least of many runs that alternate.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TESTS: Final = 300
TEST_SECONDS: Final = 0.005
SUITE: Final = """\
import json

import pytest

{mark}

def work():
    {work}

@pytest.mark.parametrize("number", range({tests}))
def test_work(number):
    for _ in range({repetitions}):
        work()
"""
WORK: Final = {
    "that allocate much": 'json.loads(json.dumps([{"key": key, "text": str(key) * 9} for key in range(100)]))',
    "that allocate little": "any(number < 0 for number in range(2_000))",
}


@dataclass(frozen=True, slots=True)
class Way:
    """One way of running the tests: a marker for all of them, and options of pytest."""

    name: str
    mark: str = ""
    options: tuple[str, ...] = ()


BARE: Final = Way("bare", options=("-p", "no:quiesce"))
LIMIT_LEAKS: Final = Way("pytest-memray, limit_leaks", 'pytestmark = pytest.mark.limit_leaks("10 MB")', ("--memray",))
WAYS: Final = (
    BARE,
    Way("marker leak", "pytestmark = pytest.mark.leak"),
    Way("pytest-memray", options=("--memray",)),
    LIMIT_LEAKS,
)


UNMARKED: Final = (BARE, Way("quiesce installed, unmarked"))


def repetitions_for(work: str, seconds: float) -> int:
    """Return how often the work of a test is to be done to take so long."""
    scope: dict[str, Any] = {}
    exec(f"import json\ndef work():\n    {work}", scope)  # noqa: S102 - the text of the suite that is written below
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.5:
        scope["work"]()
        done += 1
    return max(1, round(done * seconds / (time.perf_counter() - start)))


def cost_of(way: Way, work: str, repetitions: int, folder: Path) -> tuple[float, float]:
    """Return the seconds that pytest takes for the suite in a process of its own, and those of the processor."""
    suite = folder / "test_work.py"
    suite.write_text(SUITE.format(mark=way.mark, work=work, tests=TESTS, repetitions=repetitions), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *way.options, str(suite)]
    before, start = os.times(), time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - a list
    seconds, after = time.perf_counter() - start, os.times()
    if f"{TESTS} passed" not in done.stdout:
        raise RuntimeError(f"{way.name}: the tests did not pass:\n{done.stdout}{done.stderr}")
    used = after.children_user - before.children_user + after.children_system - before.children_system
    return seconds, used


def compare(kind: str, work: str, ways: Sequence[Way], runs: int, folder: Path) -> None:
    """Print what each way costs with tests of one kind."""
    repetitions = repetitions_for(work, TEST_SECONDS)
    fastest = dict.fromkeys(ways, float("inf"))
    for _ in range(runs):
        for way in ways:
            fastest[way] = min(fastest[way], cost_of(way, work, repetitions, folder)[0])
    milliseconds = TEST_SECONDS * 1000
    print(f"leak checks: {TESTS} tests of {milliseconds:.0f} ms {kind}, the fastest of {runs} runs\n")
    print(f"{'way':<32} {'seconds':>8} {'/ bare':>8} {'/ limit_leaks':>14}")
    for way, seconds in fastest.items():
        ratio = f"{seconds / fastest[LIMIT_LEAKS]:>14.2f}" if LIMIT_LEAKS in fastest else ""
        print(f"{way.name:<32} {seconds:>8.2f} {seconds / fastest[BARE]:>8.3f} {ratio}")
    print()


def compare_unmarked(work: str, runs: int, folder: Path) -> None:
    """Print what the plugin costs tests that it does not check."""
    repetitions = repetitions_for(work, TEST_SECONDS)
    least = dict.fromkeys(UNMARKED, float("inf"))
    for _ in range(runs):
        for way in UNMARKED:
            least[way] = min(least[way], cost_of(way, work, repetitions, folder)[1])
    bare, installed = least.values()
    print(f"unmarked tests: {bare:.3f} s of processor time bare, {installed:.3f} s with the plugin: ", end="")
    print(f"{installed / bare - 1:+.2%} (the least of {runs} runs each, of {TESTS} tests)")


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What leak checks cost, side by side in one run.")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each, of which the fastest counts")
    parser.add_argument(
        "--unmarked-runs", type=int, default=10, metavar="N", help="runs for the cost of unmarked tests"
    )
    options = parser.parse_args(arguments)
    has_memray = importlib.util.find_spec("pytest_memray") is not None
    ways = [way for way in WAYS if has_memray or "--memray" not in way.options]
    with tempfile.TemporaryDirectory() as folder:
        for kind, work in WORK.items():
            compare(kind, work, ways, options.runs, Path(folder))
        compare_unmarked(WORK["that allocate little"], options.unmarked_runs, Path(folder))
    if not has_memray:
        print("pytest-memray was left out: it is not installed")


if __name__ == "__main__":
    main(sys.argv[1:])

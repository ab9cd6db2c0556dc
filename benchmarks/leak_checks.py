"""What a leak check costs beside pytest-memray's: 300 tests of 5 ms, each way of running them in one run.

The test's work is fixed, for a tool that slows allocations down must show; it is measured out to 5 ms first. The
fastest of several runs counts, because the others shared the machine with somebody.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

TESTS: Final = 300
TEST_SECONDS: Final = 0.005
SUITE: Final = """\
import json

import pytest

{mark}

@pytest.mark.parametrize("number", range({tests}))
def test_work(number):
    for _ in range({repetitions}):
        rows = [{{"key": key, "text": str(key) * 9}} for key in range(100)]
        assert json.loads(json.dumps(rows)) == rows
"""


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
    Way("quiesce installed, unmarked"),
    Way("marker leak", "pytestmark = pytest.mark.leak"),
    Way("pytest-memray", options=("--memray",)),
    LIMIT_LEAKS,
)


def repetitions_for(seconds: float) -> int:
    """Return how often the work of a test is to be done to take so long."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < 0.5:
        rows = [{"key": key, "text": str(key) * 9} for key in range(100)]
        json.loads(json.dumps(rows))
        done += 1
    return max(1, round(done * seconds / (time.perf_counter() - start)))


def seconds_of(way: Way, repetitions: int, folder: Path) -> float:
    """Return how long pytest takes for the suite, in a process of its own."""
    suite = folder / "test_work.py"
    suite.write_text(SUITE.format(mark=way.mark, tests=TESTS, repetitions=repetitions), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *way.options, str(suite)]
    start = time.perf_counter()
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - a list
    seconds = time.perf_counter() - start
    if f"{TESTS} passed" not in done.stdout:
        raise RuntimeError(f"{way.name}: the tests did not pass:\n{done.stdout}{done.stderr}")
    return seconds


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What leak checks cost, side by side in one run.")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="runs of each, of which the fastest counts")
    runs = parser.parse_args(arguments).runs
    has_memray = importlib.util.find_spec("pytest_memray") is not None
    ways = [way for way in WAYS if has_memray or "--memray" not in way.options]
    repetitions = repetitions_for(TEST_SECONDS)
    fastest = dict.fromkeys(ways, float("inf"))
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(runs):
            for way in ways:
                fastest[way] = min(fastest[way], seconds_of(way, repetitions, Path(folder)))
    print(f"leak checks: {TESTS} tests of {TEST_SECONDS * 1000:.0f} ms, the fastest of {runs} runs\n")
    print(f"{'way':<32} {'seconds':>8} {'/ bare':>8} {'/ limit_leaks':>14}")
    for way, seconds in fastest.items():
        ratio = f"{seconds / fastest[LIMIT_LEAKS]:>14.2f}" if has_memray else f"{'':>14}"
        print(f"{way.name:<32} {seconds:>8.2f} {seconds / fastest[BARE]:>8.3f} {ratio}")
    if not has_memray:
        print("pytest-memray was left out: it is not installed")


if __name__ == "__main__":
    main(sys.argv[1:])

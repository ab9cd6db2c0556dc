"""What an installed quiesce adds to each start of pytest: fresh environments, one empty test, starts that alternate.

The environments differ in what is installed. The processor's time is compared besides the clock's, because other
programs share the machine: of each the median and the least of all starts.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass
class Way:
    """One environment and the options that pytest gets there."""

    name: str
    installed: tuple[str, ...]
    options: tuple[str, ...] = ()
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)


def make(way: Way, folder: Path) -> Path:
    """Return the Python of a fresh environment."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)  # noqa: S603 - a list
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([str(python), "-m", "pip", "install", "--quiet", *way.installed], check=True)  # noqa: S603
    return python


def start(way: Way, python: Path, folder: Path) -> None:
    """Start pytest once."""
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", *way.options, "test_it.py"]
    before, begun = os.times(), time.perf_counter()
    subprocess.run(command, cwd=folder, capture_output=True, check=True)  # noqa: S603 - a list
    way.seconds.append(time.perf_counter() - begun)
    after = os.times()
    used = after.children_user - before.children_user + after.children_system - before.children_system
    way.processor.append(used)


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="What an installed quiesce adds to each start of pytest.")
    parser.add_argument("--starts", type=int, default=20, metavar="N", help="starts of each")
    options = parser.parse_args(arguments)
    quiesce, hypothesis = str(ROOT), "hypothesis"
    ways = (
        Way("pytest", ("pytest",)),
        Way("pytest, pytest-xdist", ("pytest", "pytest-xdist")),
        Way("quiesce", (quiesce,)),
        Way("pytest, hypothesis", ("pytest", hypothesis)),
        Way("quiesce, hypothesis", (quiesce, hypothesis)),
        Way("quiesce, hypothesis, its plugin off", (quiesce, hypothesis), ("-p", "no:hypothesispytest")),
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "test_it.py").write_text("def test_it(): pass\n", encoding="utf-8")
        pythons = [make(way, folder / str(number)) for number, way in enumerate(ways)]
        for repetition in range(options.starts + 1):
            for way, python in zip(ways, pythons, strict=True):
                start(way, python, folder)
                if repetition == 0:  # it compiles and rewrites what later ones only load
                    way.seconds.clear()
                    way.processor.clear()
    print(f"starts of pytest with one empty test, in ms: {options.starts} of each, in turn\n")
    print(f"{'installed':<38} {'clock: median':>14} {'least':>7} {'processor: median':>18} {'least':>7} {'more':>6}")
    least = min(ways[0].processor)
    for way in ways:
        figures = (*_figures(way.seconds), *_figures(way.processor), (min(way.processor) - least) * 1000)
        print("{:<38} {:>14.0f} {:>7.0f} {:>18.0f} {:>7.0f} {:>+6.0f}".format(way.name, *figures))


def _figures(times: list[float]) -> tuple[float, float]:
    return statistics.median(times) * 1000, min(times) * 1000


if __name__ == "__main__":
    main(sys.argv[1:])

"""How many operations generated sequences take until they find each of 200 faulty allocators.

``python benchmarks/time_to_fault.py`` runs the sequences of ``quiesce explore`` on every faulty allocator of the tests
and on every fault of the museum, with several seeds, until something is found. A fault's time is the median over its
seeds; a seed that finds nothing counts as the limit. Faults are in two halves by a hash of their names: whoever changes
the generator looks at the half ``seen`` alone, and ``held out`` says whether the change holds for other faults too.

``--generation COMMIT`` takes the generator of another commit of this repository, and today's rules, so that the two
differ in nothing but the sequences; that commit's package runs in a process of its own (``older_generator.py``), so it
may have other modules. ``--backend`` adds faulty allocators that are not in the repository.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import io
import json
import multiprocessing
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.sequence import GeneratedSequence, Loop
from quiesce.allocators.lockstep import run_lockstep
from quiesce.allocators.reference.museum import FAULTS
from quiesce.backends.reference import faulty
from quiesce.backends.registry import load_backend
from quiesce.model.backend import Backend, Description, DeviceProfile, Flavour, Initialization
from quiesce.model.gauges import Gauge
from quiesce.model.requests import parse_request

ROOT: Final = Path(__file__).resolve().parent.parent
HARNESS: Final = "harness"
SEEDS: Final = (1, 2, 3, 4, 5)
OPERATIONS_MAX: Final = 50_000
LATE_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class Target:
    """A faulty allocator, and whether only misuse shows its fault."""

    name: str
    backend: Backend
    hostile: bool

    @property
    def half(self) -> str:
        """Which half of the faults it is in."""
        return ("seen", "held out")[hashlib.sha256(self.name.encode()).digest()[0] & 1]


@functools.cache
def targets(more: tuple[str, ...] = ()) -> tuple[Target, ...]:
    """Return all faulty allocators there are, and those of the names ``more``."""
    sys.path.append(str(ROOT))
    from tests.oracle.allocators.faulty import FAULTY
    from tests.oracle.strangers.faulty import FAULTY as STRANGERS

    return (
        *(Target(each.name, each.backend, each.hostile) for each in FAULTY),
        *(Target(each.name, each.backend, hostile=False) for each in STRANGERS),
        *(Target(each, faulty(each), hostile=False) for each in sorted(FAULTS)),
        *(Target(each, load_backend(each), hostile=False) for each in more),
    )


def unpack_package(commit: str, folder: Path) -> Path:
    """Put the package of another commit into a folder, and return where it can be imported from."""
    command = ["git", "-C", str(ROOT), "archive", commit, f"{HARNESS}/quiesce"]
    archive = subprocess.run(command, check=True, capture_output=True).stdout  # noqa: S603 - git, in this repository
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return folder / HARNESS


class OlderGenerator:
    """Generates sequences with the package of another commit, in a process that ends with this one."""

    def __init__(self, package: Path) -> None:
        words = [sys.executable, str(Path(__file__).with_name("older_generator.py")), str(package)]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # noqa: S603

    def generate(self, description: Description, seed: int, number: int, *, hostile: bool) -> GeneratedSequence:
        """Return the sequence of that number."""
        claims = {name: getattr(description, name) for name in Description.__slots__}
        claims["capabilities"] = sorted(description.capabilities)
        claims["promises"] = sorted(description.promises)
        claims["gauges"] = {gauge: sorted(sources) for gauge, sources in description.gauges.items()}
        asked = {"description": claims, "seed": seed, "number": number, "hostile": hostile}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        device = DeviceProfile(**answer["device"])
        device = replace(device, flavour=Flavour(device.flavour), initialization=Initialization(device.initialization))
        loop = answer["loop"] and Loop(
            answer["loop"][0], tuple(answer["loop"][1]), Gauge(answer["loop"][2]), answer["loop"][3]
        )
        return GeneratedSequence(device, tuple(map(parse_request, answer["requests"])), loop, hostile)


@functools.cache
def older_generator(package: Path) -> OlderGenerator:
    """Return this process's generator of another commit."""
    return OlderGenerator(package)


def time_to(target: Target, seed: int, operations_max: int, package: Path | None = None) -> int:
    """Return how many operations are performed until something is found; ``operations_max`` where nothing is."""
    generate = generate_one if package is None else older_generator(package).generate
    description = target.backend.describe()
    performed = number = 0
    while performed < operations_max:
        sequence = generate(description, seed, number, hostile=target.hostile)
        trial = run_lockstep(target.backend, sequence.device, sequence.steps(), timeline=False)
        performed += max(1, trial.operations)
        number += 1
        if trial.findings:
            break
    return min(performed, operations_max)


def _measure(work: tuple[int, tuple[str, ...], Sequence[int], int, Path | None]) -> tuple[str, str, list[int]]:
    place, more, seeds, operations_max, package = work
    target = targets(more)[place]
    return target.name, target.half, [time_to(target, seed, operations_max, package) for seed in seeds]


def summary(name: str, times: Sequence[Sequence[int]], operations_max: int) -> str:
    """Return a line about some faults: how soon they are found, and how often they are not."""
    medians = [statistics.median(each) for each in times]
    missed = sum(median >= operations_max for median in medians)
    quartiles = statistics.quantiles(medians, n=20)
    return (
        f"{name:<9} {len(medians):>4} faults   median {statistics.median(medians):>8,.0f}   "
        f"3 of 4 within {quartiles[14]:>8,.0f}   9 of 10 within {quartiles[17]:>8,.0f}   "
        f"geometric mean {statistics.geometric_mean(medians):>8,.0f}   not within {operations_max:,}: {missed}"
    )


def main() -> None:
    """Measure every fault, and print what both halves say."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS, help="seeds of the sequences (default: 1 to 5)")
    parser.add_argument("--operations", type=int, default=OPERATIONS_MAX, help="give up after so many")
    parser.add_argument("--generation", metavar="COMMIT", help="generate what another commit generates")
    parser.add_argument("--half", choices=("seen", "held out"), help="only this half of the faults")
    parser.add_argument("--backend", action="append", default=[], help="also this faulty allocator")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the time of every fault and seed to a file")
    parser.add_argument("--jobs", type=int, default=2, help="so many processes (default: 2)")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        package = unpack_package(arguments.generation, Path(folder)) if arguments.generation else None
        more = tuple(arguments.backend)
        chosen = [place for place, each in enumerate(targets(more)) if arguments.half in (None, each.half)]
        work = [(place, more, tuple(arguments.seeds), arguments.operations, package) for place in chosen]
        with multiprocessing.get_context("fork").Pool(arguments.jobs) as pool:
            measured = pool.map(_measure, work, chunksize=1)
    if arguments.json:
        document = {name: {"half": half, "operations": times} for name, half, times in measured}
        arguments.json.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    for half in dict.fromkeys(half for _, half, _ in measured):
        print(summary(half, [times for _, each, times in measured if each == half], arguments.operations))
    late = sorted(measured, key=lambda each: -statistics.median(each[2]))[:LATE_SHOWN]
    print(
        "latest:",
        *(f"{name} {statistics.median(times):,.0f}" for name, half, times in late if half == "seen"),
        sep="\n  ",
    )


if __name__ == "__main__":
    main()

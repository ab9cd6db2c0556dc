"""How many small changes of the code fail a test: mutants of the parts that judge, drawn by a seed.

    python benchmarks/mutants.py --seed 1 --count 200
    python benchmarks/mutants.py --seed 1 --count 200 --show survivors

Each change is made in a copy of the repository, and the tests that reach its line run against it until one fails. What
came of it is kept in a folder: a run that was interrupted goes on, and ``--again survivors`` tries these once more.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from mutant_reach import PACKAGE, Reach, Reached, environment, pytest_command
from mutations import Mutant, count_places, mutants_at

ROOT: Final = Path(__file__).resolve().parent.parent
AREAS: Final = (
    *(f"allocators/{name}" for name in ("oracle", "execution.py", "cases", "generation/shrinking.py")),
    *("leaks", "simulator/judge", "simulator/kernels/translation"),
)
COPIED: Final = ("harness", "tests", "cases", "fixtures", "reports", "docs", "benchmarks", "pyproject.toml")
EQUIVALENT: Final = Path(__file__).with_name("equivalent_mutants.toml")
CPU_SECONDS: Final = 60
"""What a run may take at least; beyond four times what its tests take usually, the change made one hang."""
WAITING: Final = 10
"""So many times as long as processor time may pass where nothing computes: then a test waits for ever."""
MEMORY_BYTES: Final = 6 << 30

KILLED, HUNG, SURVIVED, UNREACHED, GONE = "killed", "hung", "survived", "unreached", "gone"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a mutant. ``test`` is the one that failed; ``ran`` says how many were asked at most."""

    outcome: str
    test: str = ""
    ran: int = 0
    left_out: int = 0


def drawn(seed: int, count: int) -> list[Mutant]:
    """Return that many mutants: places are drawn evenly from all areas, and one mutation of each."""
    files = [file for area in AREAS for file in _files(ROOT / PACKAGE / area)]
    sources = {file.relative_to(ROOT / PACKAGE).as_posix(): file.read_text("utf-8") for file in files}
    places = [(path, number) for path, source in sources.items() for number in range(count_places(source))]
    chosen = random.Random(seed).sample(places, count)  # noqa: S311 - reproducible, not secret
    by_path: dict[str, list[int]] = {}
    for path, number in chosen:
        by_path.setdefault(path, []).append(number)
    made = {
        (path, number): mutant
        for path, numbers in by_path.items()
        for number, mutant in zip(numbers, mutants_at(path, sources[path], numbers, seed), strict=True)
    }
    return [made[place] for place in chosen]


def _files(area: Path) -> list[Path]:
    return sorted(area.rglob("*.py")) if area.is_dir() else [area]


class State:
    """The mutants of a seed and what came of each, a line of JSON for each fact; the last one about a mutant holds."""

    def __init__(self, file: Path, seed: int) -> None:
        self._file, self._seed = file, seed
        self.mutants: list[Mutant] = []
        self.outcomes: dict[int, Outcome] = {}
        for line in file.read_text("utf-8").splitlines() if file.exists() else ():
            self._enter(json.loads(line))

    def _enter(self, fact: dict[str, Any]) -> None:
        if "outcome" in fact:
            number = fact.pop("mutant")
            self.outcomes[number] = Outcome(**fact)
        else:
            self.mutants.append(Mutant(fact["path"], fact["line"], tuple(fact["removed"]), tuple(fact["added"])))

    def add(self, fact: dict[str, Any]) -> None:
        """Enter a fact and write it down."""
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(fact) + "\n")
        self._enter(json.loads(json.dumps(fact)))

    def draw(self, count: int) -> None:
        """Draw the mutants, unless that was done before."""
        for mutant in () if self.mutants else drawn(self._seed, count):
            self.add(asdict(mutant))


@contextlib.contextmanager
def copied() -> Iterator[Path]:
    """Copy what tests need, so that nothing here changes a file that others read."""
    with tempfile.TemporaryDirectory(prefix="quiesce-mutants-") as folder:
        copy = Path(folder)
        for name in COPIED:
            place = ROOT / name
            if place.is_dir():
                shutil.copytree(place, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
            else:
                shutil.copy2(place, copy / name)
        yield copy


def tried(mutant: Mutant, copy: Path, reach: Reach, seconds_max: float) -> Outcome:
    """Make the change, run the tests that reach it, and take it back."""
    file = copy / PACKAGE / mutant.path
    source = file.read_text("utf-8")
    lines = mutant.lines_in(source)
    if lines is None:
        return Outcome(GONE)
    reached = reach.of(mutant.path, source, lines, seconds_max)
    if not reached.tests:
        return Outcome(UNREACHED)
    kept = file.stat()
    file.write_text(mutant.apply(source, lines), "utf-8")
    try:
        return _run(copy, reached)
    finally:
        file.write_text(source, "utf-8")
        os.utime(file, ns=(kept.st_atime_ns, kept.st_mtime_ns))  # what was compiled of it before is right again


def _run(copy: Path, reached: Reached) -> Outcome:
    chosen, log = copy / "chosen.json", copy / "log.txt"
    chosen.write_text(json.dumps(reached.tests), "utf-8")
    modules = sorted({test.partition("::")[0] for test in reached.tests})
    is_seeded = any("hypothesis" in (copy / module).read_text("utf-8") for module in modules)
    command = pytest_command("-x", "-rfE", f"--chosen={chosen}", *modules, is_seeded=is_seeded)
    cpu_seconds = CPU_SECONDS + round(4 * reached.seconds)
    with log.open("w") as output:
        process = subprocess.Popen(  # noqa: S603 - our own tests
            command,
            cwd=copy,
            env={**environment(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
        try:
            status = _waited(process, WAITING * cpu_seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):  # also what tests have started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    told = log.read_text("utf-8", "replace")
    failed = next((line for line in told.splitlines() if line.startswith(("FAILED ", "ERROR "))), "")
    if status is None or status < 0:
        return Outcome(HUNG, "", len(reached.tests), reached.left_out)
    if status == 5:
        raise RuntimeError(f"no test was collected:\n{told}")
    return Outcome(SURVIVED if status == 0 else KILLED, failed, len(reached.tests), reached.left_out)


def _waited(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the status of a process; None if it had to be ended."""
    end = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() > end or _memory_bytes(process.pid) > MEMORY_BYTES:
            return None
        time.sleep(0.2)
    return process.returncode


def _memory_bytes(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except (OSError, IndexError):
        return 0


def reasons() -> dict[tuple[object, ...], str]:
    """Return why some mutants change nothing that anybody could see."""
    listed = tomllib.loads(EQUIVALENT.read_text("utf-8")).get("mutant", []) if EQUIVALENT.exists() else []
    return {
        (each["path"], tuple(each["removed"].splitlines()), tuple(each["added"].splitlines())): each["reason"]
        for each in listed
    }


def show(state: State, which: str) -> None:
    """Print the mutants with an outcome, as changes."""
    why = reasons()
    for number, outcome in sorted(state.outcomes.items()):
        mutant = state.mutants[number]
        told = "equivalent" if mutant.key in why else outcome.outcome
        if which in ("all", told) or (which == "survivors" and told in (SURVIVED, UNREACHED)):
            print(f"#{number} {told}, {outcome.ran} tests, {outcome.left_out} left out  {outcome.test}\n{mutant}\n")


def summary(state: State) -> str:
    """Return a line for each area: how many changes were made, and how many of them failed a test."""
    why = reasons()
    rows: dict[str, Counter[str]] = {area: Counter() for area in (*AREAS, "all")}
    for number, outcome in state.outcomes.items():
        mutant = state.mutants[number]
        area = next(area for area in AREAS if mutant.path.startswith(area))
        told = "equivalent" if mutant.key in why and outcome.outcome in (SURVIVED, UNREACHED) else outcome.outcome
        for row in (area, "all"):
            rows[row][told] += 1
    lines = [f"{'area':24} mutants killed hung survived unreached equivalent  killed of the others"]
    for area, counts in rows.items():
        judged = counts.total() - counts["equivalent"] - counts[GONE]
        killed = counts[KILLED] + counts[HUNG]
        numbers = [counts.total(), *(counts[each] for each in (KILLED, HUNG, SURVIVED, UNREACHED, "equivalent"))]
        row = "".join(f"{number:>{width}}" for number, width in zip(numbers, (7, 7, 5, 9, 10, 11), strict=True))
        lines.append(f"{area:24}{row}  {killed / judged if judged else 0:.1%}")
    return "\n".join(lines)


def main() -> int:
    """Draw, try what was not tried yet, and print what came of all."""
    parser = argparse.ArgumentParser(description="Measure how many small changes of the code fail a test.")
    parser.add_argument("--seed", type=int, default=0, help="which mutants are drawn (default: 0)")
    parser.add_argument("--count", type=int, default=200, help="how many (default: 200)")
    parser.add_argument("--state", type=Path, default=ROOT / ".mutants", help="where results are kept")
    parser.add_argument(
        "--seconds", type=float, default=60.0, help="what the tests of one mutant may take (default: 60)"
    )
    parser.add_argument("--again", choices=["survivors"], help="try these once more, with the tests of now")
    parser.add_argument(
        "--show", choices=["survivors", KILLED, HUNG, "equivalent", "all"], help="print changes, run none"
    )
    arguments = parser.parse_args()
    arguments.state.mkdir(parents=True, exist_ok=True)
    state = State(arguments.state / f"{arguments.seed}.jsonl", arguments.seed)
    if arguments.show:
        show(state, arguments.show)
        print(summary(state))
        return 0
    state.draw(arguments.count)
    left = [number for number in range(len(state.mutants)) if number not in state.outcomes]
    if arguments.again:
        why = reasons()
        survivors = [n for n, each in state.outcomes.items() if each.outcome in (SURVIVED, UNREACHED)]
        left += [number for number in survivors if state.mutants[number].key not in why]
    with copied() as copy:
        reach = Reach(copy, arguments.state / "reach")
        reach.collect()
        for done, number in enumerate(left):
            outcome = tried(state.mutants[number], copy, reach, arguments.seconds)
            state.add({"mutant": number, **asdict(outcome)})
            print(f"{done + 1}/{len(left)} #{number} {state.mutants[number].path} {outcome.outcome}", flush=True)
    print(summary(state))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""How well leak checks decide: a corpus of planted leaks and innocent tests, run in fresh pytest processes.

The first line of a test's docstring says what is expected of its check: ``leak: GAUGE: WORDS``, ``clean`` or
``clean-or-no-verdict``. GAUGE may be several, as ``python|c-heap``; WORDS are what the line or the keeper of the first
finding must contain, alternatives separated by `` | ``; none are needed if WORDS is empty. The corpus has two halves by
a hash of names: who tunes the checks looks at one, and reports the other.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from quiesce.leaks.quantities import kind_of_leak

CORPUS: Final = Path(__file__).parent / "leak_corpus"
HALVES: Final = ("tuning", "held-out")
QUIET: Final = ("-q", "-p", "no:cacheprovider", "-W", "ignore")
MARKED: Final = """import pytest
def pytest_collection_modifyitems(items):
    for item in items:
        item.add_marker(pytest.mark.leak)
"""
EXPECTATION: Final = re.compile(r"leak: *(?P<gauges>[\w|-]+): *(?P<words>.*)|(?P<innocent>clean(?:-or-no-verdict)?)$")
BUSY: Final = "while True: pass"

NAMED, FOUND, MISSED, UNDECIDED, CLEAN, FALSE, NOT_RUN = (
    "found with the right line or keeper",
    "found",
    "missed",
    "no verdict",
    "clean",
    "false positive",
    "not run",
)


@dataclass(frozen=True)
class Planted:
    """A test of the corpus, and what is expected of its check; an innocent has no gauges."""

    file: str
    name: str
    gauges: tuple[str, ...]
    words: tuple[str, ...]
    may_be_undecided: bool

    @property
    def half(self) -> str:
        """Which half it belongs to: the first bit of a hash of its name."""
        return HALVES[hashlib.sha256(f"{self.file}::{self.name}".encode()).digest()[0] >> 7]


@dataclass
class Seen:
    """What the check of a test said."""

    outcome: str = NOT_RUN
    expected: bool = False
    rounds: int = 0
    texts: list[str] = field(default_factory=list)


def planted_in(folder: Path) -> list[Planted]:
    """Return the tests of all files of a folder; a function without an expectation is an error."""
    found = []
    for path in sorted([*folder.glob("*.txt"), *folder.glob("test_*.py")]):
        for prefix, node in _tests_of(ast.parse(path.read_text(encoding="utf-8"))):
            said = EXPECTATION.match((ast.get_docstring(node) or "").partition("\n")[0])
            if said is None:
                raise ValueError(f"{path}:{node.lineno}: {node.name} does not say what is expected of its check")
            gauges = tuple((said["gauges"] or "").split("|")) if said["gauges"] else ()
            words = tuple(word.strip() for word in (said["words"] or "").split(" | "))
            undecided = said["innocent"] == "clean-or-no-verdict"
            found.append(Planted(path.stem.removeprefix("test_"), prefix + node.name, gauges, words, undecided))
    return found


def _tests_of(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for node in tree.body:
        below = node.body if isinstance(node, ast.ClassDef) and node.name.startswith("Test") else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        for each in below:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_"):
                yield prefix, each


def judged(planted: Planted, result: Mapping[str, Any] | None) -> Seen:
    """Compare a result of the journal with what is expected."""
    if result is None:
        return Seen()
    findings = result["findings"]
    keys = ("observed", "allocated_by", "evidence", "kept")
    texts = [" / ".join(str(finding[key]) for key in keys if finding.get(key)) for finding in findings]
    seen = Seen(rounds=result.get("rounds", 0), texts=texts or [result["reason"]] * bool(result["reason"]))
    if result["verdict"] == "inconclusive":
        seen.outcome, seen.expected = UNDECIDED, planted.may_be_undecided
    elif result["verdict"] == "passed":
        seen.outcome = MISSED if planted.gauges else CLEAN
        seen.expected = not planted.gauges
    elif not planted.gauges:
        seen.outcome = FALSE
    else:
        is_right = any(word in texts[0] for word in planted.words) if texts else False
        is_gauge = findings[0]["kind"] in map(kind_of_leak, planted.gauges) if findings else False
        seen.outcome = NAMED if is_right and (is_gauge or any(planted.words)) else FOUND
        seen.expected = seen.outcome == NAMED
    return seen


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """Keep so many processes at work beside what runs here."""
    beside = [subprocess.Popen([sys.executable, "-S", "-E", "-c", BUSY]) for _ in range(number)]  # noqa: S603 - a list
    try:
        yield
    finally:
        for process in beside:
            process.kill()
        for process in beside:
            process.wait()


def journal_of(source: Path, tests: Sequence[Planted], options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Run tests of one file in a process of their own; return its results by the name of the test."""
    with tempfile.TemporaryDirectory() as folder:
        name = f"test_{tests[0].file}.py"
        Path(folder, name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        Path(folder, "pytest.ini").write_text("[pytest]\nmarkers = leak\n", encoding="utf-8")
        if options.way == "marker":
            Path(folder, "conftest.py").write_text(MARKED, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", *QUIET, "--quiesce-report=report"]
        command += ["--quiesce-leak"] * (options.way == "all") + [f"-n{options.n}"] * bool(options.n)
        command += [*options.pytest, *(f"{name}::{test.name}" for test in tests)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - a list
        journal = Path(folder, "report", "results.jsonl")
        if not journal.exists():
            print(f"{name}: pytest wrote no report:\n{done.stdout}{done.stderr}", file=sys.stderr)
            return {}
        lines = [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()]
    results = [line for line in lines if line.get("backend") == "leak-check"]
    if not results:
        print(f"{name}: no test was checked:\n{done.stdout[-2000:]}{done.stderr[-2000:]}", file=sys.stderr)
    return {result["case"].partition("::")[2]: result for result in results}


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run what the options choose; return what is recorded."""
    chosen = [test for test in planted_in(options.folder) if options.half in ("all", test.half)]
    chosen = [test for test in chosen if re.search(options.k, f"{test.file}::{test.name}")]
    tests: dict[str, Any] = {}
    files: dict[str, Any] = {}
    record = {"half": options.half, "load": options.load, "way": options.way, "n": options.n, "files": files}
    record["tests"] = tests
    with busy(options.load):
        for file in dict.fromkeys(test.file for test in chosen):
            wanted = [test for test in chosen if test.file == file]
            paths = [options.folder / f"{file}.txt", options.folder / f"test_{file}.py"]
            before, begun = os.times(), time.monotonic()
            results = journal_of(next(path for path in paths if path.exists()), wanted, options)
            after = os.times()
            work = after.children_user - before.children_user + after.children_system - before.children_system
            files[file] = {"processor_seconds": work, "wall_seconds": time.monotonic() - begun}
            for test in wanted:
                cases = [case for case in results if case == test.name or case.startswith(f"{test.name}[")]
                for case in cases or [test.name]:
                    seen = judged(test, results.get(case))
                    tests[f"{file}::{case}"] = {"is_leak": bool(test.gauges), **asdict(seen)}
            print(f"{file}: {len(wanted)} tests, {work:.0f} s of processor time", file=sys.stderr, flush=True)
            if options.json:  # after each file, for a run that is ended early
                options.json.write_text(json.dumps(record, indent=1), encoding="utf-8")
    return record


def summary(record: Mapping[str, Any], names: bool = True) -> Iterator[str]:
    """Say in lines what was measured, and, by name, everything that is not as expected."""
    tests: Mapping[str, Mapping[str, Any]] = record["tests"]
    work = sum(file["processor_seconds"] for file in record["files"].values())
    wall = sum(file["wall_seconds"] for file in record["files"].values())
    yield f"half {record['half']}, load {record['load']}, way {record['way']}, -n {record['n']}: {len(tests)} tests"
    yield f"{work:.0f} s of processor time, {wall:.0f} s of wall time\n"
    for title, is_leak in (("planted leaks", True), ("innocents", False)):
        here = [test for test in tests.values() if test["is_leak"] == is_leak]
        counts = Counter(test["outcome"] for test in here)
        yield f"{title}: {len(here)}"
        for outcome, number in counts.most_common():
            rounds = statistics.median(test["rounds"] for test in here if test["outcome"] == outcome)
            yield f"  {outcome:<36} {number:>4} {number / len(here):>6.1%}   rounds (median): {rounds:.0f}"
    several = sum(len(test["texts"]) > 1 for test in tests.values())
    yield f"tests with several findings: {several}\n"
    for name, test in sorted(tests.items(), key=lambda item: (item[1]["outcome"], item[0])):
        if names and not test["expected"]:
            yield f"{test['outcome']}: {name} ({test['rounds']} rounds)"
            yield from (f"    {text}" for text in test["texts"])


def differences(left: Mapping[str, Any], right: Mapping[str, Any]) -> Iterator[str]:
    """Say in lines in which tests two recorded runs differ: by verdict, then by rounds."""
    both = [name for name in left["tests"] if name in right["tests"]]
    pairs = {name: (left["tests"][name], right["tests"][name]) for name in both}
    verdicts = {name: pair for name, pair in pairs.items() if pair[0]["outcome"] != pair[1]["outcome"]}
    rounds = {name: pair for name, pair in pairs.items() if pair[0]["rounds"] != pair[1]["rounds"]}
    yield f"{len(both)} tests in both, {len(verdicts)} verdicts differ, {len(rounds)} numbers of rounds differ"
    for name, (one, other) in verdicts.items():
        yield f"  {name}: {one['outcome']} ({one['rounds']} rounds) / {other['outcome']} ({other['rounds']} rounds)"
    for name, (one, other) in rounds.items():
        if name not in verdicts:
            yield f"  {name}: {one['outcome']}, {one['rounds']} / {other['rounds']} rounds"


def main(arguments: Sequence[str]) -> None:
    """Measure, or compare, and print."""
    parser = argparse.ArgumentParser(description="How well leak checks decide a corpus of planted leaks and innocents.")
    parser.add_argument("folder", nargs="?", type=Path, default=CORPUS, help="a folder of such tests")
    parser.add_argument("--half", choices=("all", *HALVES), default="tuning", help="which half of the tests")
    parser.add_argument("--load", type=int, default=0, metavar="N", help="so many busy processes run at the same time")
    parser.add_argument("-n", type=int, default=0, metavar="N", help="workers of pytest-xdist")
    parser.add_argument("--way", choices=("marker", "all"), default="marker", help="the marker, or --quiesce-leak")
    parser.add_argument("-k", default="", metavar="PATTERN", help="only tests whose FILE::NAME has this")
    parser.add_argument("--pytest", action="append", default=[], metavar="OPTION", help="one more option of pytest")
    parser.add_argument("--json", type=Path, metavar="FILE", help="record the run here")
    parser.add_argument("--compare", nargs=2, type=Path, metavar=("A", "B"), help="compare two recorded runs")
    parser.add_argument("--count-only", action="store_true", help="name no test: for the half that is held out")
    options = parser.parse_args(arguments)
    if options.compare:
        left, right = (json.loads(path.read_text(encoding="utf-8")) for path in options.compare)
        print("\n".join(differences(left, right)))
        return
    record = measure(options)
    print("\n".join(summary(record, names=not options.count_only)))


if __name__ == "__main__":
    main(sys.argv[1:])

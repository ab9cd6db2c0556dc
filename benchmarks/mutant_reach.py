"""Which tests reach a line, by what coverage.py saw, and in which order they are run against a change of it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from coverage import CoverageData

PACKAGE: Final = Path("harness/quiesce")
FOLDERS: Final = (
    *("oracle", "reference", "museum", "cases", "test_execution.py", "generation", "leaks", "traces", "kernels"),
    *("sweep", "conformance", "recording", "cli"),
    *("simulator/test_context.py", "simulator/test_endings.py", "simulator/test_kernel_races.py"),
    *("simulator/test_ledger_gauges.py", "simulator/test_user_objects.py", "simulator/test_virtual.py"),
    *("simulator/test_warps_in_step.py", "simulator/test_watching.py", "simulator/test_kernel_checks.py"),
    *("simulator/test_shared_memory_checks.py", "simulator/test_memory_races.py", "simulator/test_matrix_checks.py"),
)
"""Those tests of the default tier that use what judges in the process of pytest."""
TIER: Final = "not long"
FIRST_OF_EACH: Final = (1, 4)
"""So many tests of each function come first, and so many next: parameters often repeat what was asked."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The tests that reach some lines, in the order in which they are run, with what they take together."""

    tests: tuple[str, ...]
    seconds: float
    left_out: int = 0
    """How many more there are, beyond the limit of time."""


def environment(copy: Path) -> dict[str, str]:
    """Return the environment in which tests use the package of a copy."""
    places = [copy / "harness", Path(__file__).resolve().parent]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}


def pytest_command(*arguments: str, is_seeded: bool = True) -> list[str]:
    """Return the command of one run: all in one process, and alike each time.

    Most plugins take as long to load as ten tests. That of Hypothesis is needed where tests draw (``is_seeded``).
    """
    unused = ("cacheprovider", "memray", "benchmark", "rerunfailures", "timeout", "anyio")
    options = ["-q", "-n", "0", "-p", "mutant_tests", *(f"-pno:{name}" for name in unused), "--tb=no", "-m", TIER]
    options.append("--hypothesis-seed=0" if is_seeded else "-pno:hypothesispytest")
    return [sys.executable, "-m", "pytest", *options, *arguments]


@dataclass(frozen=True, slots=True)
class _Module:
    """What was seen of a module of tests: in which run, with which text, and how long each of its tests took."""

    run: str
    digest: str
    seconds: dict[str, float]


class Reach:
    """What each test of a copy of the repository reaches. It is kept in a folder until the test's module changes."""

    def __init__(self, copy: Path, kept: Path) -> None:
        self._copy = copy
        self._kept = kept
        self._index = kept / "index.json"
        self._modules: dict[str, _Module] = {}
        if self._index.exists():
            said = json.loads(self._index.read_text("utf-8"))
            self._modules = {name: _Module(**each) for name, each in said.items()}

    def collect(self) -> None:
        """Run the modules that have changed, those of a folder together."""
        for name in FOLDERS:
            place = self._copy / "tests" / name
            now = {each: self._digest(each) for each in sorted(self._names(place))}
            changed = [each for each, digest in now.items() if self._known_as(each) != digest]
            if changed:
                print(f"collecting what {len(changed)} modules of {name} reach", flush=True)
                run = self._run(changed)
                seconds = json.loads((self._kept / run / "seconds.json").read_text("utf-8"))
                for each in changed:
                    own = {test: took for test, took in seconds.items() if _module(test) == each}
                    self._modules[each] = _Module(run, now[each], own)
                said = {each: asdict(module) for each, module in self._modules.items()}
                self._index.write_text(json.dumps(said), "utf-8")
        self._seconds = {test: took for each in self._modules.values() for test, took in each.seconds.items()}

    def _names(self, place: Path) -> Iterator[str]:
        for file in place.rglob("test_*.py") if place.is_dir() else (place,):
            yield file.relative_to(self._copy).as_posix()

    def _known_as(self, module: str) -> str:
        return self._modules[module].digest if module in self._modules else ""

    def _digest(self, name: str) -> str:
        return hashlib.sha256((self._copy / name).read_bytes()).hexdigest()[:16]

    def _run(self, modules: list[str]) -> str:
        self._kept.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=self._kept))
        package = [each.relative_to(self._copy).as_posix() for each in (self._copy / PACKAGE).rglob("*.py")]
        (folder / "package.json").write_text(json.dumps({each: self._digest(each) for each in package}), "utf-8")
        command = pytest_command(f"--note-reach={folder}", *modules)
        quiet, own = subprocess.DEVNULL, environment(self._copy)
        subprocess.run(command, cwd=self._copy, env=own, stdout=quiet, check=False)  # noqa: S603 - our own tests
        return folder.name

    @cache  # noqa: B019 - there is one for each run of the script
    def _contexts(self, path: str) -> dict[int, set[str]]:
        """Return the tests that reach each line; as line 0 what they reach of a file that was another one then."""
        lines: dict[int, set[str]] = defaultdict(set)
        file = (PACKAGE / path).as_posix()
        for run in {each.run for each in self._modules.values()}:
            data = CoverageData(str(self._kept / run / "coverage"))
            data.read()
            then = json.loads((self._kept / run / "package.json").read_text("utf-8"))
            is_same = then.get(file) == self._digest(file)
            tests = {test for each in self._modules.values() if each.run == run for test in each.seconds}
            for line, contexts in data.contexts_by_lineno(file).items():
                lines[line if is_same else 0].update(tests.intersection(contexts))
        return lines

    def of(self, path: str, source: str, changed: range, seconds_max: float) -> Reached:
        """Return the tests of a change; of one outside of functions, those that reach anything of the file."""
        contexts = self._contexts(path)
        around, is_called = _around(ast.parse(source), changed)
        lines = {0, *around} if is_called else contexts.keys()
        tests = set[str]().union(*(contexts.get(line, ()) for line in lines))
        if not tests and is_called:  # no trace reaches a function that is itself called for each line
            tests = set[str]().union(*contexts.values())
        elif not tests:
            tests = {test for test in self._seconds if test.startswith(f"tests/{path.partition('/')[0]}/")}
        unseen = self._unseen(path).difference(tests)
        seen, others = self._ordered(tests, seconds_max), self._ordered(unseen, seconds_max)
        total = seen.seconds + others.seconds
        return Reached((*seen.tests, *others.tests), total, seen.left_out + others.left_out)

    def _unseen(self, path: str) -> set[str]:
        """Return the tests that may reach a file in processes of their own, which coverage.py does not see."""
        folder = path.partition("/")[0]
        modules = {each for each in self._modules if each.startswith(f"tests/{folder}/") and self._starts(each)}
        if folder == "kernels":  # the compiler of kernels is a process of its own
            modules |= {each for each in self._modules if each.startswith("tests/simulator/")}
        return {test for each in modules for test in self._modules[each].seconds}

    def _starts(self, module: str) -> bool:
        return "sys.executable" in (self._copy / module).read_text("utf-8")

    def _ordered(self, tests: Iterable[str], seconds_max: float) -> Reached:
        """Return the quickest of each function first, so that what differs is asked before what is alike."""
        seen: Counter[str] = Counter()
        rounds: dict[str, int] = {}
        by_time = sorted(tests, key=lambda test: (self._seconds[test], test))
        for test in by_time:
            function = test.partition("[")[0]
            rounds[test] = next(
                (n for n, count in enumerate(FIRST_OF_EACH) if seen[function] < count), len(FIRST_OF_EACH)
            )
            seen[function] += 1
        modules: Counter[tuple[int, str]] = Counter()
        for test in by_time:
            modules[rounds[test], _module(test)] += round(1000 * self._seconds[test])
        # Tests of one module stay together, for they share what takes long to make.
        ordered = sorted(by_time, key=lambda test: (rounds[test], modules[rounds[test], _module(test)], _module(test)))
        chosen: list[str] = []
        total = 0.0
        for test in ordered:
            if total + self._seconds[test] <= seconds_max:
                chosen.append(test)
                total += self._seconds[test]
        return Reached(tuple(chosen), total, len(ordered) - len(chosen))


def _module(test: str) -> str:
    return test.partition("::")[0]


def _around(tree: ast.Module, changed: range) -> tuple[set[int], bool]:
    """Return the lines of a change and of the statement around it without its body, and whether a call runs them.

    What is outside of functions runs when the module is imported, before any test.
    """
    lines, is_called = set[int](), False
    inner = _parts(tree)
    while node := next((each for each in inner if changed.start in _span(each) and changed[-1] in _span(each)), None):
        inner = _parts(node)
        begins = min((_span(each).start for each in inner), default=_span(node).stop)
        lines = {_span(node).start, *range(_span(node).start, begins)}
        is_called |= isinstance(node, ast.FunctionDef) and changed.start >= begins
    return lines.union(changed), is_called


def _parts(node: ast.AST) -> list[ast.AST]:
    kinds = ast.stmt | ast.match_case | ast.excepthandler
    return [each for each in ast.iter_child_nodes(node) if isinstance(each, kinds)]


def _span(node: Any) -> range:
    start, end = (node.pattern, node.body[-1]) if isinstance(node, ast.match_case) else (node, node)
    last: int = end.end_lineno or start.lineno
    return range(start.lineno, last + 1)

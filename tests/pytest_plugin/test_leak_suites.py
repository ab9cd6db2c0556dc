"""Whole suites of tests that leak and tests that only look like it, beside others' plugins: each gets its own verdict.

A test's docstring says what it leaks, ``gauge: words of the allocation site``; one without a docstring is innocent.
``tox -e leaks-repeat`` runs them again and again, with the rounds that users get, and the ones that take long besides.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.leaks.quantities import kind_of_leak

from .conftest import PLUGIN, WITHOUT_NEIGHBOURS

SUITES: Final = Path(__file__).parent / "leak_suites"
REPETITIONS: Final = int(os.environ.get("QUIESCE_LEAK_REPETITIONS", "0"))
ROUNDS: Final = () if REPETITIONS else ("--quiesce-leak-rounds=24",)
TIME: Final = "--quiesce-leak-seconds=120"
"""A busy machine may not change a verdict."""
NEIGHBOURS: Final = ("pytest_asyncio", "pytest_benchmark", "pytest_memray", "pytest_rerunfailures")
LEAK: Final = re.compile(r"([a-z-]+):(.*)")

LONG: Final = pytest.mark.skipif(not REPETITIONS, reason="it takes long: tox -e leaks-repeat runs it")

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the suites use what Linux has")


@dataclass(frozen=True)
class Expectation:
    """What a test leaks; ``family`` is empty where it leaks nothing."""

    family: str = ""
    site: str = ""


def expectations(source: str) -> dict[str, Expectation]:
    """Return what each test of a suite is expected to leak."""

    def walk(body: list[ast.stmt], prefix: str) -> Iterator[tuple[str, Expectation]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from walk(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith(("test", "runTest")):
                said = LEAK.match(ast.get_docstring(node) or "")
                yield prefix + node.name, Expectation(said[1], said[2].strip()) if said else Expectation()

    return dict(walk(ast.parse(source).body, ""))


def run(folder: Path, source: str, *arguments: str) -> dict[str, list[dict[str, Any]]]:
    """Run a suite in a process of its own, and return the results by the name of the test."""
    (folder / "test_leak_suite.py").write_text(source, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n", encoding="utf-8")
    installed = any(point.value == PLUGIN for point in entry_points(group="pytest11"))
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--quiesce-report=out", TIME, *ROUNDS, *arguments]
    done = subprocess.run(
        [*command, *(() if installed else ("-p", PLUGIN)), "test_leak_suite.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    results: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "case" in record:
            results.setdefault(re.sub(r"\[.*", "", record["case"].partition("::")[2]), []).append(record)
    return results


def complaint(expected: Expectation, result: dict[str, Any]) -> str:
    """Say what is wrong with a verdict, or return an empty string."""
    findings = {each["kind"]: each for each in result["findings"]}
    if not expected.family:
        unjudged = re.search("and is expected to|the test was skipped: Skipped: CPython", result["reason"])
        is_fine = result["verdict"] == "passed" or unjudged
        return "" if is_fine and not findings else f"accused: {result['verdict']}: {result['reason']} {findings}"
    found = findings.get(kind_of_leak(expected.family))
    if found is None:
        return f"missed: {result['verdict']}: {result['reason']} {findings}"
    if not re.search(r" grows? by [1-9][\d.,]* .* per round|0\.\d+ .* per round", found["observed"]):
        return f"says no amount: {found['observed']}"
    if (readings := found["readings"])["grown"][-1] <= 0 or readings["per_round"] <= 0:
        return f"its readings do not rise: {readings}"
    place = found["allocated_by"] + found["evidence"]
    return "" if expected.site in place and found["allocated_by"] else f"names another place: {place}"


def check(folder: Path, suite: str, *arguments: str) -> None:
    """Run a suite, as often as was asked, and have every verdict right."""
    source = (SUITES / suite).read_text(encoding="utf-8")
    expected = expectations(source)
    for repetition in range(max(1, REPETITIONS)):
        place = folder / str(repetition)
        place.mkdir()
        results = run(place, source, *arguments)
        assert sorted(results) == sorted(expected)
        wrong = [
            f"{name}: {said}"
            for name, all_of in results.items()
            for each in all_of
            if (said := complaint(expected[name], each))
        ]
        assert wrong == []


@pytest.mark.long
@pytest.mark.parametrize(
    "suite",
    [
        "innocent.txt",
        "innocent_host.txt",
        "leaking.txt",
        pytest.param("leaking_host.txt", marks=LONG),
        pytest.param("strangers.txt", marks=LONG),
        pytest.param("wide.txt", marks=LONG),
    ],
)
def test_verdicts(tmp_path: Path, suite: str) -> None:
    check(tmp_path, suite, *WITHOUT_NEIGHBOURS)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param((), id="loaded", marks=LONG),
        pytest.param(("--memray",), id="memray", marks=LONG),
        pytest.param(("-n", "2"), id="xdist"),
    ],
)
@pytest.mark.long
def test_verdicts_beside_other_plugins(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    for name in NEIGHBOURS:
        pytest.importorskip(name)
    check(tmp_path, "beside_plugins.txt", *arguments)


@LONG
@pytest.mark.parametrize("variable", ["PYTHONMALLOC=malloc", "MALLOC_ARENA_MAX=1", "PYTHONHASHSEED=1"])
def test_verdicts_under_other_allocators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(*variable.split("="))
    for suite in ("innocent.txt", "leaking.txt"):
        (tmp_path / suite).mkdir()
        check(tmp_path / suite, suite, *WITHOUT_NEIGHBOURS)

"""Whole suites, of tests that leak and tests that only look like it: each must get its own verdict, beside others' plugins.

A test's docstring says what it leaks, ``gauge: words of the allocation site``; one without a docstring is innocent. More
than one repetition, and the rounds that users get, are for ``tox -e leaks-repeat``.
"""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

SUITES: Final = Path(__file__).parent / "leak_suites"
REPETITIONS: Final = int(os.environ.get("QUIESCE_LEAK_REPETITIONS", "0"))
ROUNDS: Final = () if REPETITIONS else ("--quiesce-leak-rounds=24",)
NEIGHBOURS: Final = ("pytest_asyncio", "pytest_benchmark", "pytest_memray", "pytest_rerunfailures")
LEAK: Final = re.compile(r"([a-z-]+):(.*)")

linux = pytest.mark.skipif(sys.platform != "linux", reason="the suites use what Linux has")


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
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                said = LEAK.match(ast.get_docstring(node) or "")
                yield prefix + node.name, Expectation(said[1], said[2].strip()) if said else Expectation()

    return dict(walk(ast.parse(source).body, ""))


def run(folder: Path, suite: str, *arguments: str) -> dict[str, list[dict[str, Any]]]:
    """Run a suite in a process of its own, and return the results by the name of the test."""
    (folder / "leak_suite_test.py").write_text((SUITES / suite).read_text(encoding="utf-8"), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_default_fixture_loop_scope = function\n", encoding="utf-8")
    loaded = importlib.metadata_loaded() if False else ()
    command = [sys.executable, "-m", "pytest", "-q", "-W", "ignore", "--quiesce-report=out", *loaded, *ROUNDS, *arguments]
    done = subprocess.run([*command, "leak_suite_test.py"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    results: dict[str, list[dict[str, Any]]] = {}
    for line in (folder / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if "case" in record:
            results.setdefault(re.sub(r"\[.*", "", record["case"].partition("::")[2]), []).append(record)
    return results

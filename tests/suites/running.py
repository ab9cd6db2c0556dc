"""One part of a suite under ``quiesce exec``: every N-th of its tests, in a process that may die or hang."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from tests.clients.environments import FOLDER as CLIENTS
from tests.suites.suites import FOLDER, Suite

import quiesce

_STALLED_SECONDS: Final = 600
"""A test that takes longer hangs: the slowest that pass take a minute on a busy machine."""
_STARTS_MAX: Final = 20


@dataclass(frozen=True, slots=True)
class Part:
    """What became of the tests of one part, by their names, and the rules that were broken."""

    collected: int
    outcomes: dict[str, tuple[str, str]]
    """The outcome of each test, and the text of its failure."""
    rules: frozenset[str] = frozenset()


def outcomes_folder(suite: Suite) -> Path:
    """Return where the outcomes of a suite are kept, for as long as nothing in the package changes."""
    package = Path(quiesce.__file__).parent
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".c", ".h", ".inc"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    return Path(CLIENTS) / "outcomes" / f"{suite.name}-{digest}"


@dataclass(frozen=True, slots=True)
class Choice:
    """Which tests of a suite are run: every ``step``-th, from the number ``first`` on."""

    first: int
    step: int
    quick: bool
    """Whether those are left out that the suite itself marks as slow."""


def _environment(suite: Suite, python: Path, choice: Choice, outcomes: Path) -> dict[str, str]:
    (packages,) = python.parent.parent.glob("lib/python*/site-packages")
    return {
        **os.environ,
        **{name: value.replace("{packages}", str(packages)) for name, value in suite.environment},
        "CHOSEN_TESTS": f"{choice.first}:{choice.step}",
        "QUICK_TESTS": "1" if choice.quick else "",
        "OUTCOMES": str(outcomes),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(FOLDER), os.environ.get("PYTHONPATH")))),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTEST_ADDOPTS": "",
        "CUPY_CACHE_DIR": str(python.parent.parent / "cupy-cache"),
    }


def run_part(suite: Suite, python: Path, tests: Path, choice: Choice, folder: Path) -> Part:
    """Run the tests that have not been run yet, until none is left; ``folder`` keeps the outcomes."""
    folder.mkdir(parents=True, exist_ok=True)
    outcomes = folder / "outcomes"
    environment = _environment(suite, python, choice, outcomes)
    rules: set[str] = set()
    for start in range(_STARTS_MAX):
        if _is_finished(outcomes):
            break
        report = folder / f"report-{start}"
        command = [sys.executable, "-m", "quiesce.cli.main", "exec", *suite.options, "--report", str(report), "--"]
        command += [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "chosen_tests", *suite.tests]
        with (folder / "output").open("ab") as output:
            process = subprocess.Popen(command, cwd=tests, env=environment, stdout=output, stderr=subprocess.STDOUT)
        _wait(process, outcomes)
        rules |= _rules(report / "report.json")
        _note_unfinished(outcomes, folder / "output")
    return replace(read_part(outcomes), rules=frozenset(rules))


def _wait(process: subprocess.Popen[bytes], outcomes: Path) -> None:
    """Wait until the process ends; end it when no outcome comes."""
    while process.poll() is None:
        changed = outcomes.stat().st_mtime if outcomes.exists() else time.time()
        if time.time() - changed > _STALLED_SECONDS:
            process.terminate()
            time.sleep(5)
            process.kill()
        time.sleep(0.2)


def _lines(outcomes: Path) -> list[dict[str, Any]]:
    text = outcomes.read_text(encoding="utf-8") if outcomes.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _is_finished(outcomes: Path) -> bool:
    return any(line.get("finished") for line in _lines(outcomes))


def _note_unfinished(outcomes: Path, output: Path) -> None:
    """Count a test that has no outcome as one that failed: the process ended or hung in it."""
    lines = _lines(outcomes)
    ended = {line["name"] for line in lines if "name" in line}
    begun = [line["begun"] for line in lines if "begun" in line and line["begun"] not in ended]
    assert lines, f"no test was begun:\n{output.read_text(encoding='utf-8', errors='replace')[-4000:]}"
    with outcomes.open("a", encoding="utf-8") as opened:
        for name in begun:
            text = "the process ended in this test, or the test took too long"
            opened.write(json.dumps({"name": name, "outcome": "failed", "text": text}) + "\n")


def _rules(report: Path) -> set[str]:
    results = json.loads(report.read_text(encoding="utf-8"))["results"] if report.exists() else []
    return {finding["rule"] for result in results for finding in result["findings"]}


def read_part(outcomes: Path) -> Part:
    """Return what is written down so far."""
    lines = _lines(outcomes)
    found: dict[str, tuple[str, str]] = {}
    for line in lines:
        if "name" in line and found.get(line["name"], ("",))[0] != "failed":
            found[line["name"]] = (line["outcome"], line["text"])
    return Part(max((line.get("collected", 0) for line in lines), default=0), found)

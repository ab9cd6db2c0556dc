"""One part of a suite under ``quiesce exec``: every N-th of its tests, in a process that may die or hang."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.clients.environments import FOLDER as CLIENTS
from tests.suites.choices import Choice
from tests.suites.suites import FOLDER, Found, Suite

import quiesce

_STALLED_SECONDS: Final = 600
"""A test that takes longer hangs: the slowest that pass take a minute on a busy machine."""
_JUDGING_SECONDS: Final = 120
_STARTS_MAX: Final = 20
_OUTPUT_MAX: Final = 1500


@dataclass(frozen=True, slots=True)
class Part:
    """What became of the tests of one part, by their names, and what quiesce found."""

    collected: int
    outcomes: dict[str, tuple[str, str]]
    """The outcome of each test, and the text of its failure."""
    found: tuple[Found, ...] = ()


def outcomes_folder(suite: Suite) -> Path:
    """Return where the outcomes of a suite are kept, for as long as nothing in the package changes."""
    package = Path(quiesce.__file__).parent
    files = sorted(path for path in package.rglob("*") if path.suffix in (".py", ".c", ".h", ".inc"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]
    return Path(CLIENTS) / "outcomes" / f"{suite.name}-{digest}"


def _environment(suite: Suite, python: Path, choice: Choice, outcomes: Path) -> dict[str, str]:
    packages = next(python.parent.parent.glob("lib/python*/site-packages"), "")
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
    for start in range(_STARTS_MAX):
        if _is_finished(outcomes):
            break
        report = folder / f"report-{start}"
        command = [sys.executable, "-m", "quiesce.cli.main", "exec", *suite.options, "--report", str(report), "--"]
        command += [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "chosen_tests", *suite.tests]
        with (folder / "output").open("ab") as output:
            process = subprocess.Popen(command, cwd=tests, env=environment, stdout=output, stderr=subprocess.STDOUT)
        end = _wait(process, outcomes)
        _note(outcomes, ({"found": each.rule, "text": each.text} for each in _findings(report / "report.json")))
        _note_unfinished(outcomes, folder / "output", end)
    return read_part(outcomes)


def _wait(process: subprocess.Popen[bytes], outcomes: Path) -> str:
    """Wait until the process ends, and end it when no outcome comes; return what happened, for a test that has none."""
    while process.poll() is None:
        changed = outcomes.stat().st_mtime if outcomes.exists() else time.time()
        if time.time() - changed > _STALLED_SECONDS:
            process.terminate()  # quiesce ends the program, and judges what it did
            try:
                process.wait(_JUDGING_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
            return f"the test was ended: it had no outcome after {_STALLED_SECONDS} seconds"
        time.sleep(0.2)
    return f"the process ended in this test, with status {process.returncode}"


def _lines(outcomes: Path) -> list[dict[str, Any]]:
    text = outcomes.read_text(encoding="utf-8") if outcomes.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def _is_finished(outcomes: Path) -> bool:
    return any(line.get("finished") for line in _lines(outcomes))


def _note(outcomes: Path, lines: Iterable[Mapping[str, str]]) -> None:
    with outcomes.open("a", encoding="utf-8") as opened:
        opened.writelines(json.dumps(line) + "\n" for line in lines)


def _note_unfinished(outcomes: Path, output: Path, end: str) -> None:
    """Count a test that has no outcome as one that failed. The output names a kernel that runs for long."""
    lines = _lines(outcomes)
    ended = {line["name"] for line in lines if "name" in line}
    begun = [line["begun"] for line in lines if "begun" in line and line["begun"] not in ended]
    said = output.read_text(encoding="utf-8", errors="replace")[-_OUTPUT_MAX:]
    assert begun or ended, f"no test was begun:\n{said}"
    _note(outcomes, ({"name": name, "outcome": "failed", "text": f"{said}\n{end}"} for name in begun))


def _findings(report: Path) -> Iterator[Found]:
    results = json.loads(report.read_text(encoding="utf-8"))["results"] if report.exists() else []
    for finding in (finding for result in results for finding in result["findings"]):
        calls = [f"{site['role']} {site['call']}{_place(site['frames'])}" for site in finding["call_sites"]]
        yield Found(finding["rule"], "\n  ".join((finding["observed"], *calls)))


def _place(frames: Sequence[Mapping[str, Any]]) -> str:
    """Return where in a test a call came from, or where in a package where no test did."""
    own = [frame for frame in frames if not frame["folded"]]
    tests = [frame for frame in own if "test_" in frame["function"]]
    places = (f" at {frame['file']}:{frame['line']} in {frame['function']}" for frame in (*tests, *own))
    return next(places, "")


def read_part(outcomes: Path) -> Part:
    """Return what is written down so far."""
    lines = _lines(outcomes)
    became: dict[str, tuple[str, str]] = {}
    for line in lines:
        if "name" in line and became.get(line["name"], ("",))[0] != "failed":
            became[line["name"]] = (line["outcome"], line["text"])
    broken = dict.fromkeys(Found(line["found"], line["text"]) for line in lines if "found" in line)
    return Part(max((line.get("collected", 0) for line in lines), default=0), became, tuple(broken))

"""One sample under ``quiesce exec``, which a watchdog ends; what came of it, and the lines that explain it."""

from __future__ import annotations

import contextlib
import enum
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from quiesce.cli.endings import ExitCode

_JUDGING_SECONDS: Final = 60
_LAST_LINES: Final = 5
_REFUSALS: Final = ("not simulated", "could not be executed", "machine code only")
"""What quiesce says of functions and kernels that it does not have."""
_OWN: Final = "quiesce: "
_FAILED: Final = "the program ended with "
_WAIVED: Final = f"{_FAILED}status 2"
"""A sample that finds its device unfit ends so (``EXIT_WAIVED`` in the samples' ``helper_string.h``)."""


class Outcome(enum.StrEnum):
    """What came of a sample, as the table says it."""

    PASSES = "passes"
    FINDINGS = "findings"
    REFUSED = "refused"
    UNENDED = "did not end"
    UNJUDGED = "not judged whole"
    WAIVED = "waived"
    FAILS = "fails"
    UNBUILT = "did not build"
    OUT_OF_SCOPE = "out of scope"


@dataclass(frozen=True, slots=True)
class Came:
    """What came of a sample, and why."""

    sample: str
    outcome: Outcome
    why: tuple[str, ...] = ()
    seconds: float = 0.0


def run(sample: str, program: Path, folder: Path, seconds: int) -> Came:
    """Run a sample's program where it was built, with two devices; ``folder`` keeps its output and its report."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    report, output = folder / "report", folder / "output.txt"
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:13", "--devices", "2"]
    command += ["--report", str(report), "--", f"./{program.name}"]
    began = time.monotonic()
    with output.open("wb") as opened:
        options: dict[str, Any] = {"stdout": opened, "stderr": subprocess.STDOUT, "stdin": subprocess.DEVNULL}
        environment = {**os.environ, "NO_COLOR": "1"}
        process = subprocess.Popen(command, cwd=program.parent, env=environment, start_new_session=True, **options)
        try:
            has_ended = _wait(process, seconds)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
    taken = round(time.monotonic() - began, 1)
    written = report / "report.json"
    found = json.loads(written.read_text(encoding="utf-8")) if written.exists() else {}
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    outcome, why = classified(process.poll(), found.get("results", ()), lines, seconds if not has_ended else 0)
    return Came(sample, outcome, tuple(why), taken)


def _wait(process: subprocess.Popen[bytes], seconds: int) -> bool:
    """Wait for its end; say whether it came by itself. quiesce ends the program, and judges what it did."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_JUDGING_SECONDS)
        return False
    return True


def classified(
    code: int | None, results: Sequence[Mapping[str, Any]], lines: Sequence[str], ended_after: int = 0
) -> tuple[Outcome, list[str]]:
    """Return the outcome of a run with this exit code, and what explains it; ``ended_after`` seconds, 0 if it ended."""
    own = [line.removeprefix(_OWN) for line in lines if line.startswith(_OWN) and "calls recorded on" not in line]
    slow = [line for line in own if line.startswith("kernel '")][-1:]
    unended = [f"did not end in {ended_after} s", *slow] if ended_after else []
    found = [f"{each['rule']}: {each['observed']}" for result in results for each in result["findings"]]
    if found:
        return Outcome.FINDINGS, [*dict.fromkeys(found), *unended]
    reasons = [result["reason"] for result in results if result["reason"]]
    refused = [each for each in dict.fromkeys([*reasons, *own]) if any(map(each.__contains__, _REFUSALS))]
    if code == ExitCode.NOTHING_FOUND:
        return Outcome.PASSES, []
    if refused:
        return Outcome.REFUSED, [*refused, *unended]
    if unended:
        return Outcome.UNENDED, unended
    said = [line for line in lines if line and not line.startswith(_OWN)]
    if any(_WAIVED in each for each in reasons):
        return Outcome.WAIVED, _about_the_end(said)
    failed = any(_FAILED in each for each in reasons) or code != ExitCode.COULD_NOT_RUN
    return (Outcome.FAILS if failed else Outcome.UNJUDGED), [*reasons, *(_about_the_end(said) if failed else ())]


def _about_the_end(lines: Sequence[str]) -> list[str]:
    """Return what the program itself said last, before quiesce's own lines."""
    end = next((number for number, line in enumerate(lines) if "on 'cuda:" in line), len(lines))
    return list(lines[max(0, end - _LAST_LINES) : end])

"""Ask a device the questions of ``device_answers.cu``: each in a process of its own, the answers as one JSON file.

On a machine with a GPU and the CUDA Toolkit, from the root of the repository::

    nvcc -std=c++17 -arch=sm_80 -o answers tests/simulator/device_answers*.cu
    python -m tests.simulator.device_answers ./answers tests/simulator/device_answers.json

``test_device_answers.py`` holds the simulated runtime to the file.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeAlias

FACTS: Final = "facts"
PATIENCE_SECONDS: Final = 60.0

Answers: TypeAlias = dict[str, list[list[object]]]
"""By question: for each call its text, its status, and of the runtime the error that was left and what stays of it."""


def questions(program: Path) -> list[str]:
    """Return the names of all questions, in order."""
    listed = subprocess.run([program], capture_output=True, text=True, check=True)
    return sorted(listed.stdout.split())


def ask(program: Path, question: str) -> list[list[object]]:
    """Return what is answered to a question; how the process ended is the last answer if that is not as usual."""
    try:
        run = subprocess.run([program, question], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    except subprocess.TimeoutExpired as late:
        return [*_lines(late.stdout), ["the end", "no answer"]]
    ended = [["the end", run.returncode]] if run.returncode else []
    return [*_lines(run.stdout), *ended]


def _lines(text: str | bytes | None) -> list[list[object]]:
    told = text.decode() if isinstance(text, bytes) else text or ""
    return [json.loads(line) for line in told.splitlines() if line.startswith("[")]


def ask_all(program: Path, jobs: int = 1) -> Answers:
    """Return the answers to all questions."""
    names = questions(program)
    with ThreadPoolExecutor(jobs) as threads:
        return dict(zip(names, threads.map(lambda name: ask(program, name), names), strict=True))


def written(answers: Answers) -> str:
    """Return the text of the file: a line for each answer."""
    blocks = []
    for name, answered in answers.items():
        lines = ",\n".join(f"    {json.dumps(each)}" for each in answered)
        blocks.append(f"  {json.dumps(name)}: [\n{lines}\n  ]")
    return "{\n" + ",\n".join(blocks) + "\n}\n"


if __name__ == "__main__":
    Path(sys.argv[2]).write_text(written(ask_all(Path(sys.argv[1]), jobs=8)), encoding="utf-8")

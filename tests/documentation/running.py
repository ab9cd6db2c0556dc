"""Runs the commands of a page in a folder of their own, and compares what they print with what the page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from tests.documentation.pages import ROOT, Command, ShownFile, shown
from tests.documentation.unrun import reason_not_to_run, words_to_shorten

STAND_INS: Final = Path(__file__).resolve().parent / "stand_ins"
"""Programs and tests that stand for the reader's own."""
VALGRIND: Final = ROOT / "tests" / "traces" / "reports" / "leaky.valgrind.xml"
FOLDERS: Final = ("benchmarks", "cases", "fixtures")
"""Folders of a checkout that commands may name."""
SECONDS_MAX: Final = 120
ELLIPSIS: Final = "…"
"""It stands for what a page leaves out: lines, or a part of a line that differs from run to run."""

_EXIT_CODE: Final = re.compile(r"exit code (\d+)")
_LEFT_OUT: Final = ("PYTEST", "QUIESCE_", "TOX_", "COV_", "GITHUB_", "CI", "FORCE_COLOR", "NO_COLOR", "COLUMNS")


class Difference(Exception):
    """A command did not do what its page says."""

    def __init__(self, place: str, command: str, problem: str) -> None:
        how = "docs/contributing/documentation.md says how the commands of a page are run"
        super().__init__(f"{place}: $ {command}\n{problem}\n{how}")


def run_page(
    name: str,
    text: str,
    folder: Path,
    installed: Path | None = None,
    reason_not_to_run: Callable[[str], str | None] = reason_not_to_run,
) -> None:
    """Do in a folder what a page shows, in its order; raise a difference at the first that is not so."""
    _prepare(text, folder)
    temporary = folder / ".temporary"  # files of others there would cost a leak check some rounds
    temporary.mkdir(exist_ok=True)
    environment = {**_environment(installed), "TMPDIR": str(temporary)}
    for item in shown(text):
        if isinstance(item, ShownFile):
            _write(name, item, folder)
        elif reason_not_to_run(item.text) is None:
            _run(name, item, folder, environment)


def _write(page: str, file: ShownFile, folder: Path) -> None:
    """Write a file that a page shows; what it shows of a file of the repository has to stand there."""
    if file.name.startswith(tuple(f"{each}/" for each in FOLDERS)):
        own = ROOT / file.name
        there = iter(own.read_text(encoding="utf-8").splitlines() if own.exists() else ())
        if not all(line in there for line in file.text.splitlines() if line.strip()):
            raise Difference(f"{page}:{file.line}", f"cat {file.name}", "these lines are not in that file")
        return
    target = folder / file.name
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(file.text, encoding="utf-8")


def _prepare(text: str, folder: Path) -> None:
    """Put what commands may name into a folder."""
    shutil.copytree(STAND_INS, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(VALGRIND, folder / "valgrind.xml")
    spoken = " ".join(item.text for item in shown(text) if isinstance(item, Command))
    in_a_clone = "git clone " in spoken
    if in_a_clone:
        shutil.copy(ROOT / "pyproject.toml", folder)
    for each in FOLDERS:
        if in_a_clone or re.search(rf"(?<![\w/.-]){each}\b", spoken):
            (folder / each).symlink_to(ROOT / each, target_is_directory=True)


def _environment(installed: Path | None) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_LEFT_OUT)}
    path = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", "")))
    own_tests_alone = f"-p no:cacheprovider -o 'norecursedirs={' '.join(FOLDERS)}'"
    no_traces = {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_ADDOPTS": own_tests_alone}
    packages = os.pathsep.join(filter(None, (str(installed or ""), kept.get("PYTHONPATH", ""))))
    return {**kept, **no_traces, "PATH": path, "PYTHONPATH": packages}


def _run(page: str, command: Command, folder: Path, environment: dict[str, str]) -> None:
    words = ["bash", "-c", shortened(command)]
    place = f"{page}:{command.line}"
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=SECONDS_MAX,
        )
    except subprocess.TimeoutExpired as late:
        printed = (late.stdout or b"").decode(errors="replace")
        raise Difference(place, command.text, f"did not end within {SECONDS_MAX} s; it printed\n{printed}") from None
    allowed = permitted(command)
    if done.returncode not in allowed:
        wanted = " or ".join(map(str, sorted(allowed)))
        problem = f"ended with {done.returncode} where {wanted} was expected; it printed\n{_indented(done.stdout)}"
        raise Difference(place, command.text, problem)
    if command.output and (missing := first_missing(command.output, done.stdout, folder)):
        problem = f"expected to see\n{_indented(missing)}\nin what it printed:\n{_indented(done.stdout)}"
        raise Difference(place, command.text, problem)


def shortened(command: Command) -> str:
    """Return a command with less to do, where that changes nothing of what is compared."""
    compared = command.output or _EXIT_CODE.search(command.comment)
    return command.text if compared else f"{command.text}{words_to_shorten(command.text)}"


def permitted(command: Command) -> frozenset[int]:
    """Return how a command may end: 0; as its comment says; or 0 or 1 where its output is compared."""
    said = _EXIT_CODE.search(command.comment)
    if said:
        return frozenset({int(said[1])})
    return frozenset({0, 1} if command.output else {0})


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


def _comparable(text: str, folder: Path) -> list[str]:
    """Return lines with the names of files as a page shows them."""
    return [line.replace(f"{folder}/", "").rstrip() for line in text.splitlines()]


def _pattern(line: str) -> re.Pattern[str]:
    """Return what a line that a page shows accepts."""
    return re.compile(".*".join(map(re.escape, line.rstrip().split(ELLIPSIS))))


def first_missing(expected: tuple[str, ...], printed: str, folder: Path) -> str | None:
    """Return the first lines that a page shows in one piece and that were not printed so, in this order."""
    lines = _comparable(printed, folder)
    begin = 0
    for piece in _pieces(expected):
        wanted = [_pattern(line) for line in piece]
        starts = range(begin, len(lines) - len(wanted) + 1)
        found = (n for n in starts if all(map(re.Pattern.fullmatch, wanted, lines[n : n + len(wanted)])))
        place = next(found, None)
        if place is None:
            return "\n".join(piece)
        begin = place + len(wanted)
    return None


def _pieces(lines: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield what stands between lines that say that something was left out."""
    for left_out, piece in groupby(lines, key=lambda line: line.strip() in (ELLIPSIS, "...")):
        if not left_out:
            yield tuple(piece)

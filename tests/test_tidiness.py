"""What every file of the repository keeps to: names, lengths, docstrings, and no trace of anybody's machine."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parent.parent
PLACES: Final = ("harness", "tests", "cases", "fixtures", "docs", "reports", "benchmarks", ".github", ".ci")
TEXTS: Final = frozenset(
    {".py", ".md", ".case", ".toml", ".ini", ".yml", ".json", ".c", ".h", ".inc", ".cpp", ".rs", ""}
)

MODULE_LINES_MAX: Final = 500
FUNCTION_LINES_MAX: Final = 50
COLUMNS_MAX: Final = 120
BANNED_NAMES: Final = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "misc"})

LONG_MODULES: Final = {
    "harness/quiesce/simulator/native/kernels/memory_races.c": "one detector, whose parts share words",
    "harness/quiesce/simulator/native/surfaces/driver_functions.inc": "one table, with a row for each function",
    "harness/quiesce/simulator/native/surfaces/hip_functions.inc": "one table, with a row for each function",
    "harness/quiesce/simulator/runtime/ledger.py": "one layout, with the enumerations of the C sources, and its reader",
    "tests/backends/test_opencl.py": "one backend's behaviours, which share its contexts",
    "tests/backends/test_command.py": "one backend's behaviours, which share its driver programs",
    "tests/test_execution.py": "one surface: every way a result comes about, over one set of scripted backends",
}
LONG_FUNCTIONS: Final = {
    "harness/quiesce/model/requests.py:format_request": "one arm for each operation of the closed union",
}

# Built from pieces, so that this file does not accuse itself.
MACHINE_PATH: Final = re.compile(r"(?<![\w.~}])(?:/(?:work|root|home/\w+|Users/\w+|tmp/\w+)(?:/|\b)|[A-Z]:\\\\?Users)")


def _files() -> Iterator[Path]:
    for path in sorted(ROOT.iterdir()):
        if path.is_file() and path.suffix in TEXTS and path.name not in (".git", "LICENSE"):
            yield path
    for place in PLACES:
        for path in sorted((ROOT / place).rglob("*")):
            parts = path.relative_to(ROOT).parts
            generated = "__pycache__" in parts or parts[:2] == ("reports", "out")
            if path.is_file() and path.suffix in TEXTS and not generated:
                yield path


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


FILES: Final = tuple(_files())
SOURCES: Final = tuple(path for path in FILES if path.suffix == ".py")
C_SOURCES: Final = tuple(path for path in FILES if path.suffix in {".c", ".h", ".inc"})
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def test_the_files_are_found() -> None:
    names = {_name(path) for path in FILES}
    assert {
        "pyproject.toml",
        "harness/quiesce/model/operations.py",
        "tests/test_tidiness.py",
        "cases/README.md",
    } <= names


def test_modules_are_named_after_what_they_are() -> None:
    assert [_name(path) for path in SOURCES if path.stem in BANNED_NAMES] == []


def test_modules_are_short_or_say_why_not() -> None:
    lengths = {_name(path): len(_text(path).splitlines()) for path in (*SOURCES, *C_SOURCES)}
    long = {name: length for name, length in lengths.items() if length > MODULE_LINES_MAX}
    assert {name: length for name, length in long.items() if name not in LONG_MODULES} == {}
    assert sorted(LONG_MODULES.keys() - long.keys()) == [], "these are short enough now: remove their entries"


def test_functions_are_short_or_say_why_not() -> None:
    long = {
        f"{_name(path)}:{node.name}": node.end_lineno - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(_text(path)))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None
        if node.end_lineno - node.lineno + 1 > FUNCTION_LINES_MAX
    }
    assert {name: length for name, length in long.items() if name not in LONG_FUNCTIONS} == {}
    assert sorted(LONG_FUNCTIONS.keys() - long.keys()) == [], "these are short enough now: remove their entries"


def _public(node: ast.Module | Definition) -> Iterator[Definition]:
    for child in node.body:
        if isinstance(child, Definition) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from _public(child)


@pytest.mark.parametrize("place", ["harness", "benchmarks"])
def test_everything_public_says_what_it_is(place: str) -> None:
    complaints = []
    for path in SOURCES:
        if path.is_relative_to(ROOT / place):
            tree = ast.parse(_text(path))
            nodes = [(1, "the module", ast.get_docstring(tree))]
            nodes += [(node.lineno, f"'{node.name}'", ast.get_docstring(node)) for node in _public(tree)]
            for line, what, docstring in nodes:
                if not docstring or not docstring.split("\n\n")[0].rstrip().endswith((".", ":", "``")):
                    complaints.append(f"{_name(path)}:{line}: {what} needs a docstring that begins with one sentence")
    assert not complaints, "\n".join(complaints)


def test_lines_fit() -> None:
    complaints = [
        f"{_name(path)}:{number}: {len(line)} columns"
        for path in FILES
        if path.suffix not in (".md", ".json")  # prose and data are wrapped by whoever shows them
        for number, line in enumerate(_text(path).splitlines(), 1)
        if len(line) > COLUMNS_MAX
    ]
    assert not complaints, "\n".join(complaints)


def test_no_file_names_the_machine_it_was_written_on() -> None:
    complaints = [
        f"{_name(path)}:{number}: {match[0]}"
        for path in FILES
        for number, line in enumerate(_text(path).splitlines(), 1)
        if (match := MACHINE_PATH.search(line))
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("path", ["/".join(("", "home", "me", "x")), "/".join(("", "work", "x")), "C:\\" + "Users\\me"])
def test_a_path_of_a_machine_is_seen(path: str) -> None:
    assert MACHINE_PATH.search(f"open('{path}')")


@pytest.mark.parametrize("text", ["https://example.org/home/x", "cases/work/x", "~/work/x", "{folder}/work/x"])
def test_other_paths_are_let_be(text: str) -> None:
    assert MACHINE_PATH.search(text) is None

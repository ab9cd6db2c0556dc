"""Files that tests leave in the temporary folder: told with the line that makes them, and no test fails for them."""

from __future__ import annotations

import fnmatch
import os

import pytest

from .conftest import Project

pytestmark = pytest.mark.skipif(os.name != "posix", reason="paths are those of POSIX")

QUICKLY = ("--quiesce-leak", "--quiesce-leak-rounds=12", "--quiesce-leak-seconds=120", "-p", "no:cacheprovider")

SUITE = """
import os, pathlib, subprocess, tempfile, pytest

KEPT = []

@pytest.fixture(scope="module")
def folder(): return tempfile.mkdtemp()

def test_file():
    number, _ = tempfile.mkstemp(prefix="data-", suffix=".csv")
    os.close(number)

def test_folders():
    tempfile.mkdtemp()
    tempfile.mkdtemp(prefix="made-")

def test_renamed():
    with tempfile.NamedTemporaryFile(prefix="new-") as file:
        os.rename(file.name, file.name.replace("new-", "old-"))
        pathlib.Path(file.name).touch()

def test_leaks():
    KEPT.append(bytes(8000))
    tempfile.mkdtemp(prefix="kept-")

def test_removed():
    with tempfile.NamedTemporaryFile(): pass
    with tempfile.TemporaryDirectory(): pass

def test_pytests_own(tmp_path): (tmp_path / "file").touch()

def test_wider(folder): pass

def test_one_name(): pathlib.Path(tempfile.gettempdir(), "one").write_text("")

def test_another_process():
    subprocess.run(["mktemp", "-p", tempfile.gettempdir()], capture_output=True, check=True)

def test_one_kept():
    with tempfile.NamedTemporaryFile(delete=not KEPT) as file: KEPT.clear()

def test_read():
    with open(next(pathlib.Path(tempfile.gettempdir()).glob("data-*"))): pass
"""


@pytest.mark.long
def test_files_are_told_that_each_round_leaves(project: Project) -> None:
    project.write("test_it.py", SUITE)
    result = project.run_apart("test_it.py", *QUICKLY, "--basetemp=own", "--quiesce-report=out")
    result.assert_outcomes(passed=10, failed=1)
    left = "a round in the temporary folder, such as"
    result.stdout.fnmatch_lines([f"    at the same time, it leaves 1 file {left} kept-*, at test_it.py:24"])
    said = [line for line in result.stdout.lines if " leaves " in line and line.startswith("test_it.py")]
    for line, names, count, place in zip(
        said,
        ("another_process", "file", "folders", "renamed"),
        ("1 file", "1 file", "2 files", "1 file"),
        (
            "*, at test_it.py:37",
            "data-*.csv, at test_it.py:10",
            "made-*, at test_it.py:14, test_it.py:15",
            "old-*, at test_it.py:20",
        ),
        strict=True,
    ):
        assert fnmatch.fnmatch(line, f"test_it.py::test_{names} leaves {count} {left} {place}"), line


def test_a_check_of_some_gauges_tells_of_no_files(project: Project) -> None:
    project.write("test_it.py", "import tempfile\ndef test_folder(): tempfile.mkdtemp()\n")
    result = project.run_apart("test_it.py", *QUICKLY, "--quiesce-leak-gauges=threads")
    result.stdout.no_fnmatch_line("*temporary folder*")
    project.run_apart("test_it.py", *QUICKLY).stdout.fnmatch_lines(
        ["*leaves 1 file a round in the temporary folder, such as tmp*, at test_it.py:2"]
    )

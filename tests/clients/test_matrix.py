"""Each stock client: its correct program passes on the simulated device, and the planted fault is found at its line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.clients.environments import FOLDER, NotInstallable, python_of
from tests.clients.rows import FIRST_USE, MARK, Row, marked_lines

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not FOLDER, reason="it downloads wheels: tox -e clients"),
]


def _environment(row: Row) -> Path:
    try:
        return python_of(row)
    except NotInstallable as error:
        pytest.skip(f"{row.requirements[0]} can't be installed: {error}")


@pytest.fixture
def python(row: Row) -> Path:
    return _environment(row)


def _run(row: Row, program: Path, python: Path, folder: Path) -> tuple[int, str, list[Any]]:
    """Run a program in the row's environment, and return the exit code, the output and the report's results."""
    chosen = {"--flavour": row.flavour, "--kernels": row.kernels}
    options = [word for option, value in chosen.items() if value for word in (option, value)]
    options += ["--no-pools"] if row.pools == "off" else []
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", *options, "--report", str(folder / "report"), "--"]
    done = subprocess.run(
        [*command, str(python), str(program)],
        cwd=folder,
        env={**os.environ, **row.environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,  # kernels are compiled when they are launched first
    )
    report = folder / "report" / "report.json"
    results = json.loads(report.read_text(encoding="utf-8"))["results"] if report.exists() else []
    return done.returncode, done.stdout + done.stderr, results


def test_a_correct_program_passes_on_the_device(row: Row, python: Path, tmp_path: Path) -> None:
    program = row.program("correct")
    if program is None:
        pytest.skip("only a program with a planted fault was given")
    code, output, results = _run(row, program, python, tmp_path)
    if row.fails:
        assert (code, row.fails in output) == (2, True), output
        return
    assert code == (1 if row.finds else 0), output
    assert {result["verdict"] for result in results} == {"failed" if row.finds else "passed"}
    assert _rules(results) == set(filter(None, [row.finds])), output
    assert max(result["operations"] for result in results) > 2, "nothing was done on the device"


def test_a_planted_fault_is_found_at_its_line(row: Row, python: Path, tmp_path: Path) -> None:
    program = row.program("faulty")
    if program is None:
        pytest.skip("only a correct program was given")
    if row.fails:
        pytest.skip(f"it does not run: {row.reason}")
    code, output, results = _run(row, program, python, tmp_path)
    assert code == 1, output
    assert not row.rule or _rules(results) == set(filter(None, [row.rule, row.finds])), output
    wanted = set(marked_lines(program, MARK, FIRST_USE))
    found = [_lines_of(finding, program) for result in results for finding in result["findings"]]
    assert any(wanted <= lines for lines in found), output


def test_the_same_program_passes_in_the_release_that_corrects_it(row: Row, tmp_path: Path) -> None:
    program = row.program("correct" if row.fails else "faulty")
    if program is None or not row.corrected:
        pytest.skip("no release is named that corrects what the program shows")
    corrected = row.in_correction
    code, output, results = _run(corrected, program, _environment(corrected), tmp_path)
    assert code == 0, output
    assert [result["verdict"] for result in results] == ["passed"]


def _rules(results: list[Any]) -> set[str]:
    return {finding["rule"] for result in results for finding in result["findings"]}


def _lines_of(finding: Any, program: Path) -> set[int]:
    """Return the lines of a program that a finding names."""
    frames = [frame for site in finding["call_sites"] for frame in site["frames"]]
    return {frame["line"] for frame in frames if Path(frame["file"]).name == program.name}


def test_a_pool_hides_the_fault_and_says_so(row: Row, python: Path, tmp_path: Path) -> None:
    program = row.program("faulty")
    if program is None or row.pools != "off":
        pytest.skip("its fault is found with the pools of packages")
    code, output, results = _run(replace(row, pools=""), program, python, tmp_path)
    assert code == 0, output
    assert [result["findings"] for result in results] == [[]]
    assert "run again with --no-pools" in output

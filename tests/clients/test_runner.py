"""Packages that no row is about, rows that fail and rows that can't be installed; with a package that is made here."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest
from tests.clients import environments, test_matrix
from tests.clients.rows import Row

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

pytestmark = pytest.mark.long

ROOT: Final = Path(__file__).resolve().parent.parent.parent
PACKAGE: Final = """
import ctypes

runtime = ctypes.CDLL("libcudart.so.12")


def take():
    block = ctypes.c_void_p()
    assert runtime.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4096)) == 0
    return block


def give_back(block):
    assert runtime.cudaFree(block) == 0
"""
CORRECT: Final = "import tinyclient\n\nfor _ in range(2):\n    tinyclient.give_back(tinyclient.take())\n"
FAULTY: Final = "import tinyclient\n\ntinyclient.take()  # the fault\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A correct program and, below other names, its variants; packages are those of a folder of this test."""
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    with zipfile.ZipFile(tmp_path / "tinyclient-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("tinyclient.py", PACKAGE)
        wheel.writestr("tinyclient-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinyclient\nVersion: 1.0\n")
        wheel.writestr(
            "tinyclient-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tinyclient-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("QUIESCE_CLIENTS", str(tmp_path / "kept"))
    monkeypatch.setattr(environments, "FOLDER", str(tmp_path / "kept"))
    correct = tmp_path / "correct.py"
    correct.write_text(CORRECT, encoding="utf-8")
    (tmp_path / "faulty.py").write_text(FAULTY, encoding="utf-8")
    return correct


def _matrix(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "tests/clients/test_matrix.py", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, text=True, check=False)


def _row(program: Path, *, fails: str = "", requirement: str = "tinyclient==1.0") -> Row:
    return Row("tiny", "tiny", (requirement,), ((3,), (4,)), "", "", fails=fails, reason="it ends", own=(program,))


def test_a_package_without_a_row_runs_with_programs_of_the_users_own(program: Path) -> None:
    faulty = program.with_name("faulty.py")
    done = _matrix("--client", "tinyclient", "--program", str(program), "--program", str(faulty))
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_a_fault_that_is_not_there_is_a_failure(program: Path) -> None:
    program.write_text(CORRECT + "pass  # the fault\n", encoding="utf-8")
    done = _matrix("--client", "tinyclient==1.0", "--program", str(program))
    assert done.returncode == 1, done.stdout
    assert "1 failed, 3 skipped" in done.stdout


def test_a_package_without_a_row_and_a_program_is_an_error_that_says_what_to_write(program: Path) -> None:
    done = _matrix("--client", "tinyclient")
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert "no row of rows.toml is about 'tinyclient'" in done.stderr
    assert "--client 'tinyclient' --program FILE.py" in done.stderr


def test_a_row_that_fails_has_to_fail_by_the_name_it_gives(program: Path, tmp_path: Path) -> None:
    program.write_text(CORRECT + "raise SystemExit('no kernel computes')\n", encoding="utf-8")
    python = environments.python_of(_row(program))
    test_matrix.test_a_correct_program_passes_on_the_device(_row(program, fails="no kernel computes"), python, tmp_path)
    with pytest.raises(AssertionError):
        test_matrix.test_a_correct_program_passes_on_the_device(_row(program, fails="no such text"), python, tmp_path)
    with pytest.raises(AssertionError):
        test_matrix.test_a_correct_program_passes_on_the_device(_row(program), python, tmp_path)


def test_a_row_that_fails_and_passes_one_day_is_a_failure(program: Path, tmp_path: Path) -> None:
    row = _row(program, fails="no kernel computes")
    with pytest.raises(AssertionError):
        test_matrix.test_a_correct_program_passes_on_the_device(row, environments.python_of(row), tmp_path)


def test_a_program_that_never_uses_the_device_is_a_failure(program: Path, tmp_path: Path) -> None:
    program.write_text("import tinyclient\n", encoding="utf-8")
    row = _row(program)
    with pytest.raises(AssertionError, match="nothing was tested"):
        test_matrix.test_a_correct_program_passes_on_the_device(row, environments.python_of(row), tmp_path)


def test_what_can_not_be_installed_is_told_with_the_reason(program: Path) -> None:
    with pytest.raises(environments.NotInstallable, match=r"No matching distribution found for tinyclient==2\.0"):
        environments.python_of(_row(program, requirement="tinyclient==2.0"))
    row = dataclasses.replace(_row(program), python=((3, 98), (3, 99)))
    with pytest.raises(environments.NotInstallable, match=r"it needs one of python3\.99, python3\.98 on the path"):
        environments.python_of(row)
    done = _matrix("-rs", "--client", "tinyclient==2.0", "--program", str(program))
    assert done.returncode == 0
    assert "tinyclient==2.0 can't be installed: ERROR: Could not find a version" in done.stdout

"""The marker ``device_memory`` on a simulated device: held apart across workers, and what makes no sense."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.pytest_plugin import device_memory
from quiesce.simulator.runtime.build import build_library

from .conftest import Project

if sys.platform == "win32":
    pytest.skip("there are no such locks", allow_module_level=True)

ROOT: Final = Path(__file__).resolve().parents[2]

SUITE: Final = """
import os
import pytest

@pytest.fixture(params=range(4))
def alone(request):
    held = os.open("held", os.O_CREAT | os.O_EXCL)  # fails while another test is here
    yield
    os.close(held)
    os.unlink("held")

@pytest.mark.device_memory("600 MiB")
def test_needs_most(alone):
    sum(range(100_000))

@pytest.mark.device_memory("2 GiB")
def test_needs_too_much(): pass
"""


def run_under_exec(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12", "--capacity", "1GiB", "--"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    program = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    ran = subprocess.run([*command, *program], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return ran.stdout + ran.stderr


@pytest.mark.long
def test_tests_that_need_more_than_the_device_has_together_run_one_after_the_other(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    said = run_under_exec(tmp_path, "-n", "2", "--dist", "each", "test_it.py")  # both workers run each test
    assert re.search(r"= 8 passed, .*2 errors in", said), said
    assert (
        "test_it.py::test_needs_too_much: the test needs 2,147,483,648 bytes (2 GiB) of device memory, and the device "
        "has 1,073,741,824 bytes (1 GiB); run it on a larger device, or leave it out with -m" in said
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("'4 GB'", "'4 GB' is no size; write 4 GiB"),
        ("", "write one size, such as @pytest.mark.device_memory('4 GiB')"),
        ("4", "write one size, such as *"),
        ("size='4 GiB'", "write one size, such as *"),
    ],
)
def test_a_marker_that_makes_no_sense_is_an_error_of_its_test(project: Project, arguments: str, says: str) -> None:
    marker = f"import pytest\n@pytest.mark.device_memory({arguments})\ndef test_it(): pass\n"
    project.write("test_it.py", marker + "def test_other(): pass\n")
    result = project.run("test_it.py")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([f"test_it.py::test_it: the marker 'device_memory': {says}"])


def test_without_a_device_nothing_waits(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quiesce.pytest_plugin.device_memory.first_device", lambda: None)
    project.write("test_it.py", "import pytest\n@pytest.mark.device_memory('9 TiB')\ndef test_it(): pass\n")
    project.run("test_it.py").assert_outcomes(passed=1)


def test_a_simulated_device_has_the_memory_that_the_machine_gives_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIESCE_SIMULATOR", "flavour=cuda;folder=runs/it")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,1")
    ask = device_memory.first_device.__wrapped__
    assert ask() == device_memory.FirstDevice("simulated runs/it 3", device_memory.SIMULATED_BYTES)
    monkeypatch.setenv("QUIESCE_SIMULATOR", "folder=runs/it;capacity=4096")
    assert ask() == device_memory.FirstDevice("simulated runs/it 3", 4096)
    settings = (ROOT / "harness/quiesce/simulator/native/machine/settings.c").read_text(encoding="utf-8")
    assert f".capacity_bytes = {device_memory.SIMULATED_BYTES >> 30}ull << 30" in settings


@pytest.mark.parametrize("flavour", ["cuda:12", "hip:6"])
def test_a_driver_is_asked_for_its_first_device(tmp_path: Path, flavour: str) -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", flavour, "--capacity", "1GiB", "--"]
    program = [sys.executable, "-I", "-S", "-c", device_memory.QUESTION]
    ran = subprocess.run([*command, *program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert re.search(rf"^[0-9a-f]{{4,}}\S* {1 << 30}$", ran.stdout, re.MULTILINE), ran.stdout + ran.stderr


def test_a_budget_that_others_could_have_made_is_an_error_of_its_test(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (temporary / f"quiesce-devices-{os.getuid()}").symlink_to(theirs)
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setenv("QUIESCE_SIMULATOR", "flavour=cuda;folder=it")  # a device that nobody is asked for
    marker = "import pytest\n@pytest.mark.device_memory('1 MiB')\ndef test_it(): pass\n"
    project.write("test_it.py", marker + "def test_other(): pass\n")
    result = project.run_apart("test_it.py")
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines(["test_it.py::test_it: *quiesce-devices-* is not used, because it is a symbolic link*"])
    assert not list(theirs.iterdir())

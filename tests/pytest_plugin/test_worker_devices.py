"""Under pytest-xdist each worker keeps to a device of its own, within those that the caller may see."""

from __future__ import annotations

import ast
import os

import pytest

from quiesce.backends.opencl import DEVICE
from quiesce.pytest_plugin.worker_devices import OPENCL

from .conftest import Project

pytestmark = pytest.mark.long

VARIABLES = ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
SAYS = """\
import os, pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number, worker_id{fixture}):
    seen = {{name: value for name, value in os.environ.items() if name.endswith("_VISIBLE_DEVICES")}}
    with open("seen.txt", "a") as stream:
        stream.write(f"{{worker_id}} {{sorted(seen.items())}}\\n")
"""


@pytest.fixture(autouse=True)
def _caller(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caller's own variables play no part here."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def seen(project: Project) -> dict[str, list[tuple[str, str]]]:
    """What each worker saw; it saw the same each time."""
    lines = {line.split(" ", 1)[0]: line for line in (project.path / "seen.txt").read_text().splitlines()}
    assert len(set((project.path / "seen.txt").read_text().splitlines())) == len(lines)
    return {name: ast.literal_eval(line.split(" ", 1)[1]) for name, line in lines.items()}


@pytest.mark.parametrize(
    ("variable", "value", "first", "second"),
    [
        ("CUDA_VISIBLE_DEVICES", "3,1,-1,2", "3", "1"),
        ("CUDA_VISIBLE_DEVICES", "GPU-8932f937,MIG-GPU-8932f937/1/0", "GPU-8932f937", "MIG-GPU-8932f937/1/0"),
        ("HIP_VISIBLE_DEVICES", "1,0", "1", "0"),
        ("ROCR_VISIBLE_DEVICES", "0,GPU-4b2c1a9f8d3e6f7a", "0", "GPU-4b2c1a9f8d3e6f7a"),
    ],
)
def test_a_worker_keeps_to_its_device(
    variable: str, value: str, first: str, second: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    project.write("test_it.py", SAYS.format(fixture=", backend"))
    result = project.run_apart("-n", "2", "--quiesce-backend=host", "test_it.py")
    result.assert_outcomes(passed=4)
    assert seen(project) == {"gw0": [(variable, first)], "gw1": [(variable, second)]}
    result.stdout.fnmatch_lines(
        [f"quiesce: gw0 keeps to {variable}={first}", f"quiesce: gw1 keeps to {variable}={second}"]
    )
    assert os.environ[variable] == value


@pytest.mark.parametrize("value", ["", "-1", "2", "2,-1,3"])
def test_one_device_or_none_stays_as_it_is(value: str, project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    project.write("test_it.py", SAYS.format(fixture=", backend"))
    result = project.run_apart("-n", "2", "--quiesce-backend=host", "test_it.py")
    assert set(map(str, seen(project).values())) == {str([("CUDA_VISIBLE_DEVICES", value)])}
    result.stdout.no_fnmatch_line("*keeps to*")


def test_a_project_that_merely_has_quiesce_is_left_alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    project.write("test_it.py", SAYS.format(fixture=""))
    result = project.run_apart("-n", "2", "test_it.py")
    assert set(map(str, seen(project).values())) == {str([("CUDA_VISIBLE_DEVICES", "0,1")])}
    result.stdout.no_fnmatch_line("*kep*to*")


@pytest.mark.parametrize("fixture", [", host_backend", ", leak_check"])
def test_a_test_that_has_to_do_with_devices_is_enough(
    fixture: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    project.write("test_it.py", SAYS.format(fixture=fixture))
    result = project.run_apart("-n", "2", "test_it.py", "--quiesce-leak-rounds=4", "-k", "0 or 1")
    result.assert_outcomes(passed=2)
    assert seen(project) == {f"gw{number}": [("CUDA_VISIBLE_DEVICES", str(number))] for number in (0, 1)}
    if "leak" in fixture:  # there is a summary to say it in
        result.stdout.fnmatch_lines([f"worker gw{number} kept to CUDA_VISIBLE_DEVICES={number}" for number in (0, 1)])


def test_workers_share_all_devices_on_request(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    project.write("test_it.py", SAYS.format(fixture=", backend"))
    project.run_apart("-n", "2", "--quiesce-backend=host", "test_it.py", "-o", "quiesce_worker_devices=all")
    assert set(map(str, seen(project).values())) == {str([("CUDA_VISIBLE_DEVICES", "0,1")])}


def test_who_takes_the_place_of_a_dead_worker_takes_its_device(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    project.write(
        "test_it.py",
        "import os, pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(12))\n"
        "def test_it(number, worker_id, backend):\n"
        "    device = os.environ['CUDA_VISIBLE_DEVICES']\n"
        "    pathlib.Path(f'{worker_id} {device}').touch()\n"
        "    if worker_id == 'gw1': os._exit(3)\n",
    )
    result = project.run_apart("-n", "2", "--quiesce-backend=host", "test_it.py")
    result.assert_outcomes(passed=11, failed=1)
    names = sorted(path.name for path in project.path.glob("gw*"))
    assert names[:2] == ["gw0 0", "gw1 1"]
    assert set(names[2:]) <= {"gw2 1"}
    result.stdout.fnmatch_lines(["quiesce: gw2 keeps to CUDA_VISIBLE_DEVICES=1"])


@pytest.mark.parametrize(("own", "seen_by_workers"), [(None, {"gw0 0", "gw1 1"}), ("5", {"gw0 5", "gw1 5"})])
def test_opencl_devices_are_divided_by_number(
    own: str | None, seen_by_workers: set[str], project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OPENCL, raising=False)
    if own is not None:
        monkeypatch.setenv(OPENCL, own)
    project.write(
        "test_it.py",
        "import os, pathlib, pytest\n"
        "@pytest.mark.parametrize('number', range(4))\n"
        "def test_it(number, worker_id, backend):\n"
        f"    pathlib.Path(f\"{{worker_id}} {{os.environ['{OPENCL}']}}\").touch()\n",
    )
    project.run_apart("-n", "2", "--quiesce-backend=host", "test_it.py").assert_outcomes(passed=4)
    assert {path.name for path in project.path.glob("gw*")} == seen_by_workers
    assert os.environ.get(OPENCL) == own


def test_the_backend_chooses_by_what_a_worker_is_told() -> None:
    assert OPENCL == DEVICE


def test_without_workers_nothing_changes(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    project.write(
        "test_it.py",
        "import os\ndef test_it(backend): assert os.environ['CUDA_VISIBLE_DEVICES'] == '0,1'\n",
    )
    project.run_apart("--quiesce-backend=host", "test_it.py").assert_outcomes(passed=1)

"""The fixture ``simulated_device``: a machine of the test's own, or the process's under ``quiesce exec``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

from .conftest import Project
from .test_options import error_of

BEGIN = """\
import ctypes
import pytest

def allocate(device, size=100):
    made = ctypes.c_void_p()
    assert device.call("Malloc", ctypes.byref(made), size) == 0
    return made

"""
LEAK = "def test_it(simulated_device):\n    for _ in range(20): allocate(simulated_device)\n"
CLEAN = "def test_it(simulated_device):\n    assert simulated_device.call('Free', allocate(simulated_device)) == 0\n"
TWICE = CLEAN.replace(
    "\n    assert", "\n    block = allocate(simulated_device)\n    simulated_device.call('Free', block)\n    assert"
).replace("allocate(simulated_device)) == 0", "block) == 1")


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def run_under_exec(project: Project, *options: str) -> subprocess.CompletedProcess[str]:
    """Run pytest in the project's folder under ``quiesce exec``."""
    inner = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *project.plugin_arguments, "test_it.py"]
    words = [sys.executable, "-m", "quiesce.cli.main", "exec", *options, "--", *inner]
    return subprocess.run(words, cwd=project.path, capture_output=True, text=True, check=False)


def test_a_test_that_gives_everything_back_passes(project: Project) -> None:
    project.write("test_it.py", BEGIN + CLEAN)
    project.run("test_it.py").assert_outcomes(passed=1)


def test_what_is_left_is_a_finding_that_names_its_origin(project: Project) -> None:
    project.write("test_it.py", BEGIN + "@pytest.mark.simulated_device(stacks=True)\n" + LEAK)
    result = project.run("test_it.py")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            "*rule:      nothing_is_left_at_quiescence*",
            "*observed:  2,000 bytes (2.0 KiB) in 20 blocks of device memory *, allocated at test_it.py:6",
            "*allocated by cudaMalloc (call 0):",
            "*test_it.py:6 in allocate  <- here",
            "*test_it.py:11 in test_it",
            "*… * frames in pytest and pluggy",
        ]
    )


def test_a_broken_rule_is_a_finding_unless_the_test_took_it(project: Project) -> None:
    taken = TWICE.replace("test_it", "test_taken") + (
        "    assert [finding.rule for finding in simulated_device.judge()] == ['memory_is_freed_once']\n"
    )
    project.write("test_it.py", BEGIN + TWICE + taken)
    result = project.run("test_it.py")
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(["*ERROR at teardown of test_it*", "*rule:      memory_is_freed_once*"])


def test_a_test_that_failed_is_not_accused_of_what_it_could_not_give_back(project: Project) -> None:
    project.write("test_it.py", BEGIN + LEAK + "    assert False\n")
    project.run("test_it.py").assert_outcomes(failed=1)


def test_fixtures_of_the_test_give_back_before_it_is_judged(project: Project) -> None:
    fixture = (
        "@pytest.fixture\ndef block(simulated_device):\n    block = allocate(simulated_device)\n    yield block\n"
        "    simulated_device.call('Free', block)\n\ndef test_it(block): pass\n"
    )
    project.write("test_it.py", BEGIN + fixture)
    project.run("test_it.py").assert_outcomes(passed=1)


def test_the_marker_chooses_the_device(project: Project) -> None:
    body = (
        "@pytest.mark.simulated_device('hip:7', schedule='lazy', capacity='1MiB', devices=2, left='none')\n"
        "def test_it(simulated_device):\n"
        "    count = ctypes.c_int()\n"
        "    assert simulated_device.library.hipGetDeviceCount(ctypes.byref(count)) == 0 and count.value == 2\n"
        "    assert simulated_device.call('Malloc', ctypes.byref(ctypes.c_void_p()), ctypes.c_size_t(1 << 21)) == 2\n"
        "    allocate(simulated_device)\n"
    )
    project.write("test_it.py", BEGIN + body)
    project.run("test_it.py").assert_outcomes(passed=1)


def test_code_that_is_given_pointers_gets_functions(project: Project) -> None:
    body = (
        "def test_it(simulated_device):\n"
        "    free = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(simulated_device.address_of('Free'))\n"
        "    assert free(allocate(simulated_device)) == 0\n"
    )
    project.write("test_it.py", BEGIN + body)
    project.run("test_it.py").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        ("'hip:4'", "flavour 'hip:4' is not simulated"),
        ("shedule='lazy'", "'shedule' is not known; write flavour, schedule"),
        ("schedule='late'", "schedule='late'; write eager, lazy or seeded"),
        ("left='some'", "left='some'; write lost, all or none"),
        ("devices='two'", "devices='two'; write a whole number of at least 1"),
        ("devices=0", "devices=0; write a whole number of at least 1"),
        ("devices=100000", "'devices' can't be '100000': write a number from 1 to 8"),
        ("seed=2**70", f"'seed' can't be '{2**70}': write a number from 0 to {2**64 - 1}"),
        ("seed=-1", "seed=-1; write a whole number of at least 0"),
        ("stacks=2", "stacks=2; write True or False"),
        ("stacks='x'", "stacks='x'; write True or False"),
        ("fail='x'", "'fail' can't be 'x': write KIND:N"),
        ("fail='device:0'", "'fail' can't be 'device:0': write KIND:N"),
        ("fail='device:200%'", "'fail' can't be 'device:200%': write KIND:N"),
        ("fail='device:1=999999999999'", "'fail' can't be 'device:1=999999999999': write KIND:N"),
        ("fail='device:1;x=1'", "'device:1;x=1' can't be a value of 'fail': leave the ';' out"),
        ("fail=['device:1']", "fail=['device:1']; write a text such as 'device:1'"),
        ("capacity='much'", "capacity: 'much' in 'much' is neither a number"),
    ],
)
def test_a_marker_that_is_wrong_is_said_before_any_test_runs(project: Project, marker: str, said: str) -> None:
    project.write("test_it.py", BEGIN + f"@pytest.mark.simulated_device({marker})\n" + CLEAN + "def test_b(): pass\n")
    result = project.run("test_it.py")
    result.assert_outcomes()
    line = error_of(result).removeprefix("ERROR: ")
    assert line.startswith(f"test_it.py::test_it: @pytest.mark.simulated_device: {said}")


def test_a_machine_without_the_simulator_skips_and_says_why(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("QUIESCE_CACHE", str(project.path / "empty"))
    project.write("test_it.py", BEGIN + CLEAN)
    result = project.run_apart("test_it.py", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*no simulated device here: *no C compiler was found*"])


def test_a_run_that_does_not_name_the_simulator_compiles_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = project.path / "empty"
    monkeypatch.setenv("QUIESCE_CACHE", str(empty))
    result = project.run_apart("cases", "-k", "host")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*simulated*'quiesce doctor simulated' compiles it, once*"])
    assert list(empty.rglob("*.so")) == []


def test_under_exec_a_test_answers_for_its_part_of_the_ledger(project: Project) -> None:
    kept = "KEPT = []\ndef test_kept(simulated_device): KEPT.append(allocate(simulated_device))\n"
    after = CLEAN.replace("test_it", "test_after")
    project.write("test_it.py", BEGIN + kept + LEAK + TWICE.replace("test_it", "test_twice") + after)
    done = run_under_exec(project, "--recycle", "never")
    assert "4 passed, 2 errors" in done.stdout
    assert "ERROR test_it.py::test_it" in done.stdout
    assert "ERROR test_it.py::test_twice" in done.stdout
    assert "no pointer to them left" in done.stdout


@pytest.mark.long
def test_under_exec_a_test_that_wants_another_device_is_skipped(project: Project) -> None:
    project.write("test_it.py", BEGIN + "@pytest.mark.simulated_device(schedule='lazy')\n" + CLEAN)
    assert "1 skipped" in run_under_exec(project).stdout
    assert "1 passed" in run_under_exec(project, "--schedule", "lazy").stdout


def test_under_exec_a_marker_that_is_wrong_is_said_before_any_test_runs(project: Project) -> None:
    project.write("test_it.py", BEGIN + CLEAN + "@pytest.mark.simulated_device(devices=9)\ndef test_b(): pass\n")
    done = run_under_exec(project)
    assert "ERROR: test_it.py::test_b: @pytest.mark.simulated_device: 'devices'" in done.stderr + done.stdout
    assert "no tests ran" in done.stdout


def test_calls_that_were_overwritten_are_said(project: Project) -> None:
    body = (
        "def test_it(simulated_device):\n"
        "    for _ in range(20): simulated_device.call('Free', allocate(simulated_device))\n"
    )
    project.write("test_it.py", BEGIN + body)
    assert "24 calls were overwritten" in run_under_exec(project, "--ring", "16", "--disk", "0").stdout


UNUSED = "def test_it(simulated_device): simulated_device.call('GetDeviceCount', ctypes.byref(ctypes.c_int()))\n"
REFUSED = (
    "def test_it(simulated_device):\n"
    "    assert simulated_device.library.cuGetExportTable(ctypes.byref(ctypes.c_void_p()), None) == 801\n"
)


@pytest.mark.parametrize("under_exec", [False, True])
@pytest.mark.parametrize(
    ("body", "said"),
    [
        (UNUSED, "inconclusive: nothing was tested: no memory, stream or kernel of the simulated device was used"),
        (REFUSED, "inconclusive: nothing was tested: CUDA's runtime is linked statically into a library"),
    ],
)
def test_a_test_that_tested_nothing_is_not_green(project: Project, body: str, said: str, under_exec: bool) -> None:
    project.write("test_it.py", BEGIN + body)
    if under_exec:
        shown = run_under_exec(project).stdout
        assert "1 passed, 1 error" in shown
    else:
        result = project.run("test_it.py")
        result.assert_outcomes(passed=1, errors=1)
        shown = result.stdout.str()
    assert said in shown


@pytest.mark.parametrize(
    "body",
    [
        UNUSED + "    assert not simulated_device.judge()\n",
        "@pytest.mark.simulated_device(fail='stream:1')\n" + UNUSED,
        UNUSED.replace("simulated_device.call(", "pytest.skip() or simulated_device.call("),
    ],
)
def test_a_test_that_means_to_use_no_device_is_let_be(project: Project, body: str) -> None:
    project.write("test_it.py", BEGIN + body.replace("(simulated_device): ", "(simulated_device):\n    "))
    result = project.run("test_it.py")
    assert result.parseoutcomes().get("errors", 0) == 0
    assert result.parseoutcomes().get("failed", 0) == 0

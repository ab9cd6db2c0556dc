"""pytest under ``quiesce exec``: each test with a faulty kernel is named, and one that asks for it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.model.program_rules import KERNELS_ANY_ORDER, KERNELS_INSIDE
from quiesce.simulator.runtime.build import build_library
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

BEGIN: Final = '''
import ctypes
import pytest

CUDA, DRIVER = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1")
PTX = b"""
.version 8.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 to)
{
    .reg .b32 %r<3>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [to];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    st.global.u32 [%rd3], %r1;
    ret;
}
"""

def fill(words, threads):
    """Fill a block of so many words with so many threads."""
    block, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    assert CUDA.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(4 * words)) == 0
    assert DRIVER.cuModuleLoadData(ctypes.byref(module), PTX) == 0
    assert DRIVER.cuModuleGetFunction(ctypes.byref(function), module, b"fill") == 0
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(block))
    assert DRIVER.cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, None, arguments, None) == 0
    assert CUDA.cudaDeviceSynchronize() == 0
    assert DRIVER.cuModuleUnload(module) == 0
    assert CUDA.cudaFree(block) == 0
'''
EXEC: Final = (sys.executable, "-m", "quiesce.cli.main", "exec", "--report", "out", "--")
TESTS: Final = """
def test_good(): fill(32, 32)
def test_wrong(): fill(31, 32)
@pytest.mark.parametrize("words", [32, 30, 28])
def test_sizes(words): fill(words, 32)
"""
ON_DEVICE: Final = """
def test_device_good(simulated_device): fill(32, 32)
def test_device_wrong(simulated_device): fill(31, 32)
def test_device_wrong_as_well(simulated_device): fill(31, 32)
"""
LEAKS: Final = """
@pytest.mark.leak
def test_leak_good(): fill(32, 32)
@pytest.mark.leak
def test_leak_wrong(): fill(31, 32)
@pytest.mark.leak
def test_leak_wrong_as_well(): fill(31, 32)
"""
BOTH: Final = """
@pytest.mark.leak
def test_both_good(simulated_device): fill(32, 32)
@pytest.mark.leak
def test_both_wrong(simulated_device): fill(31, 32)
"""
FAILING: Final = """
@pytest.mark.leak
def test_fails_by_itself():
    fill(31, 32)
    assert False
"""


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


class Ran:
    """A run of pytest under exec."""

    def __init__(self, folder: Path, tests: str, *options: str) -> None:
        (folder / "test_it.py").write_text(BEGIN + tests, encoding="utf-8")
        words = ["pytest", "-q", "-p", "no:cacheprovider", "--quiesce-leak-rounds=3", "--quiesce-leak-gauges=device"]
        done = subprocess.run(
            [*EXEC, sys.executable, "-m", *words, "-rA", *options, "test_it.py"],
            cwd=folder,
            env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
            capture_output=True,
            text=True,
            check=False,
        )
        self.code, self.said = done.returncode, done.stdout + done.stderr
        self.results: list[dict[str, Any]] = json.loads((folder / "out" / "report.json").read_bytes())["results"]
        page = folder / "out" / "report.html"
        self.page = page.read_text(encoding="utf-8") if page.exists() else ""

    def ended(self, how: str) -> set[str]:
        """The tests that pytest says have ended so."""
        words = (line.split() for line in self.said.split("\n"))
        return {word[1].partition("::")[2] for word in words if len(word) > 1 and word[0] == how}

    def accused(self) -> set[str]:
        """The tests that findings of processes name."""
        findings = [finding for each in self.results if "program" in each for finding in each["findings"]]
        assert {finding["rule"] for finding in findings} <= {KERNELS_INSIDE}
        return {test.partition("::")[2] for finding in findings for test in finding.get("tests", ())}

    def results_of_tests(self) -> dict[str, list[str]]:
        """The rules that tests broke, by name."""
        tests = [each for each in self.results if "program" not in each]
        return {each["case"].partition("::")[2]: [finding["rule"] for finding in each["findings"]] for each in tests}


def test_each_test_with_a_faulty_kernel_is_named(tmp_path: Path) -> None:
    ran = Ran(tmp_path, TESTS)
    assert ran.code == 1, ran.said
    assert ran.accused() == {"test_wrong", "test_sizes[30]", "test_sizes[28]"}
    assert ran.ended("PASSED") == {"test_good", "test_wrong", "test_sizes[32]", "test_sizes[30]", "test_sizes[28]"}
    assert ran.said.count("kernels_stay_inside_blocks") == 1, "one mistake of one instruction is one finding"
    assert "  in test:   test_it.py::test_wrong\n" in ran.said
    assert "             test_it.py::test_sizes[30]\n" in ran.said
    assert "seen:      7 times" in ran.said
    assert not ran.page or "test_it.py::test_sizes[28]" in ran.page.replace("<wbr>", "")


@pytest.mark.long
def test_a_test_fails_for_the_kernels_that_it_launches_on_its_simulated_device(tmp_path: Path) -> None:
    ran = Ran(tmp_path, ON_DEVICE)
    assert ran.code == 1, ran.said
    assert ran.ended("ERROR") == {"test_device_wrong", "test_device_wrong_as_well"}
    assert ran.results_of_tests() == {name: [KERNELS_INSIDE] for name in ran.ended("ERROR")}
    assert ran.accused() == ran.ended("ERROR")


@pytest.mark.long
def test_a_leak_check_fails_for_the_kernels_of_its_test(tmp_path: Path) -> None:
    ran = Ran(tmp_path, LEAKS)
    assert ran.code == 1, ran.said
    assert ran.ended("PASSED") == {"test_leak_good"}
    assert ran.ended("FAILED") == {"test_leak_wrong", "test_leak_wrong_as_well"}
    wrong = {name: [KERNELS_INSIDE] for name in ran.ended("FAILED")}
    assert ran.results_of_tests() == {"test_leak_good": [], **wrong}
    assert "test_it.py::test_leak_wrong has a kernel that makes a wrong access; it was run" in ran.said


@pytest.mark.long
def test_both_answer_for_a_kernel_once(tmp_path: Path) -> None:
    ran = Ran(tmp_path, BOTH)
    assert ran.code == 1, ran.said
    assert (ran.ended("ERROR"), ran.ended("FAILED")) == ({"test_both_wrong"}, set())


@pytest.mark.long
def test_a_test_that_fails_by_itself_shows_its_kernels_as_well(tmp_path: Path) -> None:
    ran = Ran(tmp_path, FAILING)
    assert ran.code == 1, ran.said
    assert ran.results_of_tests() == {"test_fails_by_itself": [KERNELS_INSIDE]}
    assert "assert False" in ran.said


@pytest.mark.long
def test_orders_of_threads_are_explored(tmp_path: Path) -> None:
    last_one = BEGIN.replace("mul.wide.u32 %rd2, %r1, 4;", "mov.u64 %rd2, 0;")
    ends = "fill(1, 1)\nfill(1, 32)\n"
    (tmp_path / "program.py").write_text(last_one + ends, encoding="utf-8")
    command = [*EXEC[:4], "--explore-orders", "3", "--seed", "5", "--", sys.executable, "program.py"]
    first, second = (
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False) for _ in range(2)
    )
    assert (first.returncode, first.stdout) == (1, second.stdout)
    assert first.stdout.count(f"rule:      {KERNELS_ANY_ORDER}") == 1
    assert "kernel 'fill': 1 byte is different if its blocks and threads run in another order" in first.stdout
    assert "reproduce: quiesce exec --seed 5 --explore-orders 3 -- " in first.stdout


@pytest.mark.long
def test_under_xdist(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    ran = Ran(tmp_path, TESTS + ON_DEVICE + LEAKS, "-n", "2")
    assert ran.code == 1, ran.said
    assert ran.ended("ERROR") == {"test_device_wrong", "test_device_wrong_as_well"}
    assert ran.ended("FAILED") == {"test_leak_wrong", "test_leak_wrong_as_well"}
    wrong = {"test_wrong", "test_sizes[30]", "test_sizes[28]", *ran.ended("ERROR"), *ran.ended("FAILED")}
    assert ran.accused() == wrong


@pytest.mark.parametrize("ends_early", [False, True])
def test_a_program_that_takes_no_notice_of_a_kernel_that_ended_early_is_inconclusive(
    ends_early: bool, tmp_path: Path
) -> None:
    code = BEGIN.replace("    ret;", "    trap;") if ends_early else BEGIN
    program = tmp_path / "program.py"
    program.write_text(code.replace(" == 0", " >= 0") + "fill(32, 32)\n", encoding="utf-8")
    command = [*EXEC, sys.executable, str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    (result,) = json.loads((tmp_path / "out" / "report.json").read_text(encoding="utf-8"))["results"]
    assert done.returncode == (2 if ends_early else 0), done.stderr
    assert ("'fill' (ended with a trap, in block (0, 0, 0))" in result["reason"]) is ends_early

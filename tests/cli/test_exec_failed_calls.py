"""``quiesce exec`` lists calls that failed, and has no verdict where a program ignored that its work was refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.programs import compile_client

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

IGNORES = "void *p; cudaMalloc(&p, 8); cudaMemset(NULL, 0, 8); cudaFree(p); return 0;"
PRINTS = (
    "const char *cudaGetErrorString(int); void *p; cudaMalloc(&p, 8);"
    "puts(cudaGetErrorString(cudaMemset(NULL, 0, 8))); cudaFree(p); return 0;"
)
NUMBA = """
import sys, types
code = '''
def safe_cuda_api_call(function, *words):
    if function(*words):
        raise RuntimeError("an error of the driver")
'''
made = {}
exec(compile(code, "/venv/site-packages/numba_cuda/numba/cuda/cudadrv/driver.py", "exec"), made)
import ctypes
cuda, driver, block = ctypes.CDLL("libcudart.so.12"), ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
cuda.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(8))
try:
    made["safe_cuda_api_call"](driver.cuMemsetD8_v2, ctypes.c_void_p(8), 0, ctypes.c_size_t(8))
except RuntimeError as error:
    print(error)
cuda.cudaFree(block)
"""
CRASHES = "int raise(int); void *p; if (cudaMalloc(&p, 1 << 20)) raise(atoi(words[1])); cudaFree(p); return 0;"
ABORT, KILL = 6, 9


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def rules(folder: Path) -> list[str]:
    results: list[dict[str, Any]] = json.loads((folder / "report.json").read_text(encoding="utf-8"))["results"]
    return [finding["rule"] for result in results for finding in result.get("findings", [])]


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ([], ExitCode.COULD_NOT_RUN),
        (["--api-errors", "inconclusive"], ExitCode.COULD_NOT_RUN),
        (["--api-errors", "tell"], ExitCode.NOTHING_FOUND),
        (["--api-errors", "finding"], ExitCode.FINDINGS),
    ],
)
def test_what_comes_of_an_ignored_error_is_chosen(
    how: list[str], code: ExitCode, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client, out = compile_client(tmp_path, IGNORES, flags=("-g",)), tmp_path / "out"
    assert main(["exec", "--report", str(out), *how, "--", str(client)]) == code
    said = capfd.readouterr()
    line = f"cudaMemset with error 1 (cudaErrorInvalidValue) at {tmp_path}/client.c:"
    assert f"failed: {line}" in said.err
    assert ("work was refused, and the program did not look at the error: " in said.out) is (code == 2)
    assert rules(out) == (["errors_of_refused_work_are_noticed"] if code == ExitCode.FINDINGS else [])
    (result,) = json.loads((out / "report.json").read_text(encoding="utf-8"))["results"]
    failed = result["program"]["failed_calls"]
    (call,) = failed["kept"]
    assert (failed["count"], call["code"], call["error"], call["count"], call["unnoticed"]) == (
        1,
        1,
        "cudaErrorInvalidValue",
        1,
        1,
    )
    assert call["site"]["call"] == "cudaMemset"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "Calls that failed" in page
    assert "the program did not look at the error" in page
    assert "1 x cudaMemset with error 1" in (out / "junit.xml").read_text(encoding="utf-8")


def test_an_error_that_is_looked_at_is_listed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "--", str(compile_client(tmp_path, PRINTS))]) == ExitCode.NOTHING_FOUND
    (line,) = [line for line in capfd.readouterr().err.splitlines() if "failed: " in line]
    assert line.endswith(", 1 time")


def test_numba_raises_an_exception_for_each_error(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", "--", sys.executable, "-c", NUMBA]) == ExitCode.NOTHING_FOUND
    said = capfd.readouterr()
    assert "an error of the driver" in said.out
    assert "failed: cuMemsetD8_v2 with error 1 (CUDA_ERROR_INVALID_VALUE)" in said.err


def test_known_errors_change_no_verdict(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    client, known = compile_client(tmp_path, IGNORES, flags=("-g",)), tmp_path / "known.toml"
    known.write_text(
        '[[error]]\nfunction = "cudaMemset"\nline = "client.c:*"\nreason = "on purpose"\n'
        '[[error]]\nfunction = "cudaFree"\nreason = "was fixed"\n',
        encoding="utf-8",
    )
    assert main(["exec", "--known-errors", str(known), "--", str(client)]) == ExitCode.NOTHING_FOUND
    said = capfd.readouterr().err
    assert "1 time; known: on purpose\n" in said
    assert "the entry for cudaFree is not needed" in said
    known.write_text("[[error]]\n", encoding="utf-8")
    assert main(["exec", "--known-errors", str(known), "--", str(client)]) == ExitCode.COULD_NOT_RUN
    assert f"{known}: entry 1: function is ''; write a text" in capfd.readouterr().err


@pytest.mark.parametrize("how", [["--fail", "device:1"], ["--capacity", "64KiB"]])
def test_a_crash_after_a_refusal_that_was_asked_for_is_a_finding(how: list[str], tmp_path: Path) -> None:
    client, out = compile_client(tmp_path, CRASHES, flags=("-g",)), tmp_path / "out"
    assert main(["exec", "--report", str(out), *how, "--", str(client), str(ABORT)]) == ExitCode.FINDINGS
    assert rules(out) == ["programs_survive_refusals"]
    assert main(["exec", "--report", str(out), *how, "--", str(client), str(KILL)]) == ExitCode.COULD_NOT_RUN
    assert rules(out) == []


def test_a_crash_below_a_shell_is_found_and_one_without_a_refusal_is_none(tmp_path: Path) -> None:
    client, out = compile_client(tmp_path, CRASHES), tmp_path / "out"
    shell = ["sh", "-c", f"{client} {ABORT}; exit $?"]
    assert main(["exec", "--report", str(out), "--fail", "device:1", "--", *shell]) == ExitCode.FINDINGS
    assert rules(out) == ["programs_survive_refusals"]
    crash = [sys.executable, "-c", "import os; os.abort()"]
    assert main(["exec", "--report", str(out), "--fail", "device:1", "--", *crash]) == ExitCode.COULD_NOT_RUN
    assert rules(out) == []

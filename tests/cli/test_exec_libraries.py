"""`quiesce exec --libraries`: functions of NVIDIA's libraries compute, or fail by name and say what to install."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Final

import pytest

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime import find_compiler, libraries_can_run
from quiesce.simulator.runtime.build import build_library

NEEDED: Final = pytest.mark.skipif(not libraries_can_run(), reason="needs quiesce[libraries]")
WITHOUT: Final = pytest.mark.skipif(
    Path(sysconfig.get_paths()["purelib"], "nvidia", "cublas").exists(),
    reason="cuBLAS is installed, and is used as it is where its functions do not compute",
)
PROGRAM: Final = """
import ctypes
blas, cuda = ctypes.CDLL("libcublas.so.12"), ctypes.CDLL("libcudart.so.12")
handle, x = ctypes.c_void_p(), ctypes.c_void_p()
print("created", blas.cublasCreate_v2(ctypes.byref(handle)))
cuda.cudaMalloc(ctypes.byref(x), ctypes.c_size_t(16))
values, result = (ctypes.c_float * 4)(1, 2, 3, 4), ctypes.c_float(-1)
cuda.cudaMemcpy(x, values, ctypes.c_size_t(16), 1)
status = blas.cublasSdot_v2(handle, 4, x, 1, x, 1, ctypes.byref(result))
print("status", status, "result", result.value)
cuda.cudaFree(x)
blas.cublasDestroy_v2(handle)
"""
TO_INSTALL: Final = "run pip install 'quiesce[libraries]'"


@pytest.fixture(autouse=True)
def _runtime() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def run(*options: str) -> ExitCode:
    return ExitCode(main(["exec", *options, "--", sys.executable, "-c", PROGRAM]))


@NEEDED
def test_a_function_computes(capfd: pytest.CaptureFixture[str]) -> None:
    assert run() == ExitCode.NOTHING_FOUND
    assert "status 0 result 30.0" in capfd.readouterr().out


@NEEDED
@WITHOUT
def test_it_fails_by_name_where_that_is_wanted(capfd: pytest.CaptureFixture[str]) -> None:
    assert run("--libraries", "off") == ExitCode.NOTHING_FOUND
    said = capfd.readouterr()
    assert "status 15 result -1.0" in said.out
    assert "cublasSdot_v2 (libcublas.so.12) is not simulated" in said.err
    assert "quiesce[libraries]" not in said.err


@WITHOUT
@pytest.mark.parametrize("options", [(), ("--kernels", "off")])
def test_the_extra_that_is_missing_is_told(
    options: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("quiesce.cli.exec.libraries_can_run", lambda: False)
    assert run(*options) == ExitCode.NOTHING_FOUND
    last = capfd.readouterr().err.splitlines()[-1]
    said = f"quiesce: cublasSdot_v2 did not compute; to let functions of libraries compute, {TO_INSTALL}"
    assert (last == said) is not bool(options)


@pytest.mark.parametrize(
    ("options", "reason"), [((), TO_INSTALL), (("--kernels", "off"), "it needs kernels that compute")]
)
def test_what_can_not_be_had_is_refused(
    options: tuple[str, ...], reason: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("quiesce.cli.exec.libraries_can_run", lambda: False)
    monkeypatch.setattr("quiesce.cli.exec.kernels_can_run", lambda: True)
    assert run("--libraries", "run", *options) == ExitCode.COULD_NOT_RUN
    assert reason in capfd.readouterr().err


@NEEDED
@pytest.mark.parametrize("computes", [True, False])
def test_an_installed_library_is_left_out_while_functions_compute(
    computes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The installed one is machine code for a GPU. Without functions that compute, it is used as it is."""
    functions = ("cublasCreate_v2", "cublasSdot_v2", "cublasDestroy_v2")
    source = tmp_path / "blas.c"
    source.write_text("".join(f"int {name}(void) {{ return 77; }}\n" for name in functions))
    made = tmp_path / "libcublas.so.12"
    command = [*find_compiler(), "-shared", "-fPIC", f"-Wl,-soname,{made.name}", str(source), "-o", str(made)]
    subprocess.run(command, check=True)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    run(*(() if computes else ("--libraries", "off")))
    out = capfd.readouterr().out
    assert ("status 0 result 30.0" in out) is computes

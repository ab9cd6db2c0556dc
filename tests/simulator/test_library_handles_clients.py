"""Programs that make handles of libraries: correct ones pass, each mistake is one finding."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.simulator.conftest import Compile
from tests.simulator.programs import compile_client

from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, write_library

OPENED = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
static void *library, *kept;
static int plan;
static void *find(const char *name) {
    void *found = dlsym(library, name);
    if (!found) exit((puts(name), 9));
    return found;
}
int main(int count, char **words) {
    void *handle = NULL, *block;
    int stream;
    library = dlopen(words[1], RTLD_NOW);
    if (!library) exit((puts(dlerror()), 8));
    void *runtime = dlopen("libcudart.so.12", RTLD_NOW);
    int (*allocate)(void **, size_t) = dlsym(runtime, "cudaMalloc");
    int (*deallocate)(void *) = dlsym(runtime, "cudaFree");
    if (allocate(&block, 64) || deallocate(block)) return 7;  // so that something was tested
    BODY
    return 0;
}
"""
BLAS = 'int (*create)(void **) = find("cublasCreate_v2"), (*destroy)(void *) = find("cublasDestroy_v2");'
PLANS = 'int (*create)(int *, int, int, int) = find("cufftPlan1d"), (*destroy)(int) = find("cufftDestroy");'
LEAK = "handles_are_destroyed_at_quiescence"
DEAD = "destroyed_handles_are_not_used"


def run(program: Path, *words: str, flavour: str = "cuda:12") -> subprocess.CompletedProcess[str]:
    options = ("--flavour", flavour, "--libraries", "off")
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", *options, "--", str(program), *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("library", "body", "broken"),
    [
        ("libcublas.so.12", BLAS + "if (create(&handle) || destroy(handle)) return 1;", set()),
        ("libcublas.so", BLAS + "if (create(&handle) || destroy(handle)) return 1;", set()),
        ("libcublas.so.12", BLAS + "create(&kept);", set()),
        ("libcublas.so.12", BLAS + "for (int i = 0; i < 5; i++) create(&handle), handle = NULL;", {LEAK}),
        ("libcublas.so.12", BLAS + "create(&handle), destroy(handle); destroy(handle);", {DEAD}),
        ("libcufft.so.11", PLANS + "create(&plan, 64, 0x29, 4), destroy(plan);", set()),
        ("libcufft.so.11", PLANS + "create(&plan, 64, 0x29, 4);", set()),
        ("libcufft.so.11", PLANS + "for (int i = 0; i < 5; i++) create(&plan, 64, 0x29, 4); plan = 0;", {LEAK}),
    ],
)
def test_a_program_that_opens_a_library(compile_c: Compile, library: str, body: str, broken: set[str]) -> None:
    program = compile_c("client", OPENED.replace("BODY", body), "-g", "-w", "-ldl")
    done = run(program, library)
    assert set(re.findall(r"rule: +(\w+)", done.stdout)) == broken, done.stdout + done.stderr
    assert done.returncode == (1 if broken else 0), done.stdout + done.stderr


def test_a_lost_handle_is_named_with_its_line_and_not_its_workspace(compile_c: Compile) -> None:
    body = BLAS + "for (int i = 0; i < 5; i++) create(&handle), handle = NULL;"
    done = run(compile_c("client", OPENED.replace("BODY", body), "-g", "-w", "-ldl"), "libcublas.so.12")
    (observed,) = re.findall(r"observed: +(.+)", done.stdout)
    assert observed.startswith("5 BLAS handles from cublasCreate_v2 on device 0, no pointer to them left, created at")
    assert "MiB" not in done.stdout


def test_growth_from_mark_to_mark_is_told_once(compile_c: Compile) -> None:
    marks = 'int (*mark)(const char *) = dlsym(runtime, "quiesce_mark");'
    body = BLAS + marks + 'for (int i = 0; i < 8; i++) create(&handle), mark("step");'
    done = run(compile_c("client", OPENED.replace("BODY", body), "-g", "-w", "-ldl"), "libcublas.so.12")
    grown = [text for text in re.findall(r"observed: +(.+)", done.stdout) if "marks 'step'" in text]
    assert len(grown) == 1
    assert grown[0].startswith("1 BLAS handle more at each of 8 marks 'step' from cublasCreate_v2")


def test_what_computes_fails_by_name(tmp_path: Path) -> None:
    body = 'void *h; printf("%d %d\\n", cublasCreate_v2(&h), cublasSgemm_v2()); cublasDestroy_v2(h); return 0;'
    done = run(compile_client(tmp_path, body, libraries=("libcublas.so.12",)))
    assert done.stdout.startswith("0 15\n")
    assert "cublasSgemm_v2 (libcublas.so.12) is not simulated" in done.stderr
    assert "cublasCreate_v2" not in done.stderr


def test_a_function_that_is_looked_up_fails_by_name(compile_c: Compile) -> None:
    body = 'int (*multiply)(void *) = find("cublasDgemm_v2"); printf("%d", multiply(handle));'
    done = run(compile_c("client", OPENED.replace("BODY", body), "-w", "-ldl"), "libcublas.so.12")
    assert done.stdout[:2] == "15", done.stdout
    assert "cublasDgemm_v2 (libcublas.so.12) is not simulated" in done.stderr


def test_an_installed_library_is_used_as_it_is(
    compile_c: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "real").mkdir()
    functions = (StubFunction("cublasCreate_v2", 77), StubFunction("cublasDestroy_v2", 77))
    (tmp_path / "real" / "libcublas.so.12").write_bytes(write_library(StubLibrary("libcublas.so.12", functions)))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "real"))
    body = BLAS + 'printf("%d", create(&handle));'
    assert run(compile_c("client", OPENED.replace("BODY", body), "-w", "-ldl"), "libcublas.so.12").stdout[:2] == "77"

"""``quiesce exec`` is green only where something was tested; what it says of a run stands in its reports as well."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.simulator.programs import compile_client

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.files import private_folder
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import AUDIT_NAME, LIBRARY_NAME, build_audit, build_library, find_compiler
from quiesce.simulator.runtime.cache import cache_folder, keep

USED = "void *p; cudaMalloc(&p, 8); cudaFree(p);"
STUB = "cudaMallocMipmappedArray();"
PROBE = "int cudaDeviceGetHostAtomicCapabilities(void); cudaDeviceGetHostAtomicCapabilities();"
ASKED = "int cudaGetDeviceCount(int *), devices; cudaGetDeviceCount(&devices);"
TABLE = """
    void *dlopen(const char *, int), *dlsym(void *, const char *), *table;
    ((int (*)(void **, void *))dlsym(dlopen("libcuda.so.1", 2), "cuGetExportTable"))(&table, NULL);
"""
HELD = "void *p; cudaMalloc(&p, 1 << 20);"
AMOUNT = "1,048,576 bytes (1 MiB)"
CHILD = "int wait(int *); if (!fork())"
FORK = "int wait(int *); if (!fork()) { void *q; cudaMalloc(&q, 8); _exit(0); } wait(NULL);"


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


class Ran:
    """How a program's run ended, and what its reports say."""

    def __init__(self, folder: Path, arguments: list[str]) -> None:
        self.code = main(["exec", "--report", str(folder / "out"), *arguments])
        self.results = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))["results"]
        root = ET.parse(folder / "out" / "junit.xml").getroot()
        beside = ("properties", "system-out")
        cases = root.iter("testcase")
        self.elements = [next((each.tag for each in case if each.tag not in beside), "green") for case in cases]
        self.notes = "\n".join(each.text or "" for each in root.iter("system-out"))
        self.errors = root.get("errors")

    @property
    def verdicts(self) -> list[str]:
        return [result["verdict"] for result in self.results]

    @property
    def reasons(self) -> str:
        return "\n".join(result["reason"] for result in self.results)


@pytest.mark.parametrize(
    ("body", "arguments", "reason"),
    [
        ("", [], "the program never called the simulated runtime"),
        (ASKED, [], "the program used no device memory, stream or kernel"),
        ("cudaDeviceSynchronize();", [], "the program used no device memory, stream or kernel"),
        (STUB, [], "cudaMallocMipmappedArray (called by client) is not simulated"),
        ("void *s; cudaStreamCreate(&s); cudaStreamDestroy(s);" + STUB, [], "cudaMallocMipmappedArray"),
        (TABLE, [], "CUDA's runtime is linked statically into client"),
        ('int cudaSetDevice(int); if (cudaSetDevice(1)) puts("CPU");', [], "cudaSetDevice (error 101) failed"),
        ('void *p; if (cudaMalloc(&p, 24L << 30)) puts("CPU");', [], "use --capacity 32GiB"),
        (
            'void *p; if (cudaMalloc(&p, 1 << 20)) puts("CPU");',
            ["--capacity", "512KiB"],
            "all requests for memory were",
        ),
        (USED, ["--fail", "device:5"], "--fail device:5 never happened: the program made 1 such call"),
        (USED, ["--fail", "event:1+"], "--fail event:1+ never happened: the program made no such call"),
        (USED, ["--fail", "device:2=46,launch:1=9999"], "--fail launch:1=9999 never happened"),
        (
            HELD + "_exit(0);",
            [],
            f"it ended with _exit, exec or by a signal and held {AMOUNT} in 1 block; its leaks could",
        ),
        (HELD + "void *s; cudaStreamCreate(&s); _exit(0);", [], f"held {AMOUNT} in 1 block and 1 handle; its leaks"),
        (
            CHILD + "{" + HELD + "_exit(0); } wait(NULL);",
            [],
            f"held {AMOUNT} in 1 block; its leaks could not be checked",
        ),
        (
            STUB + USED + STUB,
            [],
            "cudaMallocMipmappedArray is not simulated (called 2 times): what it would make was not judged. Leave that",
        ),
        (
            "int cudaGraphAddExternalSemaphoresWaitNode(), cudaGraphicsUnmapResources(); "
            "cudaGraphAddExternalSemaphoresWaitNode(), cudaGraphicsUnmapResources();" + USED,
            [],
            "what it would put on a stream or into a graph was not judged; cudaGraphicsUnmapResources is not simulated "
            "(called 1 time): what it would free was not judged",
        ),
        (
            "for (int i = 0; i < 99; i++) {" + USED + "}",
            ["--ring", "16", "--disk", "0"],
            "races were not judged: the record of the first 182 calls was overwritten, for it found no room",
        ),
        (USED + "return 3;", [], "the program ended with status 3"),
        (
            STUB + USED + "return 3;",
            [],
            "the program ended with status 3; cudaMallocMipmappedArray (called by client) is not simulated. Leave that",
        ),
        ("return 3;", [], "the program ended with status 3; nothing was tested: it had not used the GPU"),
        (ASKED + "return 3;", [], "the program ended with status 3; nothing was tested: it had not used the GPU"),
        (TABLE + "return 3;", [], "the program ended with status 3; nothing was tested: CUDA's runtime"),
    ],
)
def test_what_was_not_tested_is_not_green(
    body: str, arguments: list[str], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ran = Ran(tmp_path, [*arguments, "--", str(compile_client(tmp_path, body + "return 0;"))])
    assert ran.code == ExitCode.COULD_NOT_RUN
    assert ran.verdicts == ["inconclusive"]
    assert reason in ran.reasons
    assert ran.elements == ["error"]
    assert ran.errors == "1"
    shown = capsys.readouterr().out
    assert f"client: inconclusive on 'cuda:12': {ran.reasons}\n" in shown
    assert shown.endswith("1 result from 1 backend: 1 inconclusive\n")


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        (USED, []),
        (PROBE + USED, []),
        (TABLE + USED, []),
        ("void *s; cudaStreamCreate(&s); cudaStreamDestroy(s);", []),
        ("void *p; if (cudaHostAlloc(&p, 8, 0) == 0) cudaFreeHost(p);", []),
        ('void *p; if (cudaMalloc(&p, 8)) puts("CPU");', ["--fail", "device:1"]),
        ('void *s; if (cudaStreamCreate(&s)) puts("CPU");', ["--fail", "stream:1"]),
        (
            'void *p; if (cudaMalloc(&p, 1 << 30)) puts("CPU");' + "void *q; cudaMalloc(&q, 8); cudaFree(q);",
            ["--capacity", "1MiB"],
        ),
        (USED + 'if (cudaMalloc(&p, 8)) puts("CPU");', ["--fail", "device:2"]),
        (USED, ["--fail", "device:0%"]),
        (USED + "_exit(0);", []),
        (CHILD + "{" + USED + "_exit(0); } wait(NULL);", []),
        (HELD + "_exit(0);", ["--at-exit", "none"]),
        ("for (int i = 0; i < 99; i++) {" + USED + "}" + PROBE, ["--ring", "16"]),
    ],
)
def test_what_was_tested_passes(body: str, arguments: list[str], tmp_path: Path) -> None:
    ran = Ran(tmp_path, [*arguments, "--", str(compile_client(tmp_path, body + "return 0;"))])
    assert (ran.code, ran.verdicts, ran.elements) == (ExitCode.NOTHING_FOUND, ["passed"], ["green"])


def test_a_vendors_runtime_of_another_version_is_named_with_the_flavour_to_run_it_with(tmp_path: Path) -> None:
    real = compile_client(tmp_path, "return 0;", name="libcudart.so.11.0", flags=("-shared", "-fPIC"))
    body = f'void *dlopen(const char *, int); return !dlopen("{real}", 2);'
    ran = Ran(tmp_path, ["--flavour", "cuda:12", "--", str(compile_client(tmp_path, body))])
    assert (ran.code, ran.verdicts, ran.elements) == (ExitCode.COULD_NOT_RUN, ["inconclusive"], ["error"])
    assert f"the vendor's own runtime was loaded instead of the simulated cuda:12: {real}" in ran.reasons
    assert "Run it with --flavour cuda:11" in ran.reasons


@pytest.mark.parametrize("flavour", ["cuda:13", "hip:6"])
@pytest.mark.parametrize("body", [USED, ""])
def test_a_program_that_needs_another_runtime_than_the_flavours_is_not_green(
    body: str, flavour: str, tmp_path: Path
) -> None:
    ran = Ran(tmp_path, ["--flavour", flavour, "--", str(compile_client(tmp_path, body + "return 0;"))])
    assert (ran.code, ran.verdicts) == (ExitCode.COULD_NOT_RUN, ["inconclusive"])
    assert "it needs libcudart.so.12. Run it with --flavour cuda:12" in ran.reasons


def test_another_runtime_beside_the_flavours_own_is_a_note(tmp_path: Path) -> None:
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, USED + "return 0;", libraries=("libcudart.so.13",)))])
    assert (ran.code, ran.verdicts) == (ExitCode.NOTHING_FOUND, ["passed"])
    assert "judged as cuda:12, although it needs libcudart.so.13. Run it with --flavour cuda:13" in ran.notes


def test_findings_under_another_flavour_are_findings(tmp_path: Path) -> None:
    ran = Ran(tmp_path, ["--flavour", "cuda:13", "--", str(compile_client(tmp_path, "cudaFree((void *)1); return 0;"))])
    assert (ran.code, ran.verdicts) == (ExitCode.FINDINGS, ["failed"])


def test_a_static_program_is_told_that_it_can_not_be_tested(tmp_path: Path) -> None:
    program = tmp_path / "client"
    text = ["-x", "c", "-static", "-", "-o", str(program)]
    done = subprocess.run([*find_compiler(), *text], input=b"int main(void) { return 0; }", check=False)
    if done.returncode:
        pytest.skip("there is no static C library here")
    ran = Ran(tmp_path, ["--", str(program)])
    assert ran.code == ExitCode.COULD_NOT_RUN
    assert "it is a static program" in ran.reasons


def test_findings_are_findings_whatever_else_was_refused(tmp_path: Path) -> None:
    body = TABLE + "cudaFree((void *)1); return 3;"
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, body))])
    assert (ran.code, ran.verdicts, ran.elements) == (ExitCode.FINDINGS, ["failed"], ["failure"])


def test_a_client_that_was_refused_beside_one_that_was_tested_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["exec", "--", str(compile_client(tmp_path, TABLE + USED + "return 0;"))])
    assert "not tested: CUDA's runtime is linked statically into client" in capsys.readouterr().err


COMPILERS = ("libnvJitLink.so.12", "libnvrtc.so.12", "libnvvm.so.4", "libnvptxcompiler.so")


def ask_as(compiler: str, folder: Path) -> str:
    """Return a statement that has a library of this name ask for what only a vendor's runtime asks for."""
    library = compile_client(folder, TABLE + "return 0;", name=compiler, flags=("-shared", "-fPIC"))
    opened = f'dlsym(dlopen("{library}", 2), "main")'
    return f"void *dlopen(const char *, int), *dlsym(void *, const char *); ((int (*)()){opened})();"


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_compiler_that_asks_for_a_device_leaves_nothing_untested(
    compiler: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    client = compile_client(tmp_path, ask_as(compiler, tmp_path) + USED + "return 0;")
    ran = Ran(tmp_path, ["--kernels", "off", "--", str(client)])  # else it gets quiesce's own compiler
    assert (ran.code, ran.verdicts, ran.notes) == (ExitCode.NOTHING_FOUND, ["passed"], "")
    said = capfd.readouterr()
    assert "cuGetExportTable" not in said.out + said.err
    assert "not tested" not in said.out + said.err


def test_a_program_that_only_compiles_tested_nothing(tmp_path: Path) -> None:
    client = compile_client(tmp_path, ask_as(COMPILERS[0], tmp_path) + "return 0;")
    ran = Ran(tmp_path, ["--kernels", "off", "--", str(client)])
    assert (ran.code, ran.verdicts) == (ExitCode.COULD_NOT_RUN, ["inconclusive"])
    assert "the program never called the simulated runtime" in ran.reasons


def test_what_a_green_program_held_and_what_was_not_judged_is_in_junit(tmp_path: Path) -> None:
    body = "static void *kept; cudaMalloc(&kept, 1 << 20);" + PROBE
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, body + "return 0;"))])
    assert (ran.code, ran.elements) == (ExitCode.NOTHING_FOUND, ["green"])
    assert f"held at exit (held): {AMOUNT} in 1 x " in ran.notes
    assert "not simulated: cudaDeviceGetHostAtomicCapabilities (called 1 time)" in ran.notes
    (tmp_path / "quiet").mkdir()
    assert Ran(tmp_path / "quiet", ["--", str(compile_client(tmp_path, USED + "return 0;"))]).notes == ""


@pytest.mark.parametrize("helper", [ASKED, 'puts("no GPU");'])
def test_helpers_that_use_no_device_do_no_harm(helper: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = compile_client(tmp_path, helper + "return 0;", name="helper")
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, f'{USED} return system("{other}");'))])
    assert ran.code == ExitCode.NOTHING_FOUND
    assert sorted(ran.verdicts) == (["inconclusive", "passed"] if helper == ASKED else ["passed"])
    assert sorted(ran.elements) == (["green", "skipped"] if helper == ASKED else ["green"])
    assert ("it only asked for devices" in capsys.readouterr().err) == (helper == ASKED)


def test_a_worker_that_was_refused_leaves_the_run_without_a_verdict(tmp_path: Path) -> None:
    worker = compile_client(tmp_path, TABLE + "return 0;", name="worker")
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, f'{USED} return system("{worker}");'))])
    assert ran.code == ExitCode.COULD_NOT_RUN
    assert sorted(ran.verdicts) == ["inconclusive", "passed"]
    assert sorted(ran.elements) == ["error", "green"]
    assert "is linked statically into worker" in ran.reasons


def test_a_child_of_fork_that_asks_for_a_device_is_refused_as_on_a_gpu_and_told(tmp_path: Path) -> None:
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, USED + FORK + "return 0;"))])
    assert ran.code == ExitCode.COULD_NOT_RUN
    assert "a child of fork() called cudaMalloc and was refused a device, as on a GPU" in ran.reasons
    assert sorted(ran.elements) == ["error", "green"]


def test_a_race_is_found_however_many_calls_come_after_it(tmp_path: Path) -> None:
    body = """
        handle s, t; void *p, *q; cudaMalloc(&p, 64), cudaStreamCreate(&s), cudaStreamCreate(&t);
        cudaMemsetAsync(p, 1, 64, s), cudaMemsetAsync(p, 2, 64, t);
        for (int i = 0; i < 99; i++) { cudaMalloc(&q, 8); if (i % 3) cudaMemset(q, 0, 8); cudaFree(q); }
        cudaStreamDestroy(s), cudaStreamDestroy(t), cudaFree(p); return 0;
    """
    ran = Ran(tmp_path, ["--ring", "16", "--", str(compile_client(tmp_path, body))])
    assert ran.code == ExitCode.FINDINGS
    (finding,) = ran.results[0]["findings"]
    assert finding["rule"] == "conflicting_uses_are_ordered"


def test_a_program_that_pytest_finds_no_test_in_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(tmp_path / "empty")]
    (tmp_path / "empty").mkdir()
    assert main(["exec", "--", *words]) == ExitCode.COULD_NOT_RUN
    assert "the program ended with status 5: pytest ran no test" in capsys.readouterr().err


@pytest.fixture
def libraries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The runtime and the module for the loader, in a cache of the test's own."""
    built = (build_library(), build_audit())
    monkeypatch.setenv("QUIESCE_CACHE", str(tmp_path / "cache"))
    own = {}
    for path in built:
        folder = private_folder(cache_folder() / path.parent.name)
        own[path.name] = Path(shutil.copy(path, folder / path.name))
    return own


def test_without_the_module_for_the_loader_nothing_was_tested(libraries: dict[str, Path], tmp_path: Path) -> None:
    keep(libraries[AUDIT_NAME], b"")
    ran = Ran(tmp_path, ["--", str(compile_client(tmp_path, USED + "return 0;"))])
    assert (ran.code, ran.verdicts) == (ExitCode.COULD_NOT_RUN, ["inconclusive"])
    assert "quiesce's module for the dynamic loader did not run" in ran.reasons


def test_a_runtime_that_does_not_answer_is_told(
    libraries: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(libraries[LIBRARY_NAME], b"\x7fELF")
    assert main(["exec", "--", str(compile_client(tmp_path, USED + "return 0;"))]) == ExitCode.COULD_NOT_RUN
    said = capsys.readouterr().err
    assert f"the simulated runtime '{libraries[LIBRARY_NAME]}' can't be loaded" in said
    assert "Traceback" not in said


def test_a_temporary_directory_in_which_others_can_replace_the_run_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = compile_client(tmp_path, USED + "return 0;")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "open"))
    assert main(["exec", "--", str(client)]) == ExitCode.COULD_NOT_RUN
    assert "others may replace it: run chmod go-w" in capsys.readouterr().err
    assert not list((tmp_path / "open").iterdir())

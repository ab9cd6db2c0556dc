"""Without ``--flavour`` a program runs on the runtime that it loads; with another one it is told which to name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.programs import compile_client

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library

RUNTIMES = {
    "libcudart.so.11.0": "cuda:11",
    "libcudart.so.12": "cuda:12",
    "libcudart.so.13": "cuda:13",
    "libamdhip64.so.5": "hip:5",
    "libamdhip64.so.6": "hip:6",
    "libamdhip64.so.7": "hip:7",
}


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def use(runtime: str, frees: int = 1) -> str:
    """Return the body of a program that allocates a block and frees it so often."""
    prefix = "hip" if "hip" in runtime else "cuda"
    return f"void *p; {prefix}Malloc(&p, 8);" + f"{prefix}Free(p);" * frees + "return 0;"


OPEN = """
    void *dlopen(const char *, int), *dlsym(void *, const char *), *library = dlopen("{runtime}", 2), *p = NULL;
    ((int (*)(void **, size_t))dlsym(library, "hipMalloc"))(&p, 8);
    ((int (*)(void *))dlsym(library, "hipFree"))(p);
    return 0;
"""


def install(runtime: str, folder: Path) -> None:
    """Put a runtime whose functions do nothing into the subfolder ``link``, as packages for developers do."""
    compile_client(folder, use(runtime), name="another", runtime=runtime)
    (folder / "link" / runtime.partition(".so")[0]).with_suffix(".so").symlink_to(runtime)


def run(folder: Path, program: Path, *options: str) -> tuple[int, dict[str, Any]]:
    code = main(["exec", "--report", str(folder / "out"), *options, "--", str(program)])
    (result,) = json.loads((folder / "out" / "report.json").read_text(encoding="utf-8"))["results"]
    return code, result


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_program_runs_on_the_runtime_that_it_loads(runtime: str, tmp_path: Path) -> None:
    code, result = run(tmp_path, compile_client(tmp_path, use(runtime), runtime=runtime))
    assert (code, result["verdict"], result["backend"]) == (ExitCode.NOTHING_FOUND, "passed", RUNTIMES[runtime])
    assert result["program"]["conditions"]["flavour"] == RUNTIMES[runtime]
    assert result["program"]["notes"] == []


@pytest.mark.parametrize("flags", ["", "-Wl,--enable-new-dtags,-rpath,{}", "-Wl,--disable-new-dtags,-rpath,{}"])
@pytest.mark.parametrize("runtime", ["libcudart.so.11.0", "libcudart.so.12", "libamdhip64.so.5"])
def test_a_runtime_that_is_installed_changes_nothing(
    runtime: str, flags: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is found through the loader's path, DT_RUNPATH or DT_RPATH, and would do nothing at all."""
    installed = str(tmp_path / "link")
    if flags:
        program = compile_client(tmp_path, use(runtime), runtime=runtime, flags=(flags.format(installed),))
    else:
        program = compile_client(tmp_path, use(runtime), runtime=runtime)
        monkeypatch.setenv("LD_LIBRARY_PATH", installed)
    code, result = run(tmp_path, program)
    assert (code, result["verdict"], result["backend"]) == (ExitCode.NOTHING_FOUND, "passed", RUNTIMES[runtime])
    assert result["program"]["notes"] == []


@pytest.mark.parametrize("name", ["libamdhip64.so.5", "libamdhip64.so", "{}/libamdhip64.so", "{}/libamdhip64.so.5"])
def test_a_program_that_opens_an_installed_runtime_runs_on_ours(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("libamdhip64.so.5", tmp_path)
    opened = name.format(tmp_path / "link")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "link"))
    code, result = run(
        tmp_path, compile_client(tmp_path, OPEN.format(runtime=opened), name="opens", runtime="libneutral.so")
    )
    assert (code, result["verdict"], result["backend"]) == (ExitCode.NOTHING_FOUND, "passed", "hip:5")
    assert result["program"]["notes"] == []


def test_a_plugin_that_needs_an_installed_runtime_gets_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("libamdhip64.so.6", tmp_path)
    flags = ("-shared", "-fPIC", "-Dmain=plugin")
    plugin = compile_client(tmp_path, use("hip"), name="plugin.so", runtime="libamdhip64.so.6", flags=flags)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "link"))
    body = f"""
        void *dlopen(const char *, int), *dlsym(void *, const char *), *plugin = dlopen("{plugin}", 2);
        return ((int (*)(int, void *))dlsym(plugin, "plugin"))(0, NULL);
    """
    code, result = run(tmp_path, compile_client(tmp_path, body, name="host", runtime="libneutral.so"))
    assert (code, result["verdict"], result["backend"]) == (ExitCode.NOTHING_FOUND, "passed", "hip:6")


def test_who_asks_for_another_vendors_device_as_well_stays_on_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs that look for all vendors' devices find none of a vendor whose runtime alone is installed."""
    install("libamdhip64.so.5", tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path / "link"))
    asks = OPEN.format(runtime="libamdhip64.so.5").replace("return 0;", "return p != NULL;")
    code, result = run(tmp_path, compile_client(tmp_path, f"void *q; cudaMalloc(&q, 8); cudaFree(q); {asks}"))
    assert (code, result["verdict"], result["backend"]) == (ExitCode.NOTHING_FOUND, "passed", "cuda:12")


@pytest.mark.parametrize("runtime", ["libcudart.so.13", "libamdhip64.so.6"])
def test_findings_are_those_of_the_runtime_that_is_loaded(runtime: str, tmp_path: Path) -> None:
    code, result = run(tmp_path, compile_client(tmp_path, use(runtime, frees=2), runtime=runtime))
    assert (code, result["verdict"], result["backend"]) == (ExitCode.FINDINGS, "failed", RUNTIMES[runtime])
    assert result["program"]["notes"] == []


def test_the_usual_runtime_is_taken_beside_another(tmp_path: Path) -> None:
    libraries = ("libcudart.so.12",)
    _, result = run(tmp_path, compile_client(tmp_path, use(""), runtime="libcudart.so.13", libraries=libraries))
    assert result["backend"] == "cuda:12"


def test_a_flavour_that_was_chosen_stays_and_the_mismatch_is_told_beside_findings(tmp_path: Path) -> None:
    program = compile_client(tmp_path, use("libamdhip64.so.6", frees=2), runtime="libamdhip64.so.6")
    code, result = run(tmp_path, program, "--flavour", "cuda:12")
    assert (code, result["verdict"], result["backend"]) == (ExitCode.FINDINGS, "failed", "cuda:12")
    assert result["program"]["notes"] == [
        "judged as cuda:12, although it needs libamdhip64.so.6. Run it with --flavour hip:6"
    ]


def test_the_american_spelling_is_answered_with_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["exec", "--flavor", "hip:5", "--", "true"])
    assert "unrecognized arguments: --flavor; did you mean --flavour?" in capsys.readouterr().err

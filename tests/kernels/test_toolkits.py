"""Where NVIDIA's compilers are looked for: those of the version of CUDA that the client uses, first in its packages."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.toolkits import find_toolkit

pytestmark = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="it reads proc(5)")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "lib").mkdir(parents=True)
    return tmp_path / "run"


@pytest.fixture
def process(tmp_path: Path) -> Iterator[int]:
    """A process whose environment names packages."""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "packages"), "CUDA_PATH": "/nowhere"}
    environment["QUIESCE_SIMULATOR"] = "flavour=cuda;version=12;schedule=eager"
    words = [sys.executable, "-c", "print(flush=True); input()"]
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as begun:
        assert begun.stdout is not None
        begun.stdout.readline()
        yield begun.pid
        begun.communicate(b"\n")


def place(tmp_path: Path, name: str) -> Path:
    path = tmp_path / "packages" / "nvidia" / name
    path.parent.mkdir(parents=True)
    path.touch()
    return path


def redirected(run: Path, process: int, version: str) -> None:
    with (run / "loads").open("a", encoding="utf-8") as file:
        file.write("\0".join(("redirected", str(process), "/some/client.so", version, "")))


def test_a_package_of_the_clients_own_is_found(tmp_path: Path, run: Path, process: int) -> None:
    library = place(tmp_path, "cuda_nvrtc/lib/libnvrtc.so.12")
    header = place(tmp_path, "cuda_runtime/include/cuda_fp16.h")
    redirected(run, process, "12090")
    found = find_toolkit("libnvrtc", process, run)
    assert found.library == library
    assert found.includes[0] == header.parent
    assert f"library {library.parent}/./{library.name}" in found.text().splitlines()


def test_what_nvrtc_opens_by_name_is_opened_first(tmp_path: Path, run: Path, process: int) -> None:
    library = place(tmp_path, "cuda_nvrtc/lib/libnvrtc.so.12")
    for name in ("libnvrtc-builtins.so.12.9", "libnvrtc-builtins.so.11.8", "libnvrtc-builtins.alt.so.12.9"):
        (library.parent / name).touch()
    lines = find_toolkit("libnvrtc", process, run).text().splitlines()
    opened = [line.partition(" ") for line in lines if line.startswith(("beside", "library"))]
    assert [(word, Path(path).name) for word, _, path in opened] == [
        ("beside", "libnvrtc-builtins.so.12.9"),
        ("library", "libnvrtc.so.12"),
    ]


def test_the_version_of_the_clients_runtime_comes_first(tmp_path: Path, run: Path, process: int) -> None:
    place(tmp_path, "cu13/lib/libnvrtc.so.13")
    older = place(tmp_path, "cuda_nvrtc/lib/libnvrtc.so.12")
    redirected(run, process, "12060")
    assert find_toolkit("libnvrtc", process, run).library == older


@pytest.mark.parametrize(
    ("version", "name", "said"),
    [
        ("12090", "libnvrtc", "NVRTC (libnvrtc.so.12) is not installed; run {} -m pip install nvidia-cuda-nvrtc-cu12"),
        (
            "13000",
            "libnvrtc",
            "NVRTC (libnvrtc.so.13) is not installed; run {} -m pip install 'nvidia-cuda-nvrtc==13.*'",
        ),
        ("13000", "libnvvm", "libNVVM (libnvvm.so.4) is not installed; run {} -m pip install 'nvidia-nvvm==13.*'"),
        ("", "libnvvm", "libNVVM (libnvvm.so.4) is not installed; run {} -m pip install nvidia-cuda-nvcc-cu12"),
    ],
)
def test_what_is_missing_is_named_with_its_package(
    run: Path, process: int, version: str, name: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quiesce.simulator.kernels.toolkits.package_folders", lambda *_: ())
    monkeypatch.setattr(sys, "path", [])
    if version:  # else it is a client of the driver alone, whose version is the run's
        redirected(run, process, version)
    found = find_toolkit(name, process, run)
    if found.library is not None:
        pytest.skip("the system has it")
    assert f"reason {said.format(sys.executable)}" in found.text().splitlines()


def test_no_other_library_is_looked_for(run: Path) -> None:
    with pytest.raises(RefusedKernel, match="there is no compiler 'libc'"):
        find_toolkit("libc", os.getpid(), run)

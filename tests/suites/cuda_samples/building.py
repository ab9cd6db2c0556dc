"""Samples built as their own build files say, with nvcc out of wheels, and with PTX in place of machine code."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from tests.suites.cuda_samples.scope import Sample

PTX: Final = "-gencode=arch=compute_80,code=compute_80"
"""The simulated device has compute capability 8.0, and kernels are compiled from PTX alone."""
_PROJECT: Final = """\
cmake_minimum_required(VERSION 3.20)
project(cuda-samples LANGUAGES C CXX CUDA)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CUDA_STANDARD 17)
foreach(sample {names})
    add_subdirectory({samples}/${{sample}} ${{sample}} EXCLUDE_FROM_ALL)
    get_property(targets DIRECTORY {samples}/${{sample}} PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target ${{targets}})
        get_target_property(type ${{target}} TYPE)
        if(NOT type STREQUAL "UTILITY")
            set_target_properties(${{target}} PROPERTIES CUDA_ARCHITECTURES OFF)
        endif()
    endforeach()
endforeach()
"""
_DRIVER_FUNCTION: Final = re.compile(r"\b(cu[A-Z]\w*)\s*\(")
_ERROR: Final = re.compile(r"error|undefined reference|not found|No such file|Stop\.", re.IGNORECASE)


class NotBuilt(Exception):
    """A sample that can't be built, and the first line that says why."""


def toolkit_of(folder: Path) -> Path:
    """Arrange what the wheels have as NVIDIA's installer does, with a library to link the driver's functions with."""
    driver = folder / "lib64" / "stubs" / "libcuda.so"
    if driver.exists():
        return folder
    wheel = _nvcc().parent.parent
    shutil.rmtree(folder, ignore_errors=True)
    for inside in ("bin", "lib64/stubs"):
        (folder / inside).mkdir(parents=True)
    for tool in (wheel / "bin").iterdir():
        (folder / "bin" / tool.name).symlink_to(tool)
    for each in ("include", "nvvm"):
        (folder / each).symlink_to(wheel / each)
    for library in (wheel / "lib").glob("lib*"):
        for name in {library.name, re.sub(r"\.so\..*", ".so", library.name)}:
            (folder / "lib64" / name).symlink_to(library)
    _link_driver(wheel / "include" / "cuda.h", driver)
    return folder


def _nvcc() -> Path:
    files = importlib.metadata.files("nvidia-cuda-nvcc") or ()
    return next(Path(str(each.locate())) for each in files if each.name == "nvcc")


def _link_driver(header: Path, library: Path) -> None:
    """Make a ``libcuda.so`` that has the names which CUDA's header declares, and nothing in them."""
    text = subprocess.run(["gcc", "-E", str(header)], capture_output=True, text=True, check=True).stdout
    source = "".join(f"void {name}(void) {{}}\n" for name in sorted(set(_DRIVER_FUNCTION.findall(text))))
    command = ["gcc", "-w", "-shared", "-Wl,-soname,libcuda.so.1", "-x", "c", "-", "-o", str(library)]
    subprocess.run(command, input=source, text=True, check=True)


def configure(checkout: Path, samples: Iterable[Sample], folder: Path) -> None:
    """Let CMake read the build files of these samples; each is built on its own later."""
    toolkit = toolkit_of(folder / "toolkit")
    source = folder / "project"
    source.mkdir(exist_ok=True)
    names = " ".join(each.name for each in samples)
    text = _PROJECT.format(names=names, samples=(checkout / "Samples").as_posix())
    (source / "CMakeLists.txt").write_text(text, encoding="utf-8")
    options = {
        "CMAKE_CUDA_COMPILER": toolkit / "bin" / "nvcc",
        "CMAKE_CUDA_ARCHITECTURES": "OFF",
        "CMAKE_C_FLAGS": "-O2 -g",
        "CMAKE_CXX_FLAGS": "-O2 -g",
        "CMAKE_CUDA_FLAGS": "-O2 -g",
        "CUDAToolkit_ROOT": toolkit,
        "CMAKE_SKIP_RPATH": "ON",
    }
    command = ["cmake", "-S", str(source), "-B", str(folder / "built"), "-G", "Ninja"]
    done = _run([*command, *(f"-D{name}={value}" for name, value in options.items())])
    if done.returncode:
        raise NotBuilt(done.stdout)


def build(sample: Sample, folder: Path) -> Path:
    """Build one sample; return its program. Raises NotBuilt."""
    done = _run(["ninja", "-C", str(folder / "built"), f"{sample.name}/all"])
    if done.returncode:
        lines = [line.strip() for line in done.stdout.splitlines() if not line.startswith(("FAILED", "["))]
        raise NotBuilt(next(filter(_ERROR.search, lines), lines[-1]))
    program = folder / "built" / sample.name / sample.target
    if not program.is_file():
        raise NotBuilt("its build files make no program of this name")
    return program


def _run(command: list[str]) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NVCC_APPEND_FLAGS": PTX}
    options = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "errors": "replace"}
    return subprocess.run(command, env=environment, check=False, **options)  # type: ignore[call-overload,no-any-return]

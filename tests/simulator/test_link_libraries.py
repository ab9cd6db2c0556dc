"""What a program compiles and links while it runs asks for the runtime by the name that it has everywhere."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from quiesce.simulator.runtime.build import find_compiler
from quiesce.simulator.runtime.elf_reading import read_dependencies
from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, write_library
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

pytestmark = pytest.mark.usefixtures("library")

LINK = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:]).returncode)"
ASK = "int {call}(); int main(void) {{ void *made[2]; return {call}(made, 0); }}"


@pytest.mark.parametrize(
    ("flavour", "call", "name", "soname"),
    [
        ("cuda:12", "cuInit", "cuda", "libcuda.so.1"),
        ("cuda:13", "cudaGetDriverEntryPointByVersion", "cudart", "libcudart.so.13"),
        ("cuda:11", "cudaGraphicsMapResources", "cudart", "libcudart.so.11.0"),
        ("hip:6", "hipMalloc", "amdhip64", "libamdhip64.so.6"),
    ],
)
def test_a_linker_finds_the_runtime(tmp_path: Path, flavour: str, call: str, name: str, soname: str) -> None:
    source, made = tmp_path / "client.c", tmp_path / "client"
    source.write_text(ASK.format(call=call), encoding="utf-8")
    command = [*find_compiler(), "-w", str(source), "-o", str(made), f"-l{name}"]
    environment = {**os.environ, "LIBRARY_PATH": str(tmp_path)}
    settings = MachineSettings(parse_flavour(flavour))
    with run_program([sys.executable, "-c", LINK, *command], settings, environment) as ended:
        assert ended.status == 0
    assert soname in read_dependencies(made).needed


def test_a_linker_finds_ours_before_an_installed_one(tmp_path: Path) -> None:
    """GCC searches the system's folders before those of LIBRARY_PATH, but not before these forms of them."""
    source, made, installed = tmp_path / "client.c", tmp_path / "client", tmp_path / "installed" / "lib64"
    source.write_text(ASK.format(call="hipMalloc"), encoding="utf-8")
    installed.mkdir(parents=True)
    (installed / "x86_64-linux-gnu").symlink_to(".")
    (installed / "libamdhip64.so").write_bytes(
        write_library(StubLibrary("libamdhip64.so.5", (StubFunction("hipMalloc", 0),)))
    )
    command = [*find_compiler(), "-w", str(source), "-o", str(made), "-lamdhip64"]
    environment = {**os.environ, "LIBRARY_PATH": str(installed)}
    settings = MachineSettings(parse_flavour("hip:6"))
    with run_program([sys.executable, "-c", LINK, *command], settings, environment) as ended:
        assert ended.status == 0
    assert "libamdhip64.so.6" in read_dependencies(made).needed


def test_a_users_own_folders_are_searched_too(tmp_path: Path) -> None:
    tell = "import os, sys; sys.exit(os.environ['LIBRARY_PATH'].endswith(':/own'))"
    environment = {**os.environ, "LIBRARY_PATH": "/own"}
    with run_program([sys.executable, "-c", tell], MachineSettings(parse_flavour("hip:7")), environment) as ended:
        assert ended.status == 1


def test_triton_links_with_the_functions_themselves(tmp_path: Path) -> None:
    """Triton names a folder and the file, and compilers may leave out a library that defines nothing that is used."""
    source, made = tmp_path / "client.c", tmp_path / "client.so"
    source.write_text(ASK.format(call="cuInit"), encoding="utf-8")
    named = "sys.argv.append('-L' + os.environ['TRITON_LIBCUDA_PATH']); "
    link = LINK.replace("import subprocess, sys; ", f"import os, subprocess, sys; {named}")
    as_triton = ["-shared", "-fPIC", "-Wl,--as-needed", "-l:libcuda.so.1"]
    command = [*find_compiler(), "-w", str(source), "-o", str(made), *as_triton]
    settings = MachineSettings(parse_flavour("cuda:12"))
    with run_program([sys.executable, "-c", link, *command], settings, dict(os.environ)) as ended:
        assert ended.status == 0
    assert "libcuda.so.1" in read_dependencies(made).needed

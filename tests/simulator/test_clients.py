"""What is about to run: interpreters and scripts are told apart, and only vendors' libraries are stood in for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from quiesce.simulator.clients import VENDOR_LIBRARY, clients_of
from quiesce.simulator.elf import ElfFile
from quiesce.simulator.flavours import parse_flavour
from quiesce.simulator.lookalikes import plan_stubs
from quiesce.simulator.stubs import write_stub_library

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux")


@pytest.mark.parametrize(
    "name",
    [
        *("libamdhip64.so.7", "libhipblas.so.3", "librocfft.so.0", "librccl.so.1", "libroctx64.so.4", "libMIOpen.so.1"),
        *(
            "libcudart.so.12",
            "libcuda.so.1",
            "libcublasLt.so.12",
            "libcufft.so.11",
            "libcudnn.so.8",
            "libcutensor.so.1",
        ),
        *("libnvrtc.so.12", "libnccl.so.2", "libnvToolsExt.so.1", "libcupti.so.12", "libcudnn_ops_infer.so.8"),
    ],
)
def test_vendors_libraries_are_known(name: str) -> None:
    assert VENDOR_LIBRARY.match(name)


@pytest.mark.parametrize(
    "name",
    [
        "libc.so.6",
        "libcurl.so.4",
        "libcups.so.2",
        "libnuma.so.1",
        "librocksdb.so.8.1",
        "libhiredis.so.1",
        "libnvme.so.1",
    ],
)
def test_others_are_left_alone(name: str) -> None:
    assert not VENDOR_LIBRARY.match(name)


def environment_with(folder: Path, needed: str) -> Path:
    """Make a virtual environment's skeleton with one extension module that needs a library; return its interpreter."""
    packages = folder / "lib" / "python3.11" / "site-packages" / "client"
    packages.mkdir(parents=True)
    (packages / "module.so").write_bytes(write_stub_library("module.so", ["entry"], needed))
    (packages / "data.txt").write_text("no library")
    (folder / "pyvenv.cfg").write_text("home = elsewhere\n")
    (folder / "bin").mkdir()
    interpreter = folder / "bin" / "python3.11"
    interpreter.write_bytes(b"")
    return interpreter


def test_an_interpreters_extension_modules_are_its_clients(tmp_path: Path) -> None:
    interpreter = environment_with(tmp_path, "libamdhip64.so.7")
    assert [client.path.name for client in clients_of(interpreter, {})] == ["module.so"]


def test_a_scripts_interpreter_is_read_from_its_first_line(tmp_path: Path) -> None:
    interpreter = environment_with(tmp_path, "libamdhip64.so.7")
    interpreter.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(f"#!{interpreter}\nprint()\n")
    assert [client.path.name for client in clients_of(script, {})] == ["module.so"]
    script.write_text("#!/bin/sh\necho\n")
    assert clients_of(script, {}) == []


def test_modules_without_a_vendors_library_are_no_clients(tmp_path: Path) -> None:
    assert clients_of(environment_with(tmp_path, "libcurl.so.4"), {}) == []


def test_pythons_own_path_is_looked_through(tmp_path: Path) -> None:
    environment_with(tmp_path / "one", "libcudart.so.12")
    bare = environment_with(tmp_path / "two", "libcurl.so.4")
    path = str(tmp_path / "one" / "lib" / "python3.11" / "site-packages")
    assert len(clients_of(bare, {"PYTHONPATH": path})) == 1


def test_functions_go_to_the_library_of_their_version_or_to_every_one() -> None:
    client = ElfFile(
        Path("module.so"),
        needed=("libamdhip64.so.7", "libhipblas.so.3", "libm.so.6"),
        undefined={
            "hipMalloc": "libamdhip64.so.7",
            "hipArrayCreate": "libamdhip64.so.7",
            "hipblasCreate": "",
            "cos": "libm.so.6",
            "PyLong_FromLong": "",
            "neighbour": "",
        },
    )
    neighbour = ElfFile(Path("other.so"), defined=frozenset({"neighbour"}))
    stubs = plan_stubs([client, neighbour], parse_flavour("hip:7"), frozenset({"hipMalloc"}))
    assert stubs == {
        "libamdhip64.so.7": {"hipArrayCreate", "hipblasCreate"},
        "libamdhip64.so": set(),
        "libhipblas.so.3": {"hipblasCreate"},
    }

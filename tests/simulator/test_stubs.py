"""Stub libraries: a loader takes them, versioned references bind to them, every function fails by its name."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.simulator.elf import read_elf
from quiesce.simulator.stubs import system_v_hash, write_stub_library

CALL = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
library.{function}.restype = ctypes.{result}
print(library.{function}())
"""


def call(path: Path, function: str, result: str = "c_int") -> subprocess.CompletedProcess[str]:
    text = CALL.format(function=function, result=result)
    return subprocess.run([sys.executable, "-c", text, str(path)], capture_output=True, text=True, check=False)


@pytest.fixture
def stub(library: str, tmp_path: Path) -> Path:
    path = tmp_path / "libhipblas.so.3"
    names = ["hipblasCreate", "hipblasGetErrorString", *(f"hipblasFunction{number}" for number in range(700))]
    path.write_bytes(write_stub_library(path.name, names, library))
    return path


def test_what_is_written_can_be_read(stub: Path, library: str) -> None:
    read = read_elf(stub)
    assert read is not None
    assert read.soname == "libhipblas.so.3"
    assert read.needed == (library, "libc.so.6")
    assert {"hipblasCreate", "hipblasFunction699"} <= read.defined
    assert len(read.defined) == 702
    assert list(read.undefined) == ["quiesce_not_simulated"]


def test_a_function_fails_by_its_name(stub: Path) -> None:
    done = call(stub, "hipblasFunction350")
    assert done.stdout == "801\n"
    assert "hipblasFunction350 (libhipblas.so.3) is not simulated" in done.stderr


def test_a_function_that_returns_text_returns_text(stub: Path) -> None:
    done = call(stub, "hipblasGetErrorString", "c_char_p")
    assert done.stdout == "b'not simulated by quiesce'\n"


def test_a_function_that_is_not_there_is_not_there(stub: Path) -> None:
    assert not hasattr(ctypes.CDLL(str(stub)), "hipblasUnknown")


def test_a_library_without_functions_can_be_loaded(library: str, tmp_path: Path) -> None:
    path = tmp_path / "libnone.so.1"
    path.write_bytes(write_stub_library(path.name, [], library))
    ctypes.CDLL(str(path))


def test_hashes_are_those_of_the_abi() -> None:
    assert system_v_hash("") == 0
    assert system_v_hash("GLIBC_2.2.5") == 0x09691A75  # as every binary that was linked with it says


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + bytes(14), b"\x7fELF\x01" * 20]
)
def test_what_is_no_library_is_not_read(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    assert read_elf(path) is None


@pytest.mark.parametrize("length", [64, 300, 700, 2000])
def test_a_truncated_library_is_not_read_or_read_in_part(stub: Path, length: int) -> None:
    stub.write_bytes(stub.read_bytes()[:length])
    read_elf(stub)  # whatever it says, it does not raise

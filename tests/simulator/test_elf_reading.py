"""What is read agrees with readelf, and no file, whatever is in it, ends in anything but an answer or one error."""

from __future__ import annotations

import os
import random
import re
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.model.errors import UnreadableObject
from quiesce.simulator.runtime.elf_reading import (
    SymbolKind,
    read_defined_names,
    read_dependencies,
    read_symbols,
    read_undefined,
    system_libraries,
)
from quiesce.simulator.runtime.elf_writing import StubFunction, StubLibrary, StubObject, write_library

SEED = 20260821
LIBRARY = StubLibrary(
    "librocblas.so.4",
    tuple(StubFunction(f"rocblas_{number}", number) for number in range(9)),
    (StubObject("rocblas_table", 24),),
    ("libamdhip64.so.7",),
    ("rocblas_4.0", "rocblas_4.1"),
)


def system_files() -> list[Path]:
    names = ("libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "libcrypto.so.3")
    files = [Path(system_libraries()[name]) for name in names if name in system_libraries()]
    return [*files, *(path for path in (Path(sys.executable).resolve(), Path("/bin/ls")) if path.is_file())]


SYSTEM_FILES = system_files() if sys.platform == "linux" else []


def readelf(option: str, path: Path) -> list[str]:
    program = shutil.which("readelf")
    if program is None:
        pytest.skip("needs readelf")
    made = subprocess.run([program, option, "-W", str(path)], capture_output=True, text=True, check=True)
    return made.stdout.splitlines()


@pytest.mark.parametrize("path", SYSTEM_FILES, ids=[path.name for path in SYSTEM_FILES])
def test_symbols_are_those_that_readelf_shows(path: Path) -> None:
    shown = []
    for line in readelf("--dyn-syms", path):
        fields = re.sub(r"\[[^]]*\]|<[^>]*>", "", line).split()  # what is in brackets is about visibility
        if len(fields) < 8 or fields[0] == "Num:" or fields[4] == "LOCAL":
            continue
        name, _, version = fields[7].replace("@@", "@").partition("@")
        kind = {"NOTYPE": 0, "OBJECT": 1, "FUNC": 2, "TLS": 6, "IFUNC": 10}[fields[3]]
        shown.append((name, kind, fields[6] != "UND", fields[4] == "WEAK", int(fields[2], 0), version))
    symbols = read_symbols(path)
    read = [(each.name, each.kind, each.defined, each.weak, each.size_bytes, each.version) for each in symbols]
    # readelf shows the symbol that a version has for itself (GLIBC_2.2.5, absolute) without that version
    assert [each if each[0] != each[5] else (*each[:5], "") for each in read] == shown


@pytest.mark.parametrize("path", SYSTEM_FILES, ids=[path.name for path in SYSTEM_FILES])
def test_dependencies_are_those_that_readelf_shows(path: Path) -> None:
    found: dict[str, list[str]] = {"NEEDED": [], "SONAME": [], "RPATH": [], "RUNPATH": []}
    for line in readelf("-d", path):
        match = re.search(r"\((NEEDED|SONAME|RPATH|RUNPATH)\).*\[(.*)\]", line)
        if match:
            found[match[1]].append(match[2])
    read = read_dependencies(path)
    assert list(read.needed) == found["NEEDED"]
    assert read.soname == "".join(found["SONAME"])
    assert ":".join(read.rpath) == "".join(found["RPATH"])
    assert ":".join(read.runpath) == "".join(found["RUNPATH"])


@pytest.mark.parametrize("path", SYSTEM_FILES, ids=[path.name for path in SYSTEM_FILES])
def test_parts_are_parts_of_the_whole(path: Path) -> None:
    symbols = read_symbols(path)
    assert read_undefined(path) == tuple(symbol for symbol in symbols if not symbol.defined)
    assert read_defined_names(path) == {symbol.name for symbol in symbols if symbol.defined}


def without_sections(content: bytes) -> bytes:
    """Return the file with its section headers forgotten, as ``sstrip`` leaves it."""
    return content[:40] + bytes(8) + content[48:58] + bytes(6) + content[64:]


@pytest.mark.parametrize("path", SYSTEM_FILES, ids=[path.name for path in SYSTEM_FILES])
def test_section_headers_are_not_needed(path: Path, tmp_path: Path) -> None:
    bare = tmp_path / "bare.so"
    bare.write_bytes(without_sections(path.read_bytes()))
    defined = [symbol for symbol in read_symbols(path) if symbol.defined]
    assert [symbol for symbol in read_symbols(bare) if symbol.defined] == defined


def test_what_a_client_wants_names_the_library_that_it_wants_it_from(tmp_path: Path) -> None:
    path = tmp_path / "made.so"
    path.write_bytes(write_library(LIBRARY))
    wanted = {symbol.name: symbol for symbol in read_undefined(path)}
    assert wanted["abort"].version_file == "libc.so.6"
    assert wanted["abort"].kind == SymbolKind.FUNCTION
    assert wanted["quiesce_not_simulated"].weak
    assert wanted["quiesce_not_simulated"].version == ""


def corrupted(content: bytes, draw: random.Random) -> bytes:
    made = bytearray(content)
    match draw.randrange(4):
        case 0:
            return bytes(made[: draw.randrange(len(made))])
        case 1:
            for _ in range(draw.randint(1, 8)):
                made[draw.randrange(len(made))] = draw.randrange(256)
        case 2:  # the headers and the first tables decide where everything else is looked for
            for _ in range(draw.randint(1, 4)):
                made[draw.randrange(min(len(made), 1024))] = draw.choice((0, 1, 0x7F, 0x80, 0xFF))
        case _:
            at = draw.randrange(len(made) - 8)
            number = draw.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(made), len(made) - 1))
            made[at : at + 8] = struct.pack("<Q", number)
    return bytes(made)


@pytest.mark.parametrize("source", ["written", "written without sections", "libgcc_s.so.1"])
def test_a_damaged_file_is_read_or_refused(source: str, tmp_path: Path) -> None:
    if source.startswith("written"):
        content = write_library(LIBRARY)
        content = without_sections(content) if source.endswith("sections") else content
    elif source in system_libraries():
        content = Path(system_libraries()[source]).read_bytes()
    else:
        pytest.skip(f"needs {source}")
    draw, path, refusals = random.Random(SEED), tmp_path / "damaged.so", list[str]()
    for _ in range(200):
        path.write_bytes(corrupted(content, draw))
        for read in (read_dependencies, read_symbols, read_defined_names):
            try:
                read(path)
            except UnreadableObject as error:
                refusals.append(str(error))
    assert not [text for text in refusals if "\n" in text]
    assert 30 < len(refusals) < 600  # some damage is fatal, some is not: the draw reaches both


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", "it is empty"),
        (b"#!/bin/sh\n", "does not begin as ELF files do"),
        (b"\x7fELF", "the file header ends after the end of the file"),
        (b"\x7fELF\x01\x01\x01".ljust(64, b"\0"), "it is not for x86-64"),
        (b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + b"\x03\0\xb7\0".ljust(48, b"\0"), "it is not for x86-64"),
        (b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + b"\x01\0\x3e\0".ljust(48, b"\0"), "neither an executable nor"),
    ],
)
def test_a_file_that_is_none_is_named_in_one_line(content: bytes, what: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UnreadableObject, match=what) as caught:
        read_symbols(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(UnreadableObject, match="there is no such file"):
        read_symbols(tmp_path / "nowhere")
    with pytest.raises(UnreadableObject, match="it is no regular file"):
        read_symbols(tmp_path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.so")  # opening it would wait for a writer
        with pytest.raises(UnreadableObject, match="it is no regular file"):
            read_symbols(tmp_path / "pipe.so")


def position_of_dynamic(content: bytearray, tag: int) -> int:
    """Return where a dynamic entry of a written library has its number."""
    start, size_bytes = struct.unpack_from("<Q16xQ", content, 64 + 3 * 56 + 8)
    for at in range(start, start + size_bytes, 16):
        if struct.unpack_from("<q", content, at) == (tag,):
            return int(at) + 8
    raise AssertionError(f"no entry {tag:#x}")


def test_versions_that_lead_back_to_themselves_are_refused(tmp_path: Path) -> None:
    content = bytearray(write_library(LIBRARY))
    (wanted,) = struct.unpack_from("<Q", content, position_of_dynamic(content, 0x6FFFFFFE))
    struct.pack_into("<HHIII", content, wanted, 1, 0xFFFF, 0, 16, 16)
    for at in range(wanted + 16, wanted + 32, 16):  # an entry that is followed by entries without end
        struct.pack_into("<IHHII", content, at, 0, 0, 9, 0, 1)
    path = tmp_path / "loop.so"
    path.write_bytes(content)
    with pytest.raises(UnreadableObject, match="overlap"):
        read_symbols(path)


def test_more_symbols_than_the_file_has_room_for_are_refused(tmp_path: Path) -> None:
    content = bytearray(write_library(LIBRARY))
    (table,) = struct.unpack_from("<Q", content, position_of_dynamic(content, 4))
    struct.pack_into("<II", content, table, 1, 0xFFFFFFFF)
    path = tmp_path / "many.so"
    path.write_bytes(content)
    with pytest.raises(UnreadableObject, match="the table of symbols ends after the end of the file"):
        read_symbols(path)

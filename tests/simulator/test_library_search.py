"""Libraries are found where the dynamic loader finds them, in its order."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from quiesce.simulator.runtime.elf_reading import Dependencies, find_library, read_cache, system_libraries

NO_FOLDERS = Dependencies("", (), (), ())


@pytest.fixture
def client(tmp_path: Path) -> Path:
    for folder in ("rpath", "runpath", "environment", "client"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "libx.so").touch()
    return tmp_path / "client" / "module.so"


def dependencies(client: Path, *, rpath: bool = False, runpath: bool = False) -> Dependencies:
    folder = client.parent.parent
    return Dependencies("", (), (str(folder / "rpath"),) * rpath, (str(folder / "runpath"),) * runpath)


@pytest.mark.parametrize(
    ("rpath", "runpath", "environment", "expected"),
    [
        (True, False, True, "rpath"),
        (True, True, True, "environment"),  # DT_RPATH is ignored beside DT_RUNPATH
        (True, True, False, "runpath"),
        (False, True, True, "environment"),
        (False, False, True, "environment"),
        (False, False, False, None),
    ],
)
def test_folders_are_searched_in_the_loaders_order(
    client: Path, rpath: bool, runpath: bool, environment: bool, expected: str | None
) -> None:
    paths = [str(client.parent.parent / "environment")] if environment else []
    found = find_library("libx.so", client, dependencies(client, rpath=rpath, runpath=runpath), paths)
    assert (found and found.parent.name) == expected


@pytest.mark.parametrize("token", ["$ORIGIN", "${ORIGIN}"])
def test_the_clients_own_folder_can_be_meant(client: Path, token: str) -> None:
    found = find_library("libx.so", client, Dependencies("", (), (f"{token}/../rpath",), ()))
    assert found is not None
    assert found.resolve() == (client.parent.parent / "rpath" / "libx.so").resolve()


def test_a_path_is_opened_as_it_is(client: Path) -> None:
    path = client.parent / "libx.so"
    assert find_library(str(path), client, NO_FOLDERS) == path
    assert find_library(str(path) + ".1", client, NO_FOLDERS) is None


def test_the_systems_libraries_are_those_that_ldconfig_lists() -> None:
    ldconfig = shutil.which("ldconfig") or shutil.which("ldconfig", path="/sbin:/usr/sbin")
    if ldconfig is None:
        pytest.skip("needs ldconfig")
    listed = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    expected: dict[str, str] = {}
    for name, path in re.findall(r"^\t(\S+) \([^)]*x86-64[^)]*\) => (\S+)$", listed, re.MULTILINE):
        expected.setdefault(name, path)
    assert dict(system_libraries()) == expected


def cache(*entries: tuple[int, str, str]) -> bytes:
    names, table = b"", b""
    start = 48 + 24 * len(entries)
    for flags, name, path in entries:
        table += struct.pack("<iIIIQ", flags, start + len(names), start + len(names) + len(name) + 1, 0, 0)
        names += f"{name}\0{path}\0".encode()
    return b"glibc-ld.so.cache1.1" + struct.pack("<II20x", len(entries), len(names)) + table + names


def test_libraries_for_other_machines_are_left_out() -> None:
    content = cache((0x0303, "libx.so", "/lib64/libx.so"), (0x0003, "liby.so", "/lib32/liby.so"))
    assert read_cache(content) == {"libx.so": "/lib64/libx.so"}
    assert read_cache(b"an older cache".ljust(64) + content) == {"libx.so": "/lib64/libx.so"}


def test_a_damaged_cache_is_read_as_far_as_it_goes() -> None:
    content = cache(*((0x0303, f"lib{number}.so", f"/lib64/lib{number}.so") for number in range(20)))
    draw = random.Random(5)
    for size_bytes in range(len(content)):
        read_cache(content[:size_bytes])
    for _ in range(500):
        damaged = bytearray(content)
        damaged[draw.randrange(len(damaged))] = draw.randrange(256)
        assert len(read_cache(bytes(damaged))) <= 20

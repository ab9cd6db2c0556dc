"""Structures are laid out as in the vendors' headers, where a package of these is installed.

QUIESCE_VENDOR_HEADERS names folders to look in as well, separated by colons. The wheels
``nvidia-cuda-runtime-cu11``, ``nvidia-cuda-runtime-cu12`` and ``nvidia-cuda-runtime`` carry CUDA's headers, a
distribution's ``libamdhip64-dev`` HIP's.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from quiesce.simulator.runtime.build import SOURCES, find_compiler
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program

# What CUDA's headers want of its compiler, and what these structures do not need.
ANNOTATIONS: Final = """
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __host__
#define __device__
#define CUDARTAPI
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(a) __align__(a)
"""
STRUCTURES: Final = {
    "cuda:11": ("driver_types.h", "struct cudaDeviceProp", "cuda_runtime_api.h", r"CUDART_VERSION +(\d+)"),
    "cuda:12": ("driver_types.h", "struct cudaDeviceProp", "cuda_runtime_api.h", r"CUDART_VERSION +(\d+)"),
    "cuda:13": ("driver_types.h", "struct cudaDeviceProp", "cuda_runtime_api.h", r"CUDART_VERSION +(\d+)"),
    "hip:5": ("hip/hip_runtime_api.h", "hipDeviceProp_t", "hip/hip_version.h", r"HIP_VERSION_MAJOR +(\d+)"),
    "hip:6": ("hip/hip_runtime_api.h", "hipDeviceProp_t", "hip/hip_version.h", r"HIP_VERSION_MAJOR +(\d+)"),
}


def layouts() -> Mapping[str, tuple[int, Mapping[str, int]]]:
    """Return the table of ``machine/device.c``, its macros replaced: by name the size, and the offsets of fields."""
    text = (SOURCES / "machine/device.c").read_text(encoding="utf-8")
    macros = {
        name: body.replace("\\\n", " ")
        for name, body in re.findall(r"#define (SHARED_\w+) *\\\n((?:.*\\\n)*.*)\n", text)
    }
    table = re.search(r"LAYOUTS\[\] = \{\n(.*?)\n\};", text, re.DOTALL)
    assert table
    found = {}
    for name, size, body in re.findall(
        r'\{"(\w+:\d+)",\s*(\d+),(.*?)\}\},?(?=\s*(?:\{"\w+:|\Z))', table[1] + "\n", re.DOTALL
    ):
        whole = re.sub("|".join(macros), lambda match: macros[match[0]], body)
        found[name] = (int(size), {field: int(at) for field, at in re.findall(r'\{"(\w+)",\s*(\d+)\b', whole)})
    return found


def folders() -> Iterator[Path]:
    for folder in filter(None, os.environ.get("QUIESCE_VENDOR_HEADERS", "").split(":")):
        yield Path(folder)
    packages = Path(sysconfig.get_paths()["purelib"])
    yield from (packages / "nvidia").glob("*/include")
    yield from (Path("/usr/include"), Path("/opt/rocm/include"), Path("/usr/local/cuda/include"))


def headers_of(name: str) -> Path:
    """Return the folder with a version's headers, or skip."""
    header, _, version_header, pattern = STRUCTURES[name]
    for folder in folders():
        if (folder / header).exists() and (folder / version_header).exists():
            found = re.search(pattern, (folder / version_header).read_text(encoding="utf-8", errors="replace"))
            if found and name == f"{name.partition(':')[0]}:{_major(int(found[1]))}":
                return folder
    pytest.skip(f"no headers of {name} are installed; QUIESCE_VENDOR_HEADERS can name their folder")


def _major(number: int) -> int:
    return number // 1000 if number >= 1000 else min(number, 6)  # ROCm 7 kept the structure of ROCm 6


def compile_only(folder: Path, lines: list[str], *options: str) -> None:
    source = folder / "layout.c"
    source.write_text("\n".join([*lines, ""]), encoding="utf-8")
    command = [*find_compiler(), "-w", "-D__HIP_PLATFORM_AMD__", f"-I{folder}", *options, "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_version_has_a_table() -> None:
    assert {name: len(fields) >= 24 for name, (_, fields) in layouts().items()} == dict.fromkeys(STRUCTURES, True)


@pytest.mark.parametrize("name", STRUCTURES)
def test_offsets_are_those_of_the_headers(name: str, tmp_path: Path, library: str) -> None:
    folder = headers_of(name)
    header, structure, *_ = STRUCTURES[name]
    size, fields = layouts()[name]
    (tmp_path / "crt").mkdir()
    (tmp_path / "crt" / "host_defines.h").write_text(ANNOTATIONS, encoding="utf-8")
    lines = [f'_Static_assert(sizeof({structure}) == {size}, "size");']
    lines += [f'_Static_assert(offsetof({structure}, {field}) == {at}, "{field}");' for field, at in fields.items()]
    compile_only(tmp_path, ["#include <stddef.h>", f"#include <{header}>", *lines], f"-I{folder}")


def test_offsets_since_rocm_6_are_those_that_hip_python_declares(tmp_path: Path, library: str) -> None:
    """The wheel ``hip-python`` repeats the structure of the header that it was made from, field by field."""
    package = Path(sysconfig.get_paths()["platlib"]) / "hip" / "chip.pxd"
    if not package.exists():
        pytest.skip("hip-python is not installed")
    found = re.search(r"cdef struct hipDeviceProp_t[^\n]*:\n((?: {8}.*\n)+)", package.read_text(encoding="utf-8"))
    assert found
    declared = [re.fullmatch(r"(.+?)((?:\[\d+\])?) +(\w+)", line.strip()) for line in found[1].splitlines()]
    members = "\n".join(f"{match[1]} {match[3]}{match[2]};" for match in declared if match)
    size, fields = layouts()["hip:6"]
    lines = ["#include <stddef.h>", "typedef struct { char bytes[16]; } hipUUID, hipUUID_t;"]
    lines += ["typedef struct { unsigned bits; } hipDeviceArch_t;", f"struct properties {{\n{members}\n}};"]
    lines += [f'_Static_assert(sizeof(struct properties) == {size}, "size");']
    lines += [f'_Static_assert(offsetof(struct properties, {name}) == {at}, "{name}");' for name, at in fields.items()]
    compile_only(tmp_path, lines)


@pytest.mark.parametrize(
    ("flavour", "function", "name"),
    [
        ("cuda:11", "GetDeviceProperties", "cuda:11"),
        ("cuda:12", "GetDeviceProperties", "cuda:11"),
        ("cuda:12", "GetDeviceProperties_v2", "cuda:12"),
        ("cuda:13", "GetDeviceProperties", "cuda:13"),
        ("hip:5", "GetDeviceProperties", "hip:5"),
        ("hip:7", "GetDeviceProperties", "hip:5"),
        ("hip:7", "GetDevicePropertiesR0600", "hip:6"),
    ],
)
def test_a_function_fills_the_structure_of_its_name(start: Any, flavour: str, function: str, name: str) -> None:
    size, fields = layouts()[name]
    client = start(flavour, capacity=12345678, devices=2)
    data = ctypes.create_string_buffer(b"\xaa" * 4096, 4096)
    client.ok(function, data, 1)
    assert data.raw[size:] == b"\xaa" * (4096 - size), "nothing is written behind the structure"
    assert data.raw.startswith(b"quiesce simulated device 1\0")
    assert int.from_bytes(data.raw[fields["totalGlobalMem"] :][:8], "little") == 12345678
    warp = int.from_bytes(data.raw[fields["warpSize"] :][:4], "little")
    assert warp == (64 if flavour.startswith("hip") else 32)


FIRST_CALL: Final = """
import ctypes
runtime, first, second = ctypes.CDLL("libcudart.so.13"), *(ctypes.create_string_buffer(1024) for _ in range(2))
assert runtime.cudaGetDeviceProperties(first, 0) == runtime.cudaGetDeviceProperties(second, 0) == 0
assert first.raw == second.raw
"""


def test_the_first_call_of_a_process_fills_the_structure_of_its_version(library: str) -> None:
    with run_program(
        [sys.executable, "-c", FIRST_CALL], MachineSettings(parse_flavour("cuda:13")), os.environ
    ) as ended:
        assert ended.status == 0

"""Images of modules and objects of kernels that are damaged, read by the runtime's own C under sanitizers."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")

from tests.fuzzing.limits import INPUTS
from tests.kernels.compiling import translate_kernel
from tests.seeds import SEED
from tests.simulator.test_image_architectures import CUBIN, PTX, fatbin, ptx

from quiesce.simulator.kernels.compiler import compile_text
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.runtime.build import SOURCES, find_compiler

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the runtime is simulated on Linux")

HARNESS: Final = Path(__file__).with_name("code_reader.c")
READERS: Final = ("image", "fatbin", "image_packed", "image_architectures", "image_elf", "image_bundle", "image_ptx")
SANITIZERS: Final = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
SAMPLE: Final = 1500
KERNELS: Final = (
    ".visible .entry k(.param .u64 a) {\n.reg .b64 %d<3>;\n.reg .b32 %r<3>;\nld.param.u64 %d1, [a];\n"
    "mov.u32 %r1, %tid.x;\nst.global.u32 [%d1], %r1;\nret;\n}\n",
    ".global .u32 g[4] = {1, 2, 3, 4};\n.visible .entry k(.param .u64 a) {\n.reg .b64 %d<3>;\n.reg .f32 %f<3>;\n"
    ".shared .b32 s[32];\nld.global.f32 %f1, [g];\nsin.approx.f32 %f1, %f1;\nst.shared.f32 [s], %f1;\nbar.sync 0;\n"
    "ld.param.u64 %d1, [a];\nst.global.f32 [%d1], %f1;\nret;\n}\n",
)
VARIABLES: Final = (
    "int number = 5; const double table[9] = {1, 2}; static int hidden[50]; int *first(void) { return hidden; }\n"
)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("reader") / "code_reader"
    sources = [*(SOURCES / "code" / f"{name}.c" for name in READERS), SOURCES / "kernels" / "object.c"]
    options = ["-std=gnu11", "-D_GNU_SOURCE", "-g", "-O1", *SANITIZERS, f"-I{SOURCES}"]
    command = [*find_compiler(), *options, str(HARNESS), *map(str, sources), "-o", str(made), "-ldl"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "-fsanitize" in done.stderr or "asan" in done.stderr:
        pytest.skip("this compiler has no sanitizers")
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Files of every form: PTX, fatbins, cubins, bundles, objects of kernels."""
    folder = tmp_path_factory.mktemp("originals")
    header = ".version 8.0\n.target sm_80\n.address_size 64\n"
    objects = []
    for text in KERNELS:
        for checks in (False, True):
            translated = translate_kernel(Module(header + text), "k", False, checks)
            objects.append(compile_text(translated))
    shared = folder / "variables.so"
    words = [*find_compiler(), "-shared", "-fPIC", "-xc", "-", "-o", str(shared)]
    subprocess.run(words, input=VARIABLES, text=True, check=True)
    cubin = bytearray(shared.read_bytes())
    struct.pack_into("<H", cubin, 18, 190)  # the machine: CUDA
    elf = shared.read_bytes()
    entry = b"hipv4-amdgcn-amd-amdhsa--gfx90a"
    at = 32 + 24 + len(entry)
    bundle = b"__CLANG_OFFLOAD_BUNDLE__" + struct.pack("<4Q", 1, at, len(elf), len(entry)) + entry + elf
    module = (header + "".join(KERNELS[1:])).encode() + b"\0"
    contents = [
        *objects,
        elf,
        bytes(cubin),
        bundle,
        module,
        fatbin((PTX, 80, ptx("sm_80")), (CUBIN, 80, bytes(cubin)), (PTX, 75, ptx("sm_75"))),
        _packed(module),
        struct.pack("<IHHQ", 0xBA55ED50, 1, 0xFFFF, 200) + bytes(184),  # its header is longer than the file
    ]
    paths = [folder / f"{number}" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_bytes(content)
    return paths


def _packed(text: bytes) -> bytes:
    """Return a fatbin with PTX that is compressed: an LZ4 block of literals and one copy."""
    length = len(text) - 15
    block = bytes([0xF4, *[255] * (length // 255), length % 255]) + text + struct.pack("<H", 8) + bytes([0x10, 0])
    body = struct.pack("<HHIQIIHHI", PTX, 0x101, 64, len(block), len(block), 0, 8, 1, 52)
    body += struct.pack("<IIQQQ", 0, 0, 0x2011, 0, len(text) + 9) + block
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def test_damaged_code_is_read_within_its_bounds(program: Path, originals: list[Path]) -> None:
    count = 20 * INPUTS or SAMPLE  # they take no time
    environment = {
        **os.environ,
        "ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1:max_allocation_size_mb=1024",
    }
    done = subprocess.run(
        [str(program), str(SEED), str(count), *map(str, originals)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"{count} inputs, 0 wrong\n"), done.stderr.rpartition("\r")[2]

"""Compilers that programs load: NVRTC and libNVVM, found without being told, and nvJitLink. All of them give PTX."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import find_compiler, require_platform
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="it needs pip install 'quiesce[kernels]'")

COMPILE: Final = """
import ctypes, sys
nvrtc = ctypes.CDLL(sys.argv[1])

def compile(source, *options):
    program, bytes_ = ctypes.c_void_p(), ctypes.c_size_t()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, b"kernel.cu", 0, None, None) == 0
    given = (ctypes.c_char_p * len(options))(*options)
    status = nvrtc.nvrtcCompileProgram(program, len(options), given)
    results = [str(status)]
    for what in ("ProgramLog", "PTX", "CUBIN", "LTOIR"):
        if getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(bytes_)):
            results.append("refused")
            continue
        place = ctypes.create_string_buffer(bytes_.value + 1)
        assert getattr(nvrtc, f"nvrtcGet{what}")(program, place) == 0
        results.append(place.value.decode())
        assert bytes_.value in (0, len(place.value) + 1), what
    assert nvrtc.nvrtcDestroyProgram(ctypes.byref(program)) == 0
    return results
"""
NVVM: Final = """
import ctypes
nvvm = ctypes.CDLL("libnvvm.so.4")
program, size = ctypes.c_void_p(), ctypes.c_size_t()
assert nvvm.nvvmCreateProgram(ctypes.byref(program)) == 0
options = (ctypes.c_char_p * 3)(b"-arch=compute_80", b"-gen-lto", b"-g")
assert nvvm.nvvmCompileProgram(program, 3, options) == 0
assert nvvm.nvvmGetCompiledResultSize(program, ctypes.byref(size)) == 0
result = ctypes.create_string_buffer(size.value)
assert nvvm.nvvmGetCompiledResult(program, result) == 0
print(result.value.decode().splitlines()[3])
"""
LINK: Final = """
import ctypes
linker = ctypes.CDLL("libnvJitLink.so.12")
driver = ctypes.CDLL("libcuda.so.1")
handle, size = ctypes.c_void_p(), ctypes.c_size_t()
options = (ctypes.c_char_p * 1)(b"-arch=sm_80")
assert linker.__nvJitLinkCreate_12_4(ctypes.byref(handle), 1, options) == 0
HEAD = b".version 8.0\\n.target sm_80\\n.address_size 64\\n"
CALLER = HEAD + b'''.extern .func (.param .b32 result) seven();
.visible .entry write(.param .u64 to) {
    .reg .b64 %rd<2>; .reg .b32 %r<2>;
    ld.param.u64 %rd1, [to];
    { .param .b32 got; call (got), seven; ld.param.b32 %r1, [got]; }
    st.global.u32 [%rd1], %r1; ret; }'''
CALLED = HEAD + b'''.visible .func (.param .b32 result) seven() {
    .reg .b32 %r<2>; mov.u32 %r1, 7; st.param.b32 [result], %r1; ret; }'''
LTO = b"\\xed\\x43\\x4e\\x7f" + bytes(100)
assert linker.nvJitLinkAddData(handle, 3, LTO, len(LTO), b"optimized") == 5
assert linker.nvJitLinkGetErrorLogSize(handle, ctypes.byref(size)) == 0
log = ctypes.create_string_buffer(size.value)
assert linker.nvJitLinkGetErrorLog(handle, log) == 0
print(log.value.decode())
for kind, text in ((1, CALLER), (10, CALLED)):  # a cubin of NVRTC's is PTX
    assert linker.nvJitLinkAddData(handle, kind, text, len(text), b"text") == 0
assert linker.nvJitLinkComplete(handle) == 0
assert linker.nvJitLinkGetLinkedCubinSize(handle, ctypes.byref(size)) == 0
cubin = ctypes.create_string_buffer(size.value)
assert linker.nvJitLinkGetLinkedCubin(handle, cubin) == 0
assert linker.nvJitLinkDestroy(ctypes.byref(handle)) == 0

module, function, context, block = (ctypes.c_void_p() for _ in range(4))
assert driver.cuInit(0) == 0
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
assert driver.cuModuleLoadData(ctypes.byref(module), cubin) == 0
assert driver.cuModuleGetFunction(ctypes.byref(function), module, b"write") == 0
assert driver.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(4)) == 0
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(block))
assert driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, None, arguments, None) == 0
number = ctypes.c_int()
assert driver.cuMemcpyDtoH_v2(ctypes.byref(number), block, ctypes.c_size_t(4)) == 0
assert driver.cuMemFree_v2(block) == 0
assert driver.cuDevicePrimaryCtxRelease(0) == 0
print(number.value)
"""


def run(program: str, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program on a simulated CUDA 12, with all that it says."""
    words = [sys.executable, "-m", "quiesce.cli.main", "exec", "--kernels", "run", "--flavour", "cuda:12", "--"]
    return subprocess.run(
        [*words, sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1", **variables},
    )


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with a library that stands in for NVRTC, as NVIDIA's package has it."""
    folder = tmp_path_factory.mktemp("packages")
    library = folder / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
    library.parent.mkdir(parents=True)
    try:
        require_platform()
        compiler = find_compiler()
    except BackendUnavailable as error:
        pytest.skip(str(error))
    source = Path(__file__).with_name("stand_in_compiler.c")
    subprocess.run([*compiler, "-shared", "-fPIC", "-Wl,-soname,libnvrtc.so.12", "-o", library, source], check=True)
    return folder


def compiled(packages: Path, program: str) -> str:
    """Run a program with the packages, whose NVRTC it opens by its path: of those by the name the system's is first."""
    search = f"{packages}:{os.environ.get('PYTHONPATH', '')}"
    library = packages / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
    done = run(COMPILE + program, str(library), PYTHONPATH=search)
    assert "Traceback" not in done.stderr, done.stdout + done.stderr
    return done.stdout


def test_a_program_gets_ptx_in_place_of_machine_code(packages: Path) -> None:
    said = compiled(
        packages,
        """
for options in ([b"-arch=sm_90a"], [b"--gpu-architecture", b"sm_86"], [b"-arch=compute_70"], [b"-dlto"]):
    status, _, ptx, cubin, lto = compile(b"", b"-DX=sm_1", *options)
    print(ptx.splitlines()[0], "|", ptx.splitlines()[4].partition(" -I")[0], "|", cubin == ptx, lto == ptx, status)
""",
    )
    mark = "// Compiled for a device that quiesce simulates"
    assert said.splitlines()[:4] == [
        f"{mark} | // -DX=sm_1 -arch=compute_90a -lineinfo | True False 0",
        f"{mark} | // -DX=sm_1 --gpu-architecture compute_86 -lineinfo | True False 0",
        f"{mark} | // -DX=sm_1 -arch=compute_70 -lineinfo | False False 0",
        f"{mark} | // -DX=sm_1 -rdc=true -lineinfo | False True 0",
    ]


def test_the_source_goes_along_with_the_ptx(packages: Path) -> None:
    said = compiled(
        packages,
        r"""
import base64
for source in (b"/" * 1, b"of \xc3\xa4 line\n  and\tanother", b"xyz" * 1000, b"x" * (1 << 20 | 1)):
    ptx = compile(source, b"-arch=sm_80")[2].splitlines()
    words = ptx[1].split()
    is_there = words[:2] == ["//", "quiesce-source"]
    print(is_there and [base64.b64decode(word) for word in words[2:]] == [b"kernel.cu", source], len(ptx))
""",
    )
    assert said.splitlines()[:4] == ["True 8", "True 8", "True 8", "False 7"]


def test_a_library_that_is_named_by_its_path_is_that_one(packages: Path, tmp_path: Path) -> None:
    there = tmp_path / "elsewhere" / "libnvrtc.so.12"
    there.parent.mkdir()
    there.write_bytes((packages / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12").read_bytes())
    done = run(COMPILE + "print(compile(b'', b'-arch=sm_80')[3].splitlines()[4])", str(there))
    assert done.stdout.startswith("// -arch=compute_80"), done.stdout + done.stderr


def test_an_nvrtc_that_the_loader_finds_comes_before_that_of_a_package(packages: Path, tmp_path: Path) -> None:
    """As on the machine: ``LD_LIBRARY_PATH`` stands for the system's folders. Ours is opened, and uses that one."""
    there = packages / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
    (tmp_path / "libnvrtc.so.12").write_bytes(there.read_bytes())
    package = tmp_path / "packages" / there.relative_to(packages)
    package.parent.mkdir(parents=True)
    package.touch()
    variables = {"LD_LIBRARY_PATH": str(tmp_path), "PYTHONPATH": str(tmp_path / "packages")}
    done = run(COMPILE + "print(compile(b'', b'-arch=sm_80')[3].splitlines()[4])", "libnvrtc.so.12", **variables)
    assert done.stdout.startswith("// -arch=compute_80"), done.stdout + done.stderr


def test_folders_of_headers_come_along(packages: Path) -> None:
    header = packages / "nvidia" / "cuda_runtime" / "include" / "cuda_fp16.h"
    said = compiled(packages, "print(compile(b'fails')[1])")
    assert said.startswith("kernel.cu(1): catastrophic error")
    assert "quiesce: if the header is one of CUDA's, run" in said
    assert "-m pip install nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12; " in said
    assert "cuFFT's in nvidia-cufft-cu12" in said
    header.parent.mkdir(parents=True)
    header.touch()
    try:
        assert f"// -I{header.parent}" in compiled(packages, "print(compile(b'')[2])")
    finally:
        header.unlink()


@pytest.mark.skipif("CUDA_PATH" in os.environ, reason="it is for a machine without CUDA's toolkit")
def test_without_nvrtc_the_log_says_what_to_install() -> None:
    done = run(COMPILE + "print(compile(b'', b'-arch=sm_80'))", "libnvrtc.so.11.2")
    if "['0'" in done.stdout:
        pytest.skip("NVRTC is installed here")
    wanted = f"NVRTC (libnvrtc.so.11.2) is not installed; run {sys.executable} -m pip install nvidia-cuda-nvrtc-cu11"
    assert done.stdout.startswith(f"['6', 'quiesce: {wanted}\\n', 'refused', "), done.stdout + done.stderr
    assert f"quiesce: {wanted}\n" in done.stderr


FAILS: Final = """
import ctypes
cuda, block = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
assert cuda.cudaMalloc(ctypes.byref(block), ctypes.c_size_t(64)) == 0
assert ctypes.CDLL("libnvvm.so.4").nvvmVersion(ctypes.byref(ctypes.c_int()), ctypes.byref(ctypes.c_int())) == 0
"""


@pytest.mark.skipif("CUDA_PATH" in os.environ, reason="it is for a machine without CUDA's toolkit")
def test_without_libnvvm_the_verdict_says_what_to_install() -> None:
    words = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:12", "--", sys.executable, "-c"]
    done = subprocess.run([*words, FAILS], capture_output=True, text=True, check=False)
    if done.returncode == 0:
        pytest.skip("libNVVM is installed here")
    wanted = f"libNVVM (libnvvm.so.4) is not installed; run {sys.executable} -m pip install nvidia-cuda-nvcc-cu12"
    assert f"the program ended with status 1; {wanted}" in done.stdout


def test_without_kernels_that_run_a_client_has_the_vendors_own(packages: Path) -> None:
    library = packages / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
    program = "import ctypes, sys; print(hasattr(ctypes.CDLL(sys.argv[1]), 'nvrtcGetCUBIN'))"
    words = [sys.executable, "-m", "quiesce.cli.main", "exec", "--kernels", "off", "--", sys.executable, "-c", program]
    done = subprocess.run([*words, str(library)], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[0] == "False"  # which the one that stands in has not


def test_triton_gets_an_assembler_that_keeps_the_ptx(tmp_path: Path) -> None:
    text = tmp_path / "kernel of mine.ptx"
    text.write_text(".version 8.0\n", encoding="utf-8")
    program = """
import os, subprocess, sys
for name in ("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"):
    assembler = os.environ[name]
    print(subprocess.check_output([assembler, "--version"], text=True).strip())
    words = [assembler, "-lineinfo", "-v", "--gpu-name=sm_80", sys.argv[1], "-o", sys.argv[1] + ".o"]
    subprocess.run(words, check=True)
"""
    done = run(program, str(text))
    version = "ptxas of quiesce: Cuda compilation tools, release 12.9, V12.9.0"
    assert done.stdout.splitlines()[:2] == [version, version], done.stdout + done.stderr
    assert text.with_name("kernel of mine.ptx.o").read_text(encoding="utf-8") == ".version 8.0\n"


def test_any_assembler_of_nvidias_keeps_the_ptx_but_for_what_nvcc_packs(tmp_path: Path) -> None:
    """XLA calls one by its path, with a text whose name has another ending; nvcc packs nothing but machine code."""
    text, assembler = tmp_path / "text", tmp_path / "ptxas"
    text.write_text(".version 8.0\n", encoding="utf-8")
    assembler.write_text("#!/bin/sh\necho real\n", encoding="utf-8")
    assembler.chmod(0o755)
    program = """
import shutil, subprocess, sys
text, assembler = sys.argv[1:]
for out in (text + ".cubin", "tmpxft_0_0.cubin"):
    print(subprocess.check_output([assembler, text, "-o", out, "-arch=sm_80", "--warn-on-spills"], text=True).strip())
print(subprocess.check_output([shutil.which("ptxas"), "--version"], text=True).strip())
"""
    done = run(program, str(text), str(assembler))
    assert done.stdout.splitlines()[:2] == ["", "real"], done.stdout + done.stderr
    assert "ptxas" in done.stdout.splitlines()[2]
    assert text.with_name("text.cubin").read_text(encoding="utf-8") == ".version 8.0\n"


def test_libnvvm_gives_ptx_in_place_of_lto_ir(packages: Path, tmp_path: Path) -> None:
    library = tmp_path / "nvidia" / "cuda_nvcc" / "nvvm" / "lib64" / "libnvvm.so"
    library.parent.mkdir(parents=True)
    library.write_bytes((packages / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12").read_bytes())
    done = run(NVVM, PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert done.stdout.startswith("// -arch=compute_80 -g\n"), done.stdout + done.stderr


def test_texts_that_are_linked_call_each_other() -> None:
    done = run(LINK)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[:2] == ["optimized is LTO-IR, which quiesce can't execute; compile it to PTX", "7"]

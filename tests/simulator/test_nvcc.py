"""Programs that NVIDIA's nvcc compiles, on the simulated runtime: variables, kernels, and faults with their lines."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest


def _toolkit() -> Path | None:
    """Return the folder in which the wheels of the CUDA Toolkit put nvcc and the runtime."""
    try:
        files = importlib.metadata.files("nvidia-cuda-nvcc") or ()
    except importlib.metadata.PackageNotFoundError:
        return None
    return next((Path(str(each.locate())).parent.parent for each in files if each.name == "nvcc"), None)


TOOLKIT: Final = _toolkit()
pytestmark = pytest.mark.skipif(TOOLKIT is None, reason="it needs nvcc: tox -e nvcc-13.0")

VARIABLES: Final = """
#include <cstdio>
#include <cstring>
struct Mixed { int number; double ratio; char text[5]; };
__managed__ int shared = 7;
__managed__ float managed[1000];
__device__ int counter = 41;
__constant__ const int limit = 5;
__constant__ float ratio = 2.5f;
static __device__ Mixed mixed = {1, 2.5, "four"};
namespace { __device__ short hidden[3] = {1, -2, 3}; }
template <int N> __device__ int numbered = N;
__device__ int *pointer;
__global__ void work() {
    shared += limit + counter + mixed.number + hidden[0] + numbered<6> + (int)(ratio * managed[0]) + *pointer;
}
template <typename T> bool holds(const T &symbol, const T &wanted) {
    static T place;
    return cudaMemcpyFromSymbol(&place, symbol, sizeof place) == cudaSuccess && !memcmp(&place, &wanted, sizeof place);
}
int main() {
    int *block, number;
    short expected[3] = {1, -2, 3};
    Mixed found;
    if (shared != 7 || managed[999] != 0) return 3;
    shared = 8;
    managed[1] = 2;
    if (!holds(counter, 41) || !holds(ratio, 2.5f) || !holds(numbered<6>, 6)) return 4;
    if (cudaMemcpyFromSymbol(&number, limit, 4) || number != 5) return 5;
    short place[3];
    if (cudaMemcpyFromSymbol(place, hidden, sizeof place) || memcmp(place, expected, sizeof place)) return 6;
    if (cudaMemcpyFromSymbol(&found, mixed, sizeof found) || found.ratio != 2.5 || strcmp(found.text, "four")) return 7;
    cudaMalloc(&block, 4);
    cudaMemcpyToSymbol(pointer, &block, sizeof block);
    work<<<1, 32>>>();
    cudaPointerAttributes about;
    if (cudaDeviceSynchronize() || cudaPointerGetAttributes(&about, &shared)) return 8;
    if (about.type != cudaMemoryTypeManaged || shared != 8) return 9;
    cudaMemcpyFromSymbol(&block, pointer, sizeof block);
    return cudaFree(block);
}
"""
OTHER_OBJECT: Final = """
static __device__ int counter = {value};
static __global__ void work() {{ counter++; }}
int read_{value}() {{
    int found = 0;
    work<<<1, 1>>>();
    return cudaMemcpyFromSymbol(&found, counter, sizeof found) ? -1 : found;
}}
"""
MAIN: Final = "int {functions};\nint main() {{ return {checks} ? 0 : 3; }}\n"
LIBRARY: Final = """
__device__ int counter = 41;
__managed__ int shared = 1;
static __global__ void work() { counter++; }
extern "C" int *exchange(int value, int *before) {
    int *block = nullptr;
    if (cudaMemcpyFromSymbol(before, counter, sizeof *before)) return nullptr;
    cudaMemcpyToSymbol(counter, &value, sizeof value);
    shared += value;
    work<<<1, 1>>>();
    cudaMalloc(&block, 4);
    return block;
}
extern "C" int take(int *block, int value) {
    int now = 0;
    return cudaFree(block) || cudaMemcpyFromSymbol(&now, counter, sizeof now) || now != value || shared != 1 + value;
}
"""
LOAD: Final = """
import ctypes, sys
libraries = [ctypes.CDLL(path) for path in sys.argv[1:]]
blocks, before = [], ctypes.c_int()
for number, library in enumerate(libraries):
    library.exchange.restype = ctypes.c_void_p
    blocks.append(library.exchange(number, ctypes.byref(before)))
    assert before.value == 41
assert len(set(blocks)) == len(libraries)
for number, library in enumerate(libraries):
    assert library.take(ctypes.c_void_p(blocks[number - 1]), number) == 0, number
"""
PER_THREAD: Final = """
#include <thread>
__global__ void work(char *to) { *to = 1; }
static void use() {
    char *block;
    cudaMalloc(&block, 64);
    cudaMemsetAsync(block, 1, 64);
    work<<<1, 1>>>(block);
    cudaFree(block);
}
int main() {
    std::thread first(use), second(use);
    first.join();
    second.join();
    return cudaGetLastError();
}
"""
FAULTY: Final = """
__managed__ int shared = 1;
__device__ char *pointer;
int main() {
    char *block;
    cudaStream_t first, second;
    cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
    cudaMalloc(&block, 64);
    cudaMemcpyToSymbol(pointer, &block, sizeof block);
    cudaMemsetAsync(block, 1, 64, first);
    cudaMemsetAsync(block, 2, 64, second);
    cudaDeviceSynchronize();
    cudaStreamDestroy(first);
    cudaStreamDestroy(second);
    cudaFree(block);
    cudaMemset(block, 0, 64);
    return shared - 1;
}
"""


def build(
    folder: Path, sources: dict[str, str], *flags: str, runtime: str = "shared", code: str = "-arch=sm_80"
) -> Path:
    """Compile sources to code for a device, and link them with that runtime, shared or static."""
    assert TOOLKIT is not None
    for name, text in sources.items():
        (folder / name).write_text(text)
    (folder / "libcudart.so").symlink_to(next((TOOLKIT / "lib").glob("libcudart.so.*")))
    program = folder / "program"
    libraries = ("-cudart", runtime, f"-L{folder}", f"-L{TOOLKIT / 'lib'}")
    command = [str(TOOLKIT / "bin" / "nvcc"), code, "-g", *flags, *libraries, "-o", str(program), *sources]
    subprocess.run(command, check=True, cwd=folder)
    return program


def run(*program: object, options: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "quiesce.cli.main", "exec", "--flavour", "cuda:13", *options, "--"]
    command += map(str, program)
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1"})


def assert_passes(*program: object) -> None:
    """Run a program as it is without kernels: these would change the variables that it looks at."""
    done = run(*program, options=("--kernels", "off"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "not simulated" not in done.stderr


@pytest.mark.parametrize("mode", ["default", "speed", "size"])
def test_variables_of_compressed_code_have_their_values(tmp_path: Path, mode: str) -> None:
    code = "-gencode=arch=compute_80,code=compute_80"  # a device would compile it
    assert_passes(build(tmp_path, {"variables.cu": VARIABLES}, f"-compress-mode={mode}", code=code))


@pytest.mark.parametrize("runtime", ["shared", "static"])
@pytest.mark.parametrize("flags", [(), ("-rdc=true",)], ids=["whole program", "relocatable device code"])
def test_variables_have_the_values_of_their_source(tmp_path: Path, flags: tuple[str, ...], runtime: str) -> None:
    assert_passes(build(tmp_path, {"variables.cu": VARIABLES}, *flags, runtime=runtime))


def test_objects_with_equal_names_keep_their_variables_apart(tmp_path: Path) -> None:
    values = range(10, 20)
    objects = {f"object_{value}.cu": OTHER_OBJECT.format(value=value) for value in values}
    functions = ", ".join(f"read_{value}()" for value in values)
    checks = " && ".join(f"read_{value}() == {value}" for value in values)
    assert_passes(build(tmp_path, objects | {"main.cu": MAIN.format(functions=functions, checks=checks)}))


@pytest.mark.parametrize("runtimes", [2, 5, 10])
def test_runtimes_in_one_process_share_a_device_and_no_variable(tmp_path: Path, runtimes: int) -> None:
    library = build(tmp_path, {"library.cu": LIBRARY}, "-shared", "-Xcompiler", "-fPIC", runtime="static")
    copies = [tmp_path / f"library_{number}.so" for number in range(runtimes)]
    for copy in copies:
        copy.write_bytes(library.read_bytes())
    assert_passes(sys.executable, "-c", LOAD, *copies)


@pytest.mark.parametrize("runtime", ["shared", "static"])
def test_threads_have_default_streams_of_their_own(tmp_path: Path, runtime: str) -> None:
    assert_passes(build(tmp_path, {"threads.cu": PER_THREAD}, "--default-stream", "per-thread", runtime=runtime))


@pytest.mark.parametrize("runtime", ["shared", "static"])
def test_faults_are_found_at_their_lines(tmp_path: Path, runtime: str) -> None:
    done = run(build(tmp_path, {"faulty.cu": FAULTY}, runtime=runtime))
    assert done.returncode == 1, done.stdout + done.stderr
    rules = set(re.findall(r"rule: +(\w+)", done.stdout))
    assert rules == {"conflicting_uses_are_ordered", "freed_memory_is_not_used"}, done.stdout
    lines = [
        number for number, line in enumerate(FAULTY.splitlines(), 1) if "block, 2, 64" in line or "block, 0" in line
    ]
    for line in lines:
        assert f"faulty.cu:{line}" in done.stdout

"""Programs that NVIDIA's nvcc compiles, and their results on the simulated device: those of the processor."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from tests.simulator.test_nvcc import TOOLKIT, build, run
from tests.simulator.test_nvcc import pytestmark as needs_nvcc

pytestmark = needs_nvcc

SAMPLES: Final = (
    "vector addition, matrix multiplication, matrix multiplication of large tiles, reduction in dynamic shared memory, "
    "reduction in warps, reduction in cooperative groups, reduction in tiles of warps, transposition, histogram, scan, "
    "constant memory, device variables, managed memory, streams and events, graphs, atomics, recursion, half "
    "precision, mathematics, vectors, a grid that waits"
)
TEXTURES: Final = "a picture, turned, layers, a volume, a cube, memory with a pitch, linear memory, a surface"
ALGORITHMS: Final = (
    "reduce, max_element, transform, inclusive_scan, count_if, copy_if, stable_sort_by_key, sort, unique, "
    "DeviceReduce, DeviceScan, DeviceRadixSort, DeviceHistogram"
)
FAILS: Final = """
#include <cassert>
#include <cstdio>
__global__ void work(int *block) { assert(threadIdx.x < 40 && "too many"); block[threadIdx.x] = 1; }
int main() {
    int *block;
    cudaMalloc(&block, 256);
    work<<<1, 64>>>(block);
    std::printf("%s\\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"""
MACHINE_CODE: Final = """
__global__ void work(int *block) { *block = 1; }
int main() {
    int *block;
    cudaMalloc(&block, 4);
    work<<<1, 1>>>(block);
    return cudaFree(block);
}
"""
PLACES: Final = """
#include <cuda_fp16.h>
namespace settings { __device__ float weights[8]; }
namespace { __constant__ int hidden[4]; }
__device__ __forceinline__ void helper(double *to) {
    atomicAdd_system(to, 1.0);
}
__global__ void system_atomic(int *to, int at) {
    atomicAdd_system(to + at, 1);
}
__global__ void nested(double *to, int at) {
    helper(to + at);
}
__global__ void halves(__half2 *to, int at) {
    atomicAdd(to + at, __half2{});
}
__global__ void variable(float *to, int at) {
    to[0] = settings::weights[at];
}
__global__ void constant(int *to, int at) {
    to[0] = hidden[at];
}
int main() {
    int *block;
    cudaMalloc(&block, 4000);
    cudaMemset(block, 0, 4000);
    system_atomic<<<1, 1>>>(block, 1000);
    nested<<<1, 1>>>((double *)block, 500);
    halves<<<1, 1>>>((__half2 *)block, 1000);
    variable<<<1, 1>>>((float *)block, 8);
    constant<<<1, 1>>>(block, 4);
    return cudaFree(block);
}
"""
PARTS: Final = {
    "one.cu": """
__device__ int counter = 40;
__device__ int more(int by) { return atomicAdd(&counter, by) + by; }
""",
    "main.cu": """
#include <cstdio>
extern __device__ int counter;
__device__ int more(int by);
__global__ void work(int *to) { *to = more(2) + counter; }
int main() {
    int *block, found;
    cudaMalloc(&block, 4);
    work<<<1, 1>>>(block);
    cudaMemcpy(&found, block, 4, cudaMemcpyDeviceToHost);
    std::printf("%d\\n", found);
    return cudaFree(block);
}
""",
}
VIRTUAL: Final = "-gencode=arch=compute_75,code=compute_75"


def right_in(output: str) -> str:
    assert "wrong: " not in output, output
    return ", ".join(re.findall("^right: (.*)$", output, re.MULTILINE))


@pytest.mark.parametrize("runtime", ["shared", "static"])
@pytest.mark.parametrize("code", ["-arch=sm_80", "-arch=sm_90", VIRTUAL])
def test_samples_compute_what_the_processor_does(tmp_path: Path, code: str, runtime: str) -> None:
    source = Path(__file__).with_name("nvcc_samples.cu").read_text(encoding="utf-8")
    done = run(build(tmp_path, {"samples.cu": source}, code=code, runtime=runtime))
    assert done.returncode == 0, done.stdout + done.stderr
    assert right_in(done.stdout) == SAMPLES
    said = [f"thread {thread} of block {block}: number  1.25" for block in range(2) for thread in range(2)]
    assert [line for line in done.stdout.splitlines() if line.startswith("thread")] == said


def test_textures_compute_what_the_processor_does(tmp_path: Path) -> None:
    source = Path(__file__).with_name("nvcc_textures.cu").read_text(encoding="utf-8")
    done = run(build(tmp_path, {"textures.cu": source}))
    assert done.returncode == 0, done.stdout + done.stderr
    assert right_in(done.stdout) == TEXTURES


def test_thrust_and_cub_compute_what_the_processor_does(tmp_path: Path) -> None:
    assert TOOLKIT is not None
    headers = next((folder for folder in (TOOLKIT / "include/cccl", TOOLKIT / "cccl") if folder.exists()), None)
    if headers is None:
        pytest.skip("it needs nvidia-cuda-cccl: tox -e nvcc-13.0")
    source = Path(__file__).with_name("nvcc_algorithms.cu").read_text(encoding="utf-8")
    done = run(build(tmp_path, {"algorithms.cu": source}, f"-I{headers}"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert right_in(done.stdout) == ALGORITHMS


def test_an_assertion_is_told(tmp_path: Path) -> None:
    done = run(build(tmp_path, {"fails.cu": FAILS}))
    assert "cudaErrorAssert" in done.stdout
    assert "fails.cu:4: void work(int *): block: [0,0,0], thread: [40,0,0] Assertion `threadIdx.x < 40" in done.stderr


def test_machine_code_alone_is_named(tmp_path: Path) -> None:
    done = run(build(tmp_path, {"work.cu": MACHINE_CODE}, code="-gencode=arch=compute_80,code=sm_80"))
    assert done.returncode == 2
    assert "'work' (its image has machine code only, and no PTX)" in done.stdout


def test_parts_that_are_linked_compute(tmp_path: Path) -> None:
    done = run(build(tmp_path, PARTS, "-rdc=true", code=VIRTUAL))
    assert done.stdout.startswith("84\n"), done.stdout + done.stderr
    assert done.returncode == 0


@pytest.mark.parametrize("lines", ["-lineinfo", "-G"])
def test_code_of_headers_is_placed_at_its_caller_and_variables_are_named(tmp_path: Path, lines: str) -> None:
    done = run(build(tmp_path, {"places.cu": PLACES}, lines))
    assert done.returncode == 1, done.stdout + done.stderr
    observed = re.findall(
        r"^  observed:  kernel '(\w+)' .* the end of (.*), in thread .*? at .*?places.cu:(.*)$", done.stdout, re.M
    )
    nested = "6, inlined at " if lines == "-lineinfo" else "6"
    block = "a device block of 4,000 bytes (3.9 KiB)"
    assert [(kernel, what, line.partition(str(tmp_path))[0]) for kernel, what, line in observed] == [
        ("system_atomic", block, "9"),
        ("nested", block, nested),
        ("halves", block, "15"),
        ("variable", "variable 'settings::weights' of 32 bytes", "18"),
        ("constant", "variable '(anonymous namespace)::hidden' of 16 bytes", "21"),
    ]
    assert ">  9 |     atomicAdd_system(to + at, 1);" in done.stdout

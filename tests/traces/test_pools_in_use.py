"""A pass says which pool of a package was in use, known by the call stacks of its requests for memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.cli.endings import ExitCode
from quiesce.cli.main import main
from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library, find_compiler

BEGIN = """
import ctypes
runtime = ctypes.CDLL("libcudart.so.12")

def take(allocate):
    pointer = ctypes.c_void_p()
    assert allocate(ctypes.byref(pointer), ctypes.c_size_t(64)) == 0
    assert runtime.cudaFree(pointer) == 0
"""
NATIVE = """
import sys
library = ctypes.PyDLL(sys.argv[1])
take(lambda pointer, size: getattr(library, sys.argv[2])(runtime.cudaMalloc, pointer, size))
"""
NUMBA = """
class NumbaCUDAMemoryManager:
    def memalloc(self, runtime, pointer, size):
        return runtime.cudaMalloc(pointer, size)
"""


@pytest.fixture(autouse=True)
def _built() -> None:
    try:
        build_library()
    except BackendUnavailable as error:
        pytest.skip(str(error))


def said(capsys: pytest.CaptureFixture[str], *words: str, options: tuple[str, ...] = ()) -> list[str]:
    """What a pass of a program does not cover, or under --no-pools whose pools were off."""
    assert main(["exec", *options, "--", *words]) == ExitCode.NOTHING_FOUND
    read = capsys.readouterr()
    return [line for line in (read.out + read.err).splitlines() if line.startswith(("but ", "quiesce: --no-pools: "))]


@pytest.mark.parametrize(
    ("file", "function", "owner"),
    [
        ("cupy/cuda/memory.so", "__pyx_f_4cupy_4cuda_6memory_10MemoryPool_malloc", "CuPy"),
        ("cupy/cuda/memory.so", "__pyx_f_4cupy_4cuda_6memory__malloc", ""),
        ("cupy/cuda/memory.so", "__pyx_f_4cupy_4cuda_6memory_15MemoryAsyncPool_malloc", ""),
        ("torch/lib/libc10_cuda.so", "allocate", "PyTorch"),
        ("torch/lib/libother.so", "allocate", ""),
    ],
)
def test_a_pool_is_known_by_its_native_code(
    file: str, function: str, owner: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, library, program = tmp_path / "pool.c", tmp_path / file, tmp_path / "program.py"
    library.parent.mkdir(parents=True)
    body = f"int {function}(int (*take)(void *, unsigned long), void *p, unsigned long n)"
    source.write_text(body + ' { int status = take(p, n); __asm__ volatile(""); return status; }', encoding="utf-8")
    subprocess.run([*find_compiler(), "-shared", "-fPIC", "-o", library, source], check=True)
    program.write_text(BEGIN + NATIVE, encoding="utf-8")
    lines = said(capsys, sys.executable, str(program), str(library), function)
    assert [line.split()[1] for line in lines] == ([owner] if owner else [])
    if owner == "PyTorch":
        off = "PYTORCH_NO_CUDA_MEMORY_CACHING=1"
        hidden = "so a use after free or an access past an array in it is not seen; run again with --no-pools"
        assert hidden in lines[0]
        assert said(capsys, "env", off, sys.executable, str(program), str(library), function) == []


def test_a_pool_is_known_by_its_python_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, program = tmp_path / "numba" / "cuda" / "cudadrv" / "driver.py", tmp_path / "program.py"
    driver.parent.mkdir(parents=True)
    driver.write_text(NUMBA, encoding="utf-8")
    use = "import sys; sys.path.insert(0, sys.argv[1])\nfrom driver import NumbaCUDAMemoryManager\n"
    use += "take(lambda pointer, size: NumbaCUDAMemoryManager().memalloc(runtime, pointer, size))\n"
    program.write_text(BEGIN + use, encoding="utf-8")
    words = (sys.executable, str(program), str(driver.parent))
    assert [line.split()[1] for line in said(capsys, *words)] == ["numba"]
    monkeypatch.setenv("NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", "0")
    assert said(capsys, *words) == []
    monkeypatch.delenv("NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT")
    assert [line.split()[2] for line in said(capsys, *words, options=("--no-pools",))] == ["numba"]
    (kept,) = said(capsys, "env", "NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT=9", *words, options=("--no-pools",))
    assert "numba frees device memory later although --no-pools was given, so a use after free in it" in kept

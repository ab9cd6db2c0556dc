"""Client programs, compiled for a test against nothing but the names of the runtime's functions."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.build import find_compiler

DECLARATIONS: Final = """
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
typedef void *handle;
int cudaMalloc(void **, size_t), cudaFree(void *), cudaHostAlloc(void **, size_t, unsigned), cudaFreeHost(void *);
int cudaStreamCreate(handle *), cudaStreamDestroy(handle), cudaStreamSynchronize(handle), cudaDeviceSynchronize(void);
int cudaEventCreate(handle *), cudaEventDestroy(handle), cudaEventRecord(handle, handle), cudaEventSynchronize(handle);
int cudaMemGetInfo(size_t *, size_t *), cudaStreamQuery(handle);
int cudaStreamWaitEvent(handle, handle, unsigned), cudaMemset(void *, int, size_t);
int cudaMemsetAsync(void *, int, size_t, handle), cudaMemcpyAsync(void *, const void *, size_t, int, handle);
int cudaMallocAsync(void **, size_t, handle), cudaFreeAsync(void *, handle), cudaMallocMipmappedArray(void);
int cudaLaunchHostFunc(handle, void (*)(void *), void *);
int cublasSgemm_v2(void);
int hipMalloc(void **, size_t), hipFree(void *);
static void tell(void *told) { *(volatile int *)told = 1; }
"""

_FUNCTION: Final = re.compile(r"\b(?:cuda|cublas|hip)[A-Z]\w*")


def compile_client(
    folder: Path,
    body: str,
    *,
    name: str = "client",
    runtime: str = "libcudart.so.12",
    libraries: tuple[str, ...] = (),
    flags: tuple[str, ...] = (),
) -> Path:
    """Compile ``int main(int count, char **words) { body }`` and return the program, or what ``flags`` make of it."""
    text = (
        DECLARATIONS + "void *kept;\nint main(int count, char **words) {\n(void)count, (void)words;\n" + body + "\n}\n"
    )
    source, program = folder / f"{name}.c", folder / name
    source.write_text(text, encoding="utf-8")
    names = set(_FUNCTION.findall(text))
    compiler, link = find_compiler(), folder / "link"
    link.mkdir(exist_ok=True)
    libraries = (runtime, *libraries)
    for soname in libraries:
        prefix = next((each for each in ("cublas", "hip") if each in soname), "cuda")
        functions = link / f"{soname}.c"
        functions.write_text("".join(f"void {each}(void) {{}}\n" for each in sorted(names) if each.startswith(prefix)))
        _run(
            [
                *compiler,
                "-w",
                "-fno-builtin",
                "-shared",
                f"-Wl,-soname,{soname}",
                str(functions),
                "-o",
                str(link / soname),
            ]
        )
    paths = [str(link / soname) for soname in libraries]
    _run([*compiler, "-O1", "-Wl,--no-as-needed", *flags, str(source), "-o", str(program), *paths])
    return program


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""An archive that is shaped as NVIDIA's libcudart_static.a is, and programs that it is linked into.

Its functions ask the driver for a table that only NVIDIA's has, and fail without a device, as the vendor's do.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from quiesce.simulator.runtime.build import find_compiler
from quiesce.simulator.runtime.vendor_libraries import functions_of

REAL_ANSWER: Final = 100
"""cudaErrorNoDevice, as every function of an archive answers that was not redirected."""
WITHOUT_NAMES: Final = (
    *("cudaGetExportTable", "__cudaRegisterFatBinary", "__cudaRegisterFatBinaryEnd", "__cudaUnregisterFatBinary"),
    *("__cudaRegisterVar", "__cudaRegisterManagedVar", "__cudaRegisterHostVar", "__cudaRegisterFunction"),
    *("__cudaInitModule", "__cudaPushCallConfiguration", "__cudaPopCallConfiguration", "__cudaGetKernel"),
    *("__cudaLaunchKernel", "__cudaLaunchKernel_ptsz", "__cudaRegisterUnifiedTable"),
)
"""The functions that hand no name of their own to profilers, in the order of the archive."""
NEWER: Final = "cudaFunctionOfALaterRelease"
"""A public function that no release has yet."""
_NAMED: Final = sorted(
    {name for name in functions_of("libcudart.so.12") if name.startswith("cuda")} - set(WITHOUT_NAMES) | {NEWER}
)
_HEAD: Final = """
void *dlopen(const char *, int), *dlsym(void *, const char *), *dlvsym(void *, const char *, const char *);
int mkfifo(const char *, unsigned);
void *cudaSharing[] = {dlvsym, mkfifo};
static __attribute__((noinline)) int begin(const char *name) {
    static volatile int calls;
    const void *table;
    int (*ask)(const void **, const void *);
    void *driver = dlopen("libcuda.so.1", 2);
    calls += *name;
    if (driver && (ask = (int (*)(const void **, const void *))dlsym(driver, "cuGetExportTable")) && !ask(&table, name))
        return 0;
    return 100;
}
static int tell_version(int *);
#ifdef THROUGH_SLOTS
#define NAMED(name)                                   \\
    static const char *volatile slot_##name = #name;  \\
    int name(long a, long b) { return begin(slot_##name); }
#else
#define NAMED(name) int name(long a, long b) { return begin(#name); }
#endif
"""
_VERSION: Final = "static __attribute__((noinline)) int tell_version(int *version) { *version = VERSION; return 0; }"
_TAIL: Final = """
void libcudart_static_0123456789abcdef0123456789abcdef01234567(void) {}
"""


def linkers() -> list[str]:
    """Return the linkers of this machine, as the compiler knows them."""
    return [name for name in ("bfd", "gold", "lld") if shutil.which(f"ld.{name}")]


def _function(name: str) -> str:
    if name == "cudaRuntimeGetVersion":
        return f'int {name}(int *version) {{ return begin("{name}") + tell_version(version); }}'
    if name.startswith("__cudaLaunchKernel"):
        return f"int {name}(long a, long b) {{ return {name[2:]}(a, b); }}"
    if name in WITHOUT_NAMES:
        return f'int {name}(void) {{ return begin("{WITHOUT_NAMES.index(name)}"); }}'
    return f"NAMED({name})"


def make_archive(
    folder: Path,
    *,
    version: int = 12090,
    flags: Sequence[str] = (),
    least: int = 0,
    without: Sequence[str] = (),
    twice: str = "",
) -> Path:
    """Make the archive.

    With ``least``, it lacks all but so many of the functions with names. Of the functions ``without`` it lacks those
    with names, and the others do something else than they should. A second function hands out the name ``twice``.
    """
    named = [name for name in (_NAMED[:least] if least else _NAMED) if name not in without]
    unnamed = [
        _function(name) if name not in without else f"int {name}(void) {{ return 7; }}" for name in WITHOUT_NAMES
    ]
    other = [f'int cudaOther(long a) {{ return begin("{twice}") + 1; }}'] if twice else []
    jumped_to = ("cudaLaunchKernel", "cudaLaunchKernel_ptsz")
    declared = [f"__attribute__((noinline)) int {name}(long, long);" for name in jumped_to]
    text = "\n".join([_HEAD, *declared, *unnamed, _VERSION, *map(_function, named), *other, _TAIL])
    source, made = folder / f"runtime{version}-{least}.c", folder / f"libcudart_static{version}-{least}.a"
    source.write_text(text)
    member = str(made.with_suffix(".o"))
    shaped = ("-w", "-O2", "-fPIC", "-fvisibility=hidden", "-fno-toplevel-reorder", "-falign-functions=16")
    run([*find_compiler(), *shaped, f"-DVERSION={version}", *flags, "-c", str(source), "-o", member])
    run(["ar", "rcs", str(made), member])
    return made


CLIENT: Final = """
#include <stdio.h>
#include <string.h>
#include <stddef.h>
int cudaMalloc(void **, size_t), cudaFree(void *), cudaMemset(void *, int, size_t), cudaRuntimeGetVersion(int *);
int cudaFunctionOfALaterRelease(void), __cudaPopCallConfiguration(void *, void *, void *, void *);
int cudaCheckErrors(void) { return 7; }
"""


def link(folder: Path, name: str, body: str, archive: Path, *flags: str) -> Path:
    """Link a program, or with ``-shared`` a library, whose text has ``body`` after the declarations."""
    source, made = folder / f"{name}.c", folder / name
    source.write_text(CLIENT + body)
    run([*find_compiler(), "-w", "-O1", *flags, str(source), "-o", str(made), str(archive), "-ldl", "-lpthread"])
    return made


def run(command: Sequence[str]) -> None:
    """Run a tool, which must succeed."""
    done = subprocess.run(list(command), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""What the simulated runtime costs, nothing of it asserted: its calls beside others' calls, and the start of a program.

The calls: the C library's, PoCL's (where pyopencl is installed and finds it) and the simulated runtime's with its
ledger on. The start: how much later a Python program begins under ``quiesce exec``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from quiesce.model.errors import BackendUnavailable
from quiesce.simulator.runtime.build import build_library, find_compiler

STARTS: Final = 15
EXEC: Final = (sys.executable, "-m", "quiesce.cli.main", "exec", "--")
OPENCL: Final = "libOpenCL.so.1"
DEPTHS: Final = (1, 30)
PAIRS: Final = """
import ctypes, time
runtime, block = ctypes.CDLL("libcudart.so.12"), ctypes.c_void_p()
def measured(depth):
    if depth > 1: return measured(depth - 1)
    begin = time.perf_counter()
    for _ in range(2000): runtime.cudaMalloc(ctypes.byref(block), 256), runtime.cudaFree(block)
    return (time.perf_counter() - begin) / 2000 * 1e9
print(min(measured({depth}) for _ in range(50)))
"""
PROGRAM: Final = (sys.executable, "-c", "import time; print(time.monotonic())")


def main() -> int:
    """Compile the measurement of calls and run it, then measure starts; nothing where the runtime can't be built."""
    try:
        library = build_library()
    except BackendUnavailable as error:
        print(f"not measured: {error}")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "simulator"
        source = Path(__file__).with_suffix(".c")
        options = ["-O2", "-fno-builtin", "-pthread", f"-Wl,-rpath,{library.parent}"]
        command = [*find_compiler(), *options, str(source), str(library), "-o", str(program), "-ldl"]
        subprocess.run(command, check=True)  # noqa: S603 - a list, no shell
        opencl = opencl_library()
        environment = {**os.environ, "LD_LIBRARY_PATH": str(Path(opencl).parent)}  # PoCL lies beside it
        status = subprocess.run(  # noqa: S603 - a list, no shell
            [str(program), folder, opencl], env=environment, check=False
        ).returncode
        measure_starts(Path(folder))
        measure_python()
    return status


def opencl_library() -> str:
    """Return the path of the OpenCL loader that pyopencl brought along, or the name of the system's."""
    try:
        import pyopencl
    except ImportError:
        return OPENCL
    pyopencl.get_platforms()
    maps = Path("/proc/self/maps").read_text(encoding="utf-8").split()
    return next((word for word in maps if "libOpenCL" in word), OPENCL)


def measure_starts(folder: Path) -> None:
    """Print how long it takes until a program begins, bare and under ``exec``, the shortest of some."""
    environment = {**os.environ, "QUIESCE_CACHE": str(folder / "cache")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installation has its bytecode
    start((*EXEC, *PROGRAM), environment)  # the library is compiled, and bytecode written
    for entry in folder.rglob("*.stubs"):
        entry.unlink()
    first = start((*EXEC, *PROGRAM), environment)
    bare = min(start(PROGRAM, environment) for _ in range(STARTS))
    again = min(start((*EXEC, *PROGRAM), environment) for _ in range(STARTS))
    print(
        f"until a program begins: bare {1e3 * bare:.0f} ms, under exec {1e3 * again:.0f} ms, "
        f"in an environment that exec has not seen {1e3 * first:.0f} ms"
    )


def measure_python() -> None:
    """Print what a pair of allocate and free costs a Python program, by its depth, without and with call stacks."""
    for depth in DEPTHS:
        figures = {}
        for option in ("--no-stacks", "--stacks"):
            command = (*EXEC[:-1], option, "--", sys.executable, "-c", PAIRS.format(depth=depth))
            done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - a list, no shell
            figures[option] = float(done.stdout.split()[0])
        without, taken = figures["--no-stacks"], figures["--stacks"]
        print(
            f"a pair from Python below {depth} frames: without call stacks {without:.0f} ns, "
            f"with them {taken:.0f} ns ({taken / without:.2f} times)"
        )


def start(command: tuple[str, ...], environment: dict[str, str]) -> float:
    """Return the seconds until the program tells the time; the clock is the same in all processes."""
    begin = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    return float(done.stdout.split()[0]) - begin


if __name__ == "__main__":
    sys.exit(main())

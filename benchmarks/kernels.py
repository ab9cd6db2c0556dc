"""What CUDA kernels cost that run on the processor, next to NumPy and PoCL; nothing of it is asserted.

Two programs measure, one after another, each on one core: ``cupy_kernels.py`` under ``quiesce exec``, without and with
checks of the kernels' accesses, and ``pocl_kernels.py``. They have the same kernels. Then the compiler is asked for
CuPy's kernels as a program would ask.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from quiesce.simulator.kernels.protocol import Asked, Request, read_answer
from quiesce.simulator.runtime.kernel_compiler import SOCKET, kernel_compiler

HERE: Final = Path(__file__).resolve().parent
EXEC: Final = (sys.executable, "-m", "quiesce.cli.main", "exec", "--no-stacks", "--at-exit", "none")
UNCHECKED: Final = "--no-kernel-checks"
AGAINST: Final = {
    "raw add": "pocl add",
    "cupy add": "pocl add",
    "block sum": "pocl block sum",
    "strided sum": "pocl strided sum",
    "cupy sum": "pocl strided sum",
    "cub sum": "pocl strided sum",
}
"""Each measurement, and the one of the kernel that does the same; CUB's uses shuffles, which PoCL has not."""
ROUNDS: Final = 5
EMPTY: Final = b".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n"


def main() -> int:
    """Measure and print; a line says so where something is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "QUIESCE_CACHE": str(Path(folder) / "quiesce"),
            "CUPY_CACHE_DIR": str(Path(folder) / "cupy"),
            "CUPY_COMPILE_WITH_PTX": "1",
            "POCL_MAX_PTHREAD_COUNT": "1",
        }
        program = (sys.executable, str(HERE / "cupy_kernels.py"))
        times = measured((*EXEC, UNCHECKED, "--", *program), environment)
        if not times:
            return 0
        checked = measured((*EXEC, "--", *program), environment)
        others = measured((sys.executable, str(HERE / "pocl_kernels.py")), environment)
        names = ("ms", "NumPy", "PoCL", "times PoCL", "checked", "times unchecked")
        print(f"{'1,000,000 float32':20} " + " ".join(f"{each:>8}" for each in names))
        for name, taken in times.items():
            numpy = others.get(f"numpy {name.split()[-1]}")
            pocl = others.get(AGAINST.get(name, ""))
            ratio = f"{taken / pocl:10.2f}" if pocl else " " * 10
            judged = checked.get(name)
            times_unchecked = f"{judged / taken:15.2f}" if judged else ""
            columns = (in_words(taken), in_words(numpy), in_words(pocl), ratio, in_words(judged), times_unchecked)
            print(f"{name:20} {' '.join(columns)}".rstrip())
        measure_requests(Path(folder))
    return 0


def in_words(time: float | None) -> str:
    """Return a time in a column of the table."""
    return " " * 8 if time is None else f"{time:8.3f}"


def measured(command: tuple[str, ...], environment: dict[str, str]) -> dict[str, float]:
    """Return what a program measured; nothing where it could not."""
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - a list
    found = re.search(r"^\{.*\}$", done.stdout, re.MULTILINE)
    if found is None:
        print(f"not measured: {command[-1]}: {(done.stderr.strip() or done.stdout.strip()).splitlines()[-1]}")
        return {}
    times: dict[str, float] = json.loads(found[0])
    return times


def measure_requests(folder: Path) -> None:
    """Print how long the compiler takes for kernels of CuPy, as a client sees it: compiled, and from the cache."""
    modules = []
    for path in sorted((folder / "cupy").iterdir()):
        content = path.read_bytes()
        text = content[content.find(b"//") :].rstrip(b"\0")
        modules += [(text, name) for name in re.findall(rb"\.entry\s+(\w+)", text)]
    compiled: dict[str, list[float]] = {}
    kept: dict[str, list[float]] = {}
    for round_ in range(ROUNDS):
        own = folder / f"requests{round_}"
        own.mkdir()
        os.environ["QUIESCE_CACHE"] = str(own)
        with kernel_compiler(own), socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(own / SOCKET))
            asked(connection, 0, (EMPTY, b"k"))  # it starts
            for number, (text, name) in enumerate(modules, start=1):
                compiled.setdefault(name.decode(), []).append(asked(connection, number, (text, name)))
                again = [asked(connection, number, (text, name)) for _ in range(ROUNDS)]
                kept.setdefault(name.decode(), []).extend(again)
    print(f"\n{'request of a kernel, ms':45} compiled   from the cache")
    for label, times in compiled.items():
        print(f"{label:45} {min(times):8.1f} {min(kept[label]):16.2f}")


def asked(connection: socket.socket, number: int, kernel: tuple[bytes, bytes]) -> float:
    """Return the milliseconds from a request, with its module, to the answer."""
    text, name = kernel
    begin = time.perf_counter()
    connection.sendall(Request(Asked.MODULE, number, text).encode() + Request(Asked.KERNEL, number, name).encode())
    answer = read_answer(connection)
    if answer is None or answer.is_refused:
        raise RuntimeError(f"{name.decode()} was refused: {answer}")
    return 1e3 * (time.perf_counter() - begin)


if __name__ == "__main__":
    sys.exit(main())

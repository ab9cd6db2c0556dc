"""What kernels that compute cost next to PoCL and Numba, on one core and on all; nothing of it is asserted.

Programs measure one after another: ``compute_exec.py`` under ``quiesce exec``, without and with checks of the kernels'
accesses, ``compute_pocl.py`` and ``compute_numba.py``. The first two have the same kernels, Numba has plain loops,
which use one core. On one core the processor's time is measured. On all cores it is what passes on a clock: nothing
else may run then.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from kernels import EXEC, HERE, UNCHECKED, in_words, measured

ALL_COLUMNS: Final = ("one", "all", "times", "checked", "all", "times", "PoCL")
COLUMNS: Final = ("ms", "checked", "PoCL", "Numba", "to PoCL", "checked")


def main() -> int:
    """Measure and print; a line says so where something is not installed."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "QUIESCE_CACHE": str(Path(folder) / "quiesce"),
            "CUPY_CACHE_DIR": str(Path(folder) / "cupy"),
            "CUPY_COMPILE_WITH_PTX": "1",
            "POCL_MAX_PTHREAD_COUNT": "1",
            "NUMBA_NUM_THREADS": "1",
        }
        exec_, pocl, numba = ((sys.executable, str(HERE / f"compute_{name}.py")) for name in ("exec", "pocl", "numba"))
        times = measured((*EXEC, UNCHECKED, "--", *exec_), environment)
        checked = measured((*EXEC, "--", *exec_), environment)
        others = measured(pocl, environment)
        loops = measured(numba, environment)
        on_all = measure_all_cores(exec_, pocl, environment)
    print(f"{'processor time, one core':25} " + " ".join(f"{each:>8}" for each in COLUMNS))
    for name, taken in times.items():
        judged, against = checked.get(name), others.get(name)
        ratios = [each / against if each and against else None for each in (taken, judged)]
        columns = map(in_words, (taken, judged, against, loops.get(name), *ratios))
        print(f"{name:25} {' '.join(columns)}".rstrip())
    print(f"{'clock, one and all cores':25} " + " ".join(f"{each:>8}" for each in ALL_COLUMNS))
    for name, row in on_all.items():
        print(f"{name:25} {' '.join(map(in_words, row))}".rstrip())
    return 0


def measure_all_cores(
    exec_: tuple[str, ...], pocl: tuple[str, ...], environment: dict[str, str]
) -> dict[str, list[float | None]]:
    """Return the columns of a table, by the names of kernels."""
    cores = str(os.cpu_count() or 1)
    clock = {**environment, "COMPUTE_CLOCK": "wall", "POCL_MAX_PTHREAD_COUNT": cores}
    threads = (*EXEC, "--kernel-threads", cores)
    one, several = (
        measured((*EXEC, UNCHECKED, "--", *exec_), clock),
        measured((*threads, UNCHECKED, "--", *exec_), clock),
    )
    judged, judged_all = measured((*EXEC, "--", *exec_), clock), measured((*threads, "--", *exec_), clock)
    others = measured(pocl, clock)
    found: dict[str, list[float | None]] = {}
    for name, alone in one.items():
        both, checked, checked_all = (each.get(name) for each in (several, judged, judged_all))
        gain, checked_gain = (a / b if a and b else None for a, b in ((alone, both), (checked, checked_all)))
        found[name] = [alone, both, gain, checked, checked_all, checked_gain, others.get(name)]
    return found


if __name__ == "__main__":
    sys.exit(main())

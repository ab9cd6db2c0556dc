"""What kernels that compute cost next to PoCL and Numba, in processor time on one core; nothing of it is asserted.

Programs measure one after another: ``compute_exec.py`` under ``quiesce exec``, without and with checks of the kernels'
accesses, ``compute_pocl.py`` and ``compute_numba.py``. The first two have the same kernels, Numba has plain loops.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Final

from kernels import EXEC, HERE, UNCHECKED, in_words, measured

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
    print(f"{'processor time, one core':25} " + " ".join(f"{each:>8}" for each in COLUMNS))
    for name, taken in times.items():
        judged, against = checked.get(name), others.get(name)
        ratios = [each / against if each and against else None for each in (taken, judged)]
        columns = map(in_words, (taken, judged, against, loops.get(name), *ratios))
        print(f"{name:25} {' '.join(columns)}".rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main())

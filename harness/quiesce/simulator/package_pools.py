"""How the memory pools of Python packages are switched off: by variables, and CuPy's where a program imports it.

To the simulated runtime a block that a pool keeps is in use, so that a use of it after the program gave it back looks
right. Without the pool, the memory goes back to the runtime.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

_INTERPRETER_START: Final = Path(__file__).with_name("interpreter_start")
POOLS_OFF: Final[Mapping[str, str]] = {
    # docs/source/notes/cuda.rst of PyTorch, "Memory management"
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "1",
    "PYTORCH_NO_HIP_MEMORY_CACHING": "1",
    # docs/source/user/memory.rst of numba-cuda, "Deallocation behavior"
    "NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT": "0",
}
"""The variables that packages read, and the values that switch their pools off."""


def without_pools(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment in which packages take each block from the runtime and give it back at once."""
    folders = filter(None, (str(_INTERPRETER_START), environment.get("PYTHONPATH", "")))
    return {**environment, **POOLS_OFF, "PYTHONPATH": ":".join(folders)}

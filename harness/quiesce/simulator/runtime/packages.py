"""What is known of installed Python packages: which one a file belongs to, and how their memory pools are switched off.

The record that every wheel leaves (``*.dist-info/RECORD``) names its files. To the simulated runtime a block that a
pool keeps is in use, so that a use of it after the program gave it back looks right. Without the pool, the memory goes
back to the runtime: by variables, and CuPy's where a program imports it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Package:
    """An installed package, by the name and the version that it was published under."""

    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def owner_of(file: Path) -> Package | None:
    """Return the package that installed a file, or None where no record names it."""
    from importlib.metadata import PathDistribution  # takes longer than the rest, and few runs need it

    for folder in file.parents:
        name = file.relative_to(folder).as_posix()
        for record in folder.glob("*.dist-info/RECORD"):
            if _names(record, name):
                installed = PathDistribution(record.parent)
                return Package(installed.metadata["Name"], installed.version)
    return None


def _names(record: Path, name: str) -> bool:
    with record.open(encoding="utf-8", errors="replace") as lines:  # of comma-separated values, the path first
        return any(line.startswith((f"{name},", f'"{name}",')) for line in lines)


_INTERPRETER_START: Final = Path(__file__).parents[1] / "interpreter_start"
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

"""What is known of installed Python packages: who owns a file, how pools are switched off, and which compiler XLA uses.

The record that every wheel leaves (``*.dist-info/RECORD``) names its files. To the simulated runtime a block that a
pool keeps is in use, so that a use of it after the program gave it back looks right. Without the pool, the memory goes
back to the runtime: by variables, and CuPy's where a program imports it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


_XLA_KEEPS_PTX: Final = "--xla_gpu_enable_libnvptxcompiler=false"
"""XLA then calls the program ``ptxas``, which the run has its own of, and not the compiler that is linked into it."""
_XLA_KNOWS_SINCE: Final = {"jaxlib": (0, 4, 26), "tensorflow": (2, 17)}
"""The first releases with the flag: of one that it does not know, XLA ends the program."""


def xla_variables(package_folders: Iterable[Path], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variable with which XLA leaves PTX as it is, or nothing where that is to stay as it is.

    That is where no package in the folders knows the flag, and where the user has set it or named a file of flags.
    """
    given = environment.get("XLA_FLAGS", "").strip()
    flag = _XLA_KEEPS_PTX.partition("=")[0]
    if flag in given or (given and not given.startswith("--")):
        return {}
    known = any(_knows_flag(each) for folder in package_folders for each in folder.glob("*.dist-info"))
    return {"XLA_FLAGS": f"{given} {_XLA_KEEPS_PTX}".strip()} if known else {}


def _knows_flag(record: Path) -> bool:
    name, _, version = record.stem.partition("-")
    numbers = tuple(int(part) for part in version.split(".") if part.isdigit())
    return name in _XLA_KNOWS_SINCE and numbers >= _XLA_KNOWS_SINCE[name]

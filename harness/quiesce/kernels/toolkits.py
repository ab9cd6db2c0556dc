"""Where NVIDIA's compiler NVRTC and CUDA's headers are for a process, which may be any program.

A process that asks is looked at from outside: which file the dynamic loader found for it, which packages are next to
the files that it has loaded and to its interpreter, and what its environment says. The packages of quiesce come last.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.simulator.clients import package_folders
from quiesce.simulator.loads import Loaded, read_loads

_LIBRARY: Final = "libnvrtc.so"
_VERSIONS: Final = ("13", "12", "11.2")
"""What follows in the library's name, the newest first: NVIDIA names all releases of CUDA 11 since 11.3 like that."""
_WHEELS: Final = {
    "13": ("nvidia-cuda-nvrtc", "nvidia-cuda-runtime nvidia-cuda-cccl"),
    "12": ("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12"),
    "11.2": ("nvidia-cuda-nvrtc-cu11", "nvidia-cuda-runtime-cu11 nvidia-cuda-cccl-cu11"),
}
"""The packages that have the library, and those that have the headers."""
_PACKAGES: Final = re.compile(r"(.*/(?:site|dist)-packages)/")
_HEADERS: Final = ("cuda_fp16.h", "cuda/std/version", "curand_kernel.h")
"""One of each package of headers that kernels include."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What a process gets; ``version`` is that of the library that it wants."""

    library: Path | None
    includes: tuple[Path, ...]
    version: str
    interpreter: str
    """How its Python is called, empty for a program without one."""

    def text(self) -> str:
        """Return it in the lines that ``compilers/toolkit.c`` reads."""
        compiler, headers = _WHEELS[self.version]
        pip = f"{self.interpreter} -m pip install" if self.interpreter else "pip install"
        lines = [f"include {folder}" for folder in self.includes]
        if self.library is None:
            lines.append(f"reason NVRTC ({_LIBRARY}.{self.version}) is not installed; run {pip} {compiler}")
        else:
            # the loader knows ours by the path that the client asked for, and is to take this for another
            lines.append(f"library {self.library.parent}/./{self.library.name}")
        lines.append(f"headers-reason if the header is one of CUDA's, run {pip} {headers}")
        return "\n".join(line for line in lines if "\n" not in line)


def find_toolkit(process: int, run: Path) -> Toolkit:
    """Return what there is for a process of the run in that folder."""
    seen = _Seen(process)
    fronts = run / "lib"
    loaded = [path.name for path in seen.files if path.parent == fronts and path.name.startswith(_LIBRARY)]
    wanted = tuple(name.removeprefix(f"{_LIBRARY}.") for name in loaded if name != _LIBRARY) or _VERSIONS
    versions = tuple(each for each in _VERSIONS if each in wanted) or _VERSIONS
    folders = tuple(dict.fromkeys(seen.packages()))
    found = [load.path for load in read_loads(run) if load.kind is Loaded.COMPILER and load.process == process]
    library = next(filter(None, (_library(version, found, folders, seen) for version in versions)), None)
    version = next((each for each in versions if library and library.name == f"{_LIBRARY}.{each}"), versions[0])
    return Toolkit(library, tuple(_includes(version, library, folders, seen)), version, seen.interpreter())


def _library(version: str, found: Iterable[Path], folders: Sequence[Path], seen: _Seen) -> Path | None:
    name = f"{_LIBRARY}.{version}"
    # the loader may have found it by a name without a number
    paths = [path for path in found if path.resolve().name.startswith(name)]
    for folder in folders:
        paths += sorted((folder / "nvidia").glob(f"*/lib/{name}"))
    paths += [root / each / name for root in seen.toolkits() for each in ("lib64", "lib", "targets/x86_64-linux/lib")]
    return next((path for path in paths if path.is_file()), None)


def _includes(version: str, library: Path | None, folders: Sequence[Path], seen: _Seen) -> Iterator[Path]:
    """Yield folders of headers, each once, those of the packages next to the library before others."""
    pattern = "cu13/include" if version == "13" else "cuda_*/include"
    near = [folder for folder in folders if library is not None and library.is_relative_to(folder)]
    places = [path for folder in (*near, *folders) for path in sorted((folder / "nvidia").glob(pattern))]
    places += [path for folder in folders for path in sorted((folder / "nvidia").glob("curand/include"))]
    places += [root / each for root in seen.toolkits() for each in ("include", "targets/x86_64-linux/include")]
    places = [inner for path in places for inner in (path, path / "cccl")]
    for header in _HEADERS:
        first = next((path for path in places if (path / header).is_file()), None)
        if first is not None:
            yield first


class _Seen:
    """A process, as the system shows it: proc(5). What can't be read is as if it were empty."""

    def __init__(self, process: int) -> None:
        self._folder = Path(f"/proc/{process}")
        variables = (each.partition("=") for each in self._words("environ"))
        self.environment: Mapping[str, str] = {name: value for name, _, value in variables}
        lines = self._text("maps").splitlines()
        self.files = tuple(dict.fromkeys(Path(line[line.index("/") :]) for line in lines if "/" in line))
        """The files that it has mapped."""

    def _text(self, name: str) -> str:
        try:
            return os.fsdecode((self._folder / name).read_bytes())
        except OSError:
            return ""

    def _words(self, name: str) -> list[str]:
        return self._text(name).split("\0")

    def interpreter(self) -> str:
        """Return the Python of the process, by the name that leads to its environment."""
        return next((str(path) for path in self._programs() if path.name.startswith("python")), "")

    def _programs(self) -> Iterator[Path]:
        """Yield its executable, first as it was called: a virtual environment's is a link."""
        called = self._words("cmdline")[0]
        if called and "/" not in called:
            folders = self.environment.get("PATH", "").split(":")
            called = next((f"{each}/{called}" for each in folders if Path(each, called).is_file()), "")
        if called:
            try:
                yield (self._folder / "cwd").readlink() / called
            except OSError:
                yield Path(called)
        try:
            yield (self._folder / "exe").readlink()
        except OSError:
            return

    def packages(self) -> Iterator[Path]:
        """Yield folders of Python packages, those that the process uses first."""
        yield from (Path(folder) for folder in self.environment.get("PYTHONPATH", "").split(":") if folder)
        for path in self.files:
            if found := _PACKAGES.match(str(path)):
                yield Path(found[1])
        for program in self._programs():
            yield from package_folders(program, self.environment)
        for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
            if folder := self.environment.get(variable):
                yield from package_folders(Path(folder, "bin", "python"), {})
        yield from (Path(folder) for folder in sys.path if folder)

    def toolkits(self) -> Iterator[Path]:
        """Yield where CUDA's toolkit may be installed as a whole."""
        for variable in ("CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"):
            if folder := self.environment.get(variable):
                yield Path(folder)
        yield Path("/usr/local/cuda")

"""Where NVIDIA's compilers NVRTC and libNVVM and CUDA's headers are for a process, which may be any program.

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

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.runtime import COMPILER_PACKAGES, Load, Loaded, package_folders, read_loads

_VERSIONS: Final = ("13", "12", "11")
"""Of CUDA, the newest first."""
_PACKAGES: Final = re.compile(r"(.*/(?:site|dist)-packages)/")
_HEADERS: Final = ("cuda_fp16.h", "cuda/std/version", "curand_kernel.h", "cufftXt.h")
"""One of each package of headers that kernels include."""


@dataclass(frozen=True, slots=True)
class _Library:
    """A library: its names by version of CUDA, and where packages and toolkits have it."""

    title: str
    names: Mapping[str, tuple[str, ...]]
    folders: tuple[str, ...]


_LIBRARIES: Final = {
    "libnvrtc": _Library(
        "NVRTC",
        {"13": ("libnvrtc.so.13",), "12": ("libnvrtc.so.12",), "11": ("libnvrtc.so.11.2",)},
        ("lib64", "lib", "targets/x86_64-linux/lib"),
    ),
    "libnvvm": _Library(
        "libNVVM",
        dict.fromkeys(_VERSIONS, ("libnvvm.so.4", "libnvvm.so")),
        ("lib", "nvvm/lib64"),
    ),
}
_HEADER_WHEELS: Final = {
    "13": "'nvidia-cuda-runtime==13.*' 'nvidia-cuda-cccl==13.*'",
    "12": "nvidia-cuda-runtime-cu12 nvidia-cuda-cccl-cu12",
    "11": "nvidia-cuda-runtime-cu11 nvidia-cuda-cccl-cu11",
}
_SUFFIXES: Final = {"13": "", "12": "-cu12", "11": "-cu11"}
"""Of the packages that have headers of libraries, by version of CUDA."""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """What a process gets. ``wanted`` says what it wants and has not: the name of a library, and the packages."""

    library: Path | None
    includes: tuple[Path, ...]
    wanted: str
    wheel: str
    header_wheels: str
    suffix: str
    interpreter: str
    """How its Python is called, empty for a program without one."""

    def text(self) -> str:
        """Return it in the lines that ``compilers/toolkit.c`` reads."""
        pip = f"{self.interpreter} -m pip install" if self.interpreter else "pip install"
        lines = [f"include {folder}" for folder in self.includes]
        if self.library is None:
            lines.append(f"reason {self.wanted} is not installed; run {pip} {self.wheel}")
        else:
            lines += [f"beside {each}" for each in _opened_by_name(self.library)]
            # the loader knows ours by the path that the client asked for, and is to take this for another
            lines.append(f"library {self.library.parent}/./{self.library.name}")
        lines.append(
            f"headers-reason if the header is one of CUDA's, run {pip} {self.header_wheels}; "
            f"cuRAND's are in nvidia-curand{self.suffix}, and cuFFT's in nvidia-cufft{self.suffix}"
        )
        return "\n".join(line for line in lines if "\n" not in line)


def _opened_by_name(library: Path) -> list[Path]:
    """Return what NVRTC opens by its name alone, which the loader finds only if it is there already."""
    version = library.name.partition(".so.")[2]
    return sorted(library.parent.glob(f"libnvrtc-builtins.so.{version}.*")) if "nvrtc" in library.name else []


def find_toolkit(name: str, process: int, run: Path) -> Toolkit:
    """Return what there is for a process of the run in that folder; ``name`` is ``libnvrtc`` or ``libnvvm``.

    Raises :class:`RefusedKernel` for any other name.
    """
    if name not in _LIBRARIES:
        raise RefusedKernel(f"there is no compiler '{name}'")
    library, seen = _LIBRARIES[name], _Seen(process)
    folders = tuple(dict.fromkeys(seen.packages()))
    loads = [load for load in read_loads(run) if load.process == process]
    versions = _versions(library, seen, run / "lib", loads)
    found = [load.path for load in loads if load.kind is Loaded.COMPILER]
    for version in versions:
        path = _library(library, version, found, folders, seen)
        if path is not None:
            break
    else:
        version, path = versions[0], None
    return Toolkit(
        path,
        tuple(_includes(version, path, folders, seen)),
        f"{library.title} ({library.names[version][0]})",
        COMPILER_PACKAGES[name][int(version)],
        _HEADER_WHEELS[version],
        _SUFFIXES[version],
        seen.interpreter(),
    )


def _versions(library: _Library, seen: _Seen, fronts: Path, loads: Sequence[Load]) -> tuple[str, ...]:
    """Return the versions of CUDA that the process uses, first that of its runtime.

    Clients that try one name after another begin with the newest, and get ours. Where neither a runtime nor a name says
    which it is, as in a client of the driver that loads libNVVM, it is the version of the run, and then all others.
    """
    from quiesce.simulator.runtime import SETTINGS_VARIABLE  # only where a compiler is looked for

    runtimes = [load.detail for load in loads if load.kind is Loaded.REDIRECTED]
    runtimes += [load.path.name.partition(".so.")[2] for load in loads if load.kind is Loaded.OWN]
    used = tuple(each for each in _VERSIONS if any(name.startswith(each) for name in runtimes))
    loaded = {path.name for path in seen.files if path.parent == fronts}
    names = library.names if len(set(library.names.values())) > 1 else {}
    loaded_versions = tuple(each for each in _VERSIONS if loaded.intersection(names.get(each, ())))
    of_run = re.findall(r"\bversion=(\d+)", seen.environment.get(SETTINGS_VARIABLE, ""))
    fallen_back = (*(each for each in of_run if each in _VERSIONS), *_VERSIONS)
    return tuple(dict.fromkeys((*used, *loaded_versions))) or tuple(dict.fromkeys(fallen_back))


def _library(
    library: _Library, version: str, found: Iterable[Path], folders: Sequence[Path], seen: _Seen
) -> Path | None:
    names = library.names[version]
    # the loader may have found it by a name without a number
    paths = [path for path in found if path.resolve().name.startswith(names)]
    for folder in folders:
        for name in names:
            paths += [path for each in library.folders for path in sorted((folder / "nvidia").glob(f"*/{each}/{name}"))]
    paths += [root / each / name for root in seen.toolkits() for each in library.folders for name in names]
    return next((path for path in paths if path.is_file()), None)


def _includes(version: str, library: Path | None, folders: Sequence[Path], seen: _Seen) -> Iterator[Path]:
    """Yield folders of headers, each once, those of the packages next to the library before others."""
    pattern = "cu13/include" if version == "13" else "cuda_*/include"
    near = [folder for folder in folders if library is not None and library.is_relative_to(folder)]
    places = [path for folder in (*near, *folders) for path in sorted((folder / "nvidia").glob(pattern))]
    places += [path for folder in folders for path in sorted((folder / "nvidia").glob("cu[rf]*/include"))]
    places += [root / each for root in seen.toolkits() for each in ("include", "targets/x86_64-linux/include")]
    places = [inner for path in places for inner in (path, path / "cccl")]
    found = (next((path for path in places if (path / header).is_file()), None) for header in _HEADERS)
    yield from dict.fromkeys(path for path in found if path is not None)


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

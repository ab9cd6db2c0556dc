"""Which samples a checkout has, and what puts one out of scope: graphics, or a library that does not compute here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_FOLDERS: Final = ("Samples/7_libNVVM", "Samples/8_Platform_Specific")
"""They have build systems of their own, and need LLVM's sources or a Tegra board."""
_PACKAGES: Final = {
    "OpenGL": "OpenGL",
    "GLUT": "OpenGL",
    "EGL": "EGL",
    "Vulkan": "Vulkan",
    "MPI": "MPI",
    "NVSCI": "NvSci",
    "FreeImage": "FreeImage",
}
"""What ``find_package`` looks for, and its name for the table."""
_LIBRARIES: Final = {
    "cublas": "cuBLAS",
    "cufft": "cuFFT",
    "curand": "cuRAND",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "npp": "NPP",
    "nvjpeg": "nvJPEG",
    "nvJitLink": "nvJitLink",
}
"""How names of libraries begin, as targets of CMake and as headers."""
_DIRECT3D: Final = re.compile(r"\bd3d1[12]\b")
_PACKAGE: Final = re.compile(r"find_package\((\w+)")
_LIBRARY: Final = re.compile(rf"(?:CUDA::|find_library\(\w+\s+|#include\s+[<\"])({'|'.join(_LIBRARIES)})")
_SOURCES: Final = frozenset({".c", ".cpp", ".cu", ".cuh", ".h", ".hpp"})


@dataclass(frozen=True, slots=True)
class Sample:
    """A sample's folder below ``Samples``, and what it needs that puts it out of scope; empty for one that is run."""

    name: str
    needs: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """Its own name, without its chapter's."""
        return self.name.rpartition("/")[2]


def samples_of(checkout: Path) -> tuple[Sample, ...]:
    """Return all samples of a checkout, in the order of their names."""
    lists = sorted(checkout.glob("Samples/*/*/CMakeLists.txt")) + sorted(checkout.glob("Samples/*/*/*/CMakeLists.txt"))
    folders = [each.parent for each in lists if "add_subdirectory(" not in each.read_text(encoding="utf-8")]
    return tuple(Sample(str(each.relative_to(checkout / "Samples")), tuple(_needs(checkout, each))) for each in folders)


def _needs(checkout: Path, folder: Path) -> Iterator[str]:
    inside = str(folder.relative_to(checkout))
    if inside.startswith(_FOLDERS[0]):
        yield "libNVVM's own build"
    elif inside.startswith(_FOLDERS[1]):
        yield "a Tegra board"
    else:
        build = (folder / "CMakeLists.txt").read_text(encoding="utf-8")
        files = (each for each in sorted(folder.rglob("*")) if each.suffix in _SOURCES)
        texts = [build, *(each.read_text(encoding="utf-8", errors="replace") for each in files)]
        graphics = ["Direct3D"] if _DIRECT3D.search(build) else []
        packages = [_PACKAGES[name] for name in _PACKAGE.findall(build) if name in _PACKAGES]
        libraries = sorted({_LIBRARIES[name] for text in texts for name in _LIBRARY.findall(text)})
        yield from dict.fromkeys([*graphics, *packages, *libraries])

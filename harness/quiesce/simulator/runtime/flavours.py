"""Flavours: which vendor's runtime is simulated, in which major version, and the names of its libraries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.model.errors import ConfigurationError
from quiesce.model.outcomes import Flavour

_LIBRARIES: Final[dict[tuple[Flavour, int], tuple[str, ...]]] = {
    (Flavour.HIP, 5): ("libamdhip64.so.5", "librocm_smi64.so.5"),
    (Flavour.HIP, 6): ("libamdhip64.so.6", "librocm_smi64.so.7", "libamd_smi.so.24"),
    (Flavour.HIP, 7): ("libamdhip64.so.7", "librocm_smi64.so.7", "libamd_smi.so.26"),
    (Flavour.CUDA, 11): ("libcudart.so.11.0", "libcuda.so.1", "libnvidia-ml.so.1"),
    (Flavour.CUDA, 12): ("libcudart.so.12", "libcuda.so.1", "libnvidia-ml.so.1"),
    (Flavour.CUDA, 13): ("libcudart.so.13", "libcuda.so.1", "libnvidia-ml.so.1"),
}

_OFFERED: Final[dict[tuple[Flavour, int], str]] = {
    (Flavour.HIP, 5): "libhipblas.so.1 librocblas.so.3 libhipsparse.so.0 librocsparse.so.0 libhipsolver.so.0 "
    "libhipfft.so.0 librocfft.so.0 libhiprand.so.1 librocrand.so.1 libMIOpen.so.1 librccl.so.1",
    (Flavour.HIP, 6): "libhipblas.so.2 libhipblaslt.so.0 librocblas.so.4 libhipsparse.so.1 librocsparse.so.1 "
    "libhipsolver.so.0 libhipfft.so.0 librocfft.so.0 libhiprand.so.1 librocrand.so.1 libMIOpen.so.1 librccl.so.1",
    (Flavour.HIP, 7): "libhipblas.so.3 libhipblaslt.so.1 librocblas.so.5 libhipsparse.so.4 librocsparse.so.1 "
    "libhipsolver.so.1 libhipfft.so.0 librocfft.so.0 libhiprand.so.1 librocrand.so.1 libMIOpen.so.1 librccl.so.1",
    (Flavour.CUDA, 11): "libcublas.so.11 libcublasLt.so.11 libcusparse.so.11 libcusolver.so.11 libcufft.so.10 "
    "libcurand.so.10 libcudnn.so.8 libcudnn.so.9 libnccl.so.2 libcupti.so.11.8",
    (Flavour.CUDA, 12): "libcublas.so.12 libcublasLt.so.12 libnvJitLink.so.12 libcusparse.so.12 libcusolver.so.11 "
    "libcufft.so.11 libcurand.so.10 libcudnn.so.8 libcudnn.so.9 libnccl.so.2 libcupti.so.12",
    (Flavour.CUDA, 13): "libcublas.so.13 libcublasLt.so.13 libnvJitLink.so.13 libcusparse.so.12 libcusolver.so.12 "
    "libcufft.so.12 libcurand.so.10 libcudnn.so.9 libnccl.so.2 libcupti.so.13",
}
"""The libraries that vendors ship with a version of the runtime, as far as their handles are simulated, and what such a
library needs: CuPy loads libnvJitLink before libcusparse. JAX asks each, and CUPTI as well, for its version."""

_COMPUTED: Final = frozenset(
    {"libcublas", "libcublasLt", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnccl"}
    | {"libhipblas", "libhipfft", "libhiprand"}
)
"""Those of which functions compute: there an installed one, whose kernels are machine code, is never meant."""

COMPILERS: Final = (
    *("libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13", "libnvrtc.so"),
    *("libnvJitLink.so.12", "libnvJitLink.so.13", "libnvJitLink.so"),
    *("libnvvm.so.4", "libnvvm.so"),
)
"""CUDA's compilers that programs load. Where kernels run, ours of these names keep PTX in place of machine code."""

_RELEASES: Final = {
    **{(Flavour.HIP, 5): 5070, (Flavour.HIP, 6): 6040, (Flavour.HIP, 7): 7020},
    **{(Flavour.CUDA, 11): 11080, (Flavour.CUDA, 12): 12090, (Flavour.CUDA, 13): 13050},
}
"""The release of the driver, or of HIP's runtime, whose functions there are. ``native/surfaces/names_by_release.c`` has
them, too."""

COMPILER_PACKAGES: Final = {
    "libnvrtc": {11: "nvidia-cuda-nvrtc-cu11", 12: "nvidia-cuda-nvrtc-cu12", 13: "'nvidia-cuda-nvrtc==13.*'"},
    "libnvvm": {11: "nvidia-cuda-nvcc-cu11", 12: "nvidia-cuda-nvcc-cu12", 13: "'nvidia-nvvm==13.*'"},
}
"""The packages that have NVIDIA's own compilers, which need no GPU, by the version of CUDA, as a shell takes them."""

_RUNTIMES: Final = ("libcudart", "libcuda", "libamdhip64")
_OF_ANY_NUMBER: Final = frozenset({"libcuda", "libnvidia-ml", "librocm_smi64", "libamd_smi"})
"""The number after ``.so`` in their files' names is the release of the kernel's driver, as in ``libcuda.so.550.54.15``,
or the library's own, which does not follow the runtime's version."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A flavour and its major version. ``libraries`` are the file names that programs are linked with."""

    flavour: Flavour
    version: int

    @property
    def sonames(self) -> tuple[str, ...]:
        """The names that programs are linked with."""
        return _LIBRARIES[self.flavour, self.version]

    @property
    def runtime(self) -> str:
        """The name of the runtime itself, among those."""
        return self.sonames[0]

    @property
    def driver(self) -> str:
        """The name of the library whose functions that are: CUDA's driver, or HIP's runtime."""
        return self.sonames[1] if self.flavour is Flavour.CUDA else self.runtime

    @property
    def release(self) -> int:
        """The release of the driver, as CUDA counts it: 12.9 is 12090. For HIP it is that of ROCm."""
        return _RELEASES[self.flavour, self.version]

    @property
    def libraries(self) -> tuple[str, ...]:
        """The names under which a loader looks for the runtime, the unversioned one (for ``dlopen``) included."""
        return (*self.sonames, *(f"{name.partition('.so')[0]}.so" for name in self.sonames))

    @property
    def releases(self) -> dict[str, int]:
        """The release of each of those, as far as their functions are known by release."""
        return dict.fromkeys(self.libraries, self.release)

    @property
    def offered(self) -> tuple[str, ...]:
        """The libraries that exist on every machine of a run, by the names under which programs ask for them."""
        names = _OFFERED[self.flavour, self.version].split()
        return (*names, *dict.fromkeys(f"{name.partition('.so')[0]}.so" for name in names))

    @property
    def computed(self) -> tuple[str, ...]:
        """The names of libraries beside the runtime of which functions compute (``simulator/libraries``)."""
        return tuple(name for name in self.offered if name.partition(".so")[0] in _COMPUTED)

    def served(
        self,
        *,
        redirects: bool = True,
        kernels: bool = False,
        computed: Sequence[str] = (),
        follows: bool = False,
    ) -> str:
        """Return the table by which ``audit/served.c`` knows runtimes, and which library of this flavour stands in.

        ``redirects`` says whether one does for runtimes that are linked in statically, too, and ``kernels`` whether one
        does for compilers. ``computed`` are other libraries that stand in for installed ones of their name.
        ``follows`` says that a program may open the runtime of any flavour.
        """
        named = {name.partition(".so")[0]: name for name in self.sonames}
        numbers = {name: "*" if name in _OF_ANY_NUMBER else str(self.version) for name in named}
        lines = [f"{name} {numbers[name]} {stands_in}\n" for name, stands_in in named.items()]
        split = ((name.partition(".so."), name) for name in computed)
        lines += [f"{name} {number} {stands_in}\n" for (name, _, number), stands_in in split if number]
        if self.flavour is Flavour.CUDA:
            lines.append(f"libcudart_static * {self.runtime if redirects else '-'}\n")
            lines += [f"{name} * +{name}.so\n" for name in ("libnvrtc", "libnvJitLink", "libnvvm") if kernels]
        if follows:
            others = (each for each in KNOWN if each != self)
            lines += [f"{each.runtime.partition('.so')[0]} {each.version} ?{each.runtime}\n" for each in others]
        return "".join((*lines, *(f"{name} * -\n" for name in _RUNTIMES)))

    def __str__(self) -> str:
        return f"{self.flavour}:{self.version}"


KNOWN: Final = tuple(Simulated(flavour, version) for flavour, version in _LIBRARIES)


_SIMULATED: Final = frozenset(name.partition(".so")[0] for names in _LIBRARIES.values() for name in names)


def is_simulated(soname: str) -> bool:
    """Say whether some flavour simulates a library, in whatever version: then an installed one is never meant."""
    name, dot, _ = soname.partition(".so")
    return bool(dot) and name in _SIMULATED


def parse_flavour(text: str) -> Simulated:
    """Return what ``hip:7`` or ``cuda:12`` names. Raises :class:`ConfigurationError`."""
    for simulated in KNOWN:
        if text == str(simulated):
            return simulated
    known = ", ".join(map(str, KNOWN))
    raise ConfigurationError(f"flavour '{text}' is not simulated; write one of {known}")

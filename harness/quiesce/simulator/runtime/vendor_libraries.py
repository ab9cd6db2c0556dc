"""The libraries of GPU vendors: what they are called, what they say when they can't, and which functions they have.

A library is a vendor's only if the table here lists it: ``libcurl`` and ``librocksdb`` begin like some, and are not.
The names are those in the packages of the CUDA Toolkit, cuDNN, NCCL and ROCm; the numbers are enumerators of their
public headers, named in each row.

A reference to a function can be read from a file, a lookup with ``dlsym`` can't; the vendor's library has them all.
The names of CUDA's driver and of HIP's runtime are in tables next to the C code, which answers lookups by them as well,
each with the first release that has it. Those of other libraries are in ``simulator/functions``, a list for each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

NOT_SIMULATED: Final = "not simulated by quiesce"
"""What a function returns that gives an error's text."""


@dataclass(frozen=True, slots=True)
class Family:
    """Libraries of one interface."""

    libraries: str
    """A regular expression for the SONAME up to ``.so``."""
    functions: str
    """A regular expression for the beginning of its functions' names."""
    status: int | None
    """What it returns for "not supported", or for the nearest to it; None where its functions return no status."""
    status_name: str
    versions: tuple[str, ...] = ()
    """Versions that clients may name beside the SONAME itself, which is NVIDIA's convention."""
    texts: bool = True
    """Whether the functions named for an error's text return it. Else they return a status and take a place for it."""


_HIP_VERSIONS: Final = tuple(f"hip_{major}.{minor}" for major in range(4, 9) for minor in range(10))
"""HIP's map file gives each function the release that brought it; a version that was never released does no harm."""

FAMILIES: Final = (
    Family("libcudart", "(?:__)?cuda", 801, "cudaErrorNotSupported"),
    Family("libcuda", "cu(?!File)[A-Z]", 801, "CUDA_ERROR_NOT_SUPPORTED", texts=False),
    Family("libcublas(?:Lt)?|libnvblas", "cublas", 15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    Family("libcufftw?", "(?:__)?cufft|fftwf?_", 16, "CUFFT_NOT_SUPPORTED"),
    Family("libcurand", "curand", 999, "CURAND_STATUS_INTERNAL_ERROR"),
    Family("libcusolver(?:Mg)?", "cusolver", 9, "CUSOLVER_STATUS_NOT_SUPPORTED"),
    Family("libcusparse(?:Lt)?", "cusparse", 10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    Family("libcudnn(?:_[a-z_]+)?", "cudnn", 9, "CUDNN_STATUS_NOT_SUPPORTED"),
    Family("libcutensor(?:Mg|Mp)?", "cutensor", 15, "CUTENSOR_STATUS_NOT_SUPPORTED"),
    Family("libnccl|librccl", "nccl|pnccl", 3, "ncclInternalError"),
    Family("libnvrtc(?:-builtins)?", "(?:__)?nvrtc", 11, "NVRTC_ERROR_INTERNAL_ERROR",
           ("libnvrtc.so.11.2", "libnvrtc.so.12", "libnvrtc.so.13")),
    Family("libnvJitLink", "(?:__)?nvJitLink", 6, "NVJITLINK_ERROR_INTERNAL",
           ("libnvJitLink.so.12", "libnvJitLink.so.13")),
    Family("libnvvm", "nvvm", 9, "NVVM_ERROR_COMPILATION"),
    Family("libcupti", "cupti", 27, "CUPTI_ERROR_NOT_SUPPORTED", texts=False),
    Family("libnvidia-ml", "nvml", 3, "NVML_ERROR_NOT_SUPPORTED"),
    Family("libnvToolsExt", "nvtx", -2, "NVTX_NO_PUSH_POP_TRACKING"),
    Family("libnvperf_(?:host|target)|libcheckpoint|libpcsamplingutil", "NVPW_", None, ""),
    Family("libcufile(?:_rdma)?", "cuFile", None, ""),
    Family("libnvshmem_host|libcudss|libnvjpeg|libnvfatbin|libnpp[a-z]+|libcutensornet|libcustatevec",
           "nvshmemx?_|cudss|nvjpeg|nvFatbin|npp|cutensornet|custatevec", None, ""),
    Family("libamdhip64", "(?:__)?hip(?!blas|fft|rand|rtc|solver|sparse|tensor)",
           801, "hipErrorNotSupported", _HIP_VERSIONS),
    Family("libhiprtc(?:-builtins)?", "hiprtc", 11, "HIPRTC_ERROR_INTERNAL_ERROR", _HIP_VERSIONS),
    Family("libhipblas(?:lt)?", "hipblas", 7, "HIPBLAS_STATUS_NOT_SUPPORTED"),
    Family("librocblas", "rocblas_", 2, "rocblas_status_not_implemented"),
    Family("libhipfftw?", "hipfft|fftwf?_", 16, "HIPFFT_NOT_SUPPORTED"),
    Family("librocfft", "rocfft_", 1, "rocfft_status_failure"),
    Family("libhiprand", "hiprand", 1000, "HIPRAND_STATUS_NOT_IMPLEMENTED"),
    Family("librocrand", "rocrand_", 108, "ROCRAND_STATUS_INTERNAL_ERROR"),
    Family("libhipsparse(?:lt)?", "hipsparse", 10, "HIPSPARSE_STATUS_NOT_SUPPORTED"),
    Family("librocsparse", "rocsparse_", 2, "rocsparse_status_not_implemented"),
    Family("libhipsolver", "hipsolver", 7, "HIPSOLVER_STATUS_NOT_SUPPORTED"),
    Family("librocsolver", "rocsolver_", 2, "rocblas_status_not_implemented"),
    Family("libhiptensor", "hiptensor", 15, "HIPTENSOR_STATUS_NOT_SUPPORTED"),
    Family("libMIOpen", "miopen", 6, "miopenStatusNotImplemented"),
    Family("libroctx64|librocprofiler-sdk-roctx", "roctx", -1, "a negative number"),
    Family("libroctracer64", "roctracer_", -1, "ROCTRACER_STATUS_ERROR"),
    Family("librocm_smi64", "rsmi_", 2, "RSMI_STATUS_NOT_SUPPORTED"),
    Family("libamd_smi", "amdsmi_", 2, "AMDSMI_STATUS_NOT_SUPPORTED"),
    Family("libhsa-runtime64|libamd_comgr|librocprofiler(?:64|-sdk|-register)",
           "hsa_|amd_comgr_|rocprofiler_", None, ""),
)  # fmt: skip

_ERROR_TEXT: Final = re.compile(
    r"\w*Get(?:Error|Status)(?:String|Name)|\w*(?:error_string|status_to_string|StatusToString)"
    r"|ncclGetLastError|nvmlErrorString"
)
_VERSION: Final = re.compile(r"(?:cudnn|cutensor)Get(?:Cudart|MaxDevice)?Version|roctracer_version_\w+")
"""These return a version as a number; 0 is that of no release, so that a client finds the library unusable."""
_PROPERTY: Final = re.compile(r"(?:cu|hip)sparseGetMat(?:Type|IndexBase|FillMode|DiagType)|rocsparse_get_mat_\w+")
"""These return what a descriptor holds, where every number means something."""
_CUDNN_NINE: Final = 3000  # cuDNN renumbered its statuses with version 9


SIMULATED_PREFIX: Final = "simulated_"
COMPUTED_PREFIX: Final = "computed_"
_SIMULATED: Final = re.compile(rf"(?:{SIMULATED_PREFIX}|{COMPUTED_PREFIX})(?:(?P<major>\d+)_)?(?P<name>.+)")
"""What ``native/libraries/calls.h`` and ``computed.h`` call the functions of vendors' libraries: where a vendor's own
library is installed, no function of its must be taken for one of these. A number is the one after ``.so`` of the
library."""
_NEWEST: Final = "9"
"""That number where a program names none: it is cuDNN whose versions differ."""

_TAKEN_IN: Final = {"libamdhip64": "libhiprtc.so"}
"""Libraries that hold another one's functions as well: HIP's runtime compiler was part of the runtime until ROCm 6."""


_BUNDLED: Final = re.compile(r"(lib\w+)-[0-9a-f]{6,}(\.so(?:\..*)?)")
"""Tools that copy libraries into a package put a part of a hash into the name: ``libcudart-5a077122.so.12.4.127``."""


def plain_name(soname: str) -> str:
    """Return a library's name without the hash that tells a bundled copy from others."""
    bundled = _BUNDLED.fullmatch(soname)
    return bundled[1] + bundled[2] if bundled else soname


@cache
def interface_of(soname: str) -> str:
    """Return a library's name as far as it decides what the library offers: ``libcudart.so.12``."""
    name, dot, number = plain_name(soname).partition(".so.")
    return name + dot + number.partition(".")[0]


@cache
def family_of(soname: str) -> Family | None:
    """Return the family of a vendor's library, or None for any other."""
    name, dot, number = plain_name(soname).partition(".so")
    if not dot or number.strip(".0123456789"):  # what follows ".so" is a number with dots, or nothing
        return None
    return next((family for family in FAMILIES if re.fullmatch(family.libraries, name)), None)


@cache
def _function_name(soname: str) -> re.Pattern[str]:
    family = family_of(soname)
    # C++ names are seen through: the length of a name stands before it
    return re.compile(rf"(?:_Z(?:N[KVr]*)?\d+)?(?:{family.functions if family else '(?!)'})")


def owns(soname: str, function: str) -> bool:
    """Say whether the library's family names its functions like this."""
    return _function_name(soname).match(function) is not None


def simulated_name(soname: str, target: str) -> str | None:
    """Return the function of a library that ``target``, a function of the simulator, stands for; None: it is none."""
    named = _SIMULATED.fullmatch(target)
    if named is None or not owns(soname, named["name"]):
        return None
    major = plain_name(soname).partition(".so.")[2].partition(".")[0]
    return named["name"] if named["major"] in (None, major or _NEWEST) else None


def asks_for_a_compiler(soname: str) -> bool:
    """Say whether a library is NVRTC or libNVVM: the simulated ones ask where the vendor's are, while kernels run."""
    return re.fullmatch(r"libnv(?:rtc|vm)\.so(?:\..*)?", plain_name(soname)) is not None


def answer(soname: str, function: str) -> int | str | None:
    """Return what the function answers when it is not simulated; None: nothing honest is known, so the program ends.

    Reporting an error, as its documentation allows, lets a client go on to its own error handling.
    """
    soname = plain_name(soname)
    guest = _TAKEN_IN.get(soname.partition(".so")[0])
    if guest and owns(guest, function):
        return answer(guest, function)
    family = family_of(soname)
    if family is None or family.status is None or not owns(soname, function):
        return None
    if function.startswith("_Z") or _PROPERTY.fullmatch(function):
        return None
    if _VERSION.fullmatch(function):
        return 0
    if family.texts and _ERROR_TEXT.fullmatch(function):
        return NOT_SIMULATED
    if soname.startswith("libcudnn") and not re.search(r"\.so\.[0-8](?:\.|$)", soname):
        return _CUDNN_NINE
    return family.status


_LISTS: Final = Path(__file__).parents[1] / "functions"
"""One function in a line, after lines with a # that say where the names are from."""
_TABLES: Final = {"libcuda": "driver_functions.inc", "libamdhip64": "hip_functions.inc"}
_ROW: Final = re.compile(r"^[A-Z_]+\((\w+), (\d+)\)$", re.MULTILINE)


@cache
def releases_of_functions(soname: str) -> Mapping[str, int]:
    """Return the functions of a driver or runtime, each with the first release that has it; none for other libraries.

    Releases are those of CUDA, and for HIP those of ROCm: 12.9 is 12090.
    """
    table = _TABLES.get(soname.partition(".so")[0])
    if table is None:
        return {}
    text = (Path(__file__).parents[1] / "native" / "surfaces" / table).read_text(encoding="utf-8")
    return {name: int(since) for name, since in _ROW.findall(text)}


def functions_of(soname: str, release: int | None = None) -> frozenset[str]:
    """Return the functions that a library is known to have in a release; none where nothing is known.

    Without a release they are those of all releases, as for libraries whose functions are not known by release.
    """
    known = releases_of_functions(soname)
    if known:
        return frozenset(name for name, since in known.items() if release is None or since <= release)
    return _listed(soname.partition(".so")[0])


@cache
def _listed(library: str) -> frozenset[str]:
    path = next((each for each in _LISTS.glob("*.txt") if each.stem == library), None)
    lines = path.read_text(encoding="utf-8").splitlines() if path else []
    return frozenset(line for line in lines if not line.startswith("#"))

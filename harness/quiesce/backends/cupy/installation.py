"""Which CuPy is installed, whether it can be imported, and what its devices can do. Asked once per process."""

from __future__ import annotations

import functools
import importlib.metadata
from dataclasses import dataclass
from typing import Final

from quiesce.backends.cupy.ledger import Cupy
from quiesce.backends.cupy.memory import Kernels
from quiesce.backends.cupy.stalls import can_stall
from quiesce.backends.cupy.versions import Installation, cupy_distributions, parse_version, version_text
from quiesce.model.backend import Flavour
from quiesce.model.errors import BackendUnavailable

REMEDY: Final = (
    "install one CuPy for the machine's driver: pip install 'quiesce[cupy-cuda12]', 'quiesce[cupy-cuda13]' or "
    "'quiesce[cupy-rocm]'; on a machine without a GPU, the first, and write 'quiesce exec --' before the command"
)
_WITHOUT_GPU: Final = "on a machine without a GPU, write 'quiesce exec --' before the command"
_DRIVER_REMEDY: Final = (
    f"{_WITHOUT_GPU}; on one with a GPU, install its driver; "
    "CUDA_VISIBLE_DEVICES, HIP_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES hide GPUs when they are set"
)


@dataclass(frozen=True, slots=True)
class Found:
    """CuPy on this machine: the module, the kernels it can launch, and what is known of both."""

    cupy: Cupy
    kernels: Kernels
    installed: Installation
    version: str


def find_cupy(name: str) -> Found:
    """Return the CuPy of this process; ``name`` is the backend that asks.

    Raises :class:`BackendUnavailable` without CuPy, with two of them, and without a device that works.
    """
    try:
        return _find()
    except _Missing as missing:
        raise BackendUnavailable(name, missing.reason, missing.remedy) from missing.__cause__


class _Missing(Exception):
    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.remedy = remedy


def _import_cupy() -> Cupy:
    names = [distribution.metadata["Name"] or "" for distribution in importlib.metadata.distributions()]
    several = cupy_distributions(names)
    if len(several) > 1:
        raise _Missing(
            f"{len(several)} distributions of CuPy are installed ({', '.join(several)}) and overwrite each other",
            f"pip uninstall {' '.join(several)}, then {REMEDY}",
        )
    try:
        import cupy
    except ModuleNotFoundError as error:
        if error.name != "cupy":
            raise _Missing(f"CuPy cannot be imported ({_first_line(error)})", REMEDY) from error
        raise _Missing("CuPy is not installed", REMEDY) from error
    except ImportError as error:  # a library of the runtime's is missing, or of another version
        raise _Missing(f"CuPy cannot be imported ({_first_line(error)})", f"{_WITHOUT_GPU}, or {REMEDY}") from error
    return cupy


def _first_line(error: Exception) -> str:
    """Return what an error says first; CuPy puts a frame and a page of advice around it."""
    lines = [line.strip(" =") for line in (str(error.__cause__ or "") or str(error)).splitlines()]
    return next((line for line in lines if line), type(error).__name__)


@functools.cache
def _find() -> Found:
    cupy = _import_cupy()
    runtime = cupy.cuda.runtime
    flavour = Flavour.HIP if runtime.is_hip else Flavour.CUDA
    try:
        devices = int(runtime.getDeviceCount())
        if not devices:
            raise _Missing("there is no GPU", _DRIVER_REMEDY)
        with cupy.cuda.Device(0):
            runtime.memGetInfo()  # the first call that needs a device to work
            name = runtime.getDeviceProperties(0)["name"]
            kernels = Kernels(cupy)
            launches = all(_can_launch(cupy, kernels, device) for device in range(devices))
            stalls = can_stall(cupy, flavour)
        numbers = runtime.runtimeGetVersion(), runtime.driverGetVersion()
    except runtime.CUDARuntimeError as error:
        raise _Missing(f"there is no usable GPU ({_first_line(error)})", _DRIVER_REMEDY) from error
    installed = Installation(parse_version(cupy.__version__), flavour, devices, launches, stalls)
    device_name = name.decode(errors="replace") if isinstance(name, bytes) else str(name)
    return Found(cupy, kernels, installed, version_text(cupy.__version__, flavour, *numbers, device_name))


def _can_launch(cupy: Cupy, kernels: Kernels, device: int) -> bool:
    """Try whether a kernel can be compiled and run. Whatever goes wrong (no compiler, no headers), it cannot."""
    try:
        with cupy.cuda.Device(device):
            kernels.build(device, 0)
            kernels.launch(device, [], [], 0)
            cupy.cuda.runtime.deviceSynchronize()
    except Exception:  # of a compiler, a linker, a loader: of many kinds
        return False
    return True

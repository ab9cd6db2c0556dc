"""What CuPy promises and can do, by its version and by whose runtime it was built for. Nothing here imports it.

Each rule names the file of CuPy's sources, or the pull request, that it was read from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from quiesce.model.backend import Capability, Flavour, Promise
from quiesce.model.versions import Version, find_version

_DISTRIBUTION: Final = re.compile(r"cupy(-cuda[0-9]+x?|-rocm-[0-9]+-[0-9]+)?\Z")

GRANULARITY_BYTES: Final = 512
"""What the device pool rounds to, and the pinned pool's unit (``ALLOCATION_UNIT_SIZE``, ``cupy/cuda/memory.pyx``)."""
ALIGNMENT_BYTES: Final = 256
"""What every block's address is a multiple of (CUDA C++ Programming Guide, "Device Memory Accesses")."""

_ALWAYS: Final = frozenset(
    {
        Capability.MEMORY,
        Capability.POOL,
        Capability.PINNED,
        Capability.PAGEABLE,
        Capability.COPY,
        Capability.STAGING,
        Capability.FILL,
        Capability.STREAMS,
        Capability.LEGACY_DEFAULT_STREAM,
        Capability.EVENTS,
    }
)
_CACHING_POOL: Final = frozenset(
    {
        Capability.POOLS,
        Capability.POOL_LIMIT,
        Capability.CAPACITY,
        Capability.MANAGED,
        Capability.INJECTION,
        Capability.BACKING_LEDGER,
        Capability.ORDER_LEDGER,
    }
)


@dataclass(frozen=True, slots=True)
class Installation:
    """What is installed and was found to work: CuPy's version, whose runtime, how many devices, which abilities."""

    version: Version
    flavour: Flavour
    devices: int = 1
    launches: bool = False
    stalls: bool = False


def capabilities(installed: Installation, *, caching: bool) -> frozenset[Capability]:
    """Return what a context can do; ``caching``: above CuPy's own pool, not above the runtime's asynchronous one."""
    found = set(_ALWAYS)
    if caching:
        found |= _CACHING_POOL
    if captures(installed):
        found.add(Capability.CAPTURE)
    if installed.launches:
        found.add(Capability.LAUNCH)
    if installed.stalls:
        found.add(Capability.STALL)
    if installed.devices > 1:
        found.add(Capability.DEVICES)
    return frozenset(found)


def captures(installed: Installation) -> bool:
    """Whether streams can be captured: on HIP ``Stream.begin_capture`` refused until 14 (``cupy/cuda/stream.pyx``)."""
    return installed.flavour is Flavour.CUDA or installed.version >= (14,)


def promises(installed: Installation, *, caching: bool) -> frozenset[Promise]:
    """Return what CuPy's documentation and release notes promise.

    ``MemoryPool`` frees "all cached blocks that are not split" and retries before it fails, raises every error but lack
    of memory again, asks for a request's size in units of 512 bytes, and its ``free_all_blocks`` "releases free
    blocks", as the pinned pool's does (``cupy/cuda/memory.pyx``, ``pinned_memory.pyx``). ``asarray`` copies a pinned
    source directly, which took until 13.0.0 (cupy/cupy#8090, #7939): older releases are held to it too, and cases say
    ``known:`` of them. The runtime's asynchronous pool promises nothing of the caching pool's.
    """
    found = {Promise.ROUNDS_PINNED_TO_POWERS_OF_TWO, Promise.STAGES_PINNED_DIRECTLY}
    if caching:
        found |= {
            Promise.RECLAIMS_BEFORE_OOM,
            Promise.EXACT_FOOTPRINT,
            Promise.CAPACITY_LIMIT,
            Promise.TRIMS_TO_ZERO,
            Promise.PASSES_FOREIGN_ERRORS,
        }
    return frozenset(found)


def backend_name(flavour: Flavour) -> str:
    """Return the backend's name on a runtime, which ``known:`` lines of cases use: their defects differ."""
    return "cupy" if flavour is Flavour.CUDA else "cupy-rocm"


def version_text(cupy: str, flavour: Flavour, runtime: int, driver: int, device: str) -> str:
    """Return what the backend reports as its version: CuPy's comes first, because ``known:`` lines read that."""
    on = "CUDA" if flavour is Flavour.CUDA else "HIP"
    return f"CuPy {cupy} on {on} {_dotted(runtime, flavour)} (driver {_dotted(driver, flavour)}), {device}"


def _dotted(number: int, flavour: Flavour) -> str:
    """Return a runtime's version number as text: 12040 is CUDA 12.4, and 70051831 is HIP 7.0."""
    if flavour is Flavour.CUDA:
        return f"{number // 1000}.{number % 1000 // 10}"
    return f"{number // 10_000_000}.{number // 100_000 % 100}"


def parse_version(text: str) -> Version:
    """Return the numbers of CuPy's version; one that names none is older than everything."""
    return find_version(text) or ()


def cupy_distributions(installed: Iterable[str]) -> tuple[str, ...]:
    """Return which of the installed distributions are CuPy, sorted: two at once overwrite each other's files."""
    names = {re.sub(r"[-_.]+", "-", name).lower() for name in installed}
    return tuple(sorted(name for name in names if _DISTRIBUTION.match(name)))

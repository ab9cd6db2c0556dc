"""The CuPy backend, on CUDA and on ROCm: CuPy's memory pools, staging, streams, events, captures and graphs.

A context has pools of its own, of CuPy's own classes, above allocators that note each call to the runtime: that ledger
says what is held (``reserved``, ``pinned``, ``backing-calls``) and what was given back, beside what the pools claim.
CuPy's memory hook counts the blocks that the pools hand out. The runtime's figure for free memory is no gauge: it is
the whole device's, and another process may be using that.

CuPy is imported when the backend is described or opened, not before. It sees the devices that the caller left visible
(``CUDA_VISIBLE_DEVICES``, ``HIP_VISIBLE_DEVICES``, ``ROCR_VISIBLE_DEVICES``); a context begins on the first of them.
"""

from __future__ import annotations

from typing import Final

from quiesce.backends.cupy.context import CupyContext, Parts
from quiesce.backends.cupy.installation import Found, find_cupy
from quiesce.backends.cupy.ledger import BackingAllocator, CupyLedger
from quiesce.backends.cupy.memory import Memory
from quiesce.backends.cupy.pools import AsyncPools, CachingPools, PinnedPool
from quiesce.backends.cupy.stalls import Gatekeeper
from quiesce.backends.cupy.streams import Streams
from quiesce.backends.cupy.versions import ALIGNMENT_BYTES, GRANULARITY_BYTES, backend_name, capabilities, promises
from quiesce.model.backend import Description, DeviceProfile, Flavour
from quiesce.model.errors import BackendUnavailable
from quiesce.model.gauges import Gauge, Source
from quiesce.model.wording import bytes_in_words

_CLAIM: Final = frozenset({Source.CLAIM})
_LEDGER: Final = frozenset({Source.LEDGER})
_EVERYWHERE: Final = {
    Gauge.STREAMS: _LEDGER,
    Gauge.EVENTS: _LEDGER,
    Gauge.GRAPHS: _CLAIM,
    Gauge.PINNED: _LEDGER,
}
_CACHING: Final = {
    **_EVERYWHERE,
    Gauge.LIVE: _CLAIM | _LEDGER,
    Gauge.BLOCKS: _LEDGER,
    Gauge.RESERVED: _CLAIM | _LEDGER,
    Gauge.BACKING_CALLS: _LEDGER,
    Gauge.RETAINED: _LEDGER,
}
_ASYNCHRONOUS: Final = {**_EVERYWHERE, Gauge.RESERVED: _LEDGER}
_ASYNCHRONOUS_CHUNK_BYTES: Final = 64 << 20
"""Twice what the runtime's pool was seen to grow by: "32n MiB" (``cupy/cuda/memory.pyx``, ``MemoryAsyncPool``)."""


class CupyBackend:
    """CuPy with its caching pool, on the runtime that it was built for; ``only`` refuses the other one."""

    def __init__(self, only: Flavour | None = None) -> None:
        self._only = only

    def describe(self) -> Description:
        """Say what this CuPy can do on this device. Raises :class:`BackendUnavailable` without either."""
        found = self._find()
        return _describe(backend_name(found.installed.flavour), found, caching=True)

    def open(self, profile: DeviceProfile) -> CupyContext:
        """Open a context with pools of its own. Raises :class:`BackendUnavailable` without CuPy or a device."""
        found = self._find()
        ledger, streams = _open_streams(found, profile, "cupy")
        backing = BackingAllocator(found.cupy, profile, ledger, streams)
        pools = CachingPools(found.cupy, found.installed.devices, backing, ledger)
        return _open(found, streams, pools, backing, ledger)

    def _find(self) -> Found:
        found = find_cupy("cupy" if self._only is None else backend_name(self._only))
        flavour = found.installed.flavour
        if self._only not in (None, flavour):
            reason = f"this CuPy is built for {'HIP' if flavour is Flavour.HIP else 'CUDA'}"
            raise BackendUnavailable(backend_name(self._only or flavour), reason, f"write {backend_name(flavour)}")
        return found


class CupyAsyncBackend:
    """CuPy above the runtime's stream-ordered allocator: ``cupy.cuda.MemoryAsyncPool``, on CUDA only."""

    name: Final = "cupy-async"

    def describe(self) -> Description:
        """Say what this CuPy can do on this device. Raises :class:`BackendUnavailable` without either."""
        return _describe(self.name, self._find(), caching=False)

    def open(self, profile: DeviceProfile) -> CupyContext:
        """Open a context with a pool of its own. Raises :class:`BackendUnavailable` without CuPy or a device."""
        found = self._find()
        ledger, streams = _open_streams(found, profile, self.name)
        backing = BackingAllocator(found.cupy, profile, ledger, streams)
        return _open(found, streams, AsyncPools(found.cupy, found.installed.devices, streams), backing, ledger)

    def _find(self) -> Found:
        found = find_cupy(self.name)
        if found.installed.flavour is Flavour.HIP:
            raise BackendUnavailable(self.name, "CuPy has no asynchronous pool on HIP", "write cupy")
        attribute = found.cupy.cuda.runtime.cudaDevAttrMemoryPoolsSupported
        for device in range(found.installed.devices):
            if not found.cupy.cuda.runtime.deviceGetAttribute(attribute, device):
                raise BackendUnavailable(self.name, f"device {device} has no memory pools", "write cupy")
        return found


def _describe(name: str, found: Found, *, caching: bool) -> Description:
    return Description(
        name=name,
        version=found.version,
        capabilities=capabilities(found.installed, caching=caching),
        promises=promises(found.installed, caching=caching),
        gauges=_CACHING if caching else _ASYNCHRONOUS,
        alignment_bytes=ALIGNMENT_BYTES,
        chunk_bytes=GRANULARITY_BYTES if caching else _ASYNCHRONOUS_CHUNK_BYTES,
    )


def _open_streams(found: Found, profile: DeviceProfile, name: str) -> tuple[CupyLedger, Streams]:
    devices = found.installed.devices
    if profile.devices > devices:
        raise BackendUnavailable(
            name,
            f"{profile.devices} devices are wanted and {devices} visible",
            "make more devices visible to this process",
        )
    for device in range(profile.devices):
        with found.cupy.cuda.Device(device):
            free_bytes, _ = found.cupy.cuda.runtime.memGetInfo()
        if free_bytes < profile.capacity_bytes:
            wanted = bytes_in_words(profile.capacity_bytes)
            reason = f"{wanted} are wanted, and device {device} has {bytes_in_words(free_bytes)} free"
            raise BackendUnavailable(name, reason, "end other programs that use it, or choose a larger device")
    ledger = CupyLedger()
    gatekeeper = Gatekeeper(found.cupy.cuda.runtime, found.installed.flavour) if found.installed.stalls else None
    return ledger, Streams(found.cupy, devices, ledger, gatekeeper)


def _open(
    found: Found, streams: Streams, pools: CachingPools | AsyncPools, backing: BackingAllocator, ledger: CupyLedger
) -> CupyContext:
    pinned = PinnedPool(found.cupy, backing.pinned_memory)
    memory = Memory(found.cupy, pools, pinned, streams, ledger)
    gauges = _CACHING if isinstance(pools, CachingPools) else _ASYNCHRONOUS
    read = frozenset((gauge, source) for gauge, sources in gauges.items() for source in sources)
    return CupyContext(Parts(found, streams, pools, pinned, memory, backing, ledger, {}), read)


def backend() -> CupyBackend:
    """Return CuPy with its caching pool; an entry point of the group ``quiesce.backends``."""
    return CupyBackend()


def rocm_backend() -> CupyBackend:
    """Return the same, on ROCm only: the name under which cases state what is known there."""
    return CupyBackend(Flavour.HIP)


def asynchronous_backend() -> CupyAsyncBackend:
    """Return CuPy above the runtime's stream-ordered allocator; an entry point of the same group."""
    return CupyAsyncBackend()

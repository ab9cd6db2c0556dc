"""The museum: historic faults, each one part of the reference replaced. No fault raises a finding by itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from quiesce.allocators.reference.museum import pinned, pools, runtimes, streaming, tapes
from quiesce.allocators.reference.world import Fault

FAULTS: Final[Mapping[str, Fault]] = MappingProxyType(
    {fault.name: fault for room in (pools, streaming, runtimes, pinned, tapes) for fault in room.FAULTS}
)
"""Every fault by the name that cases cite."""

__all__ = ["FAULTS", "Fault"]

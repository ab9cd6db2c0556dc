"""The backend ``reference``: the trusted implementation, and the same with one historic fault switched on."""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from quiesce.allocators.reference import FAULTS, MACHINE_GAUGES, Machine, Parts
from quiesce.model.backend import Capability, Context, Description, DeviceProfile, Promise
from quiesce.model.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class ReferenceBackend:
    """The reference, built from ``parts``. A fault replaces a part and never a promise."""

    name: str = "reference"
    parts: Parts = Parts()  # noqa: RUF009 - frozen

    def describe(self) -> Description:
        """Say what the reference does: everything, and it promises everything."""
        return Description(
            name=self.name,
            version="1",
            capabilities=frozenset(Capability),
            promises=frozenset(Promise),
            gauges=MACHINE_GAUGES,
            alignment_bytes=16,
            chunk_bytes=0,
            footprint_factor=1,
        )

    def open(self, profile: DeviceProfile) -> Context:
        """Open a fresh machine."""
        return Machine(profile, self.parts)


def backend() -> ReferenceBackend:
    """Return the trusted reference."""
    return ReferenceBackend()


def faulty(fault: str) -> ReferenceBackend:
    """Return the reference with ``fault`` switched on. Raises :class:`ConfigurationError` for an unknown one."""
    if fault not in FAULTS:
        matches = difflib.get_close_matches(fault, sorted(FAULTS), n=1)
        perhaps = f", perhaps '{matches[0]}'" if matches else ""
        raise ConfigurationError(f"unknown fault '{fault}'{perhaps}; write one of those that 'quiesce prove' lists")
    return ReferenceBackend(f"reference:{fault}", FAULTS[fault].parts)

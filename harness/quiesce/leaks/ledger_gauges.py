"""What the ledger of ``quiesce exec`` says that this process holds: memory and handles of the simulated runtime.

The ledger counts what its client was given and has not given back, exactly, from one call to the next. What a pool of
the runtime keeps in reserve is none of that; what a library pools for itself is, and it is asked to give that back.
The runtime may be loaded in the midst of a round, by the first import of a client: until then there is nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.leaks.quantities import (
    DEVICE,
    EVENTS,
    GRAPHS,
    LIBRARY_HANDLES,
    LINKERS,
    MANAGED,
    MODULES,
    PINNED,
    POOLS,
    REGISTERED,
    RESERVATIONS,
    STREAMS,
    TEXTURES,
    USER_OBJECTS,
    Quantity,
)
from quiesce.simulator.runtime.launch import SETTINGS_VARIABLE
from quiesce.simulator.runtime.ledger import OF_LIBRARIES, LiveThing, Thing
from quiesce.simulator.runtime.own_machine import OwnMachine


@dataclass(frozen=True, slots=True)
class _Kind:
    """One family: what it counts, under which name and in which unit."""

    family: str
    name: str
    things: tuple[Thing, ...]
    unit: str = "bytes"


KINDS: Final = (
    _Kind(DEVICE, "device memory", (Thing.DEVICE, Thing.PHYSICAL)),
    _Kind(MANAGED, "managed memory", (Thing.MANAGED,)),
    _Kind(PINNED, "pinned memory", (Thing.PINNED,)),
    _Kind(REGISTERED, "registered host memory", (Thing.REGISTERED,)),
    _Kind(STREAMS, "streams", (Thing.STREAM,), "streams"),
    _Kind(EVENTS, "events", (Thing.EVENT,), "events"),
    _Kind(GRAPHS, "graphs and executable graphs", (Thing.GRAPH, Thing.GRAPH_EXEC), "graphs"),
    _Kind(POOLS, "memory pools", (Thing.POOL,), "pools"),
    _Kind(MODULES, "modules", (Thing.MODULE,), "modules"),
    _Kind(TEXTURES, "textures and surfaces", (Thing.TEXTURE,), "textures"),
    _Kind(RESERVATIONS, "reservations of addresses", (Thing.RESERVATION,), "reservations"),
    _Kind(LINKERS, "linkers", (Thing.LINKER,), "linkers"),
    _Kind(USER_OBJECTS, "user objects", (Thing.USER_OBJECT,), "objects"),
    _Kind(LIBRARY_HANDLES, "handles of cuBLAS, cuFFT, NCCL and other libraries", OF_LIBRARIES, "handles"),
)


class LedgerMeter:
    """Counts one kind of things, on each device for itself. ``settle`` has a library empty its pools."""

    def __init__(self, kind: _Kind, machine: OwnMachine, devices: int, settle: Callable[[], None]) -> None:
        self.family = kind.family
        self.machine = machine
        self._things = kind.things
        self._is_memory = kind.unit == "bytes"
        self._settle = settle
        self._quantities = tuple(
            Quantity(kind.family, f"{kind.name} on device {device}" if devices > 1 else kind.name, kind.unit)
            for device in range(devices)
        )

    def absent(self) -> str:
        """Be there always: a runtime that nobody has loaded holds nothing."""
        return ""

    def settle(self) -> None:
        """Have the library give back what it merely caches."""
        if self._is_memory:
            self._settle()

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        ledger = self.machine.ledger()
        if ledger is None:
            return dict.fromkeys(self._quantities, 0)
        count, size_bytes = ledger.counted(*self._things)
        if len(self._quantities) == 1:
            return {self._quantities[0]: size_bytes if self._is_memory else count}
        counted = dict.fromkeys(self._quantities, 0)
        for thing in ledger.made_since(0) if count else ():
            if thing.thing in self._things:
                counted[self._quantities[thing.device]] += thing.size_bytes if self._is_memory else 1
        return counted

    def observe(self) -> None:
        """Do nothing: where things come from takes rounds in which stacks are kept."""

    def rest(self) -> None:
        """Do nothing."""

    def counts(self, thing: LiveThing) -> Quantity | None:
        """Return the quantity that a thing belongs to."""
        return self._quantities[thing.device] if thing.thing in self._things else None

    def origin(self, quantity: Quantity) -> str:
        """Know nothing without those rounds."""
        return ""

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""


def own_machine() -> OwnMachine | None:
    """Return the machine that ``quiesce exec`` gave this process, or None where it does not run there."""
    return OwnMachine() if os.environ.get(SETTINGS_VARIABLE) else None


def ledger_meters(machine: OwnMachine, settle: Callable[[], None]) -> tuple[LedgerMeter, ...]:
    """Return the meters of a machine, of which the settings say how many devices it has."""
    settings = dict(word.partition("=")[::2] for word in os.environ[SETTINGS_VARIABLE].split(";"))
    devices = int(settings.get("devices", "1"))
    return tuple(LedgerMeter(kind, machine, devices, settle) for kind in KINDS)

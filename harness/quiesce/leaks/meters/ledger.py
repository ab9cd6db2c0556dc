"""What the ledger of ``quiesce exec`` says that this process holds, and where that was asked for.

The ledger counts what its client was given and has not given back, exactly, from one call to the next. What a pool of
the runtime keeps in reserve is none of that; what a library pools for itself is, and it is asked to give that back.
The runtime may be loaded in the midst of a round, by the first import of a client: until then there is nothing.

A few rounds show the places, which are run once something is known to leak: what was made in them and is still live
comes again and again, and nothing that once warmed up is among it.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from quiesce.leaks.meters.libraries import CupyMeter, TorchMeter
from quiesce.leaks.owners import frame_text
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
    BaseMeter,
    Meter,
    Quantity,
    Surroundings,
)
from quiesce.model.findings import CallSite, Frame
from quiesce.simulator.judge import scripts_of
from quiesce.simulator.runtime import OF_LIBRARIES, SETTINGS_VARIABLE, LiveThing, OwnMachine, Thing


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


class LedgerMeter(BaseMeter):
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

    @classmethod
    def here(cls, surroundings: Surroundings) -> Sequence[Meter]:
        """Return one for each kind of things, where there is a machine."""
        return ledger_meters(surroundings.machine, _settle_libraries) if surroundings.machine else ()

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

    def counts(self, thing: LiveThing) -> Quantity | None:
        """Return the quantity that a thing belongs to."""
        return self._quantities[thing.device] if thing.thing in self._things else None


def own_machine() -> OwnMachine | None:
    """Return the machine that ``quiesce exec`` gave this process, or None where it does not run there."""
    return OwnMachine() if os.environ.get(SETTINGS_VARIABLE) else None


_LIBRARIES: Final = (CupyMeter(), TorchMeter())


def _settle_libraries() -> None:
    """Have the libraries give back what they merely cache."""
    for library in _LIBRARIES:
        library.settle()


def ledger_meters(machine: OwnMachine, settle: Callable[[], None]) -> tuple[LedgerMeter, ...]:
    """Return the meters of a machine, of which the settings say how many devices it has."""
    settings = dict(word.partition("=")[::2] for word in os.environ[SETTINGS_VARIABLE].split(";"))
    devices = int(settings.get("devices", "1"))
    return tuple(LedgerMeter(kind, machine, devices, settle) for kind in KINDS)


ROUNDS: Final = 8
"""So many rounds show a place that leaves something behind in some of them only."""

PLACES_SHOWN: Final = 5
RECURRING_SHARE: Final = 2
"""What comes in less than half as many rounds as another place is what warms up, or what chance leaves."""


@dataclass(frozen=True, slots=True)
class Place:
    """One call of the runtime from one place in the code, and what of it is still live from how many rounds."""

    site: CallSite
    count: int
    size_bytes: int
    rounds: int

    @property
    def origin(self) -> str:
        """The line of the program's own that asked, or the call where no stack tells."""
        frame = next((frame for frame in self.site.shown if frame.is_own and frame.line), None)
        return frame_text((frame.file, frame.line)) if frame else str(self.site)

    def __str__(self) -> str:
        size = f", {self.size_bytes:,} bytes in all" if self.size_bytes else ""
        rounds = f"{self.rounds} of the {ROUNDS} rounds in which calls were traced"
        return f"{self.site.call}: {self.count:,} still live from {rounds}{size}"


@dataclass(frozen=True, slots=True)
class Located:
    """The places that were found, by what is counted there, those first that come in most rounds.

    ``is_held`` says whether somebody in the process can still reach some of it, as an object that wraps it does.
    """

    places: Mapping[Quantity, Sequence[Place]]
    is_held: bool

    def lines(self) -> frozenset[tuple[str, int]]:
        """Return the lines of code that anything was asked for by, also indirectly."""
        sites = (place.site for places in self.places.values() for place in places)
        return frozenset((frame.file, frame.line) for site in sites for frame in site.frames)

    def origin(self, quantity: Quantity) -> str:
        """Say where most of it was asked for."""
        return next((place.origin for place in self.places.get(quantity, ())), "")

    def evidence(self, quantity: Quantity) -> str:
        """Say how much of it each place left."""
        return "\n".join(map(str, self.places.get(quantity, ())))

    def call_sites(self, quantity: Quantity) -> tuple[CallSite, ...]:
        """Return the calls, with their stacks."""
        return tuple(place.site for place in self.places.get(quantity, ()))


NOWHERE: Final = Located({}, is_held=False)


class LedgerPlaces:
    """Looks for the places where quantities of some meters grow."""

    def __init__(self, meters: Sequence[LedgerMeter], quantities: Iterable[Quantity]) -> None:
        self._meters = meters
        self._quantities = frozenset(quantities)
        self._machine: OwnMachine = meters[0].machine

    def watch(self, run_round: Callable[[], None], settle: Callable[[], object]) -> Located:
        """Run rounds, each of them settled, and return what is new behind them and where it came from."""
        ledger = self._machine.ledger()
        if ledger is None:
            return NOWHERE
        made = [ledger.made]
        for _ in range(ROUNDS):
            run_round()
            settle()
            made.append(ledger.made)
        self._machine.look()
        return self._located(list(ledger.made_since(made[0])), made)

    def _located(self, things: Iterable[LiveThing], made: Sequence[int]) -> Located:
        groups: dict[Quantity, dict[object, list[LiveThing]]] = {}
        frames = self._frames()
        is_held = False
        for thing in things:
            quantity = next(filter(None, (meter.counts(thing) for meter in self._meters)), None)
            if quantity in self._quantities:
                is_held |= not thing.is_lost
                shown = tuple(frame for frame in frames(thing) if not frame.folded)
                groups.setdefault(quantity, {}).setdefault((thing.function, shown), []).append(thing)
        places = {
            quantity: _recurring([_place(group, made, frames) for group in by_place.values()])
            for quantity, by_place in groups.items()
        }
        return Located(places, is_held)

    def _frames(self) -> Callable[[LiveThing], tuple[Frame, ...]]:
        stacks = self._machine.stacks()
        found: dict[int, tuple[Frame, ...]] = {}

        def frames(thing: LiveThing) -> tuple[Frame, ...]:
            if thing.stack not in found:
                stack = stacks.stack(thing.stack) if stacks else None
                found[thing.stack] = scripts_of(stack) if stack else ()
            return found[thing.stack]

        return frames


def _place(group: Sequence[LiveThing], made: Sequence[int], frames: Callable[[LiveThing], tuple[Frame, ...]]) -> Place:
    first = min(group, key=lambda thing: thing.serial)
    role = "allocated by" if first.thing.is_memory else "created by"
    return Place(
        CallSite(role, first.function, first.number, frames(first)),
        count=len(group),
        size_bytes=sum(thing.size_bytes for thing in group),
        rounds=len({bisect_left(made, thing.serial) for thing in group}),
    )


def _recurring(places: Sequence[Place]) -> Sequence[Place]:
    most = max(place.rounds for place in places)
    recurring = [place for place in places if place.rounds * RECURRING_SHARE >= most]
    recurring.sort(key=lambda place: (-place.rounds, -place.size_bytes, place.site.number))
    return recurring[:PLACES_SHOWN]

"""Quantities: what is counted of a process, and the contract of the meters that count it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, runtime_checkable

from quiesce.model.rules import LOST_REFERENCES, Kind

PYTHON: Final = "python"
C_HEAP: Final = "c-heap"
DESCRIPTORS: Final = "descriptors"
THREADS: Final = "threads"
PROCESSES: Final = "processes"
TASKS: Final = "tasks"
REFERENCES: Final = "references"
CONTEXTS: Final = "contexts"
CUPY: Final = "cupy"
TORCH: Final = "torch"
RMM: Final = "rmm"
JAX: Final = "jax"
DEVICE: Final = "device"
MANAGED: Final = "managed"
PINNED: Final = "pinned"
REGISTERED: Final = "registered"
STREAMS: Final = "streams"
EVENTS: Final = "events"
GRAPHS: Final = "graphs"
POOLS: Final = "pools"
MODULES: Final = "modules"
TEXTURES: Final = "textures"
RESERVATIONS: Final = "reservations"
LINKERS: Final = "linkers"
USER_OBJECTS: Final = "user-objects"
LIBRARY_HANDLES: Final = "library-handles"
FREE_MEMORY: Final = "free-memory"
ANONYMOUS: Final = "anonymous-memory"

IN_LEDGER: Final = (
    DEVICE,
    MANAGED,
    PINNED,
    REGISTERED,
    STREAMS,
    EVENTS,
    GRAPHS,
    POOLS,
    MODULES,
    TEXTURES,
    RESERVATIONS,
    LINKERS,
    USER_OBJECTS,
    LIBRARY_HANDLES,
)
"""What the ledger of ``quiesce exec`` counts."""

IN_POOLS: Final = (CUPY, TORCH, RMM, JAX)
"""What libraries say of the memory that they hand out: a device's memory follows from it."""

FAMILIES: Final = (
    CONTEXTS,
    *IN_POOLS,
    *IN_LEDGER,
    FREE_MEMORY,
    PROCESSES,
    THREADS,
    TASKS,
    DESCRIPTORS,
    REFERENCES,
    C_HEAP,
    PYTHON,
    ANONYMOUS,
)
"""Every family of gauges by name; those that say most about a leak come first, also in reports."""

COARSE: Final = (FREE_MEMORY, ANONYMOUS)
"""What also counts others' memory and pages that are merely kept at hand: growth must be large, and never fall."""

MEMORY: Final = (PYTHON, C_HEAP)
"""What is counted of the process's memory by the byte or block."""

LASTING: Final = (*MEMORY, ANONYMOUS)
"""What holds memory of the process: a cache of the code's own is counted there, and needs the longest look."""

COUNTED_EXACTLY: Final = frozenset({*IN_POOLS, DEVICE, MANAGED, PINNED, REGISTERED})
"""Families whose gauges count blocks; others are measured, and their last digits mean nothing."""

_MEMORY: Final[Mapping[str, str]] = {
    PYTHON: "Python",
    C_HEAP: "C heap",
    CUPY: "CuPy's pools",
    TORCH: "PyTorch",
    RMM: "RMM",
    JAX: "JAX",
    DEVICE: "device",
    MANAGED: "managed",
    PINNED: "pinned",
    REGISTERED: "registered",
    RESERVATIONS: "address space",
    FREE_MEMORY: "device, by the GPU driver's figure",
    ANONYMOUS: "mapped by native code",
}
_HANDLES: Final = (STREAMS, EVENTS, GRAPHS, POOLS, MODULES, TEXTURES, LINKERS, USER_OBJECTS)

_OPENED: Final[Mapping[str, str]] = {
    DESCRIPTORS: "file descriptor leak",
    PROCESSES: "child process leak",
    THREADS: "thread leak",
    TASKS: "asyncio task leak",
    REFERENCES: LOST_REFERENCES,
}


def kind_of_leak(family: str) -> str:
    """Return the kind of a finding about a family, in the words of :mod:`quiesce.model.rules`."""
    if family in _MEMORY:
        return f"{Kind.MEMORY_LEAK} ({_MEMORY[family]})"
    if family in _HANDLES:
        return f"{Kind.HANDLE_LEAK} ({family.replace('-', ' ')})"
    return _OPENED.get(family, f"leak ({family})")


@dataclass(frozen=True, slots=True)
class Quantity:
    """One thing that is counted. ``unit`` is ``bytes`` or the plural of a thing.

    ``floor`` is the growth per round that is noise: less is never accused. Whoever sets it says why.
    """

    family: str
    name: str
    unit: str = "bytes"
    floor: int = 0


def leading(quantities: Iterable[Quantity]) -> list[Quantity]:
    """Return the first quantity of each family, for the others follow from it.

    Things of several devices stay beside each other, and so does what tested code counts itself.
    """
    first: dict[object, Quantity] = {}
    for quantity in quantities:
        has_one_cause = quantity.family in FAMILIES and quantity.family not in IN_LEDGER
        first.setdefault(quantity.family if has_one_cause else quantity, quantity)
    order = {family: index for index, family in enumerate(FAMILIES)}
    return sorted(first.values(), key=lambda quantity: order.get(quantity.family, -1))


class Unreadable(Exception):
    """Why a meter cannot be read, in the words of the user."""


class Meter(Protocol):
    """Counts the quantities of one family. Its own work must leave nothing behind."""

    family: str

    def absent(self) -> str:
        """Say why nothing can be counted here, or return an empty string."""

    def settle(self) -> None:
        """Complete what is in flight and give up what is merely cached."""

    def read(self) -> Mapping[Quantity, int]:
        """Count. May raise :class:`Unreadable`."""

    def observe(self) -> None:
        """Remember what there is now, so that what comes on top of it has a place."""

    def rest(self) -> None:
        """End the check; idempotent."""

    def origin(self, quantity: Quantity) -> str:
        """Say where the growth since :meth:`observe` comes from, or return an empty string."""

    def evidence(self, quantity: Quantity) -> str:
        """Say more about the growth, in lines, or return an empty string."""


@runtime_checkable
class ListingMeter(Meter, Protocol):
    """Can tell the things that it counts apart."""

    def present(self) -> frozenset[Hashable]:
        """Return what there is now, each thing by what no other has."""

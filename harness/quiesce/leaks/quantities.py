"""What is counted of a process: a row for each family of gauges, and the contract of the meters that count it.

A new gauge is a meter in ``quiesce.leaks.meters`` and a row in :data:`ROWS`.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from quiesce.model.rules import LOST_REFERENCES, Kind

if TYPE_CHECKING:
    from quiesce.leaks.owners import Owners
    from quiesce.simulator.runtime import OwnMachine

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


class Group(enum.Enum):
    """What the growth of families has in common."""

    POOL = "what a library says of the memory that it hands out: a device's memory follows from it"
    LEDGER = "what the ledger of ``quiesce exec`` counts"
    OPENED = "what somebody opens, and a line of code can be named for"
    MEMORY = "the process's memory by the byte or block"
    OTHER = "none of these"


@dataclass(frozen=True, slots=True)
class Family:
    """A family of gauges: what counts it, how its leaks are called, and what is special about its readings.

    ``leak`` is the kind of its findings, in the words of :mod:`quiesce.model.rules`. ``meter`` names the class that
    counts it, as ``module:Class`` below :mod:`quiesce.leaks.meters`. ``counts_blocks`` says that its bytes are counted,
    where those of others are measured and their last digits mean nothing. What ``is_coarse`` also counts others' memory
    and pages that are merely kept at hand, so growth must be large, and never fall. What ``moves_by_itself`` does so in
    twenty runs: glibc keeps each text that the environment ever had. What ``is_read_late`` takes and leaves blocks at
    hand as it is read.
    """

    name: str
    leak: str = ""
    meter: str = ""
    group: Group = Group.OTHER
    counts_blocks: bool = False
    is_coarse: bool = False
    moves_by_itself: bool = False
    is_read_late: bool = False


def _memory(name: str, of: str, meter: str, group: Group = Group.OTHER, /, **rules: bool) -> Family:
    return Family(name, f"{Kind.MEMORY_LEAK} ({of})", meter, group, **rules)


def _pool(name: str, of: str, meter: str) -> Family:
    return _memory(name, of, meter, Group.POOL, counts_blocks=True)


def _in_ledger(name: str, of: str = "") -> Family:
    """Return the row of a kind of memory, or of handles if none is named."""
    leak = f"{Kind.MEMORY_LEAK} ({of})" if of else f"{Kind.HANDLE_LEAK} ({name.replace('-', ' ')})"
    return Family(name, leak, "ledger:LedgerMeter", Group.LEDGER, counts_blocks=bool(of))


_NATIVE: Final = {"moves_by_itself": True, "is_read_late": True}

ROWS: Final = (
    Family(CONTEXTS, meter="contexts:ContextMeter"),
    _pool(CUPY, "CuPy's pools", "libraries:CupyMeter"),
    _pool(TORCH, "PyTorch", "libraries:TorchMeter"),
    _pool(RMM, "RMM", "libraries:RmmMeter"),
    _pool(JAX, "JAX", "libraries:JaxMeter"),
    _in_ledger(DEVICE, "device"),
    _in_ledger(MANAGED, "managed"),
    _in_ledger(PINNED, "pinned"),
    _in_ledger(REGISTERED, "registered"),
    *map(_in_ledger, (STREAMS, EVENTS, GRAPHS, POOLS, MODULES, TEXTURES)),
    replace(_in_ledger(RESERVATIONS, "address space"), counts_blocks=False),
    *map(_in_ledger, (LINKERS, USER_OBJECTS)),
    replace(_in_ledger(LIBRARY_HANDLES), leak=""),
    _memory(
        FREE_MEMORY,
        "device, by the GPU driver's figure",
        "driver_memory:DriverMemoryMeter",
        is_coarse=True,
        moves_by_itself=True,
    ),
    Family(PROCESSES, "child process leak", "opened:ProcessMeter", Group.OPENED),
    Family(THREADS, "thread leak", "opened:ThreadMeter", Group.OPENED),
    Family(TASKS, "asyncio task leak", "opened:TaskMeter", Group.OPENED),
    Family(DESCRIPTORS, "file descriptor leak", "opened:DescriptorMeter", Group.OPENED),
    Family(REFERENCES, LOST_REFERENCES),  # no meter: the check watches them in rounds of their own
    _memory(C_HEAP, "C heap", "memory:HeapMeter", Group.MEMORY, **_NATIVE),
    _memory(PYTHON, "Python", "memory:PythonMeter", Group.MEMORY),
    _memory(ANONYMOUS, "mapped by native code", "memory:AnonymousMemoryMeter", is_coarse=True, **_NATIVE),
)
"""A row for each family of gauges; those that say most about a leak come first, also in reports."""

_BY_NAME: Final = {row.name: row for row in ROWS}
FAMILIES: Final = tuple(_BY_NAME)
"""Their names."""


def _of(group: Group) -> tuple[str, ...]:
    return tuple(row.name for row in ROWS if row.group is group)


IN_LEDGER: Final = _of(Group.LEDGER)
IN_POOLS: Final = _of(Group.POOL)
OPENED: Final = _of(Group.OPENED)
MEMORY: Final = _of(Group.MEMORY)
LASTING: Final = (*MEMORY, ANONYMOUS)
"""What holds memory of the process: a cache of the code's own is counted there, and needs the longest look."""


def family_of(name: str) -> Family:
    """Return the row of a family; what a test counts itself has one without any rule."""
    return _BY_NAME.get(name) or Family(name)


def kind_of_leak(family: str) -> str:
    """Return the kind of a finding about a family."""
    return family_of(family).leak or f"leak ({family})"


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


class BaseMeter:
    """What a meter needs not say where it has nothing to say."""

    family = ""

    @classmethod
    def here(cls, surroundings: Surroundings) -> Sequence[Meter]:
        """Return the meters of this type that count this process."""
        return (cls(),)

    def absent(self) -> str:
        """Be there always."""
        return ""

    def settle(self) -> None:
        """Have nothing in flight or merely cached; garbage is collected already."""

    def read(self) -> Mapping[Quantity, int]:
        """Count nothing."""
        return {}

    def observe(self) -> None:
        """Know of no place."""

    def rest(self) -> None:
        """Have nothing to end."""

    def origin(self, quantity: Quantity) -> str:
        """Know nothing of where growth comes from."""
        return ""

    def evidence(self, quantity: Quantity) -> str:
        """Have nothing to add."""
        return ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What meters may need to know of the process. ``machine`` is its simulated one, where it runs on one."""

    owners: Owners
    machine: OwnMachine | None = None


@runtime_checkable
class ListingMeter(Meter, Protocol):
    """Can tell the things that it counts apart."""

    def present(self) -> frozenset[Hashable]:
        """Return what there is now, each thing by what no other has."""

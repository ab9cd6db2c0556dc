"""What one process of a program did on the simulated runtime: the values that its report shows.

Nothing here holds a clock or an address: two runs with one seed give the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from quiesce.model.findings import CallSite


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a program was run. ``failures`` are those that were asked for, as ``--fail`` names them.

    ``capacity_bytes`` is that of each device, 0 where it was left to a machine that was never called.
    """

    command: str
    flavour: str
    schedule: str
    seed: int
    recycle: str
    at_exit: str
    devices: int
    capacity_bytes: int
    failures: tuple[str, ...] = ()


OTHER: Final = "other"
"""The kind of the series that holds all that has none of its own."""


@dataclass(frozen=True, slots=True)
class MemorySeries:
    """The bytes of one kind on one device at each of the moments of a :class:`MemoryHistory`.

    ``stream`` is the number of the stream that the allocations were ordered on, 0 for a default stream, None where no
    stream orders them. Of :data:`OTHER` neither is known.
    ``peak_bytes`` and ``allocations`` are exact, also where ``bytes`` are those of chosen moments.
    """

    kind: str
    device: int | None
    stream: int | None
    bytes: tuple[int, ...]
    peak_bytes: int
    allocations: int


@dataclass(frozen=True, slots=True)
class Event:
    """Something worth a mark on the axis: a refused request, or a mark that the program made."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class MemoryHistory:
    """What was allocated, over the number of the call after which it was.

    Of a long run, the lowest and the highest moment of each of many parts are kept, and the last. ``refused`` and
    ``marks`` are the first of ``refused_count`` and ``marks_count``.
    """

    moments: tuple[int, ...]
    series: tuple[MemorySeries, ...]
    peak_bytes: int
    peak_call: int
    refused: tuple[Event, ...]
    refused_count: int
    marks: tuple[Event, ...]
    marks_count: int


@dataclass(frozen=True, slots=True)
class ObservedCall:
    """One call in words. ``role`` says what it has to do with the finding; most have none.

    ``thread`` counts the threads of what is shown, from 1.
    """

    number: int
    thread: int
    call: str
    text: str
    role: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The calls around a finding, in order; numbers that are missing were left out.

    ``finding`` is its position among those of its result.
    """

    finding: int
    calls: tuple[ObservedCall, ...]


@dataclass(frozen=True, slots=True)
class Holding:
    """Things of one kind that lived when the process ended, all made by one call from one place.

    ``state`` says who could still have given them back: ``lost`` and ``indirectly lost``, nobody; ``maybe lost``, only
    memory that could not be searched has their address; ``held``, somebody. ``size_bytes`` is 0 for handles.
    """

    state: str
    thing: str
    device: int
    count: int
    size_bytes: int
    site: CallSite


@dataclass(frozen=True, slots=True)
class Holdings:
    """What lived at the end, the largest first. ``count`` and ``size_bytes`` also cover what ``kept`` has no room for.

    ``at_exit`` says whether the process ran its exit handlers; where it did not, nobody searched for owners.
    """

    kept: tuple[Holding, ...]
    count: int
    size_bytes: int
    at_exit: bool


@dataclass(frozen=True, slots=True)
class Holder:
    """Memory of one kind that was live when a request was refused, all made by one call from one place."""

    thing: str
    count: int
    size_bytes: int
    site: CallSite


@dataclass(frozen=True, slots=True)
class OutOfMemory:
    """The first request of a process that ran out of memory, and who held the memory.

    ``capacity_bytes`` are ``live_bytes`` in ``live_count`` blocks, ``cached_bytes`` in the runtime's own pools,
    ``fragmented_bytes`` that rounding takes, and ``free_bytes``. ``is_injected`` says that the refusal was asked for.
    ``is_first`` says that no earlier call was overwritten. ``holders`` are the largest, at most
    :data:`HOLDERS_MAX`; ``holders_count`` counts all.
    """

    thing: str
    device: int
    requested_bytes: int
    is_injected: bool
    is_first: bool
    capacity_bytes: int
    live_bytes: int
    live_count: int
    cached_bytes: int
    fragmented_bytes: int
    free_bytes: int
    site: CallSite
    holders: tuple[Holder, ...]
    holders_count: int


HOLDERS_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class FailedCall:
    """A call of the runtime that failed, all times that it did so with one error at one place.

    ``error`` is the name of ``code``, empty where there is none. ``unnoticed`` is how often work was refused and the
    program did not look at the error. ``is_injected`` says that the failure was asked for; ``known`` is why the user
    accepts it, or empty.
    """

    site: CallSite
    code: int
    error: str
    count: int
    unnoticed: int
    is_injected: bool = False
    known: str = ""

    @property
    def remark(self) -> str:
        """Return what else there is to say of it, or an empty text."""
        if self.known:
            return f"known: {self.known}"
        if self.is_injected:
            return "--fail asked for it"
        return "the program did not look at the error" if self.unnoticed else ""

    def __str__(self) -> str:
        return f"{self.site.call} with error {self.code}{f' ({self.error})' if self.error else ''}"


@dataclass(frozen=True, slots=True)
class FailedCalls:
    """Calls that failed; ``count`` also covers what ``kept`` has no room for."""

    kept: tuple[FailedCall, ...] = ()
    count: int = 0


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """What a report shows of one process.

    ``first_call`` is the number of the first one kept: earlier ones were overwritten. ``findings_left_out`` has
    the rules of which there were more findings than the result has, each with how many more. ``notes`` are no findings:
    what was not simulated, what was not judged.
    """

    conditions: Conditions
    first_call: int
    launches: int
    findings_left_out: tuple[tuple[str, int], ...]
    notes: tuple[str, ...]
    memory: MemoryHistory
    surroundings: tuple[Surroundings, ...]
    holdings: Holdings
    out_of_memory: OutOfMemory | None = None
    failed_calls: FailedCalls = FailedCalls()

"""The contract of a backend: something that can be driven operation by operation.

A third-party backend imports these names, and those of the value modules next to this one, from ``quiesce``.
It registers a factory (a callable without arguments that returns a :class:`Backend`) under the entry-point
group ``quiesce.backends``.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from quiesce.model.findings import FailedCall
from quiesce.model.gauges import Gauge, Readings, Source
from quiesce.model.observations import Observation
from quiesce.model.operations import Operation
from quiesce.model.outcomes import Flavour as Flavour  # noqa: PLC0414 - backends import it from here
from quiesce.model.outcomes import Outcome


class Capability(enum.StrEnum):
    """What a backend can do. A case that needs what it lacks is *unsupported*."""

    MEMORY = "memory"
    """``allocate`` and ``free`` of device memory (the host heap counts as the host's own device)."""
    ALIGNMENT = "alignment"
    """``allocate … align=N``."""
    POOL = "pool"
    """The default allocator caches; ``trim`` works."""
    POOLS = "pools"
    """``create pool`` and ``destroy pool``; several pools above one backing allocator."""
    POOL_LIMIT = "pool-limit"
    """``create pool limit=N``."""
    CAPACITY = "capacity"
    """``open`` honours the profile's capacity."""
    FLAVOUR = "flavour"
    """``open`` honours the profile's flavour, whose rules then apply."""
    PINNED = "pinned"
    """Pinned host memory, with a pool that ``trim pinned`` empties."""
    PAGEABLE = "pageable"
    """Pageable host memory as a block."""
    MANAGED = "managed"
    """Managed memory."""
    COPY = "copy"
    """``copy``."""
    STAGING = "staging"
    """``stage``: host data to the device the way a library does it."""
    FILL = "fill"
    """``fill``."""
    LAUNCH = "launch"
    """``launch`` with declared reads and writes."""
    STREAMS = "streams"
    """Streams, and allocation and freeing ordered on them."""
    LEGACY_DEFAULT_STREAM = "legacy-default-stream"
    """The default stream and every blocking stream wait for each other, as CUDA's and HIP's legacy one does."""
    EVENTS = "events"
    """Events."""
    STALL = "stall"
    """``stall`` and ``release``: work that stays pending deterministically."""
    CAPTURE = "capture"
    """Stream capture and graphs."""
    DEVICES = "devices"
    """More than one device. Each works on its own device memory, and all of them on host and managed memory."""
    LIFECYCLE = "lifecycle"
    """``initialize``, ``finalize``, ``partition``, policies."""
    INSTANCES = "instances"
    """Execution-space instances on streams, and the launch protocol by argument size."""
    TAPE = "tape"
    """The autodiff tape."""
    INJECTION = "injection"
    """``fail backing`` and ``fail bookkeeper``."""
    ORDER_LEDGER = "order-ledger"
    """Every record, wait and synchronisation that the library makes for itself is observed."""
    BACKING_LEDGER = "backing-ledger"
    """Every backing allocation and free is observed, with its address."""


class Promise(enum.StrEnum):
    """What a backend declares beyond the universal rules. A case names the promises that it tests."""

    RECLAIMS_BEFORE_OOM = "reclaims-before-oom"
    """Cached memory is released before a request fails, and the backing allocator is called again."""
    WAITS_BEFORE_OOM = "waits-before-oom"
    """Work that is in flight on freed memory is waited for before a request fails, where no capture forbids that."""
    REUSES_BLOCKS = "reuses-blocks"
    """A freed block whose work is done serves a request of its size on its stream, whatever lies beside it."""
    PASSES_FOREIGN_ERRORS = "passes-foreign-errors"
    """An error of a call below that is not lack of memory is passed on at once: nothing is released or asked again."""
    RETRIES_SMALLER = "retries-smaller"
    """A pool that cannot grow by its usual chunk tries a smaller one."""
    GROWTH_RESETS = "growth-resets"
    """Once everything was released, growth starts over at the first chunk size."""
    SHARES_BACKING = "shares-backing"
    """A pool's cached memory is reclaimed when another pool of the same backing allocator runs out."""
    EXACT_FOOTPRINT = "exact-footprint"
    """A large request takes its size, rounded to the granularity, and no more."""
    FLAT_COST = "flat-cost"
    """The cost of an operation does not grow with history."""
    CAPACITY_LIMIT = "capacity-limit"
    """Requests beyond the capacity are refused."""
    TRIMS_TO_ZERO = "trims-to-zero"
    """After ``trim``, what is neither owned nor in flight is released."""
    TRACKS_USES = "tracks-uses"
    """A freed block waits for every declared use, not only for the stream that freed it."""
    STAGES_PINNED_DIRECTLY = "stages-pinned-directly"
    """A source that is already pinned is staged without another pinned buffer."""
    ROUNDS_PINNED_TO_POWERS_OF_TWO = "rounds-pinned-to-powers-of-two"
    """Pinned sizes are rounded to powers of two of 512 bytes (CuPy's pool)."""
    REINITIALIZES = "reinitializes"
    """``initialize`` works again after ``finalize``."""
    INITIALIZES_ONCE = "initializes-once"
    """A second ``initialize`` is refused, also after ``finalize``."""
    ALLOCATES_IN_CAPTURES = "allocates-in-captures"
    """``allocate`` is served while a stream is captured: unsafe calls below it are made in the relaxed mode."""
    KEEPS_GRAPH_MEMORY = "keeps-graph-memory"
    """What a capture allocated and freed is its graph's: nobody else gets it before the graph is gone and has run."""
    COLLECTS_AT_ONCE = "collects-at-once"
    """One ``collect`` frees all that nobody can reach."""


class Initialization(enum.StrEnum):
    """How often a parallel runtime may be initialised (Kokkos: any number before 4.0, once since)."""

    REPEATABLE = "repeatable"
    ONCE = "once"


@dataclass(frozen=True, slots=True)
class DeviceProfile:
    """What a context is opened on. Sizes in bytes.

    ``capacity_bytes`` is per device; ``alignment_bytes`` is what every block's address is a multiple of
    (256: CUDA Programming Guide, "Device Memory Accesses"); ``granularity_bytes`` is what memory is rounded to.
    ``provenance`` names where the figures come from.
    """

    capacity_bytes: int = 1 << 30
    pinned_capacity_bytes: int = 1 << 30
    alignment_bytes: int = 256
    granularity_bytes: int = 512
    devices: int = 1
    flavour: Flavour = Flavour.CUDA
    initialization: Initialization = Initialization.REPEATABLE
    provenance: str = "quiesce defaults"


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer to one operation: the outcome, and what an independent ledger saw meanwhile."""

    outcome: Outcome
    observations: tuple[Observation, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """What was seen while a context closed, and the gauges' last readings."""

    observations: tuple[Observation, ...] = ()
    readings: Readings = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Description:
    """What a backend says about itself before anything runs.

    ``gauges`` maps each gauge it reads to its source or sources. ``alignment_bytes`` is what the backend
    guarantees for every block's address. ``chunk_bytes`` bounds the backing memory of a tiny request;
    ``footprint_factor`` bounds how much larger than a request its footprint may be (2: power-of-two rounding).
    """

    name: str
    version: str
    capabilities: frozenset[Capability]
    promises: frozenset[Promise] = frozenset()
    gauges: Mapping[Gauge, frozenset[Source]] = field(default_factory=dict)
    alignment_bytes: int = 1
    chunk_bytes: int = 32 << 20
    footprint_factor: int = 2


class BackendFault(Exception):
    """The thing under test crashed, hung or answered nonsense; lockstep turns this into a finding.

    ``rule`` is the rule it broke, ``observed`` what was seen, ``evidence`` kept output. ``failed_call`` is the call
    that raised something, or returned what is no answer, where it is about one.
    """

    def __init__(self, rule: str, observed: str, evidence: str = "", failed_call: FailedCall | None = None) -> None:
        super().__init__(observed)
        self.rule = rule
        self.observed = observed
        self.evidence = evidence
        self.failed_call = failed_call


@runtime_checkable
class Context(Protocol):
    """One opened backend. Not shared between threads."""

    def perform(self, operation: Operation) -> Reply:
        """Perform one operation. Misuse by the sequence is an outcome; :class:`BackendFault` is for a dead subject."""

    def readings(self) -> Readings:
        """Read every gauge that the description names."""

    def close(self) -> Closing:
        """Release everything; idempotent. The readings are taken after the release.

        A closed context refuses what it is asked for: ``Rejected(ILLEGAL_STATE)``.
        """


@runtime_checkable
class Foreseeing(Context, Protocol):
    """A context that can be told what it is asked next, so that it can ask for several answers at once."""

    @property
    def foresees(self) -> bool:
        """Whether it has any use for that."""

    def foresee(self, operations: Iterable[Operation]) -> None:
        """Take operations that are performed next in this order, whatever comes of them, each followed by readings.

        Only :meth:`close` may come sooner. Those that were taken and not yet performed are told again, first.
        """


@runtime_checkable
class Backend(Protocol):
    """Something that can be driven operation by operation. Constructing one must be cheap and import no vendor code."""

    def describe(self) -> Description:
        """Say what this backend can do here.

        Raises :class:`BackendUnavailable` where it cannot work on this machine.
        """

    def open(self, profile: DeviceProfile) -> Context:
        """Open a fresh context. Raises :class:`BackendUnavailable` where it cannot."""


@runtime_checkable
class Compiles(Protocol):
    """A backend whose first :meth:`Backend.describe` compiles something, which takes seconds and is kept.

    Until then only a run that names the backend uses it.
    """

    def is_compiled(self) -> bool:
        """Say whether describing it takes no time. Raises :class:`BackendUnavailable` as it does."""

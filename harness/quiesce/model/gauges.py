"""Gauges: what can be counted at one moment, and who counted it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Final, TypeAlias


class Gauge(enum.StrEnum):
    """One countable quantity; the value is its name in case files and on the wire."""

    LIVE = "live"
    """Bytes that the sequence owns, as the backend counts them (its rounding included); 0 when nothing is owned."""
    BLOCKS = "blocks"
    """Blocks that the sequence owns."""
    RESERVED = "reserved"
    """Device and managed bytes held from the backing allocator, used or cached."""
    PINNED = "pinned"
    """Pinned host bytes held from the backing allocator, used or cached."""
    STREAMS = "streams"
    """Streams that exist, those a library made for itself included; the default stream is not counted."""
    EVENTS = "events"
    """Events that exist, those a library made for itself included."""
    GRAPHS = "graphs"
    """Captured graphs that exist."""
    NODES = "nodes"
    """Nodes that the autodiff tape keeps."""
    INSTANCES = "instances"
    """Execution-space objects that the parallel runtime keeps, its singleton included."""
    BACKING_CALLS = "backing-calls"
    """Calls made to the backing allocator since the context was opened (cumulative)."""
    COST = "cost"
    """Counted work since the context was opened: steps, instructions, driver counters; never time (cumulative)."""
    RETAINED = "retained"
    """The finest count there is of everything that is kept: blocks, handles, nodes, instances."""

    @property
    def cumulative(self) -> bool:
        """Whether the gauge only ever rises, so that its growth is judged on what each iteration adds."""
        return self in (Gauge.BACKING_CALLS, Gauge.COST)

    @property
    def in_bytes(self) -> bool:
        """Whether the gauge counts bytes rather than things."""
        return self in (Gauge.LIVE, Gauge.RESERVED, Gauge.PINNED)


class Source(enum.StrEnum):
    """Who counted: the backend about itself, or a ledger that is independent of it."""

    CLAIM = "claim"
    LEDGER = "ledger"


Readings: TypeAlias = Mapping[tuple[Gauge, Source], int]
"""One moment's gauges. A gauge may be read from both sources; then the two must agree."""


_KEYS: Final = {gauge: ((gauge, Source.LEDGER), (gauge, Source.CLAIM)) for gauge in Gauge}
"""Made once: gauges are read after every operation."""


def best_reading(readings: Readings, gauge: Gauge) -> int | None:
    """Return the gauge's value, the ledger's before the claim's, or None where nobody counts it."""
    by_ledger, by_claim = _KEYS[gauge]
    value = readings.get(by_ledger)
    return value if value is not None else readings.get(by_claim)

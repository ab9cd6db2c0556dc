"""Records and live things for tests that need no program."""

from __future__ import annotations

import itertools
from typing import Any, Final

from quiesce.simulator.runtime.ledger import Flag, LiveThing, Reach, Record, Seen, Thing

_NUMBERS: Final = itertools.count(1)
_EMPTY: Final = Record(0, Seen.NOTHING, Thing.NONE, 0, 0, "", Flag(0), 0, 0, 0, 0, 0, 0)


def record(seen: Seen, **fields: Any) -> Record:
    """Return a record with a number of its own, in which everything but ``fields`` is 0."""
    return _EMPTY._replace(**{"number": next(_NUMBERS), "seen": seen, **fields})


def live(thing: Thing, function: str, *, device: int = 0, size_bytes: int = 0, reach: Reach = Reach.LOST) -> LiveThing:
    """Return something that was not given back."""
    serial = next(_NUMBERS)
    return LiveThing(serial, thing, device, 4096 * serial, size_bytes, function, serial, reach)

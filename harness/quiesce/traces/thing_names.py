"""What the things of a ledger are called where they are counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from quiesce.amounts import counted
from quiesce.simulator.ledger import Thing

_THINGS: Final[Mapping[Thing, tuple[str, str]]] = {
    Thing.DEVICE: ("block", " of device memory"),
    Thing.PINNED: ("block", " of pinned memory"),
    Thing.MANAGED: ("block", " of managed memory"),
    Thing.REGISTERED: ("block", " of registered memory"),
    Thing.PHYSICAL: ("block", " of physical memory"),
    Thing.GRAPH_EXEC: ("executable graph", ""),
    Thing.RESERVATION: ("reservation", " of address space"),
}
"""What the things of a ledger are called where that is not their name."""


def things_in_words(thing: Thing, count: int) -> str:
    """Return ``1 block of device memory`` or ``2 streams``."""
    noun, more = _THINGS.get(thing, (thing.name.lower().replace("_", " "), ""))
    return counted(count, noun) + more

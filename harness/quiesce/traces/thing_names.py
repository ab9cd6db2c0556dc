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
    Thing.BLAS_HANDLE: ("BLAS handle", ""),
    Thing.FFT_PLAN: ("FFT plan", ""),
    Thing.GENERATOR: ("random number generator", ""),
    Thing.DNN_HANDLE: ("DNN handle", ""),
    Thing.HEAP: ("block", " of a device's heap"),
}
"""What the things of a ledger are called where that is not their name."""


def thing_in_words(thing: Thing) -> str:
    """Return ``stream`` or ``FFT plan``; of memory it is the kind, such as ``device``."""
    return thing.name.lower().replace("_", " ") if thing.is_memory else _words(thing)[0]


def things_in_words(thing: Thing, count: int) -> str:
    """Return ``1 block of device memory`` or ``2 streams``."""
    noun, more = _words(thing)
    return counted(count, noun) + more


def _words(thing: Thing) -> tuple[str, str]:
    return _THINGS.get(thing, (thing.name.lower().replace("_", " "), ""))

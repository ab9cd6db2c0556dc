"""Words for a ledger: one record as a sentence (``frees block 12``), and the names of things where they are counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.model.wording import bytes_in_words, counted
from quiesce.simulator.runtime import Flag, Record, Seen, Thing

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
    Thing.IMPORTED: ("block", " of imported memory"),
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where an address lies: ``offset_bytes`` into the block that the record ``block`` allocated."""

    block: int
    offset_bytes: int

    def __str__(self) -> str:
        return f"block {self.block}" + (f" from byte {self.offset_bytes:,} on" if self.offset_bytes else "")


def addresses_of(record: Record) -> tuple[int, ...]:
    """Return the addresses that the sentence of a record names."""
    if record.seen in (Seen.COPIED, Seen.STAGED_AGAIN):
        return record.address, record.other
    return (record.address,) if record.address and record.seen is not Seen.IMPORTED else ()


class Sentences:
    """Puts records into words.

    ``places`` has the places of their addresses, by number and address. What has none is called ``elsewhere``.
    """

    def __init__(self, places: Mapping[tuple[int, int], Place], elsewhere: str) -> None:
        self._places = places
        self._elsewhere = elsewhere

    def of(self, record: Record) -> str:
        """Return the sentence of one record."""
        return self._of_memory(record) or self._of_fault(record) or self._of_sharing(record) or _of_order(record)

    def _of_memory(self, record: Record) -> str:
        match record.seen:
            case Seen.ALLOCATED:
                return f"allocates block {record.number}: {_memory(record)}{_ordered(record)}"
            case Seen.FREED:
                return f"frees {self._at(record, 'a block')}{_ordered(record)}"
            case Seen.REFUSED:
                return f"is refused {_memory(record)}"
            case Seen.READ:
                return f"{stream_in_words(record)} reads {_size(record)} of {self._at(record)}"
            case Seen.WRITTEN:
                return f"{stream_in_words(record)} writes {_size(record)} of {self._at(record)}"
            case Seen.COPIED:
                source, target = self._source(record), self._at(record)
                return f"{stream_in_words(record)} copies {_size(record)} from {source} to {target}"
            case Seen.LAUNCHED:
                return f"{stream_in_words(record)} runs a kernel"
            case Seen.HOST_READ:
                return f"the host reads {self._at(record)}"
            case Seen.HOST_WROTE:
                return f"the host writes {self._at(record)}"
            case _:
                return ""

    def _of_fault(self, record: Record) -> str:
        match record.seen:
            case Seen.FREED_TWICE:
                return f"frees {self._at(record, 'a block')} again"
            case Seen.FREED_FOREIGN:
                return "frees an address where no block of its kind begins"
            case Seen.USED_AFTER_FREE:
                return f"uses {_size(record)} of {self._at(record)} after the free"
            case Seen.OUT_OF_BOUNDS:
                return f"uses {_size(record)} of {self._at(record, 'a block')}, beyond its end"
            case Seen.DAMAGED:
                return f"detects changed bytes after {self._at(record, 'a block')}"
            case Seen.STAGED_AGAIN:
                return f"copies {_size(record)} of {self._source(record)} through {self._at(record)}"
            case Seen.COPIED_UNWRITTEN:
                return f"copies {_size(record)} to the host that nobody has written"
            case Seen.COPY_MISDIRECTED:
                return f"is asked for a copy of {_size(record)} in a direction that its addresses do not have"
            case Seen.DEAD_HANDLE:
                return f"uses {_one(record.thing)} that was destroyed"
            case Seen.NOT_SIMULATED:
                return "is not simulated"
            case Seen.CONTEXT_BROKEN:
                return f"device {record.device} becomes unusable by error {record.other}"
            case _:
                return ""

    def _of_sharing(self, record: Record) -> str:
        match record.seen:
            case Seen.EXPORTED:
                return f"lets other processes open {self._at(record, 'a block')}"
            case Seen.FREED_WHILE_OPEN:
                return f"frees {self._at(record, 'a block')}, which another process has open"
            case Seen.IMPORTED:
                return f"opens event {record.address} of another process as event {record.object}"
            case Seen.EXPORTER_FREED:
                return f"another process has freed its {self._at(record, 'block')}"
            case Seen.TICK:
                return f"begins as call {record.object:,} of the processes that share memory"
            case _:
                return ""

    def _at(self, record: Record, unknown: str = "") -> str:
        place = self._places.get((record.number, record.address))
        return str(place) if place else unknown or self._elsewhere

    def _source(self, record: Record) -> str:
        return str(self._places.get((record.number, record.other), self._elsewhere))


def _of_order(record: Record) -> str:
    captured = ", within a graph" if record.flags & Flag.CAPTURED else ""
    match record.seen:
        case _ if record.thing is Thing.GRAPH_EXEC and record.flags & Flag.OF_GRAPH:
            return ""
        case Seen.RECORDED:
            return f"event {record.object} is recorded on {stream_in_words(record)}{captured}"
        case Seen.STREAM_WAITED:
            return f"{stream_in_words(record)} waits for event {record.object}{captured}"
        case Seen.STREAM_WAITED_VALUE:
            return f"{stream_in_words(record)} waits for a value at {record.address:#x}"
        case Seen.EVENT_WAITED:
            return f"the host waits for event {record.object}"
        case Seen.EVENT_COMPLETE:
            return f"the host learns that event {record.object} is complete"
        case Seen.STREAM_COMPLETE | Seen.HOST_WAITED_WORK:
            return f"the host learns that the work of {stream_in_words(record)} is complete"
        case Seen.STREAM_WAITED_FOR:
            return f"the host waits for {stream_in_words(record)}"
        case Seen.DEVICE_WAITED_FOR:
            return f"the host waits for device {record.device}"
        case Seen.CREATED:
            return f"creates {_handle(record)}"
        case Seen.DESTROYED:
            return f"destroys {_handle(record)}"
        case Seen.BRANCH_BEGAN:
            return f"{stream_in_words(record)} begins, a branch of a graph"
        case Seen.NODE_RAN:
            return "a node of a graph runs"
        case Seen.HOST_UNSEEN:
            return "from here on the program handles SIGSEGV itself"
        case Seen.MARK:
            return f"the program's mark: {record.address:,} live blocks, {_size(record)}, {record.other:,} handles"
        case _:
            return ""


def stream_in_words(record: Record) -> str:
    """Return ``stream 3``, or ``the default stream``; the device is named where it is not the first."""
    if record.flags & Flag.OF_GRAPH:
        return "a branch of a graph"
    if record.stream:
        return f"stream {record.stream}"
    return f"the default stream of device {record.device}" if record.device else "the default stream"


def _ordered(record: Record) -> str:
    return f", in the order of {stream_in_words(record)}" if record.flags & Flag.ORDERED else ""


def _size(record: Record) -> str:
    return bytes_in_words(record.size_bytes)


def _memory(record: Record) -> str:
    match record.thing:
        case Thing.PINNED:
            return f"{_size(record)} of pinned host memory"
        case Thing.REGISTERED:
            return f"{_size(record)} of host memory, registered"
        case thing:
            return f"{_size(record)} of {thing.name.lower()} memory on device {record.device}"


def _handle(record: Record) -> str:
    return f"{thing_in_words(record.thing)} {record.object}"


def _one(thing: Thing) -> str:
    name = thing_in_words(thing)
    return f"an {name}" if name[0] in "aeio" or thing is Thing.FFT_PLAN else f"a {name}"

"""What a program's own copies do wrong: they name another direction, or read what nobody has written."""

from __future__ import annotations

from typing import Final

from quiesce.amounts import bytes_in_words
from quiesce.findings import Finding
from quiesce.kinds import Kind
from quiesce.program_rules import COPIES_DIRECTED, COPIES_READ_WRITTEN
from quiesce.simulator.ledger import Flag, Record, Seen
from quiesce.traces.thing_names import thing_in_words

_DIRECTIONS: Final = ("HostToHost", "HostToDevice", "DeviceToHost", "DeviceToDevice")
"""By their numbers in ``cudaMemcpyKind`` and ``hipMemcpyKind``."""
_PLACES: Final = ("host memory", "pinned host memory", "device memory", "managed memory")
"""By the numbers of ``native/order/transfer.c``."""
_DEVICE: Final = 2


def wrong_copy(record: Record) -> Finding | None:
    """Return the finding about such a record; None for another one, and for what is no more than a note."""
    if record.seen is Seen.COPY_MISDIRECTED:
        return _misdirected(record)
    if record.seen is Seen.COPIED_UNWRITTEN and record.flags & Flag.STRICT:
        return _unwritten(record)
    return None


def unwritten_in_words(record: Record) -> str:
    """Return what a copy reads that nobody has written, in words that follow the call."""
    offset = record.address - record.other
    where = f"{bytes_in_words(offset)} into" if offset else "at the start of"
    block = f"a {thing_in_words(record.thing)} block of {bytes_in_words(record.other_bytes)}"
    return f"copies {bytes_in_words(record.size_bytes)} to the host that nobody has written, the first {where} {block}"


def _unwritten(record: Record) -> Finding:
    return Finding(
        COPIES_READ_WRITTEN,
        "device memory that was written before",
        f"{record.function} {unwritten_in_words(record)}",
        operation_index=record.object,
        request=record.function,
        kind=Kind.UNWRITTEN,
    )


def _misdirected(record: Record) -> Finding:
    kind, source, target = (record.object >> shift & 0xFF for shift in (0, 8, 16))
    fitting = (2 if source == _DEVICE else 0) + (1 if target == _DEVICE else 0)
    return Finding(
        COPIES_DIRECTED,
        f"a direction that fits the addresses: {_direction(record, fitting)}",
        f"{record.function} copies {bytes_in_words(record.size_bytes)} as {_direction(record, kind)}, "
        f"from {record.other:#x}, which is {_PLACES[source]}, to {record.address:#x}, which is {_PLACES[target]}",
        operation_index=record.number,
        request=record.function,
        kind=Kind.WRONG_DIRECTION,
    )


def _direction(record: Record, kind: int) -> str:
    flavour = "hip" if record.function.startswith("hip") else "cuda"
    return f"{flavour}Memcpy{_DIRECTIONS[kind]}"

"""Simpler things to put in the place of an operation or a device, the simplest first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields, replace
from typing import Any, Final

from quiesce import operations as ops
from quiesce.backend import DeviceProfile
from quiesce.operations import MemoryKind, Operation

_NICE_SIZES: Final = (1, 512, 4 << 10, 64 << 10, 1 << 20, 2 << 20, 16 << 20, 64 << 20)
_UNITS: Final = (1 << 20, 1 << 10, 512)


def simpler_operations(operation: Operation) -> Iterator[Operation]:
    """Yield variants of an operation with one option at its default, then with a smaller or rounder size."""
    for field in fields(operation):
        if field.default is not MISSING and getattr(operation, field.name) != field.default:
            default: Any = field.default
            yield replace(operation, **{field.name: default})
    match operation:
        case ops.Allocate(size_bytes=size):
            if operation.kind is MemoryKind.PINNED:
                yield replace(operation, kind=MemoryKind.PAGEABLE)
            yield from (replace(operation, size_bytes=nice) for nice in simpler_sizes(size))
        case ops.Launch(reads=reads, writes=writes):
            if reads and not writes:
                yield replace(operation, reads=(), writes=reads)
            if len(writes) > 1:
                yield from (replace(operation, writes=(slot,)) for slot in writes)
        case ops.Node(parents=parents) if len(parents) > 1:
            yield from (replace(operation, parents=(slot,)) for slot in parents)
        case ops.Fill(value=value) if value:
            yield replace(operation, value=0)
        case _:
            pass


def simpler_sizes(size_bytes: int) -> Iterator[int]:
    """Yield smaller sizes, the nicest first, then the size rounded to whole units."""
    yield from (nice for nice in _NICE_SIZES if nice < size_bytes)
    for unit in _UNITS:
        if size_bytes > unit and size_bytes % unit:  # a small size rounded up would be simplified in circles
            yield from (size_bytes // unit * unit, -(-size_bytes // unit) * unit)


def simpler_devices(device: DeviceProfile) -> Iterator[DeviceProfile]:
    """Yield the default device, then ones that differ from it in less."""
    default = DeviceProfile()
    yield default
    for field in fields(device):
        if getattr(device, field.name) != getattr(default, field.name):
            value: Any = getattr(default, field.name)
            yield replace(device, **{field.name: value})

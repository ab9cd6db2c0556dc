"""Bytes become a sequence. Any bytes decode, and those of a sequence that is legal for its mode and its backend.

The first bytes choose theme, device, sizes and swarm; then every four bytes are a record: an opcode and three
arguments. An opcode of 0 does nothing, so that a record is removed by zeroing one byte, and what stands behind it
means what it meant before. A record is decoded in constant time for each operation that it writes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from quiesce.backend import Capability, Description, DeviceProfile, Flavour, Initialization, Promise
from quiesce.gauges import Gauge
from quiesce.generation.openings import OPENINGS, end_in_flight
from quiesce.generation.sequence import GeneratedSequence, Loop
from quiesce.generation.weights import Action, actions_for, tables, themes_for
from quiesce.generation.writer import Writer

HEADER_BYTES: Final = 32
RECORD_BYTES: Final = 4
SWARM_BYTES: Final = 12

_CHUNKS: Final = (4, 2, 1, 8)
"""So many chunks of the largest size that the backend declares are a device: few, so that it gets full."""
_LOOP_CAPACITY_BYTES: Final = 256 << 20
_CHUNK_BYTES_MIN: Final = 8 << 20
_CHUNK_BYTES_MAX: Final = 64 << 20
_SMALL: Final = (1024, 64, 512, 1, 4096, 100, 2048, 8192, 65536, 513, 10000, 32768, 300000, 1 << 20, 4097, 700)
_MULTIPLES: Final = (1, 1, 1, 3, 1, 5, 1, 7)
"""A small size is that many times one of those: size classes lie between the powers of two as well."""
_LARGE_PARTS: Final = (8, 4, 16, 3, 2, 32, 5, 64)
"""A large size is this part of the capacity, or a little more or less."""
_KINDS: Final = 8
"""One sequence in so many is a loop whose cost is measured, and nothing else: what came before would cost, too.

As many begin with a pattern of many blocks, and as many end with work in flight.
"""
_LOOP, _OPENING, _IN_FLIGHT = 1, 2, 3
_OPENING_RECORDS_MAX: Final = 40
"""So many records follow a pattern, which is long itself."""


def decode(data: bytes, description: Description, *, hostile: bool = False) -> GeneratedSequence:
    """Return the sequence that ``data`` stands for on a backend that ``description`` describes."""
    header = data[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0")
    actions, themes = _choices(description.capabilities, description.promises, hostile)
    device = _device(header, description)
    kind = header[3] % _KINDS
    loop = _loop(header, description) if kind == _LOOP else None
    if loop is not None:
        return GeneratedSequence(replace(device, capacity_bytes=_LOOP_CAPACITY_BYTES), (), loop, hostile)
    writer = Writer(description, device, _sizes(header, device, description))
    swarm, half = header[8 : 8 + SWARM_BYTES], header[8 + SWARM_BYTES : 8 + 2 * SWARM_BYTES]
    switched_off = int.from_bytes(swarm, "little") & int.from_bytes(half, "little")
    outside, inside = tables(actions, themes[header[0] % len(themes)], switched_off)
    end = len(data) - RECORD_BYTES + 1
    if kind == _OPENING and Capability.MEMORY in description.capabilities:
        OPENINGS[header[3] // _KINDS % len(OPENINGS)](writer, *header[HEADER_BYTES - 3 :])
        end = min(end, HEADER_BYTES + _OPENING_RECORDS_MAX * RECORD_BYTES)
    captures = writer.state.captures
    for start in range(HEADER_BYTES, end, RECORD_BYTES):
        opcode, a, b, c = data[start : start + RECORD_BYTES]
        table = inside if captures else outside
        if opcode and table:
            table[opcode - 1](writer, a, b, c)
    if kind == _IN_FLIGHT:
        end_in_flight(writer)
    return GeneratedSequence(device, tuple(writer.written), None, hostile)


@lru_cache(maxsize=16)
def _choices(
    capabilities: frozenset[Capability], promises: frozenset[Promise], hostile: bool
) -> tuple[tuple[Action, ...], tuple[str, ...]]:
    actions = actions_for(capabilities | promises, hostile=hostile)
    return actions, themes_for(actions)


def _capacity(choice: int, description: Description) -> int:
    chunk = 1 << (description.chunk_bytes - 1).bit_length() if description.chunk_bytes > 1 else 0
    return _CHUNKS[choice & 3] * min(max(chunk, _CHUNK_BYTES_MIN), _CHUNK_BYTES_MAX)


def _device(header: bytes, description: Description) -> DeviceProfile:
    choice = header[1]
    devices = 2 if choice & 0x80 and Capability.DEVICES in description.capabilities else 1
    once = header[2] & 1 and Promise.INITIALIZES_ONCE in description.promises
    judged = {Capability.FLAVOUR, Capability.ORDER_LEDGER} <= description.capabilities
    return DeviceProfile(
        capacity_bytes=_capacity(choice, description),
        pinned_capacity_bytes=_capacity(choice >> 2, description),
        devices=devices,
        flavour=Flavour.HIP if header[2] & 2 and judged else Flavour.CUDA,
        initialization=Initialization.ONCE if once else Initialization.REPEATABLE,
        provenance="generated",
    )


def _sizes(header: bytes, device: DeviceProfile, description: Description) -> tuple[int, ...]:
    """Return the four sizes that the sequence likes: few, so that what was freed is asked for again."""
    limited = Capability.CAPACITY in description.capabilities
    sizes = []
    for byte in header[4:8]:
        if byte & 0x80 and (limited or byte & 0x40):
            whole = device.capacity_bytes if limited else 16 << 20
            sizes.append(whole // _LARGE_PARTS[byte & 7] + (0, 512, -512, 1)[byte >> 3 & 3])
        else:
            sizes.append(_SMALL[byte & 15] * _MULTIPLES[byte >> 4 & 7])
    return tuple(sizes)


def _loop(header: bytes, description: Description) -> Loop | None:
    """Return a loop whose every iteration costs the same, where the backend promises that and counts."""
    can, gauges = description.capabilities, description.gauges
    if Promise.FLAT_COST not in description.promises or Gauge.COST not in gauges:
        return None
    size = (2 << 20, 1 << 20, 2 << 20, 65536)[header[4] & 3]
    loops: list[tuple[str, ...]] = []
    if Capability.MEMORY in can and (Capability.CAPACITY not in can or size * 48 <= _LOOP_CAPACITY_BYTES // 2):
        loops.append((f"k[i] = allocate {size}", f"k = allocate {_SMALL[header[5] & 15]}", "free k"))
    if Capability.TAPE in can:
        loops.append(("w[i] = node", "w = node of w[i]", "backward w", "drop w"))
    if Capability.LAUNCH in can:
        loops.append(("launch arguments=1024",) if Capability.INSTANCES in can else ("launch",))
    return Loop(48, loops[header[6] % len(loops)], Gauge.COST, 8) if loops else None

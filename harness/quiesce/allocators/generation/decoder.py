"""Bytes become a sequence. Any bytes decode, and those of a sequence that is legal for its mode and its backend.

Some sequences begin with an opening: many blocks of one size, blocks of all sizes, several chunks, a pool of one block,
or nearly all there is. Bytes of a seed make sequences without Hypothesis, for campaigns of a million operations.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Final, TypeAlias

from quiesce.allocators.generation.actions_exhaustion import ask_again, whole_bytes
from quiesce.allocators.generation.actions_memory import allocate_block, free_block, settle_unseen
from quiesce.allocators.generation.sequence import GeneratedSequence, Loop
from quiesce.allocators.generation.things import Block
from quiesce.allocators.generation.weights import Action, actions_for, tables, themes_for
from quiesce.allocators.generation.writer import Writer
from quiesce.model import operations as ops
from quiesce.model.backend import Capability, Description, DeviceProfile, Flavour, Initialization, Promise
from quiesce.model.gauges import Gauge
from quiesce.model.operations import MemoryKind, Slot

Opening: TypeAlias = Callable[[Writer, int, int, int], None]

_LADDER_FIRST_BITS: Final = (8, 10, 12, 14, 9, 11, 13, 16)
_LADDER_OCTAVES: Final = 5
_RUNGS: Final = 16
"""Size classes are seldom closer than that between two powers of two."""
_COUNTS: Final = (256, 256, 256, 512, 256, 512, 256, 1024)
"""So many blocks fill a counter of eight, nine or ten bits, or four to sixteen words of a map."""
_SMALL_BYTES: Final = (256, 64, 512, 16, 1024, 128, 2048, 4096)
_OPENING_CHUNKS: Final = (3, 2, 4, 3)
_BLOCKS_MAX: Final = 320
_OPENING_CHUNK_BYTES_MIN: Final = 2 << 20
_EXTRA_BYTES: Final = (0, 0, 0, 1)
_PARTS: Final = (2, 4, 2, 3)


def climb(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate two or three blocks of each of many sizes: blocks of neighbouring size classes lie side by side then."""
    first = _LADDER_FIRST_BITS[a & 7]
    stream = writer.stream(0)
    for bits in range(first, first + _LADDER_OCTAVES):
        step = (1 << bits) // _RUNGS
        for rung in range(_RUNGS):
            size = (1 << bits) + step * rung + step * b // 256
            for _ in range(2 + (c & 1)):
                if writer.state.live_bytes + size > writer.full_bytes // 2:
                    return
                allocate_block(writer, size, stream)


def fill_counters(writer: Writer, a: int, b: int, c: int) -> None:
    """Allocate so many small blocks that a narrow counter of them would be 0; trim, and ask for more."""
    size, count = _SMALL_BYTES[a & 7], _COUNTS[b & 7]
    extra = c & 63
    blocks = _blocks(writer, size, count + extra)
    freed = (blocks[:extra], blocks[count:], blocks[::2][:extra], blocks[:extra])[c >> 6]
    for block in freed:
        free_block(writer, block)
    _trim(writer)
    _blocks(writer, _SMALL_BYTES[(a >> 3) & 7], 1 + extra)


def fill_chunks(writer: Writer, a: int, b: int, c: int) -> None:
    """Fill several chunks with blocks of one size, free all of them, or all but one, and trim."""
    chunk = max(_OPENING_CHUNK_BYTES_MIN, min(writer.chunk_bytes, whole_bytes(writer, MemoryKind.DEVICE, None) // 4))
    total = chunk * _OPENING_CHUNKS[a & 3]
    size = max(writer.size(b), -(-total // _BLOCKS_MAX)) if a & 4 else total // (16 << (a >> 3 & 3))
    pool = None
    if a & 128 and writer.can(Capability.POOLS):
        pool = writer.fresh("p")
        writer.write(ops.CreatePool(pool))
    blocks = _blocks(writer, size, max(4, total // size), pool)
    if c & 1:
        del blocks[c % len(blocks)]
    for block in _in_order(blocks, c >> 1 & 3):
        free_block(writer, block)
    settle_unseen(writer)
    _trim(writer, pool)
    if c & 8:
        _blocks(writer, size, 2, pool)


def reach_limits(writer: Writer, a: int, b: int, c: int) -> None:
    """Let pools without a limit serve requests, and then pools with a limit of just as much, or a chunk's worth."""
    if not writer.can(Capability.POOLS, Capability.POOL_LIMIT):
        fill_chunks(writer, a, b, c)
        return
    whole = whole_bytes(writer, MemoryKind.DEVICE, None)
    unit = writer.state.profile.granularity_bytes
    chunk = min(max(writer.chunk_bytes, unit), whole // 2)
    for size in (chunk, writer.size(b), whole // _PARTS[a & 3] + _EXTRA_BYTES[a >> 2 & 3]):
        _ask_new_pool(writer, None, size)
        rounded = -(-size // unit) * unit
        for limit in dict.fromkeys((rounded, max(rounded, chunk), 1 << (rounded - 1).bit_length())):
            _ask_new_pool(writer, limit, size, 1 if c & 1 else size)


def _ask_new_pool(writer: Writer, limit_bytes: int | None, *sizes: int) -> None:
    """Ask a pool that was made for this for blocks; free them, and destroy it."""
    pool, stream = writer.fresh("p"), writer.stream(0)
    writer.write(ops.CreatePool(pool, limit_bytes))
    for block in [allocate_block(writer, size, stream, pool=pool) for size in sizes]:
        free_block(writer, block)
    if not writer.state.pools[pool].blocks:
        writer.write(ops.DestroyPool(pool))


def _blocks(writer: Writer, size_bytes: int, count: int, pool: Slot | None = None) -> list[Block]:
    """Allocate so many blocks of one size, or as many as there is room for."""
    stream = writer.stream(0)
    room = max(1, whole_bytes(writer, MemoryKind.DEVICE, None) // size_bytes)
    return [allocate_block(writer, size_bytes, stream, pool=pool) for _ in range(min(count, room))]


def _in_order(blocks: list[Block], order: int) -> list[Block]:
    return (blocks, blocks[::-1], [*blocks[::2], *blocks[1::2]], blocks)[order]


def _trim(writer: Writer, pool: Slot | None = None) -> None:
    if writer.can(Capability.POOL):
        writer.write(ops.Trim(pool=pool))


OPENINGS: Final[tuple[Opening, ...]] = (climb, fill_counters, fill_chunks, reach_limits, ask_again)


def end_in_flight(writer: Writer) -> None:
    """Launch on a stalled stream at the very end: the context then closes with work in flight and all that is owned."""
    if not writer.can(Capability.STREAMS, Capability.STALL, Capability.LAUNCH) or writer.state.captures:
        return
    stream = writer.fresh("s")
    writer.write(ops.CreateStream(stream))
    block = writer.fresh("b")
    writes: tuple[Slot, ...] = ()
    if writer.can(Capability.MEMORY):
        writer.write(ops.Allocate(block, writer.size(0), stream=stream))
        writes = (block,)
    writer.write(ops.Stall(stream))
    writer.write(ops.Launch(writes=writes, stream=stream))


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
_KINDS: Final = 16
"""One sequence in so many is a loop whose cost is measured, and nothing else: what came before would cost, too.

As many begin with a pattern of many blocks, which costs more operations than it finds faults, and twice as many end
with work in flight.
"""
_LOOP, _OPENING, _IN_FLIGHT = 1, 2, (3, 4)
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
    if kind in _IN_FLIGHT:
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


RECORDS_MIN: Final = 24
"""Shorter sequences find less with as many operations: a state has to build up before anything can go wrong in it."""
RECORDS_MAX: Final = 320


def generate(
    description: Description, seed: int, *, hostile: bool = False, first: int = 0
) -> Iterator[GeneratedSequence]:
    """Yield sequences without end: the n-th depends on nothing but the arguments and n, which begins at ``first``."""
    number = first
    while True:
        yield generate_one(description, seed, number, hostile=hostile)
        number += 1


def generate_one(description: Description, seed: int, number: int, *, hostile: bool = False) -> GeneratedSequence:
    """Return the sequence of that number; half are of 28 records or fewer, a tenth of more than 180."""
    source = random.Random(f"{seed}/{number}")  # noqa: S311 - reproducible, not secret
    records = RECORDS_MIN + int(source.random() ** 6 * (RECORDS_MAX - RECORDS_MIN))
    data = source.randbytes(HEADER_BYTES + records * RECORD_BYTES)
    return decode(data, description, hostile=hostile)

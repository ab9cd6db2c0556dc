"""Who promises to reuse blocks has each freed block for another request, unless something was put in its place."""

from __future__ import annotations

import pytest

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.allocators.oracle.blocks import BlockState, GraphMemory
from quiesce.allocators.oracle.clocks import HappensBefore
from quiesce.allocators.oracle.footprints import intact_block
from quiesce.allocators.oracle.promised import IntactBlocks
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.model import operations as ops
from quiesce.model.backend import Backend, Promise
from quiesce.model.observations import BackingAllocated, BackingFreed
from quiesce.model.operations import MemoryKind
from quiesce.model.outcomes import Allocated, OutOfMemory

from .allocators.correct import CORRECT
from .strangers.withholding import Withholding
from .test_footprints import Told

FAULTY = faulty("pool.waits_without_searching")
UNPROMISED = Withholding(FAULTY, "promises nothing of the kind", promises=frozenset({Promise.REUSES_BLOCKS}))
BY_NAME = {each.describe().name: each for each in CORRECT}

CASE = """\
title:  Every other block is freed with work in flight, and one more of the size is asked for
kind:   control
needs:  memory, streams, launch, stall, capacity
device: capacity=16MiB

s = create stream nonblocking
t = create stream nonblocking
repeat 16:
    a[i] = allocate 1MiB on s
stall t
launch on t reads=a[0]
free a[0] on s
{between}
b = allocate 1MiB on {stream}
"""

ORDER = HappensBefore(legacy_default_stream=False)
STREAM, OTHER = (ORDER.new_stream(name, 0) for name in ("s", "t"))
BYTES, MARGIN_BYTES, CHUNK_BYTES = 4096, 512, 65536


def block(address: int = 1 << 20, graphs: tuple[GraphMemory, ...] = ()) -> BlockState:
    return BlockState("a", address, BYTES, MemoryKind.DEVICE, STREAM, None, 0, "", graphs=graphs)


def found(backend: Backend, *, between: str = "", stream: str = "s") -> list[str]:
    text = CASE.format(between=between, stream=stream)
    return [finding.rule for finding in run_case(parse_text(text, "x.case", "x"), backend).findings]


def test_a_block_that_was_waited_for_has_to_serve() -> None:
    assert found(FAULTY) == ["freed_block_serves_its_size"]
    assert found(reference()) == []


def test_nobody_has_to_serve_in_place_who_does_not_promise_it() -> None:
    assert found(UNPROMISED) == []


@pytest.mark.parametrize(
    ("between", "stream"),
    [("", "t"), ("u = create stream", "s"), ("launch on s", "s"), ("e = allocate 0", "s")],
    ids=["another stream", "a stream may need memory", "so may work", "a block of no bytes may be anywhere"],
)
def test_a_block_that_may_be_taken_need_not_serve(between: str, stream: str) -> None:
    assert found(FAULTY, between=between, stream=stream) == []


@pytest.mark.parametrize("name", ["powers of two", "buddies", "slabs"])
def test_allocators_that_reuse_in_place_are_not_accused(name: str) -> None:
    assert Promise.REUSES_BLOCKS in BY_NAME[name].describe().promises
    assert found(BY_NAME[name]) == []


def like(blocks: IntactBlocks, **changes: int) -> list[BlockState]:
    request = ops.Allocate("b", changes.get("size_bytes", BYTES), alignment_bytes=changes.get("alignment_bytes"))
    return [idle.block for idle in blocks.like(request, STREAM)]


@pytest.mark.parametrize(
    ("start_bytes", "size_bytes", "stays"),
    [
        (0, BYTES, False),
        (BYTES - 1, BYTES, False),
        (BYTES + MARGIN_BYTES - 1, BYTES, False),
        (BYTES + MARGIN_BYTES, BYTES, True),
        (-BYTES - MARGIN_BYTES, BYTES, True),
        (1 - BYTES - MARGIN_BYTES, BYTES, False),
        (8 * BYTES, 1, False),
        (CHUNK_BYTES + MARGIN_BYTES, 1, True),
        (-2 * MARGIN_BYTES, MARGIN_BYTES, True),
        (-2 * MARGIN_BYTES, MARGIN_BYTES + 1, False),
    ],
)
def test_what_was_put_in_its_place_or_of_another_size_into_its_chunk_ends_it(
    start_bytes: int, size_bytes: int, stays: bool
) -> None:
    blocks, freed = IntactBlocks(), block()
    chunk = range(freed.address, freed.address + CHUNK_BYTES)
    start = freed.address + start_bytes
    blocks.take(start, start + size_bytes)  # before the free, it changes nothing
    blocks.free(freed, STREAM, {})
    request = ops.Allocate("b", BYTES)
    assert [blocks.is_in_place(idle, MARGIN_BYTES, chunk) for idle in blocks.like(request, STREAM)] == [True]
    blocks.take(start, start + size_bytes)
    assert any(blocks.is_in_place(idle, MARGIN_BYTES, chunk) for idle in blocks.like(request, STREAM)) == stays


def test_a_block_is_like_a_request_of_its_size_and_alignment_on_its_stream() -> None:
    blocks, freed = IntactBlocks(), block()
    blocks.free(freed, STREAM, {})
    assert like(blocks, size_bytes=BYTES - 1) == like(blocks, alignment_bytes=4096) == []
    assert list(blocks.like(ops.Allocate("b", BYTES), OTHER)) == []
    assert like(blocks) == [freed]
    blocks.forget()
    assert like(blocks) == []


def test_what_another_stream_or_a_graph_has_next_serves_nobody_here() -> None:
    blocks = IntactBlocks()
    blocks.free(block(), OTHER, {})
    blocks.free(block(2 << 20, (GraphMemory(),)), STREAM, {})
    assert like(blocks) == []


CHUNK = BackingAllocated(1 << 30, CHUNK_BYTES, MemoryKind.DEVICE)


@pytest.mark.parametrize("is_released", [False, True])
def test_a_block_whose_chunk_was_given_back_need_not_serve(is_released: bool) -> None:
    """It lies in the midst of its chunk, so what is given back begins elsewhere."""
    told = Told(Promise.REUSES_BLOCKS).of(ops.Allocate("a", BYTES), Allocated((1 << 30) + 8192), CHUNK)
    told.of(ops.Free("a")).of(ops.Allocate("b", BYTES * 64), OutOfMemory())
    given_back = (BackingFreed(1 << 30, CHUNK_BYTES, MemoryKind.DEVICE),) if is_released else ()
    told.of(ops.Mark("now"), None, *given_back)
    assert told.model.intact is not None
    found = intact_block(told.model, told.model.intact, ops.Allocate("c", BYTES))
    assert (found is None) == is_released

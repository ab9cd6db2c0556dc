"""Limits, chunks, slabs, trims and closing: each fault is found by a few lines, and its correct sibling passes them."""

from __future__ import annotations

import pytest

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import Backend
from quiesce.model.findings import Finding
from quiesce.model.results import Verdict

from .allocators.correct import CORRECT
from .allocators.faulty import FAULTY
from .strangers.correct import CORRECT as STRANGERS
from .strangers.correct import WITHHOLDING

BY_NAME = {each.name: each for each in FAULTY}
HEADER = """\
title: A sequence
kind:  found
finds: {finds}
needs: {needs}
device: capacity=64MiB

"""

LIMIT = """\
p = create pool
a = allocate 16MiB pool=p
destroy pool p
q = create pool limit=16MiB
b = allocate 16MiB pool=q
"""
TINY = """\
repeat 12:
    a[i] = allocate 512
"""
IN_FLIGHT_ELSEWHERE = """\
s = create stream
t = create stream
a = allocate 16MiB on s
b = allocate 32MiB on t
stall s
launch on s writes=a
free a
free b
synchronize stream t
trim
query stream s
"""
EVERY_SIZE = """\
repeat 64:
    a[i] = allocate 1024+1024*i
    b[i] = allocate 1024+1024*i
"""
MANY = """\
repeat 300:
    a[i] = allocate 256
repeat 44:
    free a[i]
trim
"""
CHUNKS = """\
repeat 100:
    a[i] = allocate 64KiB
repeat 100:
    free a[i]
trim
"""
CLOSED_IN_FLIGHT = """\
s = create stream
a = allocate 16MiB on s
stall s
launch on s writes=a
"""
ONE_MORE = """\
repeat 70:
    a[i] = allocate 1MiB
"""
NEARLY_FULL = """\
a = allocate 62MiB
b = allocate 64KiB
"""
LARGE = """\
a = allocate 62MiB
b = allocate 2MiB
"""
POOL_OF_ONE = """\
p = create pool
a = allocate 512 pool=p
destroy pool p
free a
trim
"""
MANAGED = """\
repeat 3:
    a[i] = allocate 16MiB
repeat 3:
    free a[i]
b = allocate 20MiB managed
"""
ALL_AGAIN = """\
a = allocate 64MiB
free a
b = allocate 64MiB
"""
LIMIT_AGAIN = """\
p = create pool limit=16MiB
a = allocate 16MiB pool=p
free a
trim pool=p
b = allocate 8MiB pool=p
c = allocate 8MiB pool=p
free b
free c
d = allocate 16MiB pool=p
"""
LEFT_IN_FLIGHT = """\
s = create stream
p = create pool
a = allocate 32MiB on s pool=p
stall s
launch on s writes=a
free a
destroy pool p
synchronize device
b = allocate 64MiB
"""
ALIGNED = """\
a = allocate 1MiB
b = allocate 12MiB align=8MiB
free b
c = allocate 12MiB align=16MiB
"""
STAGED = """\
s = create stream
t = create stream
e = create event
a = allocate 8MiB pinned
b = stage a on s
record event e on s
wait event e on t
synchronize device
stall t
launch on t writes=b
free b
c = allocate 8MiB on s
launch on s writes=c
query stream s
query stream t
"""
USED_MANAGED = """\
s = create stream nonblocking
t = create stream nonblocking
a = allocate 1MiB managed
stall s
launch on s writes=a
free a
b = allocate 1MiB managed
launch on t writes=b
"""
CHUNK_TOO_MANY = """\
a = allocate 31MiB
b = allocate 31MiB
c = allocate 4MiB
"""
ONE_ERROR = """\
fail backing 1
a = allocate 1MiB
"""
ODD = """\
a = allocate 1000
b = allocate 1000
"""
FOUND = {
    "SizesAreRoundedDown": ("live_bytes_return_to_where_they_were", "memory", ODD),
    "TriesALargerChunk": ("pool_falls_back_to_a_smaller_chunk", "memory, capacity, backing-ledger", CHUNK_TOO_MANY),
    "GivesUpAfterAnError": ("pool_falls_back_to_a_smaller_chunk", "memory, injection, backing-ledger", ONE_ERROR),
    "StagedBlocksAreForgotten": (
        "memory_is_reused_only_after_its_last_use",
        "memory, pinned, staging, streams, events, stall, launch",
        STAGED,
    ),
    "ManagedBlocksAreForgotten": (
        "memory_is_reused_only_after_its_last_use",
        "memory, managed, streams, stall, launch",
        USED_MANAGED,
    ),
    "LargeBlocksLieOnHugePages": ("addresses_are_aligned", "memory, alignment", ALIGNED),
    "NeverLooksAgain": (
        "request_fits_but_out_of_memory",
        "memory, pool, pools, streams, stall, launch, capacity, backing-ledger",
        LEFT_IN_FLIGHT,
    ),
    "LosesEightBytes": ("request_fits_but_out_of_memory", "memory, capacity, backing-ledger", ALL_AGAIN),
    "ArenaShrinks": ("request_fits_but_out_of_memory", "memory, capacity", ALL_AGAIN),
    "KeepsOneChunk": ("request_fits_but_out_of_memory", "memory, pool, pools, pool-limit, capacity", LIMIT_AGAIN),
    "LimitCountsWhatIsGone": (
        "request_fits_but_out_of_memory",
        "memory, pool, pools, pool-limit, capacity",
        LIMIT_AGAIN,
    ),
    "TakesTwoSlabs": ("request_fits_but_out_of_memory", "memory, capacity, backing-ledger", NEARLY_FULL),
    "TakesAPageMore": ("request_fits_but_out_of_memory", "memory, capacity, backing-ledger", LARGE),
    "NeverBelowHalfAChunk": ("request_fits_but_out_of_memory", "memory, capacity, backing-ledger", ONE_MORE),
    "StaysForEver": ("destroyed_pools_own_nothing", "memory, pool, pools, backing-ledger", POOL_OF_ONE),
    "ManagedAsksItself": ("request_fits_but_out_of_memory", "memory, managed, capacity, backing-ledger", MANAGED),
    "RefusesItsLimit": ("request_fits_but_out_of_memory", "memory, pools, pool-limit, capacity", LIMIT),
    "NeverSplits": ("request_fits_but_out_of_memory", "memory, capacity", TINY),
    "TrimEndsAtTheFirstBusy": (
        "trim_returns_what_nobody_uses",
        "memory, pool, streams, stall, launch, backing-ledger",
        IN_FLIGHT_ELSEWHERE,
    ),
    **dict.fromkeys(
        ("TrimEndsAtTheFirstBusyChunk", "TrimEndsAtTheFirstBusyLargeBlock"),
        (
            "trim_returns_what_nobody_uses",
            "memory, pool, streams, stall, launch, backing-ledger",
            IN_FLIGHT_ELSEWHERE,
        ),
    ),
    "OneClassIsTooSmall": ("live_blocks_do_not_overlap", "memory", EVERY_SIZE),
    "CountsInEightBits": ("owned_memory_is_not_released", "memory, pool", MANY),
    "OneSlabOfASize": ("trim_returns_what_nobody_uses", "memory, pool, backing-ledger", CHUNKS),
    "ClosesInFlight": ("nothing_is_left_at_quiescence", "memory, streams, stall, launch", CLOSED_IN_FLIGHT),
}
ALIGNED = """\
a = allocate 16MiB align=64MiB
free a
trim
b = allocate 32MiB
c = allocate 16MiB align=64MiB
"""
INNOCENT: tuple[Backend, ...] = (reference(), *CORRECT, *STRANGERS, *WITHHOLDING)


def findings(backend: Backend, name: str) -> tuple[Finding, ...]:
    rule, needs, body = FOUND[name]
    case = parse_text(HEADER.format(finds=rule, needs=needs) + body, "sequence.case", "sequence")
    result = run_case(case, backend)
    lacking = {each.strip() for each in needs.split(",")} - backend.describe().capabilities
    assert (result.verdict is Verdict.UNSUPPORTED) == bool(lacking), result.reason
    return result.findings


@pytest.mark.parametrize("name", FOUND)
def test_a_few_lines_find_the_fault(name: str) -> None:
    assert [finding.rule for finding in findings(BY_NAME[name].backend, name)] == [FOUND[name][0]]


@pytest.mark.parametrize("backend", INNOCENT, ids=lambda backend: backend.describe().name)
def test_no_correct_allocator_is_accused(backend: Backend) -> None:
    assert {name: findings(backend, name) for name in FOUND} == dict.fromkeys(FOUND, ())


@pytest.mark.parametrize("backend", INNOCENT, ids=lambda backend: backend.describe().name)
def test_where_an_aligned_block_lay_may_be_taken(backend: Backend) -> None:
    header = HEADER.format(finds="request_fits_but_out_of_memory", needs="memory, pool, alignment")
    case = parse_text(header + ALIGNED, "sequence.case", "sequence")
    assert run_case(case, backend).findings == ()


def test_what_another_new_pool_took_is_told() -> None:
    (finding,) = findings(BY_NAME["RefusesItsLimit"].backend, "RefusesItsLimit")
    assert finding.expected == (
        "allocated: another new pool took 16,777,216 bytes (16 MiB), "
        "and 16,777,216 bytes (16 MiB) of the 67,108,864 bytes (64 MiB) as given in open are certainly free"
    )


def test_a_request_that_was_served_before_is_told() -> None:
    (finding,) = findings(BY_NAME["LosesEightBytes"].backend, "LosesEightBytes")
    assert finding.expected == (
        "allocated: the same request was served when nothing was held, and 67,108,864 bytes (64 MiB) are certainly free"
    )


def test_a_block_that_is_too_small_is_no_wrong_counter() -> None:
    (finding,) = findings(BY_NAME["SizesAreRoundedDown"].backend, "SizesAreRoundedDown")
    assert finding.kind == "block that is too small"
    assert (finding.expected, finding.observed) == (
        "a block of at least 1,000 bytes",
        "992 bytes, as live rose by no more",
    )


def test_one_chunk_that_is_released_too_early_is_one_finding() -> None:
    (finding,) = findings(BY_NAME["CountsInEightBits"].backend, "CountsInEightBits")
    assert finding.observed.endswith("with it were released to the backing allocator, and with 255 other blocks")


@pytest.mark.parametrize(
    ("name", "expected", "observed"),
    [
        (
            "StaysForEver",
            "no memory held: pool 'p' is destroyed, and its last block is gone",
            "still held: 2,097,152 bytes (2 MiB) in one backing allocation, in which 'a' was last",
        ),
        (
            "OneSlabOfASize",
            "no memory that nobody owns and no work uses",
            "still held: 6,291,456 bytes (6 MiB) in 3 backing allocations, in which 'a[31]' and 'a[63]' and 1 other "
            "block were last",
        ),
        (
            "TakesTwoSlabs",
            "a request to the backing allocator for at most 2,228,224 bytes (2.1 MiB), "
            "as chunk_bytes and footprint_factor say, before it fails",
            "out of memory after requests for at least 4,194,304 bytes (4 MiB)",
        ),
    ],
)
def test_a_finding_says_what_is_held_and_whose_it_was(name: str, expected: str, observed: str) -> None:
    (finding,) = findings(BY_NAME[name].backend, name)
    assert (finding.expected, finding.observed) == (expected, observed)

"""The caching pool without stream order: classes, growth, reclaiming, limits, alignment, trimming."""

from __future__ import annotations

import pytest

from quiesce.allocators.reference.chunks import CHUNK_BYTES_MAX, FIRST_BLOCKS, Growth, class_of
from quiesce.model import operations as ops
from quiesce.model.gauges import Gauge
from quiesce.model.observations import BackingAllocated, BackingFreed, BackingRefused
from quiesce.model.operations import FailurePoint, MemoryKind
from quiesce.model.outcomes import INVALID_VALUE, OutOfMemory, Rejected

from .bench import Bench
from .conftest import MakeBench

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "alignment", "expected"),
    [
        (1, 1, 512),
        (512, 256, 512),
        (513, 256, 1024),
        (1, 4096, 4096),
        (MIB, 1, MIB),
        (MIB + 1, 1, None),
        (1, 2 * MIB, None),
    ],
)
def test_a_class_is_the_next_power_of_two(size: int, alignment: int, expected: int | None) -> None:
    assert class_of(size, alignment) == expected


def test_chunks_grow_by_half_up_to_a_limit_and_start_over_when_forgotten() -> None:
    growth = Growth()
    counts = []
    for _ in range(4):
        counts.append(growth.next_count(512))
        growth.grew(512, counts[-1])
    assert counts == [FIRST_BLOCKS, 24, 36, 54]
    growth.grew(512, CHUNK_BYTES_MAX)
    assert growth.next_count(512) == CHUNK_BYTES_MAX // 512
    growth.forget(512)
    assert growth.next_count(512) == FIRST_BLOCKS


def test_a_class_that_was_squeezed_to_single_blocks_grows_again() -> None:
    growth = Growth()
    growth.grew(512, 1)
    assert growth.next_count(512) == 2


def test_blocks_of_a_class_share_a_chunk(bench: Bench) -> None:
    bench.make(*(f"a[{i}] = allocate 600" for i in range(FIRST_BLOCKS)))
    assert [seen.size_bytes for seen in bench.observed(BackingAllocated)] == [FIRST_BLOCKS * 1024]
    addresses = [bench.address(f"a[{i}]") for i in range(FIRST_BLOCKS)]
    assert sorted(addresses) == list(range(min(addresses), min(addresses) + FIRST_BLOCKS * 1024, 1024))
    bench.make("next = allocate 600")
    assert [seen.size_bytes for seen in bench.observed(BackingAllocated)] == [24 * 1024]


def test_a_freed_block_is_the_next_one_of_its_class(bench: Bench) -> None:
    bench.make("a = allocate 600", "b = allocate 600", "free a", "c = allocate 1024")
    assert bench.address("c") == bench.address("a")


def test_an_oversized_request_takes_its_size_and_no_more(bench: Bench) -> None:
    bench.make("a = allocate 1048577")
    assert bench.reserved == 1048576 + 512


def test_an_oversized_block_serves_down_to_a_sixteenth_of_its_size(bench: Bench) -> None:
    bench.make("a = allocate 32MiB", "free a", "b = allocate 2097664")
    assert bench.address("b") == bench.address("a")
    bench.make("free b", "c = allocate 2MiB")
    assert bench.address("c") != bench.address("a")
    assert bench.reserved == 34 * MIB


def test_the_smallest_oversized_block_that_fits_is_taken(bench: Bench) -> None:
    bench.make("a = allocate 9MiB", "b = allocate 5MiB", "c = allocate 7MiB", "free a", "free b", "free c")
    bench.make("d = allocate 6MiB")
    assert bench.address("d") == bench.address("c")


@pytest.mark.parametrize("size", [1, 700, 100_000, 3 * MIB])
@pytest.mark.parametrize("alignment", [1, 512, 8192, 4 * MIB])
def test_blocks_are_aligned_fresh_and_reused(bench: Bench, size: int, alignment: int) -> None:
    line = f"allocate {size} align={alignment}"
    bench.make("odd = allocate 512", f"a = {line}", f"b = {line}", "free a", f"c = {line}")
    for slot in "abc":
        assert bench.address(slot) % max(alignment, 256) == 0
    assert bench.address("c") == bench.address("a")


def test_a_cached_block_that_is_not_aligned_enough_is_left_alone(bench: Bench) -> None:
    bench.make("pad = allocate 1049088", "a = allocate 3MiB", "free a")
    assert bench.address("a") % (4 * MIB)
    bench.make("b = allocate 2MiB align=4MiB")
    assert bench.address("b") % (4 * MIB) == 0
    bench.make("c = allocate 3MiB")
    assert bench.address("c") == bench.address("a")


@pytest.mark.parametrize("alignment", [0, 3, 24])
def test_an_alignment_that_is_no_power_of_two_is_refused(make_bench: MakeBench, alignment: int) -> None:

    reply = make_bench().machine.perform(ops.Allocate("a", 64, alignment_bytes=alignment))
    assert reply.outcome == Rejected(INVALID_VALUE)


def test_granularity_rounds_what_is_held_and_what_a_limit_counts(make_bench: MakeBench) -> None:
    bench = make_bench(granularity_bytes=2 * MIB)
    bench.make("a = allocate 1")
    assert bench.reserved == 2 * MIB
    bench.make("p = create pool limit=3MiB", "b = allocate 1 pool=p")
    assert bench("c = allocate 2MiB pool=p") == "out of memory"


def test_a_squeeze_makes_room_for_another_size(bench: Bench) -> None:
    bench.make("a = allocate 40MiB", "free a", "b = allocate 41MiB")
    assert len(bench.observed(BackingRefused)) == 1
    assert bench.reserved == 41 * MIB


def test_a_squeeze_keeps_chunks_that_are_owned_in_part(bench: Bench) -> None:
    bench.make("a = allocate 1MiB", "b = allocate 1MiB", "free b")
    assert bench("c = allocate 60MiB") == "out of memory"
    assert bench.reserved == FIRST_BLOCKS * MIB
    bench.make("d = allocate 40MiB")


def test_growth_starts_over_once_the_class_has_no_chunk(bench: Bench) -> None:
    bench.make(*(f"a[{i}] = allocate 1MiB" for i in range(17)), *(f"free a[{i}]" for i in range(17)))
    bench.make("trim", "b = allocate 1MiB")
    assert bench.reserved == FIRST_BLOCKS * MIB


def test_a_pool_that_cannot_grow_as_usual_tries_a_smaller_chunk(bench: Bench) -> None:
    bench.make("a = allocate 62MiB", "b = allocate 1MiB")
    assert [seen.size_bytes // MIB for seen in bench.observed(BackingAllocated)] == [62, 2]
    bench.make("c = allocate 1MiB")
    assert bench("d = allocate 1MiB") == "out of memory"


def test_a_neighbour_gives_its_cache_back(bench: Bench) -> None:
    bench.make(
        "p = create pool", "a = allocate 50MiB", "free a", "b = allocate 50MiB pool=p", "free b", "c = allocate 60MiB"
    )
    assert bench.reserved == 60 * MIB


def test_a_neighbour_on_another_device_is_left_alone(make_bench: MakeBench) -> None:
    bench = make_bench(capacity_bytes=64 * MIB, devices=2)
    bench.make("a = allocate 50MiB", "free a", "use device 1")
    assert bench("b = allocate 65MiB") == "out of memory"
    assert bench.reserved == 50 * MIB


def test_cached_bytes_do_not_count_against_a_limit(bench: Bench) -> None:
    bench.make("p = create pool limit=8MiB", "a = allocate 6MiB pool=p", "free a", "b = allocate 7MiB pool=p")
    assert bench("c = allocate 2MiB pool=p") == "out of memory"


def test_a_limit_is_reached_in_small_chunks(bench: Bench) -> None:
    bench.make("p = create pool limit=4096", *(f"a[{i}] = allocate 512 pool=p" for i in range(8)))
    assert bench("b = allocate 512 pool=p") == "out of memory"
    assert bench.reserved == 4096


def test_a_destroyed_pool_takes_its_blocks_along(bench: Bench) -> None:
    bench.make("p = create pool", "a = allocate 600 pool=p", "b = allocate 3MiB pool=p", "free b", "destroy pool p")
    assert bench.reserved == 0
    assert bench.gauge(Gauge.LIVE) == 0
    assert bench("free a") == "rejected invalid-value"
    assert bench("c = allocate 1 pool=p") == "rejected invalid-handle"
    assert bench("destroy pool p") == "rejected invalid-handle"


def test_trim_gives_back_what_is_idle_and_nothing_else(bench: Bench) -> None:
    bench.make(
        "a = allocate 600", "b = allocate 600", "c = allocate 3MiB", "d = allocate 100000", "free b", "free c", "free d"
    )
    bench.make("trim")
    assert bench.reserved == FIRST_BLOCKS * 1024
    assert len(bench.observed(BackingFreed)) == 2
    bench.make("free a", "trim")
    assert bench.reserved == 0


def test_a_second_free_is_refused_until_the_slot_is_used_again(bench: Bench) -> None:
    bench.make("a = allocate 600", "free a")
    assert bench("free a") == "rejected invalid-value"
    bench.make("a = allocate 600", "free a")


def test_no_bytes_are_nobodys_and_freeing_them_does_nothing(bench: Bench) -> None:
    bench.make("b = allocate 512", "free b", "b = allocate 0", "launch reads=b", "free b")
    assert bench.address("b") == 0
    assert bench.gauge(Gauge.BLOCKS) == 0
    assert bench("free b") == "rejected invalid-value"
    assert bench("c = allocate 0 pool=nobody") == "rejected invalid-handle"


@pytest.mark.parametrize("point", ["backing", "bookkeeper"])
def test_an_injected_out_of_memory_is_survived(bench: Bench, point: str) -> None:
    bench.make(f"fail {point} 1", "a = allocate 3MiB")
    assert bench.reserved == 3 * MIB


@pytest.mark.parametrize("point", ["backing", "bookkeeper"])
def test_a_foreign_error_passes_through_and_leaves_the_cache(bench: Bench, point: str) -> None:
    bench.make("a = allocate 3MiB", "free a", f"fail {point} 2 with foreign-error", "b = allocate 10MiB")
    assert bench("c = allocate 11MiB") == "rejected backing-error"
    assert bench.reserved == 13 * MIB
    bench.make("c = allocate 11MiB")


def test_an_injection_that_counts_from_zero_is_refused(bench: Bench) -> None:

    reply = bench.machine.perform(ops.InjectFailure(FailurePoint.BACKING, 0))
    assert reply.outcome == Rejected(INVALID_VALUE)


@pytest.mark.parametrize("size", [1 << 63, (1 << 64) - 1, 1 << 64])
def test_no_size_is_too_large_to_be_refused(bench: Bench, size: int) -> None:

    for kind in MemoryKind:
        assert bench.machine.perform(ops.Allocate("a", size, kind)).outcome == OutOfMemory()
    assert bench.reserved == bench.pinned == 0


def test_freed_memory_leaves_nothing_behind_in_the_books_of_a_long_run(bench: Bench) -> None:
    for i in range(300):
        bench.make(f"a = allocate {2 * MIB + 512 * i}", "free a", "trim")
    pool = bench.machine._world.device_pools[0]
    assert not pool.chunks
    assert not pool.idle
    assert not pool.chunks_of_class
    assert list(pool.free_lists._by_size.sizes_from(0)) == []

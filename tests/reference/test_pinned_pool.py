"""The pinned pool: rounding, copies in flight, reclaiming, captures."""

from __future__ import annotations

import pytest

from quiesce.allocators.reference.pinned_pool import pinned_footprint
from quiesce.model.gauges import Gauge

from .bench import Bench
from .conftest import MakeBench

MIB = 1 << 20


@pytest.mark.parametrize(
    ("size", "footprint"), [(1, 512), (512, 512), (513, 1024), (8_000_000, 8_388_608), (5 * MIB, 8 * MIB)]
)
def test_sizes_are_rounded_as_cupy_rounds_them(size: int, footprint: int) -> None:
    assert pinned_footprint(size) == footprint


def test_a_freed_block_is_kept_and_handed_out_again(bench: Bench) -> None:
    bench.make("a = allocate 5MiB pinned", "free a", "b = allocate 8MiB pinned")
    assert bench.address("b") == bench.address("a")
    assert bench.pinned == 8 * MIB


def test_trim_gives_back_what_is_free(bench: Bench) -> None:
    bench.make("a = allocate 1 pinned", "b = allocate 1 pinned", "free a", "trim pinned")
    assert bench.pinned == 512
    bench.make("free b", "trim pinned")
    assert bench.pinned == 0


def test_the_granularity_of_backing_is_counted(make_bench: MakeBench) -> None:
    bench = make_bench(granularity_bytes=4096)
    bench.make("a = allocate 1 pinned")
    assert bench.pinned == 4096
    bench.make("free a", "trim pinned")
    assert bench.pinned == 0


def test_an_alignment_beyond_the_unit_is_refused(bench: Bench) -> None:
    bench.make("a = allocate 1 pinned align=512")
    assert bench.address("a") % 512 == 0
    assert bench("b = allocate 1 pinned align=1024") == "rejected invalid-value"


def test_a_block_in_flight_is_not_handed_out(bench: Bench) -> None:
    bench.make("s = create stream", "p = allocate 1MiB pinned", "d = allocate 1MiB", "stall s", "copy p to d on s")
    bench.make("free p", "q = allocate 1MiB pinned", "trim pinned")
    assert bench.address("q") != bench.address("p")
    assert bench.pinned == 2 * MIB
    bench.make("release s", "r = allocate 1MiB pinned")
    assert bench.address("r") == bench.address("p")
    assert bench.gauge(Gauge.EVENTS) == 0


def test_a_block_waits_for_every_stream_that_reads_it(bench: Bench) -> None:
    bench.make("s = create stream", "t = create stream", "p = allocate 1MiB pinned", "d = allocate 1MiB")
    bench.make("stall s", "stall t", "copy p to d on s", "copy p to d on t", "free p", "release s", "trim pinned")
    assert bench.pinned == MIB
    bench.make("release t", "trim pinned")
    assert bench.pinned == 0


def test_a_stalled_stream_does_not_hold_up_another_ones_blocks(bench: Bench) -> None:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "d = allocate 1MiB")
    bench.make("p = allocate 1MiB pinned", "q = allocate 1MiB pinned", "stall s", "copy p to d on s", "free p")
    bench.make("stall t", "copy q to d on t", "free q", "release t", "trim pinned")
    assert bench.pinned == MIB


def test_a_full_pool_gives_way_and_then_waits(bench: Bench) -> None:
    bench.make(
        "s = create stream", "d = allocate 8MiB", "p = allocate 8MiB pinned", "q = allocate 4MiB pinned", "free q"
    )
    bench.make("stall s", "copy p to d on s", "free p", "r = allocate 16MiB pinned", "query stream s")
    assert bench.pinned == 16 * MIB
    assert bench("t = allocate 1 pinned") == "out of memory"


def test_a_capture_forbids_asking_so_nothing_is_reclaimed(bench: Bench) -> None:
    bench.make("s = create stream", "t = create stream nonblocking", "d = allocate 8MiB", "p = allocate 16MiB pinned")
    bench.make("copy p to d on s size=8MiB", "begin capture on t", "free p")
    assert bench("q = allocate 1 pinned") == "out of memory"
    bench.make("g = end capture on t", "q = allocate 1 pinned")


def test_a_block_freed_during_a_capture_waits_for_its_copy(bench: Bench) -> None:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "p = allocate 1MiB pinned")
    bench.make(
        "d = allocate 1MiB", "stall s", "copy p to d on s", "begin capture on t", "free p", "g = end capture on t"
    )
    bench.make("q = allocate 1MiB pinned")
    assert bench.address("q") != bench.address("p")
    bench.make("release s", "r = allocate 1MiB pinned")
    assert bench.address("r") == bench.address("p")


def test_a_second_free_is_refused(bench: Bench) -> None:
    bench.make("p = allocate 1 pinned", "free p")
    assert bench("free p") == "rejected invalid-value"
    bench.make("p = allocate 1 pageable", "free p")
    assert bench("free p") == "rejected invalid-value"

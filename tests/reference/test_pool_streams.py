"""The caching pool in stream order: guards, inheritance over three streams, destroyed streams, reclaiming in flight."""

from __future__ import annotations

import pytest

from quiesce.model.backend import Flavour
from quiesce.model.gauges import Gauge
from quiesce.model.observations import BackingAllocated, EventWaited

from .bench import Bench
from .conftest import MakeBench


@pytest.fixture
def three(bench: Bench) -> Bench:
    """Three streams that synchronise with nobody; ``a`` lies on the first, which is stalled behind its use."""
    for name in "stu":
        bench.make(f"{name} = create stream nonblocking")
    bench.make("a = allocate 3MiB on s", "stall s", "launch on s writes=a")
    return bench


def _waits(bench: Bench) -> list[str | None]:
    return [seen.waiter for seen in bench.observed(EventWaited)]


def test_the_stream_that_freed_a_block_gets_it_back_without_waiting(three: Bench) -> None:
    three.make("free a", "b = allocate 3MiB on s")
    assert three.address("b") == three.address("a")
    assert _waits(three) == []


def test_another_stream_waits_for_the_block(three: Bench) -> None:
    three.make("free a", "b = allocate 3MiB on t", "launch on t")
    assert three.address("b") == three.address("a")
    assert _waits(three) == ["t"]
    assert three("query stream t") == "rejected not-ready"
    three.make("release s", "query stream t")


def test_work_that_is_done_is_not_waited_for(three: Bench) -> None:
    three.make("release s", "free a", "b = allocate 3MiB on t")
    assert _waits(three) == []
    three.make("stall t", "free b on t", "trim")  # nothing was ever done with b: it waits for nobody
    assert three.reserved == 0


def test_a_block_waits_for_every_stream_that_uses_it(three: Bench) -> None:
    three.make("launch on t reads=a", "stall t", "launch on t reads=a", "free a on u", "b = allocate 3MiB on u")
    assert _waits(three) == ["u", "u"]
    three.make("launch on u", "release s")
    assert three("query stream u") == "rejected not-ready"
    three.make("release t", "query stream u")


def test_a_third_stream_inherits_what_an_idle_owner_waited_for(three: Bench) -> None:
    three.make("free a", "b = allocate 3MiB on t", "free b", "c = allocate 3MiB on u", "launch on u writes=c")
    assert three.address("c") == three.address("a")
    assert _waits(three) == ["t", "u"]
    assert three("query stream u") == "rejected not-ready"
    three.make("release s", "query stream u")


def test_the_same_stream_inherits_it_too(three: Bench) -> None:
    three.make("free a", "b = allocate 3MiB on s", "free b on s", "c = allocate 3MiB on t", "launch on t")
    assert three("query stream t") == "rejected not-ready"


def test_events_are_destroyed_with_what_they_guard(three: Bench) -> None:
    three.make("free a", "b = allocate 3MiB on t", "free b", "c = allocate 3MiB on u", "free c", "release s", "trim")
    assert three.gauge(Gauge.EVENTS) == 0


def test_trim_keeps_memory_in_flight_and_does_not_wait(three: Bench) -> None:
    three.make("free a", "trim")
    assert three.reserved == 3 << 20
    assert three("query stream s") == "rejected not-ready"
    three.make("release s", "trim")
    assert three.reserved == 0


def test_a_squeeze_waits_for_memory_in_flight(three: Bench) -> None:
    three.make("free a", "b = allocate 64MiB on t", "query stream s")
    assert three.reserved == 64 << 20


def test_one_block_in_flight_keeps_its_chunk(bench: Bench) -> None:
    bench.make("s = create stream", *(f"a[{i}] = allocate 600" for i in range(4)), "stall s", "launch on s writes=a[2]")
    bench.make(*(f"free a[{i}]" for i in range(4)), "trim")
    assert bench.reserved == 16 * 1024
    bench.make("release s", "trim")
    assert bench.reserved == 0


def test_a_destroyed_pool_waits_for_memory_in_flight(bench: Bench) -> None:
    bench.make(
        "p = create pool", "s = create stream", "a = allocate 3MiB pool=p on s", "stall s", "launch on s writes=a"
    )
    bench.make("free a", "destroy pool p", "query stream s")
    assert bench.reserved == 0


# -- destroyed streams -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flavour", list(Flavour))
def test_a_block_outlives_its_stream(make_bench: MakeBench, flavour: Flavour) -> None:
    bench = make_bench(flavour=flavour)
    bench.make("s = create stream", "a = allocate 3MiB on s", "stall s", "launch on s writes=a", "destroy stream s")
    bench.make("free a", "b = allocate 3MiB", "free b", "trim")
    assert bench.reserved == 0
    assert bench.gauge(Gauge.EVENTS) == 0
    assert not [seen for seen in bench.observed(EventWaited) if not seen.stream_alive]


@pytest.mark.parametrize("flavour", list(Flavour))
def test_memory_freed_on_a_stream_that_was_destroyed_is_reused_behind_its_work(
    make_bench: MakeBench, flavour: Flavour
) -> None:
    bench = make_bench(flavour=flavour)
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "a = allocate 3MiB on s", "stall s")
    bench.make("launch on s writes=a", "free a", "destroy stream s", "b = allocate 3MiB on t", "launch on t writes=b")
    assert bench.address("b") == bench.address("a")
    assert bench("query stream t") == ("rejected not-ready" if flavour is Flavour.CUDA else "done")
    bench.make("synchronize device", "query stream t")


@pytest.mark.parametrize("flavour", list(Flavour))
def test_nobody_waits_on_a_destroyed_hip_stream(make_bench: MakeBench, flavour: Flavour) -> None:
    bench = make_bench(capacity_bytes=64 << 20, flavour=flavour)
    bench.make("s = create stream", "a = allocate 33MiB on s", "stall s", "launch on s writes=a", "free a")
    bench.make("destroy stream s", "b = allocate 60MiB")
    stale = [seen for seen in bench.observed(EventWaited) if not seen.stream_alive]
    assert len(stale) == (1 if flavour is Flavour.CUDA else 0)


def test_a_stream_with_a_recycled_handle_is_another_stream(three: Bench) -> None:
    three.make("free a", "destroy stream s", "v = create stream nonblocking", "b = allocate 3MiB on v", "launch on v")
    assert three("query stream v") == "rejected not-ready"


# -- captures ----------------------------------------------------------------------------------------------------------


def test_a_capture_gets_no_memory_that_work_outside_it_uses(three: Bench) -> None:
    three.make("free a", "begin capture on t", "b = allocate 3MiB on t", "launch on t writes=b", "g = end capture on t")
    assert three.address("b") != three.address("a")
    three.make("c = allocate 3MiB on s")
    assert three.address("c") == three.address("a")


def test_a_capture_gets_memory_that_nobody_uses_any_more(three: Bench) -> None:
    three.make("free a", "release s", "begin capture on t", "b = allocate 3MiB on t", "g = end capture on t")
    assert three.address("b") == three.address("a")


def test_a_refused_reuse_loses_nothing(three: Bench) -> None:
    three.make("free a", "begin capture on t")
    for i in range(3):
        three.make(f"b[{i}] = allocate 3MiB on t", f"free b[{i}] on t")
    three.make("g = end capture on t", "release s", "destroy graph g", "trim")
    assert three.reserved == 0
    assert three.gauge(Gauge.EVENTS) == 0


def test_a_free_during_a_capture_is_settled_behind_it(bench: Bench) -> None:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "a = allocate 3MiB on s")
    bench.make("launch on s writes=a", "begin capture on s", "free a on t", "trim")
    assert bench.reserved == 3 << 20
    assert bench.gauge(Gauge.BLOCKS) == 0
    bench.make("g = end capture on s", "trim")
    assert bench.reserved == 0


def test_a_use_that_was_captured_elsewhere_defers_the_free(bench: Bench) -> None:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "a = allocate 3MiB on t")
    bench.make("begin capture on s", "launch on s writes=a", "free a on t", "b = allocate 3MiB on t")
    assert bench.address("b") != bench.address("a")
    bench.make("g = end capture on s", "c = allocate 3MiB on t")
    assert bench.address("c") == bench.address("a")


def test_work_outside_a_capture_is_not_deferred(bench: Bench) -> None:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "begin capture on s")
    for i in range(20):
        bench.make(f"a[{i}] = allocate 3MiB on t", f"launch on t writes=a[{i}]", f"free a[{i}]")
    assert len(bench.observed(BackingAllocated)) == 1


def test_a_free_behind_a_blocked_default_stream_loses_nothing(bench: Bench) -> None:
    bench.make("a = allocate 3MiB", "launch writes=a", "s = create stream", "begin capture on s", "free a")
    bench.make("g = end capture on s", "trim")
    assert bench.reserved == 0


def test_a_pool_is_not_destroyed_during_a_capture_and_stays_whole(bench: Bench) -> None:
    bench.make("p = create pool", "a = allocate 50MiB pool=p", "s = create stream nonblocking", "begin capture on s")
    assert bench("destroy pool p") == "rejected capture-unsupported"
    assert bench("g = end capture on s") == "rejected capture-invalidated"
    bench.make("free a", "b = allocate 60MiB", "destroy pool p")  # it still gives way to its neighbour
    assert bench.reserved == 60 << 20


def test_frees_that_wait_for_a_capture_go_with_their_pool(bench: Bench) -> None:
    bench.make("p = create pool", "s = create stream nonblocking", "t = create stream nonblocking")
    bench.make("a = allocate 3MiB pool=p on t", "begin capture on s", "launch on s writes=a", "free a on t")
    bench.make("g = end capture on s", "destroy pool p")
    assert bench.reserved == 0

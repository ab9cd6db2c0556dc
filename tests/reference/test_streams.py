"""Streams and events: order, stalls, what a synchronisation forces, destroyed streams, the legacy default stream."""

from __future__ import annotations

import pytest

from quiesce.allocators.reference.captures import Captures
from quiesce.allocators.reference.ledger import Ledger
from quiesce.allocators.reference.objects import Event, Stream
from quiesce.allocators.reference.streams import Streams
from quiesce.model import operations as ops
from quiesce.model.backend import Flavour
from quiesce.model.gauges import Gauge
from quiesce.model.observations import EventWaited, StreamSynchronized
from quiesce.model.outcomes import INVALID_VALUE, Rejected

from .bench import Bench
from .conftest import MakeBench


def test_work_runs_at_once_where_nothing_holds_it_back(bench: Bench) -> None:
    bench.make("s = create stream", "launch on s")
    assert bench("query stream s") == "done"


def test_a_stall_holds_later_work_until_it_is_released(bench: Bench) -> None:
    bench.make("s = create stream", "e = create event", "stall s", "stall s", "launch on s", "record event e on s")
    assert bench("query stream s") == "rejected not-ready"
    assert bench("query event e") == "rejected not-ready"
    bench.make("release s", "query stream s", "query event e")


def test_an_event_stands_for_what_was_enqueued_before_it(bench: Bench) -> None:
    bench.make(
        "s = create stream", "e = create event", "record event e on s", "stall s", "launch on s", "query event e"
    )
    assert bench("query stream s") == "rejected not-ready"


def test_an_event_never_recorded_is_complete_and_holds_nothing(bench: Bench) -> None:
    bench.make("s = create stream", "e = create event", "query event e", "synchronize event e", "wait event e on s")
    bench.make("launch on s", "query stream s")


def test_a_wait_holds_a_stream_until_the_last_recording_at_that_time(bench: Bench) -> None:
    bench.make(
        "s = create stream", "t = create stream nonblocking", "e = create event", "stall s", "record event e on s"
    )
    bench.make("wait event e on t", "record event e on t", "launch on t")
    assert bench("query stream t") == "rejected not-ready"
    bench.make("release s", "query stream t", "query event e")


def test_synchronising_a_stream_ends_the_stalls_that_it_depends_on_and_no_others(bench: Bench) -> None:
    for name in "stuv":
        bench.make(f"{name} = create stream nonblocking", f"{name}_done = create event")
    bench.make(
        "stall s", "launch on s", "record event s_done on s", "wait event s_done on t", "record event t_done on t"
    )
    bench.make("wait event t_done on u", "launch on u", "stall v", "launch on v")
    bench.make("synchronize stream u", "query stream s", "query stream t")
    assert bench("query stream v") == "rejected not-ready"


def test_synchronising_an_event_leaves_what_comes_behind_it(bench: Bench) -> None:
    bench.make("s = create stream", "e = create event", "stall s", "record event e on s", "stall s", "launch on s")
    bench.make("synchronize event e", "query event e")
    assert bench("query stream s") == "rejected not-ready"
    bench.make("release s", "query stream s")


def test_synchronising_a_device_leaves_other_devices_alone(make_bench: MakeBench) -> None:
    bench = make_bench(devices=2)
    bench.make(
        "s = create stream", "stall s", "launch on s", "use device 1", "t = create stream", "stall t", "launch on t"
    )
    bench.make("synchronize device", "query stream t")
    assert bench("query stream s") == "rejected not-ready"


def test_a_synchronisation_crosses_devices_along_dependencies(make_bench: MakeBench) -> None:
    bench = make_bench(devices=2)
    bench.make("s = create stream", "e = create event", "stall s", "record event e on s")
    bench.make("use device 1", "t = create stream", "wait event e on t", "synchronize device", "query stream s")


def _chain(length: int, *, stalled: bool) -> tuple[Streams, list[Stream], list[Event]]:
    """Return streams that each wait for the one before; the first is stalled, or (``stalled``) each is."""
    streams = Streams(1, Ledger(), Captures())
    chain = [streams.create_stream(f"s{i}", 0, nonblocking=True) for i in range(length)]
    events = [streams.create_event(f"e{i}", 0) for i in range(length)]
    for i in range(length):
        if stalled or i == 0:
            streams.stall(chain[i])
        if i:
            streams.wait(chain[i], events[i - 1])
        streams.record(events[i], chain[i])
    return streams, chain, events


def test_a_chain_of_ten_thousand_waits_is_forced_without_recursion() -> None:
    streams, chain, events = _chain(10_000, stalled=True)
    assert not streams.is_complete(events[-1])
    streams.synchronize_event(events[-1])
    assert all(streams.is_complete(event) for event in events)
    assert all(streams.is_idle(stream) for stream in chain)


def test_releasing_the_head_of_a_chain_of_ten_thousand_waits_runs_all_of_it() -> None:
    streams, chain, events = _chain(10_000, stalled=False)
    assert not streams.is_complete(events[-1])
    streams.release(chain[0])
    assert streams.is_complete(events[-1])


def test_stalls_that_a_synchronisation_ended_are_forgotten(bench: Bench) -> None:
    bench.make("s = create stream")
    for _ in range(1000):
        bench.make("stall s", "launch on s", "synchronize stream s")
    assert not bench.machine._world.stream_slots["s"].gates


# -- destroyed streams -------------------------------------------------------------------------------------------------


def test_on_cuda_a_destroyed_stream_finishes_later(make_bench: MakeBench) -> None:
    bench = make_bench(flavour=Flavour.CUDA)
    bench.make(
        "s = create stream", "e = create event", "stall s", "launch on s", "record event e on s", "destroy stream s"
    )
    assert bench("query event e") == "rejected not-ready"
    assert bench.gauge(Gauge.STREAMS) == 0
    bench.make("synchronize event e", "query event e")
    assert [seen.stream_alive for seen in bench.observed(EventWaited)] == [False]


def test_on_hip_destroying_a_stream_waits_for_it(make_bench: MakeBench) -> None:
    bench = make_bench(flavour=Flavour.HIP)
    bench.make(
        "s = create stream", "e = create event", "stall s", "launch on s", "record event e on s", "destroy stream s"
    )
    assert [seen.stream for seen in bench.observed(StreamSynchronized)] == ["s"]
    bench.make("query event e")


def test_a_destroyed_stream_takes_no_work(bench: Bench) -> None:
    bench.make("s = create stream", "e = create event", "a = allocate 64", "destroy stream s")
    for line in (
        "launch on s",
        "launch on s reads=a",
        "fill a 1 on s",
        "copy a to a on s",
        "b = allocate 64 on s",
        "free a on s",
        "record event e on s",
        "wait event e on s",
        "query stream s",
        "synchronize stream s",
        "stall s",
        "begin capture on s",
        "destroy stream s",
        "x = create instance on s",
    ):
        assert bench(line) == "rejected invalid-handle", line
    bench.make("free a")
    assert bench.gauge(Gauge.BLOCKS) == 0


def test_a_stall_of_a_destroyed_stream_can_still_be_released(bench: Bench) -> None:
    bench.make(
        "s = create stream", "e = create event", "stall s", "record event e on s", "destroy stream s", "release s"
    )
    bench.make("query event e")


def test_handles_are_recycled_at_once_and_streams_never(bench: Bench) -> None:
    bench.make("s = create stream", "e = create event", "stall s", "record event e on s", "destroy stream s")
    dead = bench.machine._world.stream_slots["s"]
    bench.make("t = create stream", "query stream t")
    assert bench.machine._world.stream_slots["t"].handle == dead.handle


def test_a_destroyed_event_still_holds_the_streams_that_wait_for_it(bench: Bench) -> None:
    bench.make("s = create stream", "t = create stream", "e = create event", "stall s", "record event e on s")
    bench.make("wait event e on t", "destroy event e", "launch on t")
    assert bench("query stream t") == "rejected not-ready"
    for line in ("query event e", "synchronize event e", "record event e on s", "wait event e on t", "destroy event e"):
        assert bench(line) == "rejected invalid-handle", line
    bench.make("release s", "query stream t")


def test_an_event_is_recorded_on_its_own_device_only(make_bench: MakeBench) -> None:
    bench = make_bench(devices=2)
    bench.make("e = create event", "use device 1", "s = create stream")
    assert bench("record event e on s") == "rejected invalid-handle"
    bench.make("use device 0", "record event e", "wait event e on s")


@pytest.mark.parametrize("ordinal", [-1, 2])
def test_a_device_that_does_not_exist_cannot_be_used(make_bench: MakeBench, ordinal: int) -> None:
    reply = make_bench(devices=2).machine.perform(ops.SelectDevice(ordinal))
    assert reply.outcome == Rejected(INVALID_VALUE)


# -- the legacy default stream -----------------------------------------------------------------------------------------


def test_the_default_stream_waits_for_blocking_streams_and_they_for_it(bench: Bench) -> None:
    bench.make("s = create stream", "t = create stream", "n = create stream nonblocking", "stall s", "launch on s")
    bench.make("launch", "launch on t", "launch on n")
    assert bench("query stream") == "rejected not-ready"
    assert bench("query stream t") == "rejected not-ready"
    bench.make("query stream n", "release s", "query stream", "query stream t")


def test_the_default_stream_does_not_wait_for_nonblocking_streams(bench: Bench) -> None:
    bench.make(
        "n = create stream nonblocking", "stall n", "launch on n", "launch", "query stream", "synchronize stream"
    )
    assert bench("query stream n") == "rejected not-ready"


def test_asking_the_default_stream_asks_every_blocking_one(bench: Bench) -> None:
    bench.make("s = create stream", "stall s", "launch on s")
    assert bench("query stream") == "rejected not-ready"
    bench.make("synchronize stream", "query stream s")


def test_synchronising_a_blocking_stream_does_not_wait_for_later_default_work(bench: Bench) -> None:
    bench.make("s = create stream", "t = create stream", "stall t", "launch on t", "launch", "synchronize stream s")
    assert bench("query stream t") == "rejected not-ready"


def test_a_wait_on_the_default_stream_holds_blocking_streams(bench: Bench) -> None:
    bench.make(
        "n = create stream nonblocking", "s = create stream", "e = create event", "stall n", "record event e on n"
    )
    bench.make("wait event e", "launch on s")
    assert bench("query stream s") == "rejected not-ready"
    bench.make("release n", "query stream s")


def test_default_streams_of_two_devices_are_two(make_bench: MakeBench) -> None:
    bench = make_bench(devices=2)
    bench.make("s = create stream", "stall s", "launch on s", "launch", "use device 1", "launch", "query stream")
    bench.make("use device 0")
    assert bench("query stream") == "rejected not-ready"

"""The launch protocol by argument size, and execution-space instances."""

from __future__ import annotations

import pytest

from quiesce.model.backend import Flavour
from quiesce.model.gauges import Gauge
from quiesce.model.observations import EventWaited

from .bench import Bench
from .conftest import MakeBench


@pytest.mark.parametrize(("size", "events"), [(0, 0), (511, 0), (512, 1), ((32 << 10) - 1, 1), (32 << 10, 0)])
def test_only_arguments_of_a_middling_size_go_through_constant_memory(bench: Bench, size: int, events: int) -> None:
    bench.make(f"launch arguments={size}")
    assert bench.gauge(Gauge.EVENTS) == events


def test_a_launch_waits_until_the_previous_one_has_read_its_arguments(bench: Bench) -> None:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "stall s", "launch on s arguments=512")
    bench.make("launch on t arguments=512", "query stream s")
    assert [(seen.waiter, seen.stream_alive) for seen in bench.observed(EventWaited)] == [(None, True)]


@pytest.mark.parametrize("flavour", list(Flavour))
def test_nobody_waits_for_a_destroyed_stream(make_bench: MakeBench, flavour: Flavour) -> None:
    bench = make_bench(flavour=flavour)
    for _ in range(3):
        bench.make("s = create stream", "launch on s arguments=512", "destroy stream s")
    assert bench.observed(EventWaited) == []


def test_devices_have_constant_memory_of_their_own(make_bench: MakeBench) -> None:
    bench = make_bench(devices=2)
    bench.make("s = create stream", "stall s", "launch on s arguments=512", "use device 1", "launch arguments=512")
    assert bench.observed(EventWaited) == []
    bench.make("use device 0")
    assert bench("query stream s") == "rejected not-ready"


@pytest.mark.parametrize("mode", ["global", "thread-local", "relaxed"])
def test_another_streams_capture_does_not_concern_a_launch(bench: Bench, mode: str) -> None:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "launch on t arguments=512")
    bench.make(f"begin capture on s mode={mode}", "launch on t arguments=512", "launch on s arguments=512")
    bench.make("g = end capture on s", "launch on t arguments=512")


def test_an_instance_owns_the_stream_that_it_was_not_given(bench: Bench) -> None:
    bench.make("x = create instance", "launch instance=x")
    assert (bench.gauge(Gauge.INSTANCES), bench.gauge(Gauge.STREAMS)) == (1, 1)
    bench.make("destroy instance x")
    assert (bench.gauge(Gauge.INSTANCES), bench.gauge(Gauge.STREAMS)) == (0, 0)
    assert bench("launch instance=x") == "rejected invalid-handle"
    assert bench("destroy instance x") == "rejected invalid-handle"


def test_a_destroyed_instance_has_fenced_its_work(bench: Bench) -> None:
    bench.make("s = create stream", "x = create instance on s", "stall s", "launch instance=x arguments=512")
    bench.make("destroy instance x", "query stream s", "launch arguments=512")
    assert bench.observed(EventWaited) == []
    assert bench.gauge(Gauge.STREAMS) == 1


def test_an_instance_survives_the_stream_that_it_was_given(bench: Bench) -> None:
    bench.make("s = create stream", "x = create instance on s", "destroy stream s")
    assert bench("launch instance=x") == "rejected invalid-handle"
    bench.make("destroy instance x")
    assert bench.gauge(Gauge.INSTANCES) == 0


def test_an_instance_is_not_destroyed_while_its_stream_is_captured(bench: Bench) -> None:
    bench.make("s = create stream nonblocking", "x = create instance on s", "begin capture on s")
    assert bench("destroy instance x") == "rejected capture-unsupported"
    assert bench("g = end capture on s") == "rejected capture-invalidated"
    bench.make("destroy instance x")

"""Staging: directly from pinned memory, through a buffer from any other, and nothing left of what failed."""

from __future__ import annotations

import pytest

from quiesce.model.gauges import Gauge
from quiesce.model.observations import CopyEnqueued

from .bench import Bench

MIB = 1 << 20


def test_a_pinned_source_is_copied_directly_and_kept_until_then(bench: Bench) -> None:
    bench.make("s = create stream", "p = allocate 1MiB pinned", "stall s", "d = stage p on s")
    (copy,) = bench.observed(CopyEnqueued)
    assert (copy.source_address, copy.destination_address, copy.size_bytes, copy.stream) == (
        bench.address("p"),
        bench.address("d"),
        MIB,
        "s",
    )
    assert bench.pinned == MIB
    bench.make("free p", "q = allocate 1MiB pinned")
    assert bench.address("q") != bench.address("p")


@pytest.mark.parametrize("kind", ["pageable", "managed"])
def test_any_other_source_goes_through_a_buffer_that_comes_back(bench: Bench, kind: str) -> None:
    bench.make("s = create stream", f"a = allocate 1MiB {kind}", "stall s", "d = stage a on s", "trim pinned")
    (copy,) = bench.observed(CopyEnqueued)
    assert copy.source_address != bench.address("a")
    assert bench.pinned == MIB
    bench.make("release s", "trim pinned")
    assert bench.pinned == 0


def test_device_memory_is_no_source(bench: Bench) -> None:
    bench.make("a = allocate 64")
    assert bench("b = stage a") == "rejected invalid-value"
    assert bench.gauge(Gauge.BLOCKS) == 1


def test_a_failed_buffer_takes_the_destination_along(bench: Bench) -> None:
    bench.make("a = allocate 17MiB pageable")
    assert bench("d = stage a") == "out of memory"
    assert bench.gauge(Gauge.BLOCKS) == 1
    bench.make("trim")
    assert bench.reserved == bench.pinned == 0


@pytest.mark.parametrize("kind", ["pageable", "pinned"])
def test_a_copy_that_is_refused_takes_buffer_and_destination_along(bench: Bench, kind: str) -> None:
    bench.make(f"a = allocate 1MiB {kind}", "s = create stream", "begin capture on s")
    assert bench("d = stage a") == "rejected capture-implicit"
    assert bench("g = end capture on s") == "rejected capture-invalidated"
    bench.make("free a", "trim", "trim pinned")
    assert bench.reserved == bench.pinned == bench.gauge(Gauge.BLOCKS) == bench.gauge(Gauge.LIVE) == 0


def test_a_capture_takes_no_buffer_that_its_graph_would_read(bench: Bench) -> None:
    bench.make("a = allocate 1MiB pageable", "s = create stream nonblocking", "begin capture on s")
    assert bench("d = stage a on s") == "rejected capture-unsupported"
    bench.make("g = end capture on s", "trim")
    assert bench.reserved == bench.pinned == 0


def test_a_captured_copy_uses_its_blocks_whenever_the_graph_runs(bench: Bench) -> None:
    bench.make("p = allocate 1MiB pinned", "s = create stream nonblocking", "begin capture on s", "d = stage p on s")
    bench.make("g = end capture on s", "stall s", "launch graph g on s", "free p", "q = allocate 1MiB pinned")
    assert bench.address("q") != bench.address("p")


def test_a_copy_to_pageable_memory_is_complete_when_the_call_returns(bench: Bench) -> None:
    bench.make("s = create stream", "d = allocate 64", "a = allocate 64 pageable", "stall s", "copy d to a on s")
    bench.make("query stream s")


def test_a_copy_from_pageable_memory_leaves_the_source_alone(bench: Bench) -> None:
    bench.make(
        "s = create stream", "d = allocate 64", "a = allocate 64 pageable", "stall s", "copy a to d on s", "free a"
    )
    assert bench("query stream s") == "rejected not-ready"


@pytest.mark.parametrize("line", ["copy a to b size=65", "copy a to nobody", "copy nobody to a"])
def test_a_copy_beyond_its_blocks_is_refused(bench: Bench, line: str) -> None:
    bench.make("a = allocate 100", "b = allocate 64", "copy a to b size=64", "copy a to b")
    assert bench(line) == "rejected invalid-value"

"""The lifecycle of a parallel runtime."""

from __future__ import annotations

from quiesce.model.backend import Initialization
from quiesce.model.gauges import Gauge

from .bench import Bench
from .conftest import MakeBench


def test_the_singleton_lives_from_initialize_to_finalize(bench: Bench) -> None:
    for _ in range(3):
        bench.make("initialize", "create policy", "create policy")
        assert bench.gauge(Gauge.INSTANCES) == 1
        bench.make("finalize")
        assert bench.gauge(Gauge.INSTANCES) == 0


def test_a_runtime_is_initialised_once_where_its_version_says_so(make_bench: MakeBench) -> None:
    bench = make_bench(initialization=Initialization.ONCE)
    bench.make("initialize")
    assert bench("initialize") == "rejected already-initialized"
    bench.make("finalize")
    assert bench("initialize") == "rejected already-initialized"
    assert bench("finalize") == "rejected not-initialized"


def test_nothing_works_before_initialize(bench: Bench) -> None:
    assert bench("finalize") == "rejected not-initialized"
    assert bench("create policy") == "rejected not-initialized"
    assert bench("x, y = partition") == "rejected not-initialized"
    assert bench("create policy instance=x") == "rejected invalid-handle"
    assert bench("x, y = partition instance=z") == "rejected invalid-handle"


def test_a_partition_is_instances_with_streams_of_their_own(bench: Bench) -> None:
    bench.make("initialize", "x, y, z = partition", "u, v = partition instance=x", "create policy instance=u")
    assert (bench.gauge(Gauge.INSTANCES), bench.gauge(Gauge.STREAMS)) == (6, 5)
    bench.make(*(f"destroy instance {slot}" for slot in "xyzuv"), "finalize")
    assert (bench.gauge(Gauge.INSTANCES), bench.gauge(Gauge.STREAMS)) == (0, 0)

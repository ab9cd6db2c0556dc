"""Stream capture: modes, forks, joins, merges, what invalidates it, what a graph does."""

from __future__ import annotations

import pytest

from quiesce.model.backend import Flavour
from quiesce.model.gauges import Gauge

from .bench import Bench
from .conftest import MakeBench

MODES = ["global", "thread-local", "relaxed"]


@pytest.fixture
def forked(bench: Bench) -> Bench:
    """A capture on ``s`` that ``t`` joined, and a stream ``u`` outside it; each has an event."""
    for name in "stu":
        bench.make(f"{name} = create stream nonblocking", f"{name}_event = create event")
    bench.make("begin capture on s", "launch on s", "record event s_event on s", "wait event s_event on t")
    return bench


def test_captured_work_does_not_run(bench: Bench) -> None:
    bench.make("s = create stream", "stall s", "begin capture on s", "launch on s", "g = end capture on s", "release s")
    bench.make("query stream s")
    assert bench.gauge(Gauge.GRAPHS) == 1
    bench.make("destroy graph g")
    assert bench.gauge(Gauge.GRAPHS) == 0
    assert bench("destroy graph g") == "rejected invalid-handle"
    assert bench("launch graph g on s") == "rejected invalid-handle"


def test_a_graph_uses_its_blocks_whenever_it_runs(bench: Bench) -> None:
    bench.make("a = allocate 3MiB", "s = create stream nonblocking", "t = create stream nonblocking")
    bench.make("begin capture on s", "launch on s writes=a", "g = end capture on s")
    bench.make("stall t", "launch graph g on t", "free a on s", "trim")
    assert bench.reserved == 3 << 20
    bench.make("release t", "trim")
    assert bench.reserved == 0


def test_a_graph_launched_in_a_capture_becomes_part_of_it(bench: Bench) -> None:
    bench.make("a = allocate 3MiB", "s = create stream nonblocking", "begin capture on s", "launch on s writes=a")
    bench.make("g = end capture on s", "begin capture on s", "launch graph g on s", "h = end capture on s")
    bench.make("stall s", "launch graph h on s", "free a", "trim")
    assert bench.reserved == 3 << 20


def test_a_stream_is_captured_once(forked: Bench) -> None:
    assert forked("begin capture on s") == "rejected illegal-state"
    assert forked("begin capture on t") == "rejected illegal-state"


def test_a_capture_ends_where_it_began(forked: Bench) -> None:
    assert forked("g = end capture on u") == "rejected illegal-state"
    assert forked("g = end capture on t") == "rejected illegal-state"
    forked.make("g = end capture on s")


# -- joining -----------------------------------------------------------------------------------------------------------


def test_a_fork_without_work_needs_no_join(forked: Bench) -> None:
    forked.make("g = end capture on s", "launch on t", "query stream t")


def test_work_that_was_not_joined_is_refused(forked: Bench) -> None:
    forked.make("launch on t")
    assert forked("g = end capture on s") == "rejected capture-unjoined"
    forked.make("launch on t", "query stream t", "begin capture on s", "g = end capture on s")


def test_joined_work_is_in_the_graph(forked: Bench) -> None:
    forked.make("launch on t", "record event t_event on t", "wait event t_event on s", "g = end capture on s")


def test_work_behind_the_recorded_join_is_unjoined(forked: Bench) -> None:
    forked.make("record event t_event on t", "launch on t", "wait event t_event on s")
    assert forked("g = end capture on s") == "rejected capture-unjoined"


def test_a_fork_of_a_fork_is_joined_through_it(forked: Bench) -> None:
    forked.make("launch on t", "record event t_event on t", "wait event t_event on u", "launch on u")
    forked.make("record event u_event on u", "wait event u_event on t", "record event t_event on t")
    forked.make("wait event t_event on s", "g = end capture on s")


def test_two_captures_do_not_merge(forked: Bench) -> None:
    forked.make("begin capture on u", "record event u_event on u")
    assert forked("wait event u_event on s") == "rejected capture-merge"
    assert forked("g = end capture on s") == "rejected capture-invalidated"
    assert forked("g = end capture on u") == "rejected capture-invalidated"


def test_a_capture_does_not_depend_on_work_outside_it(forked: Bench) -> None:
    forked.make("launch on u", "record event u_event on u")
    assert forked("wait event u_event on s") == "rejected capture-isolation"
    assert forked("g = end capture on s") == "rejected capture-invalidated"


def test_an_event_never_recorded_is_no_dependency(forked: Bench) -> None:
    forked.make("wait event u_event on s", "g = end capture on s")


def test_a_captured_event_stands_for_nothing_once_its_capture_is_over(forked: Bench) -> None:
    forked.make("g = end capture on s")
    assert forked("query event s_event") == "rejected invalid-value"
    assert forked("synchronize event s_event") == "rejected invalid-value"
    assert forked("wait event s_event on u") == "rejected invalid-value"
    forked.make("record event s_event on s", "query event s_event")


def test_the_default_stream_joins_no_capture(forked: Bench) -> None:
    assert forked("wait event s_event") == "rejected capture-implicit"
    assert forked("g = end capture on s") == "rejected capture-invalidated"


def test_destroying_a_stream_gives_its_capture_up(forked: Bench) -> None:
    forked.make("destroy stream t", "launch on s", "query stream s")
    assert forked("g = end capture on s") == "rejected illegal-state"


# -- what is forbidden -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("query stream s", "capture-unsupported"),
        ("synchronize stream t", "capture-unsupported"),
        ("query event s_event", "captured-event"),
        ("synchronize event s_event", "captured-event"),
        ("query event u_event", "capture-unsupported"),
        ("synchronize event u_event", "capture-unsupported"),
        ("synchronize device", "capture-unsupported"),
    ],
)
def test_a_forbidden_call_invalidates_the_capture_and_its_streams(forked: Bench, line: str, code: str) -> None:
    assert forked(line) == f"rejected {code}"
    assert forked("launch on t") == "rejected capture-invalidated"
    assert forked("record event t_event on t") == "rejected capture-invalidated"
    assert forked("wait event s_event on t") == "rejected capture-invalidated"
    assert forked("wait event s_event on u") == "rejected invalid-value"
    assert forked("g = end capture on s") == "rejected capture-invalidated"
    forked.make("launch on t", "launch on s", "query stream s", "synchronize device")


@pytest.mark.parametrize("mode", MODES)
def test_potentially_unsafe_calls_are_allowed_beside_relaxed_captures_only(bench: Bench, mode: str) -> None:
    bench.make("e = create event", "s = create stream nonblocking", f"begin capture on s mode={mode}")
    expected = "done" if mode == "relaxed" else "rejected capture-unsupported"
    assert bench("query event e") == expected
    assert bench("g = end capture on s") == ("done" if mode == "relaxed" else "rejected capture-invalidated")


@pytest.mark.parametrize("mode", MODES)
def test_a_library_allocates_during_a_capture(bench: Bench, mode: str) -> None:
    bench.make("s = create stream nonblocking", f"begin capture on s mode={mode}")
    for kind in ("device", "pinned", "pageable", "managed"):
        bench.make(f"a_{kind} = allocate 3MiB {kind}".replace(" device", ""), f"free a_{kind}")
    bench.make("trim", "trim pinned", "trim managed", "g = end capture on s")
    assert bench.reserved == bench.pinned == 0


def test_a_device_without_a_capture_may_be_synchronised(make_bench: MakeBench) -> None:
    bench = make_bench(devices=2)
    bench.make("s = create stream", "begin capture on s", "use device 1", "synchronize device", "use device 0")
    assert bench("synchronize device") == "rejected capture-unsupported"


@pytest.mark.parametrize(
    "line",
    ["launch", "query stream", "synchronize stream", "record event e", "wait event e", "fill a 0", "copy a to b"],
)
def test_the_default_stream_is_unusable_beside_a_captured_blocking_stream(bench: Bench, line: str) -> None:
    bench.make("a = allocate 64", "b = allocate 64", "e = create event", "s = create stream", "begin capture on s")
    assert bench(line) == "rejected capture-implicit"
    assert bench("g = end capture on s") == "rejected capture-invalidated"


def test_the_default_stream_is_usable_beside_a_captured_nonblocking_stream(bench: Bench) -> None:
    bench.make("e = create event", "s = create stream nonblocking", "begin capture on s mode=relaxed", "launch")
    bench.make("query stream", "record event e", "wait event e", "synchronize stream", "g = end capture on s")


@pytest.mark.parametrize("line", ["query stream", "query stream t", "synchronize stream", "synchronize stream t"])
def test_a_question_about_another_stream_is_unsafe_on_cuda(make_bench: MakeBench, line: str) -> None:
    for flavour, expected in ((Flavour.CUDA, "rejected capture-unsupported"), (Flavour.HIP, "done")):
        bench = make_bench(flavour=flavour)
        bench.make("s = create stream nonblocking", "t = create stream nonblocking", "begin capture on s")
        assert bench(line) == expected


def test_two_captures_go_on_beside_each_other(bench: Bench) -> None:
    bench.make("s = create stream", "t = create stream", "begin capture on s", "begin capture on t", "launch on s")
    bench.make("g = end capture on t", "launch on s", "h = end capture on s")
    assert bench.gauge(Gauge.GRAPHS) == 2

"""Memory that a graph runs on: whose it is, for how long, and what whoever has it next comes behind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quiesce.allocators.oracle.oracle import Oracle
from quiesce.backends.reference import backend as reference
from quiesce.model.backend import Capability, DeviceProfile, Promise, Reply
from quiesce.model.observations import (
    BackingAllocated,
    BackingFreed,
    EventCompleted,
    EventRecorded,
    EventWaited,
    Observation,
)
from quiesce.model.outcomes import (
    BACKING_ERROR,
    CAPTURE_UNJOINED,
    CAPTURE_UNSUPPORTED,
    ILLEGAL_STATE,
    Allocated,
    Done,
    Rejected,
)
from quiesce.model.requests import parse_request

KEEPS = replace(
    reference().describe(),
    promises=frozenset({Promise.KEEPS_GRAPH_MEMORY, Promise.TRACKS_USES}),
    gauges={},
)
PLACE = 1 << 20
SIZE = 4096
KEPT, ORDER = "graph_memory_is_kept", "memory_is_reused_only_after_its_last_use"
IN_FLIGHT = "memory_in_flight_is_not_released"

STREAMS = ("s = create stream nonblocking", "t = create stream nonblocking", "e = create event")
CAPTURE = ("begin capture on s", "a = allocate 4096 on s", "launch on s writes=a", "free a")
GRAPH = (*STREAMS, *CAPTURE, "g = end capture on s")
FORK = (*STREAMS, "begin capture on s", "record event e on s", "wait event e on t")
JOIN = ("record event e on t", "wait event e on s")


class Script:
    """An oracle that is told of requests which are served, every block at one place unless another is said."""

    def __init__(self, description: object = KEEPS) -> None:
        assert isinstance(description, type(KEEPS))
        self._oracle = Oracle(description, DeviceProfile())
        chunk = BackingAllocated(PLACE, 1 << 20)
        assert self("z = allocate 1", chunk, place=PLACE + (1 << 19)) == []

    def __call__(self, request: str, *seen: Observation, place: int = PLACE, refused: str = "") -> list[str]:
        """Return the rules that an answer broke."""
        done = Allocated(place) if " = allocate" in request else Done()
        reply = Reply(Rejected(refused) if refused else done, seen)
        return [found.rule for found in self._oracle.judge(parse_request(request), reply, {}, {}, request)]

    def make(self, *requests: str) -> None:
        """Go on with requests that break nothing."""
        for request in requests:
            assert self(request) == [], request


@pytest.fixture
def script() -> Script:
    return Script()


def test_nobody_else_gets_the_memory_of_a_graph(script: Script) -> None:
    script.make(*GRAPH)
    assert script("b = allocate 4096 on s", place=PLACE + SIZE) == []
    assert script("c = allocate 4096 on s") == [KEPT]


def test_a_part_of_it_is_a_part_too_much(script: Script) -> None:
    script.make(*GRAPH)
    assert script("b = allocate 4096 on s", place=PLACE + SIZE - 256) == [KEPT]


def test_an_outsider_gets_none_while_the_capture_goes_on(script: Script) -> None:
    script.make(*STREAMS, *CAPTURE)
    assert script("b = allocate 4096 on t") == [KEPT]


def test_the_next_capture_is_another_graph(script: Script) -> None:
    script.make(*GRAPH, "begin capture on t")
    assert script("b = allocate 4096 on t") == [KEPT]


def test_the_memory_of_a_graph_stays_backing(script: Script) -> None:
    script.make(*GRAPH, "free z")
    assert script("trim", BackingFreed(PLACE, 1 << 20)) == [KEPT]


def test_it_is_anybodys_once_the_graph_is_gone(script: Script) -> None:
    script.make(*GRAPH, "destroy graph g", "b = allocate 4096 on t", "launch on t writes=b")


def test_it_may_go_back_with_its_graph(script: Script) -> None:
    script.make(*GRAPH, "free z")
    assert script("destroy graph g", BackingFreed(PLACE, 1 << 20)) == []


def test_it_does_not_go_back_while_its_graph_runs(script: Script) -> None:
    script.make(*GRAPH, "free z", "launch graph g on s")
    assert script("destroy graph g", BackingFreed(PLACE, 1 << 20)) == [IN_FLIGHT]


def test_whoever_gets_it_then_comes_behind_the_launches(script: Script) -> None:
    script.make(*GRAPH, "launch graph g on s", "destroy graph g", "b = allocate 4096 on t")
    assert script("launch on t writes=b") == [ORDER]


def test_launches_that_are_done_hold_nobody_up(script: Script) -> None:
    script.make(*GRAPH, "launch graph g on s", "destroy graph g", "synchronize stream s")
    script.make("b = allocate 4096 on t", "launch on t writes=b")


def test_one_graph_goes_and_another_keeps_its_own(script: Script) -> None:
    script.make(*GRAPH, "begin capture on s")
    assert script("b = allocate 4096 on s", place=PLACE + SIZE) == []
    script.make("launch on s writes=b", "free b", "h = end capture on s", "destroy graph g", "c = allocate 4096 on s")
    assert script("d = allocate 4096 on s", place=PLACE + SIZE) == [KEPT]


def test_what_was_not_promised_is_not_asked_for() -> None:
    script = Script(replace(KEEPS, promises=frozenset()))
    script.make(*GRAPH, "b = allocate 4096 on t")


def test_what_the_capture_did_not_use_is_anybodys(script: Script) -> None:
    script.make(*STREAMS, "begin capture on s", "a = allocate 4096 on s", "free a", "g = end capture on s")
    script.make("b = allocate 4096 on t")


def test_a_later_owner_that_uses_nothing_leaves_it_kept(script: Script) -> None:
    script.make(*STREAMS, *CAPTURE, "b = allocate 4096 on s", "free b", "g = end capture on s")
    assert script("c = allocate 4096 on t") == [KEPT]


def test_a_later_owner_that_outlives_the_capture_leaves_it_kept(script: Script) -> None:
    script.make(*STREAMS, *CAPTURE, "b = allocate 4096 on s", "g = end capture on s", "free b")
    assert script("c = allocate 4096 on t") == [KEPT]


def test_a_later_owner_that_outlives_the_graph_leaves_nothing(script: Script) -> None:
    script.make(*STREAMS, *CAPTURE, "b = allocate 4096 on s", "g = end capture on s", "destroy graph g", "free b")
    script.make("c = allocate 4096 on t")


@pytest.mark.parametrize(
    "requests",
    [
        ("a = allocate 4096 on s", "begin capture on s", "launch on s writes=a", "free a", "g = end capture on s"),
        ("begin capture on s", "a = allocate 4096 on t", "launch on s writes=a", "free a", "g = end capture on s"),
        ("begin capture on s", "a = allocate 4096 on s", "launch on s writes=a", "g = end capture on s", "free a"),
        ("begin capture on s", "a = allocate 4096 on s", "launch on s writes=a", "free a on t", "g = end capture on s"),
    ],
    ids=["made before", "made outside", "freed afterwards", "freed outside"],
)
def test_only_what_a_capture_made_and_freed_is_its_graphs(script: Script, requests: tuple[str, ...]) -> None:
    script.make(*STREAMS, *requests, "b = allocate 4096 on s")


def test_pinned_memory_is_no_graphs(script: Script) -> None:
    script.make(*STREAMS, "begin capture on s", "a = allocate 4096 pinned on s", "launch on s writes=a", "free a")
    script.make("g = end capture on s", "b = allocate 4096 pinned")


def test_a_later_capture_keeps_nothing_of_an_earlier_ones(script: Script) -> None:
    script.make(*STREAMS, "begin capture on s", "a = allocate 4096 on s", "launch on s writes=a")
    script.make(
        "g = end capture on s", "begin capture on s", "free a", "h = end capture on s", "b = allocate 4096 on s"
    )


def test_memory_of_the_sequences_own_pools_is_theirs(script: Script) -> None:
    script.make(*STREAMS, "p = create pool", "begin capture on s", "a = allocate 4096 on s pool=p")
    script.make("launch on s writes=a", "free a", "g = end capture on s", "b = allocate 4096 on s pool=p")


def test_a_capture_that_went_bad_keeps_nothing(script: Script) -> None:
    script.make(*STREAMS, *CAPTURE)
    assert script("synchronize stream s", refused=CAPTURE_UNSUPPORTED) == []
    script.make("b = allocate 4096 on t")


def test_a_capture_that_somebody_tried_to_end_keeps_nothing(script: Script) -> None:
    script.make("u = create stream nonblocking", *FORK, *CAPTURE[1:])
    assert script("g = end capture on t", refused=ILLEGAL_STATE) == []
    script.make("b = allocate 4096 on u")


def test_a_capture_that_ended_badly_keeps_nothing(script: Script) -> None:
    script.make(*FORK, *CAPTURE[1:], "launch on t")
    assert script("g = end capture on s", refused=CAPTURE_UNJOINED) == []
    script.make("b = allocate 4096 on t")


def test_a_capture_whose_stream_is_destroyed_keeps_nothing(script: Script) -> None:
    script.make(*STREAMS, *CAPTURE, "destroy stream s", "b = allocate 4096 on t")


def test_a_graph_that_may_be_gone_keeps_nothing(script: Script) -> None:
    script.make(*GRAPH, "fail backing 1 with foreign-error")
    assert script("destroy graph g", refused=BACKING_ERROR) == []
    script.make("b = allocate 4096 on t")


def test_captured_work_is_not_compared_with_that_of_a_graph_that_may_be_gone(script: Script) -> None:
    script.make(*GRAPH, "fail backing 1 with foreign-error")
    assert script("destroy graph g", refused=BACKING_ERROR) == []
    script.make("begin capture on t", "b = allocate 4096 on t", "launch on t writes=b")


def test_nor_with_that_of_another_capture(script: Script) -> None:
    script.make(*FORK, "a = allocate 4096 on t", "launch on t writes=a", "free a", *JOIN)
    script.make("b = allocate 4096 on s", "g = end capture on s", "begin capture on s", "launch on s writes=b")


def test_streams_of_a_capture_share_memory_where_they_are_ordered(script: Script) -> None:
    script.make(*FORK, "a = allocate 4096 on t", "launch on t writes=a", "free a", *JOIN)
    script.make("b = allocate 4096 on s", "launch on s writes=b")


def test_streams_of_a_capture_share_no_memory_where_they_are_not(script: Script) -> None:
    script.make(*FORK, "a = allocate 4096 on t", "launch on t writes=a", "free a", "b = allocate 4096 on s")
    assert script("launch on s writes=b") == [ORDER]


def test_who_uses_a_block_beside_its_stream_answers_for_it(script: Script) -> None:
    script.make(*FORK, *CAPTURE[1:], "b = allocate 4096 on s", "launch on t writes=b")


def test_a_user_that_comes_behind_by_itself_is_in_order(script: Script) -> None:
    script.make(*FORK, "a = allocate 4096 on t", "launch on t writes=a", "free a", "b = allocate 4096 on s")
    script.make("launch on t writes=b")


def test_an_allocator_may_order_them_itself(script: Script) -> None:
    script.make(*FORK, "a = allocate 4096 on t", "launch on t writes=a")
    assert script("free a", EventRecorded("internal:1", "t")) == []
    assert script("b = allocate 4096 on s", EventWaited("internal:1", "s")) == []
    script.make("launch on s writes=b")


def test_an_event_that_was_captured_says_nothing_of_what_runs(script: Script) -> None:
    """Its record stands for captured work: to wait for it orders nothing that was launched before."""
    script.make(*STREAMS, "a = allocate 4096 on t", "launch on t writes=a", "begin capture on s")
    assert script("launch on s", EventRecorded("internal:1", "s")) == []
    script.make("g = end capture on s", "free a")
    assert script("b = allocate 4096 on s", EventWaited("internal:1", "s")) == []
    assert script("launch on s writes=b") == [ORDER]


def test_nor_does_it_when_it_is_asked(script: Script) -> None:
    script.make(*STREAMS, "a = allocate 4096 on s", "launch on s writes=a", "begin capture on s", "launch on s")
    assert script("launch on s", EventRecorded("internal:1", "s")) == []
    script.make("g = end capture on s", "free a")
    assert script("b = allocate 4096 on t", EventCompleted("internal:1")) == []
    assert script("launch on t writes=b") == [ORDER]


def test_an_event_that_is_recorded_again_stands_for_what_runs(script: Script) -> None:
    script.make(*STREAMS, "a = allocate 4096 on t", "launch on t writes=a", "begin capture on s")
    assert script("launch on s", EventRecorded("internal:1", "s")) == []
    assert script("g = end capture on s") == []
    assert script("free a", EventRecorded("internal:1", "t")) == []
    assert script("b = allocate 4096 on s", EventWaited("internal:1", "s")) == []
    script.make("launch on s writes=b")


def test_a_library_that_waits_for_a_captured_event_elsewhere_captures_nobody(script: Script) -> None:
    script.make(*STREAMS, "begin capture on s")
    assert script("launch on s", EventRecorded("internal:1", "s")) == []
    assert script("a = allocate 4096 on t", EventWaited("internal:1", "t")) == []
    script.make("launch on t writes=a", "g = end capture on s")


def test_a_captured_event_defers_no_free() -> None:
    script = Script(replace(KEEPS, promises=frozenset({Promise.TRIMS_TO_ZERO})))
    script.make("free z", *STREAMS, "a = allocate 4096 on t", "begin capture on s", "launch on s", "launch on s")
    assert script("free a", EventRecorded("internal:1", "s")) == []
    script.make("g = end capture on s", "destroy graph g", "synchronize device")
    assert script("trim") == ["trim_returns_what_nobody_uses"]


def test_where_no_order_is_told_an_allocator_may_have_captured_some() -> None:
    script = Script(replace(KEEPS, capabilities=KEEPS.capabilities - {Capability.ORDER_LEDGER}))
    script.make(*FORK, "a = allocate 4096 on t", "launch on t writes=a", "free a", "b = allocate 4096 on s")
    script.make("launch on s writes=b")


def test_who_frees_without_order_answers_for_uses_elsewhere() -> None:
    uses = ("a = allocate 4096 on s", "record event e on s", "wait event e on t", "launch on t writes=a", "free a")
    for promises, broken in ((KEEPS.promises, [ORDER]), (frozenset({Promise.KEEPS_GRAPH_MEMORY}), [])):
        script = Script(replace(KEEPS, promises=promises))
        script.make(*FORK, *uses, "b = allocate 4096 on s")
        assert script("launch on s writes=b") == broken


def test_a_launch_is_a_use_of_what_was_captured(script: Script) -> None:
    script.make(*STREAMS, "a = allocate 4096 on s", "launch on s writes=a", "free a", "begin capture on t")
    script.make("b = allocate 4096 on t", "launch on t writes=b", "g = end capture on t")
    assert script("launch graph g on t") == [ORDER]


def test_who_launches_without_order_answers_for_it(script: Script) -> None:
    script.make(*STREAMS, "a = allocate 4096 on s", "launch on s writes=a", "free a", "record event e on s")
    script.make("wait event e on t", "b = allocate 4096 on t", "begin capture on t", "launch on t writes=b")
    script.make("g = end capture on t", "launch graph g")


def test_a_launch_behind_the_earlier_work_is_in_order(script: Script) -> None:
    script.make(*STREAMS, "a = allocate 4096 on s", "launch on s writes=a", "free a", "begin capture on t")
    script.make("b = allocate 4096 on t", "launch on t writes=b", "g = end capture on t")
    script.make("record event e on s", "wait event e on t", "launch graph g on t")

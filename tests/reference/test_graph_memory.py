"""What the reference's captures allocate and free: their own while they go on, their graph's afterwards."""

from __future__ import annotations

import pytest

from .bench import Bench

FORK = ("begin capture on s", "record event e on s", "wait event e on t")
JOIN = ("record event e on t", "wait event e on s")


@pytest.fixture
def captured(bench: Bench) -> Bench:
    bench.make("s = create stream nonblocking", "t = create stream nonblocking", "e = create event")
    return bench


def test_a_capture_has_its_memory_again_on_the_same_stream(captured: Bench) -> None:
    captured.make("begin capture on s", "a = allocate 2MiB on s", "launch on s writes=a", "free a")
    captured.make("b = allocate 2MiB on s")
    assert captured.reserved == 2 << 20


def test_what_one_capture_made_may_be_used_and_freed_in_another(captured: Bench) -> None:
    captured.make(*FORK, "a = allocate 2MiB on s", "launch on t writes=a", "free a", *JOIN)
    captured.make("record event e on t", "wait event e on s", "b = allocate 2MiB on s", "g = end capture on s")
    captured.make("begin capture on t", "launch on t writes=b", "free b", "h = end capture on t")
    assert captured.reserved == 2 << 20


def test_another_stream_of_it_has_that_once_it_is_ordered(captured: Bench) -> None:
    captured.make(*FORK, "a = allocate 2MiB on t", "launch on t writes=a", "free a", "b = allocate 2MiB on s")
    assert captured.reserved == 4 << 20
    captured.make(*JOIN, "c = allocate 2MiB on s")
    assert captured.reserved == 4 << 20


def test_who_comes_third_is_behind_the_first(captured: Bench) -> None:
    captured.make(*FORK, "a = allocate 2MiB on t", "launch on t writes=a", "free a", *JOIN)
    captured.make("b = allocate 2MiB on s", "free b", "c = allocate 2MiB on t", "free c")
    captured.make("launch on s", "d = allocate 2MiB on s")
    assert captured.reserved == 2 << 20


def test_it_serves_no_request_of_another_alignment(captured: Bench) -> None:
    captured.make("begin capture on s", "z = allocate 2MiB on s", "a = allocate 2MiB on s", "launch on s writes=a")
    captured.make("free a", "b = allocate 2MiB on s align=4MiB", "c = allocate 2MiB on s align=4MiB")
    assert captured.reserved == 8 << 20


def test_the_graph_keeps_it(captured: Bench) -> None:
    captured.make("begin capture on s", "a = allocate 2MiB on s", "launch on s writes=a", "free a")
    captured.make("g = end capture on s", "b = allocate 2MiB on s", "trim")
    assert captured.reserved == 4 << 20
    captured.make("destroy graph g", "trim")
    assert captured.reserved == 2 << 20


def test_what_the_graph_does_not_use_is_anybodys(captured: Bench) -> None:
    captured.make("begin capture on s", "a = allocate 2MiB on s", "free a", "g = end capture on s")
    captured.make("b = allocate 2MiB on s")
    assert captured.reserved == 2 << 20


def test_the_graph_keeps_what_was_owned_again_when_it_was_captured(captured: Bench) -> None:
    captured.make("begin capture on s", "a = allocate 2MiB on s", "launch on s writes=a", "free a")
    captured.make("b = allocate 2MiB on s", "g = end capture on s", "free b", "c = allocate 2MiB on s", "trim")
    assert captured.reserved == 4 << 20
    captured.make("destroy graph g", "free c", "trim")
    assert captured.reserved == 0


def test_a_graph_that_runs_holds_its_memory_up(captured: Bench) -> None:
    captured.make("begin capture on s", "a = allocate 2MiB on s", "launch on s writes=a", "free a")
    captured.make("b = allocate 2MiB on s", "launch on s writes=b", "free b", "g = end capture on s", "stall t")
    captured.make("launch graph g on t", "destroy graph g", "trim")
    assert captured.reserved == 2 << 20
    captured.make("release t", "synchronize stream t", "trim")
    assert captured.reserved == 0


def test_a_pool_that_is_gone_takes_nothing_back(captured: Bench) -> None:
    captured.make("p = create pool", "begin capture on s", "a = allocate 2MiB on s pool=p", "launch on s writes=a")
    captured.make("free a", "g = end capture on s", "destroy pool p", "destroy graph g", "trim")
    assert captured.reserved == 0

"""Readings of several meters."""

from __future__ import annotations

import pytest

from quiesce.leaks.meters.memory import BLOCKS, PythonMeter
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, DESCRIPTORS, PYTHON, THREADS
from quiesce.leaks.readings import Readings

from .meters import ToldMeter


def test_a_meter_is_settled_before_it_is_read() -> None:
    meter = ToldMeter(lambda: 1)
    readings = Readings([meter], Plan())
    readings.start_over()
    readings.take()
    assert meter.calls == ["settle", "read"] * 2
    assert list(readings.values(meter.quantity)) == [1]


def test_only_what_moves_is_suspected() -> None:
    numbers = iter(range(100))
    rising, still = ToldMeter(lambda: next(numbers)), ToldMeter(lambda: 7, THREADS)
    readings = Readings([rising, still], Plan())
    for _ in range(3):
        readings.take()
    assert readings.moving(2) == [rising.quantity]
    assert readings.grown(rising.quantity) == 2
    assert readings.leaks(rising.quantity)
    assert not readings.leaks(still.quantity)


@pytest.mark.long
def test_what_is_taken_within_is_not_counted() -> None:
    held = [5]
    meter = ToldMeter(lambda: held[0])
    readings = Readings([meter], Plan())
    readings.take()
    with readings.uncounted():
        held[0] += 7
    readings.take()
    held[0] += 1
    readings.take()
    assert list(readings.values(meter.quantity)) == [5, 5, 6]


def test_to_leave_out_nothing_changes_no_reading() -> None:
    readings = Readings([PythonMeter()], Plan())
    readings.start_over()
    for _ in range(5):
        with readings.uncounted():
            pass
        readings.take()
    assert len(set(readings.values(BLOCKS)[1:])) == 1


def test_a_limit_counts_for_bytes_only() -> None:
    things, size = ToldMeter(lambda: 0), ToldMeter(lambda: 0, PYTHON, "bytes")
    readings = Readings([things, size], Plan(limit_bytes=100))
    assert (readings.allowed(things.quantity), readings.allowed(size.quantity)) == (0, 100)


def test_a_meter_that_fails_is_left_out_and_says_why() -> None:
    def fail() -> int:
        raise RuntimeError("the device is gone")

    meter = ToldMeter(fail)
    readings = Readings([meter], Plan())
    readings.take()
    readings.take()
    assert meter.calls.count("read") == 1
    assert readings.absent() == ((DESCRIPTORS, "it cannot be read: RuntimeError: the device is gone"),)
    assert readings.moving(2) == []


def test_what_nobody_asked_for_is_neither_read_nor_missed() -> None:
    heap = ToldMeter(lambda: 1, C_HEAP, "bytes", why_absent="not here")
    threads = ToldMeter(lambda: 1, THREADS)
    readings = Readings([heap, threads], Plan(gauges=(DESCRIPTORS,)))
    readings.take()
    assert threads.calls == []
    assert readings.absent() == ()


def test_from_then_on_only_the_watched_are_read() -> None:
    watched, other = ToldMeter(lambda: 1), ToldMeter(lambda: 1, THREADS)
    readings = Readings([watched, other], Plan())
    readings.watch(frozenset({DESCRIPTORS}))
    readings.take()
    assert watched.calls == ["observe", "settle", "read"]
    assert other.calls == []

"""What is left once everything is let go: what is just closing gets time, what is kept is told at once."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import pytest

from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, DESCRIPTORS, DEVICE, PROCESSES, PYTHON, TASKS, THREADS, Quantity
from quiesce.leaks.readings import Readings
from quiesce.leaks.stages.settling import BoundedCaches, OldObjects
from quiesce.leaks.stages.windows import ENDING_SECONDS, ENDING_STEPS, LettingGo
from quiesce.leaks.system_calls import SystemCalls

from .meters import ToldMeter

CLOSING = (DESCRIPTORS, THREADS, TASKS, PROCESSES)
"""What the system or an event loop takes a moment to end."""
GROWN = [0, 10, 20]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note how long each wait is, in place of waiting."""
    noted: list[float] = []
    monkeypatch.setattr(SystemCalls, "sleep", noted.append)
    return noted


def left_of(later: dict[str, Sequence[int]]) -> list[str]:
    """Return the families that are left of those which grew, where each reads ``later`` from then on."""

    def meter(family: str, values: Sequence[int]) -> ToldMeter:
        told: Iterator[int] = iter([*GROWN, *values])
        return ToldMeter(lambda: next(told), family)

    meters = [meter(family, values) for family, values in later.items()]
    readings = Readings(meters, Plan(), collect=lambda: None)
    for _ in GROWN:
        readings.take()
    left = LettingGo(OldObjects(), readings).still_there([meter.quantity for meter in meters], BoundedCaches())
    return [quantity.family for quantity in left]


@pytest.mark.parametrize("family", CLOSING)
def test_what_is_just_closing_gets_time_to_be_gone(family: str, waits: list[float]) -> None:
    assert left_of({family: [20, 20, 0]}) == []
    assert waits == [ENDING_SECONDS] * 2


@pytest.mark.parametrize("family", CLOSING)
def test_what_does_not_close_in_time_is_left(family: str, waits: list[float]) -> None:
    assert left_of({family: [20] * ENDING_STEPS}) == [family]
    assert waits == [ENDING_SECONDS] * (ENDING_STEPS - 1)


@pytest.mark.parametrize("family", [PYTHON, C_HEAP, DEVICE])
def test_nobody_waits_for_memory(family: str, waits: list[float]) -> None:
    assert left_of({family: [20]}) == [family]
    assert waits == []


def test_nobody_waits_once_only_memory_is_left(waits: list[float]) -> None:
    assert left_of({PYTHON: [20, 20], THREADS: [20, 0]}) == [PYTHON]
    assert len(waits) == 1


@pytest.mark.parametrize(("last", "is_left"), [(11, True), (10, False), (9, False)])
def test_what_has_lost_half_of_its_growth_is_gone(last: int, is_left: bool, waits: list[float]) -> None:
    assert left_of({PYTHON: [last]}) == [PYTHON] * is_left


def test_what_can_no_longer_be_read_is_left() -> None:
    told = iter(GROWN)
    meter = ToldMeter(lambda: next(told), PYTHON)  # then it raises
    readings = Readings([meter], Plan(), collect=lambda: None)
    for _ in GROWN:
        readings.take()
    left = LettingGo(OldObjects(), readings).still_there([meter.quantity], BoundedCaches())
    assert left == [meter.quantity]


def test_what_a_bounded_cache_took_is_let_go() -> None:
    @functools.lru_cache(maxsize=8)
    def kept(key: int) -> object:
        return object()

    kept(1)
    before = BoundedCaches()
    kept(2)
    letting_go = LettingGo(OldObjects(), Readings([], Plan()))
    letting_go.let_go(BoundedCaches())
    assert kept.cache_info().currsize == 2, "it has not grown since then, so it may hold what there must be one of"
    letting_go.let_go(before)
    assert kept.cache_info().currsize == 0


def test_nothing_grew_and_nothing_is_waited_for(waits: list[float]) -> None:
    growing: list[Quantity] = []
    readings = Readings([], Plan())
    assert LettingGo(OldObjects(), readings).still_there(growing, BoundedCaches()) == []
    assert waits == []

"""Lists that are known by where they are."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Iterator
from typing import Any

import pytest

from quiesce.leaks.meters.lists import BATCH, GONE_MAX, ListPlaces, unbounded

pytestmark = pytest.mark.skipif(not ListPlaces().can, reason="this system or interpreter has no such reading")

OLD: list[Any] = [None] * 10
OLD_DEQUE: deque[Any] = deque([None] * 10)


@pytest.fixture(autouse=True)
def _no_collection_meanwhile() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Holder:
    """What has a list."""

    def __init__(self, length: int) -> None:
        self.held = [None] * length


def found() -> ListPlaces:
    places = ListPlaces()
    places.find()
    return places


@pytest.mark.parametrize("held", [OLD, OLD_DEQUE], ids=["list", "deque"])
def test_a_list_that_is_longer_is_seen(held: list[Any]) -> None:
    places = found()
    before = places.total()
    held.append(None)
    assert places.total() - before == 1
    held.pop()
    assert places.total() == before


def test_a_list_that_is_gone_counts_no_more_and_nothing_holds_it() -> None:
    first, second = Holder(1000), Holder(100)
    places = found()
    before = places.total()
    first.held = []
    assert before - places.total() == 1000
    assert places.knows(second.held)
    second.held.clear()
    assert before - places.total() == 1100


def test_lists_that_change_by_as_much_as_others_and_come_and_go_are_added_up() -> None:
    places = ListPlaces()
    shorter, longer = [None] * 9, [None] * 4
    places.keep([shorter, longer])
    assert (places.total(), places.total()) == (13, 13)
    shorter.clear()
    assert (places.total(), places.total()) == (4, 4)
    longer.extend([None] * 9)
    assert places.total() == 13
    del shorter
    assert (places.total(), places.total()) == (13, 13)


def test_a_place_that_was_given_back_is_a_new_list_s_own() -> None:
    places = ListPlaces()
    held = [[None] * 3 for _ in range(50)]
    places.keep(held)
    assert places.total() == 150
    held.clear()
    assert places.total() == 0
    again = [[None] * 7 for _ in range(50)]
    assert not any(places.knows(each) for each in again)
    places.keep(again)
    assert places.total() == 350


def test_many_that_are_gone_are_forgotten() -> None:
    places = ListPlaces()
    stays = [None] * 5
    held = [[None] for _ in range(GONE_MAX + BATCH)]
    places.keep([stays, *held])
    held.clear()
    assert places.total() == 5
    places.keep(())
    assert places.total() == 5


def test_memory_that_is_given_back_to_the_system_is_no_list() -> None:
    places = ListPlaces()
    places._put(*(type(places._kinds)("Q", [value]) for value in (1 << 20, id(list))))  # below the first mapping
    places.keep([OLD])
    assert places.total() == len(OLD)


def test_what_is_young_is_added_and_what_is_older_stays_known() -> None:
    places = found()
    places.keep(())
    young = [None] * 321
    assert not places.knows(young)
    places.find()
    assert places.knows(young)
    assert places.knows(OLD)


def test_after_a_collection_of_others_everything_is_found_anew() -> None:
    places = found()
    places.keep(())
    made_old = [None] * 321
    gc.collect()
    places.find()
    assert places.knows(made_old)


def test_what_is_lost_is_found_anew() -> None:
    places = found()
    places.keep(())
    places.lose()
    places.find()
    assert places.knows(OLD)


def test_lists_of_what_runs_the_tests_are_left_out() -> None:
    runner, tested = Holder(10), Holder(20)
    places = ListPlaces()
    places.leave_out([runner])
    places.keep([runner.held, tested.held])
    assert places.total() == 20


def test_a_ring_has_a_bound() -> None:
    ring: deque[Any] = deque(maxlen=3)
    assert unbounded([ring, OLD, (), OLD_DEQUE]) == (OLD, OLD_DEQUE)

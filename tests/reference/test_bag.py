from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.allocators.indexes import Bag


@given(st.lists(st.integers(0, 9)))
def test_a_bag_holds_what_was_added_and_not_removed(choices: list[int]) -> None:
    bag: Bag[int] = Bag()
    model: set[int] = set()
    for thing in choices:
        (bag.remove if thing in model else bag.add)(thing + 10**20)  # equal numbers, not identical objects
        model ^= {thing}
        assert sorted(bag.things) == sorted(thing + 10**20 for thing in model)


def test_the_newest_is_last_until_something_was_removed() -> None:
    bag: Bag[str] = Bag()
    for thing in "abc":
        bag.add(thing)
    assert bag.things == ["a", "b", "c"]
    bag.remove("a")
    assert bag.things == ["c", "b"]


def test_what_is_not_there_cannot_be_removed() -> None:
    with pytest.raises(KeyError):
        Bag[int]().remove(1)

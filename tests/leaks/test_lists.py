"""The meter of the references in lists, and the watch for the line that adds them."""

from __future__ import annotations

import sys
from collections import deque
from pathlib import Path
from typing import Any

import pytest

from quiesce.leaks.explaining.lines import ROUNDS, longer_lists
from quiesce.leaks.meters.lists import IN_LISTS, REFERENCE_BYTES, ListMeter, Lists
from quiesce.leaks.owners import Owners
from quiesce.leaks.stages.settling import OldObjects

OLD: list[Any] = [None] * 1000
OLD_DEQUE: deque[Any] = deque([None] * 1000)
HERE = Owners([])


@pytest.mark.parametrize("is_frozen", [False, True])
@pytest.mark.parametrize("held", [OLD, OLD_DEQUE], ids=["list", "deque"])
def test_a_reference_that_takes_no_block_counts(held: list[Any], is_frozen: bool) -> None:
    old = OldObjects()
    if is_frozen:
        old.freeze()
    try:
        meter = ListMeter(old.lists)
        before = meter.read()[IN_LISTS]
        held.append(None)
        assert meter.read()[IN_LISTS] - before == REFERENCE_BYTES
        held.pop()
        assert meter.read()[IN_LISTS] == before
    finally:
        old.thaw()


def test_a_list_that_is_new_counts_beside_those_that_are_hidden() -> None:
    old = OldObjects()
    old.freeze()
    try:
        before = old.lists.held_bytes()
        new = [None] * 100
        assert old.lists.held_bytes() - before == 100 * REFERENCE_BYTES
        del new
        assert old.lists.held_bytes() == before
    finally:
        old.thaw()


def test_a_ring_has_a_bound_and_does_not_count() -> None:
    ring: deque[Any] = deque(maxlen=1000)
    lists = Lists()
    before = lists.held_bytes()
    ring.extend([None] * 100)
    assert lists.held_bytes() == before


def test_nothing_is_held_on_to_once_it_is_forgotten() -> None:
    held: list[Any] = []
    old = OldObjects()
    old.freeze()
    references = sys.getrefcount(held)
    old.thaw()
    old.lists.forget()
    assert sys.getrefcount(held) == references - 1


def test_a_list_that_nobody_else_has_is_let_go_of() -> None:
    inner: list[Any] = [None] * 100
    outer = [inner]
    old = OldObjects()
    old.freeze()
    try:
        old.collect()
        before = old.lists.held_bytes()
        inner = []
        old.collect()
        assert old.lists.held_bytes() == before
        outer.clear()
        old.collect()
        assert old.lists.held_bytes() == before - 101 * REFERENCE_BYTES
        assert inner == outer
    finally:
        old.thaw()
        old.lists.forget()


def test_what_is_hidden_no_more_counts_once() -> None:
    old = OldObjects()
    old.freeze()
    before = old.lists.held_bytes()
    old.thaw()
    assert old.lists.held_bytes() == before


def test_what_has_grown_is_known() -> None:
    lists = Lists()
    lists.remember()
    OLD.append(None)
    assert any(each is OLD for each in lists.grown())
    assert not any(each is OLD_DEQUE for each in lists.grown())
    OLD.pop()
    lists.forget()
    assert lists.grown() == ()


def longer(held: list[Any]) -> None:
    held.append(None)  # here


def fail() -> None:
    raise ZeroDivisionError


def up_and_down(held: list[Any]) -> None:
    held.append(None)
    held.pop()


def test_the_line_that_makes_a_list_longer_is_named() -> None:
    (site,) = longer_lists(HERE, [OLD], lambda: longer(OLD))
    assert site.frame[0] == __file__
    assert Path(__file__).read_text(encoding="utf-8").splitlines()[site.frame[1] - 1].endswith("# here")
    assert site.bytes_per_round == REFERENCE_BYTES


def test_a_list_that_is_as_long_as_before_names_no_line() -> None:
    assert longer_lists(HERE, [OLD, OLD_DEQUE], lambda: up_and_down(OLD)) == []


def test_what_runs_the_tests_keeps_its_own_lists() -> None:
    assert longer_lists(Owners([str(Path(__file__).parent)]), [OLD], lambda: longer(OLD)) == []


def test_a_tracer_that_is_there_comes_back() -> None:
    def tracer(_frame: object, _event: str, _argument: object) -> None:
        return None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        with pytest.raises(ZeroDivisionError):
            longer_lists(HERE, [OLD], fail)
        found = sys.gettrace()
    finally:
        sys.settrace(before)
    assert found is tracer


def test_each_round_is_watched() -> None:
    rounds: deque[int] = deque(maxlen=2 * ROUNDS)
    longer_lists(HERE, [OLD], lambda: rounds.append(1))
    assert len(rounds) == ROUNDS

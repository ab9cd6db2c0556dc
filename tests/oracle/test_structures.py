"""The oracle's data structures against naive models."""

from __future__ import annotations

from fractions import Fraction
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.allocators.indexes import IntervalIndex
from quiesce.allocators.oracle.clocks import HappensBefore
from quiesce.allocators.oracle.growth import grows_as_expected, slope


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(1, 40), st.booleans()), max_size=120))
def test_the_index_finds_what_a_scan_finds(steps: list[tuple[int, int, bool]]) -> None:
    index: IntervalIndex[int] = IntervalIndex()
    naive: dict[int, tuple[int, int]] = {}
    for number, (start, length, add) in enumerate(steps):
        end = start + length
        hit = sorted((s, e, v) for s, (e, v) in naive.items() if s < end and start < e)
        assert index.overlapping(start, end) == hit
        if add and not hit:
            index.add(start, end, number)
            naive[start] = (end, number)
        elif hit:
            assert index.remove(hit[0][0]) == hit[0][2]
            del naive[hit[0][0]]
    assert list(index) == sorted((s, e, v) for s, (e, v) in naive.items())
    assert len(index) == len(naive)


def test_the_index_keeps_its_order_over_many_buckets() -> None:
    index: IntervalIndex[int] = IntervalIndex()
    starts = [(number * 7919) % 5003 * 10 for number in range(5003)]
    for start in starts:
        index.add(start, start + 10, start)
    assert [start for start, _, _ in index] == sorted(starts)
    for start in starts[::2]:
        assert index.remove(start) == start
    assert [start for start, _, _ in index] == sorted(starts[1::2])


def test_a_cut_keeps_what_lies_outside() -> None:
    index: IntervalIndex[str] = IntervalIndex()
    index.add(0, 10, "a")
    index.add(10, 20, "b")
    index.add(30, 40, "c")
    assert index.cut(5, 35) == ["a", "b", "c"]
    assert list(index) == [(0, 5, "a"), (35, 40, "c")]


def test_an_event_orders_one_stream_behind_another() -> None:
    order = HappensBefore(legacy_default_stream=False)
    s, t = order.new_stream("s", 0), order.new_stream("t", 0)
    order.enqueue(s)
    recorded = order.snapshot(s)
    assert not order.is_ordered(recorded, t)
    order.join(t, recorded)
    assert order.is_ordered(recorded, t)
    assert not order.is_ordered(recorded, None)
    order.complete(recorded)
    assert order.is_ordered(recorded, None)


def test_a_stall_holds_what_comes_after_it_until_it_ends() -> None:
    order = HappensBefore(legacy_default_stream=False)
    s, t = order.new_stream("s", 0), order.new_stream("t", 0)
    order.enqueue(s)
    before = order.snapshot(s)
    order.stall(s)
    order.enqueue(s)
    behind = order.snapshot(s)
    assert order.certainly_pending(before) is None
    assert order.certainly_pending(behind) is s
    order.join(t, behind)
    order.enqueue(t)
    assert order.certainly_pending(order.snapshot(t)) is s
    order.release(s)
    assert order.certainly_pending(behind) is None


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], Fraction(0)),
        ([5], Fraction(0)),
        ([0, 3, 6, 9], Fraction(3)),
        ([9, 5, 5, 5, 5, 5, 5], Fraction(0)),
        ([0, 0, 0, 0, 100, 100, 100, 100, 100, 100, 100, 100], Fraction(0)),
    ],
)
def test_the_slope_is_the_median_of_all_pairs(values: list[int], expected: Fraction) -> None:
    assert slope(values) == expected


def test_growth_of_one_unit_in_two_iterations_is_growth() -> None:
    assert not grows_as_expected([number // 2 for number in range(40)], 0, cumulative=False)
    assert grows_as_expected([7] * 40, 0, cumulative=False)
    assert grows_as_expected([3 * number for number in range(40)], 3, cumulative=False)


def test_cumulative_gauges_are_judged_on_what_each_iteration_adds() -> None:
    assert grows_as_expected([100 * number for number in range(40)], 0, cumulative=True)
    assert not grows_as_expected([100 * number + number * number for number in range(400)], 0, cumulative=True)


@pytest.mark.parametrize(("adds_per_iteration", "is_flat"), [(0, True), (95, False)])
def test_a_table_that_doubles_now_and_then_hides_no_growing_work(adds_per_iteration: int, is_flat: bool) -> None:
    """What burn-autodiff 0.15 showed: a leap in the second quarter was higher than all of the third."""
    leaps = {11: 1_500, 37: 3_300, 88: 6_900}
    work = [14_000 + adds_per_iteration * number + leaps.get(number, 0) for number in range(89)]
    assert grows_as_expected(list(accumulate(work)), 0, cumulative=True) is is_flat

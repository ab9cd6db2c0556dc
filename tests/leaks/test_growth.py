"""What readings say."""

from __future__ import annotations

import pytest

from quiesce.leaks.readings import (
    at_rest,
    doubles,
    fell,
    growth_per_round,
    is_leak,
    lows_rise,
    measured_from,
    never_came_back,
    rises_often,
    usual_step,
)

LEAK = [10 * number for number in range(30)]
EVERY_OTHER = [number // 2 for number in range(30)]
WARM_UP = [10 * min(number, 8) for number in range(30)]
SAW_TOOTH = [10 * (number % 8) for number in range(30)]
STEP = [0] * 15 + [500] * 15


def test_rest_is_what_no_longer_moves() -> None:
    assert at_rest([0, 50, 50, 50], 2, 0)
    assert not at_rest([0, 50, 50, 51], 2, 0)
    assert not at_rest([0, 50, 50, 49], 2, 0)
    assert at_rest([0, 50, 50, 58], 2, 4)
    assert not at_rest([0, 50, 50, 59], 2, 4)


def test_too_few_readings_are_never_at_rest() -> None:
    assert not at_rest([7, 7], 2, 0)
    assert at_rest([7, 7, 7], 2, 0)


def test_what_leaks_every_other_round_is_never_at_rest_over_two() -> None:
    assert not any(at_rest(EVERY_OTHER[: end + 1], 2, 0) for end in range(len(EVERY_OTHER)))


def test_growth_is_not_moved_by_warm_up_nor_by_a_few_odd_readings() -> None:
    assert growth_per_round(LEAK) == 10
    assert growth_per_round([number + 1000 * (number > 3) for number in range(30)]) == 1
    odd = list(LEAK)
    odd[20] = 10_000
    assert growth_per_round(odd) == 10
    assert growth_per_round([5]) == 0


def test_leaks_are_told_from_what_only_looks_like_them() -> None:
    assert is_leak(LEAK, 0)
    assert is_leak(EVERY_OTHER, 0)
    assert is_leak([number + (number * 7) % 5 for number in range(60)], 0)
    for innocent in (WARM_UP, SAW_TOOTH, STEP, LEAK[::-1], [3] * 30):
        assert not is_leak(innocent, 0)


def test_a_leak_beside_nothing_never_fell() -> None:
    assert not any(fell(values) for values in (LEAK, EVERY_OTHER, STEP, []))
    assert fell([*LEAK, LEAK[-1] - 1])


def test_what_is_allowed_is_no_leak() -> None:
    assert is_leak(LEAK, 9)
    assert not is_leak(LEAK, 10)


def test_each_rule_has_its_own_innocents() -> None:
    assert not lows_rise(STEP)
    assert never_came_back(STEP, 0)
    assert not never_came_back(SAW_TOOTH, 0)
    assert rises_often(EVERY_OTHER)
    assert not rises_often([number // 8 for number in range(64)])


def test_rises_are_counted_from_three_of_eight_on() -> None:
    assert rises_often([0, 1, 1, 1, 2, 2, 2, 3, 3])
    assert not rises_often([0, 1, 1, 1, 2, 2, 2, 2, 2])
    assert not rises_often([0, 1, 2, 3, 4, 4, 4, 4, 4, 4, 4, 4]), "four of eleven are less"
    assert rises_often([0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5, 5])


def test_a_table_doubles_and_what_grows_in_place_does_not() -> None:
    table = [0] * 4 + [568] * 11 + [1104] * 9
    assert is_leak(table, 0)
    assert doubles(table)
    assert doubles([100, 100, 668, 668, 1204])
    assert not doubles([0, 9000, 9000, 10_100, 10_100])
    assert not doubles([100, 200, 300])
    assert not doubles([0, 0, 568, 568])
    assert not doubles([568, 568, 0])


def test_growth_is_measured_behind_the_first_third_of_what_is_long() -> None:
    assert [measured_from([0] * length) for length in (1, 6, 7, 64, 256)] == [0, 0, 2, 21, 85]
    steep_at_first = [100 * number for number in range(10)] + [1000 + number for number in range(20)]
    assert growth_per_round(steep_at_first) == 1


@pytest.mark.parametrize(
    ("values", "window", "rests"),
    [([0, 8] * 4, 7, True), ([0, 3, 5] * 4, 11, True), ([0, 8, 0, 8, 0, 9], 5, False), ([0, 1, 2, 3, 4, 5], 5, False)],
)
def test_what_repeats_exactly_three_times_is_at_rest(values: list[int], window: int, rests: bool) -> None:
    assert at_rest(values, window, 0) == rests


def test_the_usual_step_is_that_of_each_pair_of_rounds_and_no_growth_of_a_container() -> None:
    steps = [10 * number + 500 * (number // 12) for number in range(48)]
    assert [usual_step(values).per_round for values in (LEAK, EVERY_OTHER, steps, STEP, [1])] == [10, 0.5, 10, 0, 0]
    assert usual_step(steps).error == 0
    assert usual_step([number**2 for number in range(48)]).error > 1

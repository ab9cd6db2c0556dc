"""What scripted readings and bounds decide: no run, no clock."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from quiesce.leaks.evidence import (
    IRREGULAR_RUNS,
    LEVERS,
    REACH,
    REMOVES_RUNS,
    WINDOW,
    Decision,
    Holds,
    Keeper,
    Pace,
    State,
    Step,
    decide,
    pace_of,
)
from quiesce.leaks.quantities import C_HEAP, DESCRIPTORS, PYTHON, Quantity

BLOCKS = Quantity(PYTHON, "blocks", "blocks")
HEAP = Quantity(C_HEAP, "the C heap")
OPEN = Quantity(DESCRIPTORS, "descriptors", "descriptors")

LIST = Keeper("a list", Holds.SEQUENCE, 24, 1.0)
TABLE = Keeper("a table", Holds.KEYED, 24, 1.0)


def runs_read(windows: int = len(LEVERS) + 1) -> list[int]:
    """Return the numbers of the runs that are read."""
    runs: list[int] = []
    start = 1
    for lever in (*LEVERS, LEVERS[-1], LEVERS[-1])[:windows]:
        runs += range(start, start + WINDOW)
        start += WINDOW + lever
    return runs


def pace(state: Callable[[int], int], windows: int = len(LEVERS) + 1, allowed: int = 0, **options: bool) -> Pace:
    runs = runs_read(windows)
    return pace_of(runs, [state(run) for run in runs], allowed, **options)


def decisions(
    state: Callable[[int], int], keepers: Callable[[int], list[Keeper]], quantity: Quantity = BLOCKS, least: int = 0
) -> Iterator[tuple[int, Decision]]:
    """Yield what is decided after each window, until there is an end."""
    for windows in range(2, len(LEVERS) + 3):
        runs = runs_read(windows)
        paces = {quantity: pace(state, windows, sways=quantity == HEAP)}
        found = decide(paces, None, runs[-1], least=least)
        if found.step is Step.LOOK:
            found = decide(paces, keepers(runs[-1]), runs[-1], least=least)
        yield runs[-1], found
        if found.step in (Step.END, Step.UNDECIDED):
            return


def verdict(
    state: Callable[[int], int], *keepers: Keeper, quantity: Quantity = BLOCKS, least: int = 0
) -> tuple[int, bool, str]:
    """Return after how many runs it is decided, whether it leaks, and why not."""

    def grown(run: int) -> list[Keeper]:
        return [replace(each, size=run) for each in keepers]  # each has gained an entry in each run

    *_, (runs, found) = decisions(state, grown, quantity, least)
    return runs, bool(found.leaks), found.reason


def by_chance(chance: float, seed: int = 3) -> Callable[[int], int]:
    draw = random.Random(seed)
    heights = [0]
    for _ in range(REMOVES_RUNS + WINDOW):
        heights.append(heights[-1] + (draw.random() < chance))
    return heights.__getitem__


def filled(keys: int, seed: int = 5) -> Callable[[int], int]:
    """Return how full a table is that is filled with keys by chance."""
    draw, seen, heights = random.Random(seed), set[int](), [0]
    for _ in range(REMOVES_RUNS + WINDOW):
        seen.add(draw.randrange(keys))
        heights.append(len(seen))
    return heights.__getitem__


def test_windows_end_where_the_table_says() -> None:
    assert runs_read()[WINDOW - 1 :: WINDOW] == [8, 24, 48, 88, 160, 296, REACH]


@pytest.mark.parametrize(
    ("state", "windows", "expected"),
    [
        (lambda _: 7, 2, State.REST),
        (lambda run: min(run, 9), 3, State.REST),
        (lambda run: run % 2 * 8, 2, State.REST),
        (lambda run: 3 * run, 2, State.EXACT),
        (lambda run: run // 2, 2, State.EXACT),
        (lambda run: run // 8, 2, State.EXACT),
        (lambda run: run + 500 * (run > 4), 3, State.EXACT),
        (lambda run: run // 3, 4, State.REGULAR),
        (lambda run: run // 20, 6, State.REGULAR),
        (lambda run: run % 50, 5, State.RETURNS),
        (by_chance(1 / 2), 7, State.LINEAR),
        (filled(256), 6, State.SLOWS),
        (filled(100), 5, State.SLOWS),
        (lambda run: 100 * (run > 300), 7, State.OPEN),
    ],
)
def test_readings_have_their_state(state: Callable[[int], int], windows: int, expected: State) -> None:
    assert pace(state, windows).state is expected


def test_what_the_check_itself_keeps_between_windows_hides_no_exact_growth() -> None:
    assert pace(lambda run: 3 * run + 12 * (run > WINDOW) + 5 * (run > 100)) == Pace(State.EXACT, 3)
    assert pace(lambda run: 3 * run + (run > WINDOW), windows=2) == Pace(State.EXACT, 3)
    less = [*range(8), *range(12, 20)]  # between the windows are nine steps, which do not all grow by one
    assert pace_of(runs_read(2), less, 0).state is not State.EXACT


@pytest.mark.parametrize("period", [2, 4, 8])
def test_what_rises_and_falls_in_each_window_rests_beside_a_few_blocks_more(period: int) -> None:
    assert pace(lambda run: run % period * 100 + run // 90).state is State.REST
    assert pace(lambda run: run % period * 100 + run).state is not State.REST


@pytest.mark.parametrize("period", [5, 11, 16, 90])
def test_no_saw_tooth_that_falls_by_more_than_it_rises_is_accused(period: int) -> None:
    """Windows and levers are multiples of eight, as periods may be: then the last window may always be a peak."""
    for begun in range(period):
        teeth = [(run + begun) % period * 8 for run in runs_read()]
        assert pace_of(runs_read(), teeth, 0).state in (State.REST, State.RETURNS, State.SLOWS)
    assert pace(lambda run: run % 16 * 4 + run).state is State.LINEAR


def test_what_grows_ever_faster_is_told() -> None:
    assert pace(lambda run: run * run).state is State.LINEAR
    assert pace(lambda run: int(40 * 1.02**run)).state is State.LINEAR


def test_growth_per_run_is_exact_or_the_median_of_slopes() -> None:
    assert pace(lambda run: 3 * run, 2) == Pace(State.EXACT, 3.0)
    assert pace(lambda run: run // 4, 2).per_run == 1 / 4
    assert pace(by_chance(1 / 2)).per_run == pytest.approx(1 / 2, rel=0.1)


def test_what_is_allowed_is_a_rest() -> None:
    assert pace(lambda run: 3 * run, 2, allowed=3).state is State.REST
    assert pace(lambda run: 3 * run, 2, allowed=2).state is State.EXACT


@pytest.mark.parametrize("seed", range(20))
def test_no_table_of_few_keys_is_accused_at_any_window(seed: int) -> None:
    for keys in (64, 100, 256):
        assert verdict(filled(keys, seed), TABLE)[1] is False


@pytest.mark.parametrize("seed", range(20))
def test_a_leak_of_every_other_run_by_chance_is_told(seed: int) -> None:
    assert verdict(by_chance(1 / 2, seed), TABLE)[1]


@pytest.mark.parametrize(
    ("keeper", "quantity", "runs"),
    [(LIST, BLOCKS, 24), (TABLE, BLOCKS, 160), (LIST, OPEN, 88), (TABLE, OPEN, 160)],
    ids=["list", "table", "descriptors in a list", "descriptors in a table"],
)
def test_what_keeps_it_says_how_many_runs_are_needed(keeper: Keeper, quantity: Quantity, runs: int) -> None:
    assert verdict(lambda run: run, keeper, quantity=quantity) == (runs, True, "")


def test_what_nobody_keeps_needs_as_many_as_a_table() -> None:
    assert verdict(lambda run: run) == (160, True, "")


@pytest.mark.parametrize("bound", [40, 128, 500])
def test_a_bound_that_can_be_reached_is_reached(bound: int) -> None:
    guarded = Keeper("POOL", Holds.SEQUENCE, 0, 1.0, most=bound, place="pool.py:8", is_guarded=True)
    assert verdict(lambda run: min(run, bound), guarded)[1:] == (False, "")
    runs, leaks, _ = verdict(lambda run: run, guarded)
    assert leaks
    assert runs > bound


def test_a_bound_that_cannot_be_reached_leaves_no_verdict_and_is_named() -> None:
    guarded = Keeper("POOL", Holds.SEQUENCE, 0, 1.0, most=1000, place="pool.py:8", is_guarded=True)
    runs, leaks, reason = verdict(lambda run: run, guarded)
    assert (runs, leaks) == (24, False)
    assert reason.startswith("POOL is bounded at 1,000 entries by pool.py:8, and 24 runs did not fill it; ")
    assert "rounds=2000" in reason


def test_beside_it_what_has_no_bound_is_told_after_many_runs() -> None:
    guarded = Keeper("POOL", Holds.SEQUENCE, 0, 1.0, most=1000, place="pool.py:8", is_guarded=True)
    runs, leaks, _ = verdict(lambda run: run, guarded, LIST)
    assert leaks
    assert runs >= IRREGULAR_RUNS


def test_what_expires_by_the_clock_has_no_verdict() -> None:
    expires = Keeper("RECENT", Holds.SEQUENCE, 0, 1.0, place="cache.py:3", by_time=True)
    _, leaks, reason = verdict(lambda run: run, expires)
    assert not leaks
    assert "cache.py:3 removes by the clock" in reason


def test_what_code_takes_from_needs_a_lever_more() -> None:
    emptied = Keeper("QUEUE", Holds.SEQUENCE, 0, 1.0, place="queue.py:3", is_emptied=True)
    assert verdict(lambda run: run, emptied)[:2] == (REMOVES_RUNS, True)


def test_the_user_may_ask_for_more_runs() -> None:
    assert verdict(lambda run: run, LIST, least=100)[:2] == (160, True)


def test_the_surest_gauge_decides() -> None:
    paces = {BLOCKS: Pace(State.LINEAR, 1.0), HEAP: Pace(State.EXACT, 64.0)}
    assert decide(paces, [LIST], 24) == Decision(Step.END, (BLOCKS, HEAP))


def test_a_heap_that_falls_back_is_clean_only_after_many_runs() -> None:
    *_, (runs, found) = decisions(lambda run: run % 50, lambda _: [], HEAP)
    assert (runs, found) == (REACH, Decision(Step.END))
    *_, (runs, found) = decisions(lambda run: run % 50, lambda _: [])
    assert (runs, found) == (160, Decision(Step.END))


def test_a_buffer_that_grows_in_place_is_told_by_its_length() -> None:
    paces = {HEAP: Pace(State.OPEN, 5.0)}
    assert decide(paces, None, 160).step is Step.LOOK
    assert decide(paces, [TABLE], 160) == Decision(Step.END, (HEAP,))
    assert decide(paces, [], 160).step is Step.GO_ON


def test_what_sways_without_a_trend_has_no_verdict_unless_it_is_memory_at_hand() -> None:
    assert decide({OPEN: Pace(State.OPEN, 0.1)}, [], REACH).step is Step.UNDECIDED
    assert decide({HEAP: Pace(State.OPEN, 0.1)}, [], REACH) == Decision(Step.END)

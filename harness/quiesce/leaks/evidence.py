"""What readings say: whether a gauge rests, grows, or cannot be told; and when that is enough to accuse.

Runs are read in *windows* of eight. Between two windows lies a *lever*: runs that nobody reads, each lever twice as
long as the one before. Within a window it shows whether growth is regular, over a lever whether it goes on. How many
runs an accusation needs depends on what keeps the growth, and on the bound that its code names; never on time.

All of it is a function of numbers: nothing here runs, reads or waits.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from math import sqrt
from statistics import median, pvariance
from typing import Final

from quiesce.leaks.quantities import C_HEAP, MEMORY, OPENED, Quantity, family_of

WINDOW: Final = 8
"""Runs that are read one after the other."""

LEVERS: Final = (8, 16, 32, 64, 128, 256)
"""Runs between windows, so that there are windows that end after 8, 24, 48, 88, 160, 296 and 560 runs."""

REACH: Final = WINDOW + sum(LEVERS) + WINDOW * len(LEVERS)

COMES_BACK_RUNS: Final = 96
"""After so many runs, what comes back to where it was is no leak. What sways needs more: :data:`IRREGULAR_RUNS`."""

SLOWER: Final = 0.8
ERRORS: Final = 2.5
"""Growth slows if its pace over the last lever is less than this share of the one before, by so many standard errors:
0.6% of leaks that leak by chance are called slow once. A memo of 256 random keys has 4.6 errors at 216 runs."""

BEND: Final = 0.15
"""What share of all growth medians may be off the straight line. A leak of every other run, by chance, bends by 2% in
560 runs; a table that is filled with 256 random keys by more than 25%."""


SELDOM_RUNS: Final = 32
"""Where two windows are flat, a growth of one in so many runs is none: pytest keeps a little more now and then."""

STEPS_LEAST: Final = 4
"""How many steps there must be until they show a rule."""


class State(enum.Enum):
    """What the windows of one gauge show."""

    REST = "it is where it was"
    RETURNS = "it rises and falls back"
    EXACT = "it grows by the same in each run, or in every second, fourth or eighth"
    REGULAR = "it never leaves a straight line by more than one step"
    LINEAR = "it grows along a straight line, by chance, or ever faster"
    SLOWS = "it grows ever more slowly"
    OPEN = "none of these"


GROWING: Final = (State.EXACT, State.REGULAR, State.LINEAR)


@dataclass(frozen=True, slots=True)
class Pace:
    """How a gauge moves: its state, and by how much per run it has grown."""

    state: State
    per_run: float = 0.0


@dataclass(frozen=True, slots=True)
class _Window:
    """Readings behind consecutive runs, of which the first has the number ``start``."""

    start: int
    values: tuple[int, ...]

    @property
    def middle(self) -> float:
        return median(self.values)

    @property
    def steps(self) -> list[int]:
        return [after - before for before, after in pairwise(self.values)]


def pace_of(runs: Sequence[int], values: Sequence[int], allowed: int, *, sways: bool = False) -> Pace:
    """Return the pace of readings ``values`` behind runs of these numbers, eight in each window.

    ``allowed`` is the growth per run that is none. What ``sways`` also counts what allocators keep at hand: it may fall
    for a while although it leaks.
    """
    full = len(values) // WINDOW * WINDOW
    runs, values = runs[len(runs) - full :], values[len(values) - full :]
    windows = [_Window(runs[at], tuple(values[at : at + WINDOW])) for at in range(0, full, WINDOW)]
    if len(windows) < 2:
        return Pace(State.OPEN)
    first, before, last = windows[0], windows[-2], windows[-1]
    if _rests(before, last, allowed):
        return Pace(State.REST)
    fell = any(after < now for now, after in pairwise(values[WINDOW:]))
    step = _same_step(before, last, allowed) or _exact_step(before, last, allowed)
    if step and (sways or not fell):
        return Pace(State.EXACT, step)
    is_back = len(windows) > 2 and last.middle <= windows[1].middle
    if is_back or max(last.values) <= max(before.values) or min(last.values) <= min(before.values):
        slope = theil_sen(runs, values)
        is_long = runs[-1] >= IRREGULAR_RUNS and min(last.values) > max(first.values)
        goes_on = is_long and slope > allowed and not _is_saw_tooth(windows, values)
        return Pace(State.LINEAR, slope) if goes_on else Pace(State.RETURNS, _pace(before, last))
    if not fell and (step := _regular_step(windows[1:])) > allowed:
        return Pace(State.REGULAR, step)
    if _slows(windows):
        return Pace(State.SLOWS, _pace(before, last))
    is_above = min(last.values) > max(first.values) and (len(windows) > 2 or last.values[-1] > last.values[0])
    if is_above and _pace(before, last) > allowed and (_is_straight(windows) or _gathers_speed(windows)):
        return Pace(State.LINEAR, theil_sen(runs, values))
    returns = runs[-1] >= IRREGULAR_RUNS and _is_saw_tooth(windows, values)
    return Pace(State.RETURNS if returns else State.OPEN, _pace(first, last))


def _rests(before: _Window, last: _Window, allowed: int) -> bool:
    """Whether the last window is as the one before: flat, or rising and falling by turns to the same readings."""
    distance = last.start - before.start
    kept = max(allowed * distance, distance // SELDOM_RUNS)
    if all(max(each.values) - min(each.values) <= allowed * WINDOW for each in (before, last)):
        return last.middle - before.middle <= kept
    turns = zip(sorted(before.values), sorted(last.values), strict=True)
    return last.values[-1] - last.values[0] <= kept and all(abs(after - now) <= kept for now, after in turns)


def _same_step(before: _Window, last: _Window, allowed: int) -> float:
    """Return the growth per run if all runs of both windows add the same, and those between them no less, else 0.

    What they add beyond it the check itself may have kept: a reading takes memory, too.
    """
    steps = {*before.steps, *last.steps}
    step = steps.pop()
    grown = last.values[0] - before.values[0]
    return step if not steps and step > allowed and grown >= step * (last.start - before.start) else 0.0


def _exact_step(before: _Window, last: _Window, allowed: int) -> float:
    """Return the growth per run if each reading is by the same above its own of the window before, else 0."""
    gained = {after - now for now, after in zip(before.values, last.values, strict=True)}
    distance = last.start - before.start
    grown = gained.pop()
    if gained or grown <= allowed * distance:
        return 0.0
    within = last.values[-1] - last.values[0]
    missing = grown * WINDOW / distance - within  # the step from the end of one window to the beginning of the next
    return grown / distance if min(last.steps) <= missing <= max(last.steps) else 0.0


def _regular_step(windows: Sequence[_Window]) -> float:
    """Return the growth per run if all readings lie between two lines that are a step apart, else 0."""
    if len(windows) < 2:
        return 0.0
    points = [(window.start + index, value) for window in windows for index, value in enumerate(window.values)]
    (begin, low), (end, high) = points[0], points[-1]
    slope = (high - low) / (end - begin)
    off = [value - slope * run for run, value in points]
    step = max(step for window in windows for step in window.steps)
    is_told = high - low >= STEPS_LEAST * step  # one large step, as of a table that grows, is no rule
    return slope if is_told and 0 < max(off) - min(off) <= step else 0.0


def _pace(before: _Window, last: _Window) -> float:
    return (last.middle - before.middle) / (last.start - before.start)


def _slows(windows: Sequence[_Window]) -> bool:
    """Whether the last lever's pace is clearly less than that of the lever before, or of all levers before."""
    if len(windows) < 3:
        return False
    before, last = windows[-2:]
    return any(_is_slower(older, before, last, windows) for older in (windows[-3], windows[0]))


def _is_slower(older: _Window, before: _Window, last: _Window, windows: Sequence[_Window]) -> bool:
    now, earlier = _pace(before, last), _pace(older, before)
    error = _step_error(windows) * sqrt(1 / (last.start - before.start) + 1 / (before.start - older.start))
    return now < SLOWER * earlier and earlier - now > ERRORS * error


def _step_error(windows: Sequence[_Window]) -> float:
    """Return the standard deviation of single steps."""
    return sqrt(pvariance([step for window in windows for step in window.steps]))


def _is_straight(windows: Sequence[_Window]) -> bool:
    """Whether medians rise along a straight line, but for the first two windows at most, which may be warm-up."""
    if not all(now.middle <= after.middle for now, after in pairwise(windows[1:])):
        return False
    return any(
        _bends_little(windows[skipped:]) for skipped in range(3) if len(windows) - skipped >= min(3, len(windows))
    )


def _gathers_speed(windows: Sequence[_Window]) -> bool:
    """Whether each window rises, and each lever more than the one before, but for the first, which may be warm-up.

    What fills up cannot do so for long.
    """
    paces = [_pace(before, after) for before, after in pairwise(windows[1:])]
    rises = all(window.values[-1] > window.values[0] for window in windows[1:])
    return len(paces) >= 3 and rises and all(later > earlier for earlier, later in pairwise(paces))


def _is_saw_tooth(windows: Sequence[_Window], values: Sequence[int]) -> bool:
    """Whether it once fell by as much as it has risen in all.

    Windows and levers are multiples of eight, as its period may be: then each window that is read last may be a peak.
    """
    deepest = max(highest - value for highest, value in zip(accumulate(values, max), values, strict=True))
    return deepest >= windows[-1].middle - windows[0].middle


def _bends_little(windows: Sequence[_Window]) -> bool:
    begin, end = windows[0], windows[-1]
    grown, slope = end.middle - begin.middle, _pace(begin, end)
    chance = ERRORS * _step_error(windows) * sqrt(end.start - begin.start) / 2
    bend = max(abs(each.middle - begin.middle - slope * (each.start - begin.start)) for each in windows)
    return grown > 0 and bend <= max(BEND * grown, min(chance, 0.2 * grown))


def theil_sen(runs: Sequence[int], values: Sequence[int]) -> float:
    """Return the median of the slopes between all pairs of readings (Theil 1950, Sen 1968)."""
    points = list(zip(runs, values, strict=True))
    slopes = [(b - a) / (later - earlier) for (earlier, a), (later, b) in combinations(points, 2)]
    return median(slopes) if slopes else 0.0


class Holds(enum.Enum):
    """What a container that grows is, which says how soon its growth is no chance: after so many runs."""

    SEQUENCE = 24
    """A list, or keys that are objects of the run itself: none of them can be met again."""
    KEYED = 96
    """With N keys by chance, all of 96 are new with a chance of exp(-96²/2N): 1e-8 for 256 keys, 1% for 1,000."""


NOBODY_RUNS: Final = Holds.KEYED.value
"""Where no container grows: lost references, native memory."""

REGULAR_RUNS: Final = 88
OPENED_RUNS: Final = 72
"""Pools of connections, threads and processes open one more in each run, up to 48 or so."""

IRREGULAR_RUNS: Final = 480
REMOVES_RUNS: Final = REACH + LEVERS[-1] + WINDOW
"""Where code that ran takes entries out: as long again, in which nothing expired."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """A container that grew: its name, how many entries it has and gains in each run, and the bound in its code.

    ``most`` is that bound, 0 if there is none that can be read; ``place`` is its line, ``by_time`` says that entries
    expire, ``is_guarded`` that its length is compared and ``is_emptied`` that code which ran takes entries out.
    """

    name: str
    holds: Holds
    size: int
    per_run: float
    most: int = 0
    place: str = ""
    is_guarded: bool = False
    is_emptied: bool = False
    by_time: bool = False

    @property
    def is_free(self) -> bool:
        """Whether nothing bounds it, or it has outgrown its bound."""
        return not self.by_time and not self.is_emptied and (not self.is_guarded or 0 < self.most < self.size)

    def reaches(self, runs: int) -> bool:
        """Whether it would outgrow its bound in so many runs more."""
        return 0 < self.most < self.size + self.per_run * runs

    def why_undecided(self, runs: int) -> str:
        """Say what is known of its bound, and what to write."""
        fill = "fill it in a fixture of a wider scope"
        if self.by_time:
            return f"{self.name} grows, but what is in it may expire: {self.place} removes by the clock"
        if self.is_guarded and self.most:
            bound = f"{self.name} is bounded at {self.most:,} entries{f' by {self.place}' if self.place else ''}"
            return f"{bound}, and {runs} runs did not fill it; write rounds={2 * self.most}, or {fill}"
        if self.is_guarded:
            return f"{self.name} grows, and {self.place} compares its length with what cannot be read; {fill}"
        return f"{self.name} grows, but {self.place} takes entries out of it; write rounds={2 * REMOVES_RUNS}"


_RUNS_NEEDED: Final = {State.EXACT: 0, State.REGULAR: REGULAR_RUNS, State.LINEAR: IRREGULAR_RUNS}
"""The gauge whose growth is surest decides: others grow with it, and less regularly."""


class Step(enum.Enum):
    """What to do next."""

    GO_ON = "run more"
    LOOK = "find out what keeps the growth"
    END = "there is a verdict"
    UNDECIDED = "there can be none"


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows: the gauges that leak, or why nothing can be said."""

    step: Step
    leaks: tuple[Quantity, ...] = ()
    reason: str = ""


def sways(quantity: Quantity, *, beside_threads: bool) -> bool:
    """Whether a gauge also counts what allocators keep at hand, as blocks are by threads at work."""
    row = family_of(quantity.family)
    return quantity.family == C_HEAP or row.is_coarse or (beside_threads and quantity.family in MEMORY)


def decide(
    paces: Mapping[Quantity, Pace],
    keepers: Sequence[Keeper] | None,
    runs: int,
    *,
    least: int = 0,
    beside_threads: bool = False,
) -> Decision:
    """Return what follows from the paces after so many runs; ``keepers`` is None as long as nobody looked.

    ``least`` is how many runs of growth the user asks for.
    """
    live = {
        quantity: pace
        for quantity, pace in paces.items()
        if not _is_over(quantity, pace, runs, beside_threads=beside_threads)
    }
    if not live:
        return Decision(Step.END)
    leaks = tuple(quantity for quantity, pace in live.items() if pace.state in GROWING)
    opened = OPENED_RUNS if any(quantity.family in OPENED for quantity in leaks) else 0
    needed = max(least, opened, min((_RUNS_NEEDED[live[quantity].state] for quantity in leaks), default=0))
    is_last = runs >= max(REACH, least)
    if not leaks and runs >= REGULAR_RUNS and (found := _in_place(live, keepers, runs)) is not None:
        return found
    if not leaks:
        return _at_the_end(live, runs, beside_threads=beside_threads) if is_last else Decision(Step.GO_ON)
    if keepers is None:
        return Decision(Step.LOOK) if runs >= needed or is_last else Decision(Step.GO_ON)
    free = [keeper for keeper in keepers if keeper.is_free]
    bounded = [keeper for keeper in keepers if not keeper.is_free]
    for keeper in bounded:
        if keeper.reaches(max(REACH, least) - runs):
            return Decision(Step.GO_ON)
        if not free and not keeper.is_emptied:
            return Decision(Step.UNDECIDED, reason=keeper.why_undecided(runs))
    needed = max(needed, min((keeper.holds.value for keeper in free), default=NOBODY_RUNS))
    if bounded:
        needed = max(needed, IRREGULAR_RUNS if free else REMOVES_RUNS)
    return Decision(Step.END, leaks) if runs >= needed else Decision(Step.GO_ON)


def _is_over(quantity: Quantity, pace: Pace, runs: int, *, beside_threads: bool) -> bool:
    """Whether a gauge says clearly that it does not leak."""
    if pace.state is State.RETURNS:
        return runs >= (IRREGULAR_RUNS if sways(quantity, beside_threads=beside_threads) else COMES_BACK_RUNS)
    return pace.state is State.REST


def _in_place(live: Mapping[Quantity, Pace], keepers: Sequence[Keeper] | None, runs: int) -> Decision | None:
    """Return what follows if memory moves along no line, and the length of something grows by the same in each run.

    A buffer that grows in place takes memory in steps that get larger.
    """
    memory = tuple(each for each, pace in live.items() if each.family in MEMORY and pace.state is State.OPEN)
    if not memory or keepers is not None:
        is_kept = any(each.is_free and each.per_run == int(each.per_run) >= 1 for each in keepers or ())
        return Decision(Step.END, memory) if memory and is_kept and runs >= Holds.KEYED.value else None
    return Decision(Step.LOOK)


def _at_the_end(live: Mapping[Quantity, Pace], runs: int, *, beside_threads: bool) -> Decision:
    """Return what can be said where nothing grows along a line after all runs."""
    told = [
        quantity.name
        for quantity, pace in live.items()
        if pace.state is State.OPEN and pace.per_run > 0 and not sways(quantity, beside_threads=beside_threads)
    ]
    if not told:
        return Decision(Step.END)
    return Decision(Step.UNDECIDED, reason=f"{', '.join(told)} rose and fell too much to tell in {runs} runs")

"""The readings of one check, and what they say: whether a quantity has come to rest, and whether its growth is a leak.

Every meter is read after each round, in room that is taken in advance: what watches for growth must not grow itself.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import pi, sqrt
from statistics import median
from typing import Final

from quiesce.leaks.evidence import GROWING, WINDOW, Pace
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import FAMILIES, Meter, Quantity, Unreadable, family_of, leading
from quiesce.leaks.stages.settling import collect_garbage

SHORT: Final = 6
"""Up to this many readings every step counts; above, the first third of them is compared with the last."""

NORMAL_DEVIATION: Final = 1.4826
"""The standard deviation of normal numbers for each unit of their median deviation."""


def at_rest(values: Sequence[int], window: int, allowed: int) -> bool:
    """Whether all readings of the last ``window`` rounds lie within what they may grow by, ``allowed`` per round.

    So what may not grow must stay the same. A fall is no rest: what rises and falls by chance falls just as often where
    it leaks as well. Fewer readings are never at rest.
    """
    if len(values) <= window:
        return False
    last = values[-1 - window :]
    return max(last) - min(last) <= allowed * window or repeats(last)


def repeats(values: Sequence[int]) -> bool:
    """Whether readings are the same three times over: what comes and goes by turns is at rest."""
    return any(
        all(before == after for before, after in zip(values, values[period:]))  # noqa: B905 - the rest has no partner
        for period in range(2, len(values) // 3 + 1)
    )


@dataclass(frozen=True, slots=True)
class UsualStep:
    """The median growth per round over all pairs of rounds, and its standard error.

    The steps in which containers grow leave it alone, and what grows in every other round grows in each pair.
    """

    per_round: float = 0.0
    error: float = 0.0


def usual_step(values: Sequence[int]) -> UsualStep:
    """Return the usual step of readings. The error is that of a median of normal numbers; pairs overlap by half."""
    steps = [(after - before) / 2 for before, after in zip(values, values[2:], strict=False)]
    if not steps:
        return UsualStep()
    middle = median(steps)
    deviation = NORMAL_DEVIATION * median(abs(step - middle) for step in steps)
    return UsualStep(middle, sqrt(pi / 2) * deviation / sqrt(len(steps) / 2))


def measured_from(values: Sequence[int]) -> int:
    """Return the position of the first reading whose growth is measured: behind the first third, where there is one."""
    return 0 if len(values) <= SHORT else len(values) // 3


def growth_per_round(values: Sequence[int]) -> float:
    """Return the median of the slopes between all pairs of readings behind the first third, which may be warm-up.

    The estimator is that of Theil (1950) and Sen (1968), which a few odd readings do not move.
    """
    return _slope(values[measured_from(values) :])


def _slope(values: Sequence[int]) -> float:
    slopes = [(b - a) / (later - earlier) for (earlier, a), (later, b) in combinations(enumerate(values), 2)]
    return median(slopes) if slopes else 0.0


def never_came_back(values: Sequence[int], allowed: float) -> bool:
    """Whether each reading of the last third is above each of the first, by more than ``allowed`` per round.

    A leak's readings are; those of a saw-tooth are not, however steep its teeth.
    """
    if len(values) <= SHORT:
        return len(values) > 2 and all(after - before > allowed for before, after in pairwise(values))
    third = len(values) // 3
    return min(values[-third:]) - max(values[:third]) > allowed * (len(values) - 2 * third)


def lows_rise(values: Sequence[int]) -> bool:
    """Whether the lowest reading of each third is above that of the third before, unlike those of a step or a wave."""
    third = len(values) // 3
    if not third:
        return False
    first, second, last = (min(values[start : start + third]) for start in (0, third, len(values) - third))
    return first < second < last


def fell(values: Sequence[int]) -> bool:
    """Whether a reading is below the one before, unlike those of a leak that nothing is beside."""
    return any(after < before for before, after in pairwise(values))


def rises_often(values: Sequence[int]) -> bool:
    """Whether at least three of eight steps rise, as half of them do where something is left every other round.

    What grows in place by a share of its size, as a list, seldom does, nor does a cache of many sizes that is filling.
    """
    return sum(after > before for before, after in pairwise(values)) * 8 >= 3 * (len(values) - 1)


def doubles(values: Sequence[int]) -> bool:
    """Whether all that rises rises by more than half, but for a rise from nothing, which tells nothing.

    So does a table, as of a dict or a set. What grows in place by a share of its size does not.
    """
    rises = [(before, after) for before, after in pairwise(values) if after > before > 0]
    return bool(rises) and all(2 * after > 3 * before for before, after in rises)


def is_leak(values: Sequence[int], allowed: float) -> bool:
    """Whether readings say that a quantity grows by more than ``allowed`` per round, for good and to the end."""
    return lows_rise(values) and never_came_back(values, allowed) and growth_per_round(values) > allowed


ROOM: Final = 256
"""Readings for which room is taken at a time."""


class Series:
    """Readings, one for each round."""

    def __init__(self) -> None:
        self._room = array("q", bytes(8 * ROOM))
        self._length = 0

    def add(self, value: int) -> None:
        """Add a reading."""
        if self._length == len(self._room):
            self._room.frombytes(bytes(8 * ROOM))
        self._room[self._length] = value
        self._length += 1

    def forget(self) -> None:
        """Start over, in the same room."""
        self._length = 0

    @property
    def values(self) -> Sequence[int]:
        """The readings so far."""
        return self._room[: self._length]


COARSE_GROWTH_BYTES: Final = 8 << 20
"""What a coarse figure must grow by to say anything: other processes come and go in a granule or two of a device, and
the system joins pages to huge ones of 2 MiB."""

KNOWN_MARGIN: Final = 1 / 8
"""What share of the growth that is accounted for elsewhere may be wrong: large blocks take whole pages, say."""

ERRORS: Final = 5
"""By how many standard errors that growth must be exceeded, where it varies: it is measured in few rounds."""


class Uncounted:
    """Marks both ends of what does not count. A generator would have a block less at its end than at its beginning."""

    def __init__(self, mark: Callable[[int], None]) -> None:
        self._mark = mark

    def __enter__(self) -> None:
        self._mark(-1)

    def __exit__(self, *error: object) -> None:
        self._mark(1)


class Readings:
    """Settles and reads meters. One that cannot be read is left out from then on. ``collect`` collects garbage.

    ``rooms`` is the room for the readings, which one check leaves to the next.
    """

    def __init__(
        self,
        meters: Iterable[Meter],
        plan: Plan,
        collect: Callable[[], None] = collect_garbage,
        rooms: dict[Quantity, Series] | None = None,
    ) -> None:
        self.meters = [meter for meter in meters if plan.reads(meter.family)]
        self._plan = plan
        self._collect = collect
        self._rooms = {} if rooms is None else rooms
        self._series = dict(self._rooms)
        for series in self._series.values():
            series.forget()
        self._broken: dict[str, str] = {}
        self._uncounted: dict[Quantity, array[int]] = {}
        self._runs = Series()
        self.paces: Mapping[Quantity, Pace] = {}
        """How each quantity moves, where windows said it."""
        self._watched: frozenset[str] | None = None

    def absent(self) -> tuple[tuple[str, str], ...]:
        """Say for each family that is not looked at why."""
        families = [meter.family for meter in self.meters if self._plan.looks_at(meter.family)]
        return tuple((family, why) for family in families if (why := self.absent_family(family)))

    def absent_family(self, family: str) -> str:
        """Say why a family is not looked at, or return an empty string."""
        unasked = "it is not among the gauges that were asked for"
        found = next((meter.absent() for meter in self.meters if meter.family == family), unasked)
        return self._broken.get(family) or found

    def start_over(self) -> None:
        """Read once, so that there is room for every quantity, and forget what was read."""
        self.take()
        self._runs.forget()
        for series in self._series.values():
            series.forget()

    def begin(self) -> None:
        """Begin a check. The first one reads once, so that there is room for every quantity."""
        if not self._series:
            self.start_over()

    def watch(self, families: frozenset[str]) -> None:
        """From now on read these families only, and remember what there is now."""
        self._watched = families
        for meter in self._watched_meters():
            meter.observe()
        self._series.clear()
        self._uncounted.clear()

    def rest(self) -> None:
        """End the check; idempotent."""
        for meter in self.meters:
            meter.rest()

    def take(self, rounds: int = 1) -> None:
        """Settle and read. The reading stands for so many rounds."""
        self._collect()
        for meter in self._watched_meters():
            for quantity, value in self._read(meter).items():
                for _ in range(rounds):
                    self._add(quantity, value)

    def take_behind(self, run: int) -> None:
        """Settle and read behind the run with this number: runs between readings may not be read."""
        self._runs.add(run)
        self.take()

    def runs(self, quantity: Quantity) -> Sequence[int]:
        """Return behind which runs a quantity was read; nothing where it was behind each."""
        numbers = self._runs.values
        return numbers[max(0, len(numbers) - len(self.values(quantity))) :]

    def now(self) -> Mapping[Quantity, int]:
        """Settle and read, and remember nothing of it."""
        self._collect()
        return {quantity: value for meter in self._watched_meters() for quantity, value in self._read(meter).items()}

    def uncounted(self) -> Uncounted:
        """Leave out of the readings to come what is taken within."""
        return Uncounted(self._mark)

    def _mark(self, sign: int) -> None:
        """Settle and read, and add it to what does not count, in room that is there after the first time."""
        self._collect()
        for meter in self._watched_meters():
            for quantity, value in self._read(meter).items():
                if quantity not in self._uncounted:
                    self._uncounted[quantity] = array("q", bytes(8))
                self._uncounted[quantity][0] += sign * value

    def _read(self, meter: Meter) -> Mapping[Quantity, int]:
        try:
            if not meter.absent():
                meter.settle()
                return meter.read()
        except Unreadable as error:
            self._broken[meter.family] = str(error)
        except Exception as error:  # a gauge of a library
            self._broken[meter.family] = f"it cannot be read: {type(error).__name__}: {error}"
        return {}

    def _watched_meters(self) -> list[Meter]:
        return [
            meter
            for meter in self.meters
            if meter.family not in self._broken and (self._watched is None or meter.family in self._watched)
        ]

    def _add(self, quantity: Quantity, value: int) -> None:
        if quantity not in self._series:
            self._series[quantity] = Series()
            if quantity.family in FAMILIES:
                self._rooms[quantity] = self._series[quantity]
        more = self._uncounted.get(quantity)
        self._series[quantity].add(value - more[0] if more is not None else value)

    def values(self, quantity: Quantity) -> Sequence[int]:
        """Return what was read of a quantity."""
        return self._series[quantity].values

    def quantities(self) -> list[Quantity]:
        """Return what was read."""
        return [each for each, series in self._series.items() if each.family not in self._broken and series.values]

    def moving(self, window: int) -> list[Quantity]:
        """Return what was not at rest for the last ``window`` rounds."""
        return [
            quantity
            for quantity, series in self._series.items()
            if quantity.family not in self._broken
            and series.values
            and not at_rest(series.values, window, self.allowed(quantity))
        ]

    def rising(self, steps: int) -> list[Quantity]:
        """Return what was higher after each of the last ``steps`` rounds than before it, by more than is allowed."""
        return [
            quantity
            for quantity, series in self._series.items()
            if len(series.values) > steps
            and all(after - before > self.allowed(quantity) for before, after in pairwise(series.values[-1 - steps :]))
        ]

    def allowed(self, quantity: Quantity) -> int:
        """Return what a quantity may grow by per round."""
        return max(quantity.floor, self._plan.limit_bytes) if quantity.unit == "bytes" else quantity.floor

    def leaks(self, quantity: Quantity, known_per_round: float = 0.0) -> bool:
        """Whether a quantity leaks; ``known_per_round`` is growth that is accounted for elsewhere."""
        allowed = self.allowed(quantity) + known_per_round
        if (pace := self.paces.get(quantity)) is not None:
            return pace.state in GROWING and pace.per_run > allowed
        return self.says_something(quantity) and is_leak(self.values(quantity), allowed)

    def is_beyond(self, quantity: Quantity, known: UsualStep) -> bool:
        """Whether a quantity grows in most rounds by clearly more than what is accounted for elsewhere."""
        step = usual_step(self.values(quantity)[-WINDOW:])
        known_at_most = (1 + KNOWN_MARGIN) * known.per_round + ERRORS * known.error
        return step.per_round > self.allowed(quantity) + known_at_most

    def says_something(self, quantity: Quantity) -> bool:
        """Whether a quantity is counted exactly, or has never fallen and has grown by more than what is noise."""
        if not family_of(quantity.family).is_coarse:
            return True
        return self.grown(quantity) >= COARSE_GROWTH_BYTES and not fell(self.values(quantity))

    def growth(self, quantity: Quantity) -> float:
        """Return by how much a quantity grows per round; nothing if it is not watched."""
        if quantity in self.paces:
            return self.paces[quantity].per_run
        return growth_per_round(self.values(quantity)) if quantity in self._series else 0.0

    def names_of_growing(self, moving: Sequence[Quantity]) -> list[str]:
        """Name what is not at rest, a gauge each; what has grown, where some of it has."""
        grown = [quantity for quantity in moving if self.grown(quantity) > 0]
        return [quantity.name for quantity in leading(grown or moving)]

    def grown(self, quantity: Quantity) -> int:
        """Return by how much the last reading is above the first."""
        values = self.values(quantity)
        return values[-1] - values[0]

    def most_bytes(self) -> int:
        """Return by how much the quantity has grown that has grown most, in bytes."""
        series = [each.values for quantity, each in self._series.items() if quantity.unit == "bytes"]
        return max((values[-1] - values[0] for values in series if values), default=0)

    def meter(self, family: str) -> Meter:
        """Return the meter of a family."""
        return next(meter for meter in self.meters if meter.family == family)

"""A leak check: rounds of one piece of code, until what grows is told apart from what only warms up.

Screening comes first. A few rounds, each followed by settling and a reading; what is at rest is acquitted, and most
code is at rest in the third round. What is still growing then is observed: traces are taken, and rounds go on until it
is at rest after all, or has grown for as long as the plan says.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from quiesce.leaks.growth import at_rest, growth_per_round, never_came_back, only_rises
from quiesce.leaks.judgement import Growth, Judgement, Outcome
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import C_HEAP, CONTEXTS, DESCRIPTORS, FAMILIES, PYTHON, THREADS, Meter, Quantity
from quiesce.leaks.series import Series
from quiesce.leaks.settling import BoundedCaches, OldObjects, collect_garbage

SCREENING_MIN: Final = 3
SCREENING_MAX: Final = 5
SCREENING_WINDOW: Final = 2
OBSERVING_WINDOW: Final = 6
WINDOW_SHARE: Final = 3
"""What is observed must be at rest for a third of its rounds: containers grow in steps of an eighth of their size."""

FILLING_ROUNDS_MAX: Final = 1_200
"""How many rounds a bounded cache may take to fill; beyond that there is no verdict."""

LARGE_BYTES: Final = 64 << 20
LARGE_ROUNDS: Final = 8
"""Growth of so many bytes is watched for so many rounds only: the machine may not have as much again."""

SLOW_SECONDS: Final = 30.0
SLOW_ROUNDS: Final = 24
"""Code that has been observed for so long is not run more often than that."""

INEXACT_ROUNDS: Final = 24
"""Inexact readings accuse only after so many rounds."""

INEXACT_FACTOR: Final = 3
"""How many times as many rounds inexact readings may take: one of them that falls puts the decision off."""

ENDING_SECONDS: Final = 0.05
ENDING_STEPS: Final = 20
"""Threads and connections that are just closing get twenty times so long to be gone before they are called leaks."""


class _Stopped(Exception):
    """Why the rounds ended early."""

    def __init__(self, reason: str = "", *, unstable: bool = False) -> None:
        super().__init__(reason)
        self.unstable = unstable


class LeakCheck:
    """One check: ``run_round`` runs the code once. ``clock`` returns seconds."""

    def __init__(
        self,
        run_round: Callable[[], Outcome],
        meters: Iterable[Meter],
        plan: Plan,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run_round = run_round
        self._plan = plan
        self._clock = clock
        self._meters = [meter for meter in meters if plan.looks_at(meter.family)]
        self._broken: dict[str, str] = {}
        self._series: dict[Quantity, Series] = {}
        self._old = OldObjects()
        self._observes = False
        self._read_families: frozenset[str] | None = None
        self._outcome = Outcome.OVER
        self._rounds = 0
        self._watched = 0

    def judge(self) -> Judgement:
        """Run the rounds and say what leaks. What ``run_round`` raises ends the check and is raised again."""
        growths: tuple[Growth, ...] = ()
        reason, unstable = "", False
        try:
            suspects = self._screen()
            if suspects:
                growths, reason = self._observe(suspects)
        except _Stopped as stopped:
            reason, unstable = str(stopped), stopped.unstable
        finally:
            self._end()
        absent = {meter.family: meter.absent() for meter in self._meters}
        absent.update(self._broken)
        said = tuple((family, why) for family, why in absent.items() if why)
        return Judgement(self._outcome, self._rounds, growths, reason, unstable, said)

    def _end(self) -> None:
        self._old.thaw()
        self._observes = False
        for meter in self._meters:
            meter.rest()

    # Rounds.

    def _round(self) -> None:
        """Run one round, which must go like the first, and read."""
        outcome = self._run()
        if outcome is not self._outcome:
            self._explain(outcome)
        self._read()

    def _run(self) -> Outcome:
        self._rounds += 1
        outcome = self._run_round()
        if outcome is Outcome.OVER:
            self._outcome = outcome
            raise _Stopped
        return outcome

    def _first_round(self) -> None:
        """Run the first round. Where it fails it may be for lack of the old objects, so it is run again with them."""
        self._outcome = self._run()
        if self._outcome is Outcome.FAILED and self._old.are_frozen:
            self._old.thaw()
            self._outcome = self._run()
            if self._outcome is Outcome.FAILED:
                self._old.freeze()
        self._read()

    def _explain(self, outcome: Outcome) -> None:
        """Find out whether a round went another way only because it was watched, and stop in any case."""
        first = self._outcome
        number = self._rounds
        if self._observes or self._old.are_frozen:
            self._end()
            if self._run() is first:
                raise _Stopped(f"round {number} {outcome.value} only because it was watched")
        raise _Stopped(f"round {number} {outcome.value}, those before did not", unstable=True)

    # Readings.

    def _read(self) -> None:
        """Settle and read every meter; one that cannot be read is left out from then on."""
        collect_garbage()
        for meter in self._meters:
            if meter.family in self._broken or not (self._read_families is None or meter.family in self._read_families):
                continue
            try:
                if not meter.absent():
                    meter.settle()
                    for quantity, value in meter.read().items():
                        self._add(quantity, value)
            except Exception as error:  # a gauge of a library, or of the tested code itself
                self._broken[meter.family] = f"it cannot be read: {type(error).__name__}: {error}"

    def _add(self, quantity: Quantity, value: int) -> None:
        if quantity not in self._series:
            self._series[quantity] = Series()
        self._series[quantity].add(value)

    def _forget_readings(self) -> None:
        for series in self._series.values():
            series.forget()

    def _allowed(self, quantity: Quantity) -> int:
        return max(quantity.floor, self._plan.limit_bytes) if quantity.unit == "bytes" else quantity.floor

    def _moving(self, window: int) -> list[Quantity]:
        return [
            quantity
            for quantity, series in self._series.items()
            if quantity.family not in self._broken
            and not at_rest(series.values, window, self._allowed(quantity), exact=quantity.exact)
        ]

    # Stages.

    def _screen(self) -> frozenset[str]:
        """Return the families that are still growing after a few rounds."""
        self._old.freeze()
        self._read()
        self._forget_readings()
        self._first_round()
        while self._rounds < SCREENING_MIN or (self._rounds < SCREENING_MAX and self._moving(SCREENING_WINDOW)):
            self._round()  # no local variable may live through a round that was not there in the one before
        families = frozenset(quantity.family for quantity in self._moving(SCREENING_WINDOW))
        return families | {PYTHON} if C_HEAP in families else families  # Python's own may be on the heap

    def _observe(self, suspects: frozenset[str]) -> tuple[tuple[Growth, ...], str]:
        """Return what leaks, or why that cannot be said."""
        self._old.thaw()
        collect_garbage()
        caches = BoundedCaches()
        self._read_families = suspects | {PYTHON}
        for meter in self._meters:
            meter.observe()
        self._observes = True
        self._old.freeze()
        self._series.clear()
        self._read()
        self._forget_readings()
        reason = self._watch(suspects, caches)
        if reason:
            return (), reason
        moving = [quantity for quantity in self._moving(_window(self._watched)) if quantity.family in suspects]
        slopes = {quantity: growth_per_round(self._series[quantity].values) for quantity in moving}
        growing = [quantity for quantity in moving if self._leaks(quantity, slopes[quantity])]
        left = self._still_there(growing)
        growths = tuple(self._growth(each, slopes[each], left) for each in _leading(left))
        return growths, ""

    def _watch(self, suspects: frozenset[str], caches: BoundedCaches) -> str:
        """Run rounds until the suspects are at rest or have grown for long enough; return why there is no verdict."""
        started = self._clock()
        filling = 0
        self._watched = 0
        while True:
            caches.empty_the_librarys()
            self._round()
            self._watched += 1
            if PYTHON in suspects and not any(quantity.family == PYTHON for quantity in self._series):
                return "the code stops tracemalloc, which says what it keeps"
            moving = [each for each in self._moving(_window(self._watched)) if each.family in suspects]
            if not moving:
                return ""
            is_slow = self._watched >= SLOW_ROUNDS and self._clock() - started > SLOW_SECONDS
            is_large = self._watched >= LARGE_ROUNDS and self._growth_bytes(suspects) >= LARGE_BYTES
            if self._watched < self._plan.rounds and not is_slow and not is_large:
                continue
            if not (is_slow or is_large) and self._is_put_off(moving):
                continue
            if not caches.have_filled():
                return ""
            filling += self._watched
            if is_slow or is_large or filling > FILLING_ROUNDS_MAX:
                return "a bounded cache is still filling"
            self._watched = 0
            self._forget_readings()

    def _is_put_off(self, moving: Sequence[Quantity]) -> bool:
        """Whether all that moves is inexact, and has not risen for long enough without a fall."""
        if any(quantity.exact for quantity in moving) or self._watched >= self._plan.rounds * INEXACT_FACTOR:
            return False
        return not any(self._leaks(quantity, 0.0) for quantity in moving)

    def _growth_bytes(self, suspects: frozenset[str]) -> int:
        readings = [
            series.values
            for quantity, series in self._series.items()
            if quantity.unit == "bytes" and quantity.family in suspects
        ]
        return max((values[-1] - values[0] for values in readings if values), default=0)

    def _leaks(self, quantity: Quantity, per_round: float) -> bool:
        allowed, values = self._allowed(quantity), self._series[quantity].values
        if quantity.exact:
            return per_round > allowed and never_came_back(values, allowed)
        enough = len(values) >= INEXACT_ROUNDS or values[-1] - values[0] >= LARGE_BYTES
        return enough and only_rises(values[-(self._plan.rounds * 2 // 3) :], allowed)

    def _still_there(self, growing: Sequence[Quantity]) -> list[Quantity]:
        """Return what has not gone away once everything was collected and what was closing has had time to close."""
        readings = {quantity: self._series[quantity].values for quantity in growing}
        left = list(growing)
        self._old.thaw()
        for step in range(ENDING_STEPS):
            if not left:
                break
            self._read()
            left = [
                quantity
                for quantity in left
                if self._series[quantity].values[-1] * 2 > readings[quantity][0] + readings[quantity][-1]
            ]
            if not any(quantity.family in (DESCRIPTORS, THREADS) for quantity in left):
                break
            if step + 1 < ENDING_STEPS:
                time.sleep(ENDING_SECONDS)
        return left

    def _growth(self, quantity: Quantity, per_round: float, growing: Sequence[Quantity]) -> Growth:
        """Say where a growth comes from; what keeps a thing is often an object, and of objects the place is known."""
        meters = {meter.family: meter for meter in self._meters}
        meter = meters[quantity.family]
        origin = meter.origin(quantity)
        if quantity.family not in (CONTEXTS, C_HEAP):
            objects = [meters[PYTHON].origin(each) for each in growing if each.family == PYTHON]
            origin = next(iter(objects), "") or origin
        return Growth(quantity, per_round, origin, meter.evidence(quantity))


def _window(watched: int) -> int:
    """Return for how many rounds a quantity must be at rest that has been watched for so many."""
    return max(OBSERVING_WINDOW, watched // WINDOW_SHARE)


def _leading(quantities: Sequence[Quantity]) -> list[Quantity]:
    """Return the first quantity of each family, for the others follow from it; what tested code counts itself stays."""
    leading: dict[object, Quantity] = {}
    for quantity in quantities:
        leading.setdefault(quantity.family if quantity.family in FAMILIES else quantity, quantity)
    order = {family: index for index, family in enumerate(FAMILIES)}
    return sorted(leading.values(), key=lambda quantity: order.get(quantity.family, -1))

"""The readings of one check: every meter after each round, in room that is taken in advance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from quiesce.leaks.growth import UsualStep, at_rest, fell, growth_per_round, is_leak, lows_rise, usual_step
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import COARSE, FAMILIES, Meter, Quantity, Unreadable, leading
from quiesce.leaks.series import Series
from quiesce.leaks.settling import collect_garbage

COARSE_GROWTH_BYTES: Final = 8 << 20
"""What a coarse figure must grow by to say anything: other processes come and go in a granule or two of a device, and
the system joins pages to huge ones of 2 MiB."""

KNOWN_MARGIN: Final = 1 / 8
"""What share of the growth that is accounted for elsewhere may be wrong: large blocks take whole pages, say."""

ERRORS: Final = 5
"""By how many standard errors that growth must be exceeded, where it varies: it is measured in few rounds."""


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

    def now(self) -> Mapping[Quantity, int]:
        """Settle and read, and remember nothing of it."""
        self._collect()
        return {quantity: value for meter in self._watched_meters() for quantity, value in self._read(meter).items()}

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
        self._series[quantity].add(value)

    def values(self, quantity: Quantity) -> Sequence[int]:
        """Return what was read of a quantity."""
        return self._series[quantity].values

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
        return self.says_something(quantity) and is_leak(self.values(quantity), allowed)

    def is_beyond(self, quantity: Quantity, known: UsualStep) -> bool:
        """Whether a quantity grows in most rounds by clearly more than what is accounted for elsewhere."""
        step = usual_step(self.values(quantity))
        known_at_most = (1 + KNOWN_MARGIN) * known.per_round + ERRORS * known.error
        return step.per_round > self.allowed(quantity) + known_at_most

    def says_something(self, quantity: Quantity) -> bool:
        """Whether a quantity is counted exactly, or has never fallen and has grown by more than what is noise."""
        if quantity.family not in COARSE:
            return True
        return self.grown(quantity) >= COARSE_GROWTH_BYTES and not fell(self.values(quantity))

    def growth(self, quantity: Quantity) -> float:
        """Return by how much a quantity grows per round; nothing if it is not watched."""
        return growth_per_round(self.values(quantity)) if quantity in self._series else 0.0

    def names_of_growing(self, moving: Sequence[Quantity]) -> list[str]:
        """Name what is not at rest, a gauge each; what has grown, where some of it has."""
        grown = [quantity for quantity in moving if self.grown(quantity) > 0]
        return [quantity.name for quantity in leading(grown or moving)]

    def bears_out(self, quantity: Quantity, least_per_round: float) -> bool:
        """Whether a quantity grows by more than that and its lows rise, unlike those of a saw-tooth."""
        return self.growth(quantity) > least_per_round and lows_rise(self.values(quantity))

    def have_fallen(self) -> bool:
        """Whether a reading of any quantity is below the one before."""
        return any(fell(series.values) for series in self._series.values())

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

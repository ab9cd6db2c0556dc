"""The axis of a run: calls from the first one kept to the last, in parts of a plot's width."""

from __future__ import annotations

from dataclasses import dataclass

from quiesce.reporting.page.scale import count_ticks


@dataclass(frozen=True, slots=True)
class Tick:
    """A line of a scale, at so many percent of it."""

    percent: float
    text: str


@dataclass(frozen=True, slots=True)
class Axis:
    """``count`` calls from the one with the number ``first`` on."""

    first: int
    count: int

    def part(self, number: int) -> float:
        """Return where a call lies, between 0 and 1: in the middle of its share of the axis."""
        place = (number - self.first + 0.5) / max(1, self.count)
        return min(1.0, max(0.0, place))

    def percent(self, number: int) -> float:
        """Return :meth:`part` in percent, with two decimals."""
        return round(100 * self.part(number), 2)

    def ticks(self) -> tuple[Tick, ...]:
        """Return marks at round numbers."""
        last = self.first + self.count - 1
        lines = [line for line, _ in count_ticks([self.count])]
        step = lines[1] if len(lines) > 1 else 1
        start = -(-self.first // step) * step
        return tuple(Tick(self.percent(line), f"{line:,}") for line in range(start, last + 1, step))

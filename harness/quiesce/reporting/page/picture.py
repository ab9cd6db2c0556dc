"""Plots as inline SVG, for every page: paths, the scales that they stand on, what is marked, and a legend.

A picture has no size of its own. Its paths are stretched to the room that a page has, lines keep their width, and words
stand next to them, at so many percent. It needs no script and no library; a script reads out a moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from quiesce.reporting.page.scale import Axis, Tick

WIDTH: Final = 2000
HEIGHT: Final = 500
"""The units of a path."""


@dataclass(frozen=True, slots=True)
class Marker:
    """Something at a place of the axis. ``href`` leads to what it stands for, or is ''."""

    percent: float
    text: str
    title: str
    href: str = ""

    @property
    def is_late(self) -> bool:
        """Whether its text has more room before it than after it."""
        return self.percent > 50


@dataclass(frozen=True, slots=True)
class Curve:
    """One series. ``area`` is a path that is filled, ``line`` one that is drawn; either may be ''.

    ``style`` is a class that gives both their colour, and ``title`` what is said to who points at them.
    """

    name: str
    style: str
    title: str
    line: str = ""
    area: str = ""


@dataclass(frozen=True, slots=True)
class Band:
    """A part of the axis that is shaded, from one place to another in percent."""

    start_percent: float
    width_percent: float
    text: str


@dataclass(frozen=True, slots=True)
class Picture:
    """A whole plot. ``sentence`` says what it shows to who does not see it; the names are those of its axes."""

    sentence: str
    curves: tuple[Curve, ...]
    x_name: str
    axis: Axis
    y_ticks: tuple[Tick, ...]
    y_name: str = ""
    marks: tuple[Marker, ...] = ()
    bands: tuple[Band, ...] = ()


@dataclass(frozen=True, slots=True)
class Heights:
    """The upright scale: lines with their words, the lowest first. What is beyond it is cut off later."""

    ticks: tuple[tuple[int, str], ...]

    def unit(self, value: float) -> int:
        """Return how far below the top a value lies, in units of a path."""
        low, high = self.ticks[0][0], self.ticks[-1][0]
        return round(max(-HEIGHT, min(2 * HEIGHT, HEIGHT * (high - value) / max(1, high - low))))

    def y_ticks(self) -> tuple[Tick, ...]:
        """Return the lines, from the top in percent."""
        low, high = self.ticks[0][0], self.ticks[-1][0]
        return tuple(Tick(round(100 * (high - line) / max(1, high - low), 2), text) for line, text in self.ticks)


def column(axis: Axis, number: int) -> int:
    """Return where a number of the axis lies, in units of a path."""
    return round(axis.part(number) * WIDTH)


def steps(columns: Sequence[int], heights: Sequence[int | None], end: int = WIDTH) -> str:
    """Return a line that keeps each height from its column to the next one, with a hole where the height is None."""
    ends = [*columns[1:], end]
    paths = []
    for run in _runs(heights):
        known = [height for height in heights[run] if height is not None]
        paths.append(_without_detours([f"M{columns[run][0]} {known[0]}", *_along(known, ends[run])]))
    return "".join(paths)


def area(columns: Sequence[int], lower: Sequence[int], upper: Sequence[int | None], end: int = WIDTH) -> str:
    """Return an area that each moment begins with its column: along its upper edge, and back along the lower one."""
    ends = [*columns[1:], end]
    paths = []
    for run in _runs(upper):
        known = [height for height in upper[run] if height is not None]
        below = _along(reversed(lower[run]), reversed(columns[run]))
        words = [f"M{columns[run][0]} {lower[run][0]}", *_along(known, ends[run]), *below]
        paths.append(_without_detours(words) + "Z")
    return "".join(paths)


def _runs(heights: Sequence[int | None]) -> Iterator[slice]:
    """Yield the parts without a None."""
    for is_known, group in groupby(range(len(heights)), key=lambda position: heights[position] is not None):
        positions = list(group)
        if is_known:
            yield slice(positions[0], positions[-1] + 1)


def _along(heights: Iterable[int], columns: Iterable[int]) -> Iterator[str]:
    return (f"V{height}H{column}" for height, column in zip(heights, columns, strict=True))


def _without_detours(words: Sequence[str]) -> str:
    """Leave out steps to where the path is already, which most moments of most series have."""
    kept = [words[0]]
    height = words[0].split(" ")[1]
    for word in words[1:]:
        vertical, _, horizontal = word[1:].partition("H")
        if vertical != height:
            kept.append(word)
        elif "H" in kept[-1]:
            kept[-1] = f"{kept[-1].rpartition('H')[0]}H{horizontal}"
        else:
            kept.append(f"H{horizontal}")
        height = vertical
    return "".join(kept)

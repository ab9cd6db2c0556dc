"""Memory over time as a stacked step plot: paths of an inline SVG, and the words beside it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from quiesce.model.program_run import OTHER, Event, MemoryHistory, MemorySeries
from quiesce.model.wording import bytes_in_words
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.page.scale import Axis, Tick, bounded, byte_ticks
from quiesce.reporting.program_page.wording import kind_of

WIDTH: Final = 2000
HEIGHT: Final = 500
"""The units of a path. They are stretched to what the page has room for; lines keep their width."""
MARKER_PERCENT: Final = 2.4
"""Findings that are nearer to each other share a marker."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One series. ``colour`` is the number of its colour, None for what is gathered under *other*."""

    name: str
    colour: int | None
    path: str
    peak: str
    at_end: str
    allocations: int


@dataclass(frozen=True, slots=True)
class Marker:
    """Something on the axis. ``href`` leads to what it stands for, or is ''."""

    percent: float
    text: str
    title: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Noted:
    """A finding to be marked: its number on the page, its title, its anchor, when it was made (None: at the end)."""

    number: int
    title: str
    anchor: str
    call_number: int | None


@dataclass(frozen=True, slots=True)
class MemoryPlot:
    """The plot. ``values`` is JSON for the page's script, which reads out a moment."""

    layers: tuple[Layer, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    findings: tuple[Marker, ...]
    refused: tuple[Marker, ...]
    refused_count: int
    marks: tuple[Marker, ...]
    marks_count: int
    peak: str
    peak_call: int
    sentence: str
    values: str


def make_memory_plot(memory: MemoryHistory, axis: Axis, devices: int, noted: Iterable[Noted]) -> MemoryPlot | None:
    """Return the plot, or None where nothing was allocated."""
    if not memory.moments:
        return None
    stacked = list(_stacked(memory.series))
    ticks = byte_ticks([0, bounded(memory.peak_bytes)])
    top = max(1, ticks[-1][0])
    columns = [_unit(axis.part(moment), WIDTH) for moment in memory.moments]
    layers = tuple(
        _layer(series, lower, upper, columns, top, colour, devices)
        for colour, (series, (lower, upper)) in enumerate(zip(memory.series, stacked, strict=True))
    )
    peak = bytes_in_words(memory.peak_bytes)
    return MemoryPlot(
        layers=layers,
        x_ticks=axis.ticks(),
        y_ticks=tuple(Tick(round(100 - 100 * line / top, 2), text) for line, text in ticks if line >= 0),
        findings=_grouped(noted, axis),
        refused=_events(memory.refused, axis, "refused: "),
        refused_count=memory.refused_count,
        marks=_events(memory.marks, axis, "mark "),
        marks_count=memory.marks_count,
        peak=peak,
        peak_call=memory.peak_call,
        sentence=_sentence(layers, peak, memory.peak_call),
        values=_values(memory, axis),
    )


def _stacked(series: Sequence[MemorySeries]) -> Iterable[tuple[list[int], list[int]]]:
    """Yield the lower and the upper edge of each series, each on top of those before it."""
    lower = [0] * len(series[0].bytes) if series else []
    for each in series:
        upper = [low + max(0, bounded(size_bytes)) for low, size_bytes in zip(lower, each.bytes, strict=True)]
        yield lower, upper
        lower = upper


def _layer(
    series: MemorySeries,
    lower: Sequence[int],
    upper: Sequence[int],
    columns: Sequence[int],
    top: int,
    colour: int,
    devices: int,
) -> Layer:
    name = (
        "all other memory"
        if series.kind == OTHER
        else kind_of(series.kind, series.device, series.stream, devices=devices)
    )
    return Layer(
        name=name[:1].upper() + name[1:],
        colour=None if series.kind == OTHER else colour,
        path=_path(columns, lower, upper, top),
        peak=bytes_in_words(series.peak_bytes),
        at_end=bytes_in_words(series.bytes[-1]),
        allocations=series.allocations,
    )


def _path(columns: Sequence[int], lower: Sequence[int], upper: Sequence[int], top: int) -> str:
    """Return an area that each moment begins with its column: along its upper edge, and back along the lower one."""
    above = [HEIGHT - _unit(value / top, HEIGHT) for value in upper]
    below = [HEIGHT - _unit(value / top, HEIGHT) for value in lower]
    ends = [*columns[1:], WIDTH]
    words = [f"M{columns[0]} {below[0]}"]
    words += (f"V{height}H{end}" for height, end in zip(above, ends, strict=True))
    words += (f"V{height}H{column}" for column, height in zip(reversed(columns), reversed(below), strict=True))
    return _without_detours(words) + "Z"


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


def _unit(part: float, units: int) -> int:
    return round(part * units)


def _grouped(noted: Iterable[Noted], axis: Axis) -> tuple[Marker, ...]:
    """Return a marker for each finding, or for neighbours together."""
    placed = sorted(
        ((100.0 if each.call_number is None else axis.percent(each.call_number)), each.number, each) for each in noted
    )
    markers: list[Marker] = []
    for _, group in groupby(placed, key=lambda each: int(each[0] / MARKER_PERCENT)):
        members = [each for _, _, each in group]
        numbers = [each.number for each in members]
        text = str(numbers[0]) if len(numbers) == 1 else f"{min(numbers)}\N{EN DASH}{max(numbers)}"
        when = axis.percent(members[0].call_number) if members[0].call_number is not None else 100.0
        title = "; ".join(f"finding {each.number}: {each.title}" for each in members[:6])
        more = f"; and {len(members) - 6} more" if len(members) > 6 else ""
        markers.append(Marker(when, text, title + more, f"#{members[0].anchor}"))
    return tuple(markers)


def _events(events: Iterable[Event], axis: Axis, prefix: str) -> tuple[Marker, ...]:
    return tuple(
        Marker(
            axis.percent(event.number),
            shorten(event.text),
            f"{prefix}{shorten(event.text)} (call {event.number:,})",
        )
        for event in events
    )


def _sentence(layers: Sequence[Layer], peak: str, number: int) -> str:
    """Return what the plot shows, for who does not see it."""
    names = ", ".join(layer.name.lower() for layer in layers)
    return f"Bytes allocated after each call: {names}. The peak is {peak}, at call {number:,}."


def _values(memory: MemoryHistory, axis: Axis) -> str:
    return json.dumps(
        {
            "first": axis.first,
            "count": axis.count,
            "moments": memory.moments,
            "series": [[bounded(value) for value in each.bytes] for each in memory.series],
        },
        separators=(",", ":"),
    )

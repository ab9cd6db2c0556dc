"""Memory over time as a stacked step plot, and the words next to it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from quiesce.model.program_run import OTHER, Event, MemoryHistory, MemorySeries
from quiesce.model.wording import bytes_in_words
from quiesce.reporting.page.excerpt import shorten
from quiesce.reporting.page.picture import Curve, Heights, Marker, Picture, area, column
from quiesce.reporting.page.scale import Axis, bounded, byte_ticks
from quiesce.reporting.program_page.wording import kind_of

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

    @property
    def style(self) -> str:
        """The class that gives it its colour."""
        return "cother" if self.colour is None else f"c{self.colour}"


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

    picture: Picture
    layers: tuple[Layer, ...]
    findings: tuple[Marker, ...]
    refused: tuple[Marker, ...]
    refused_count: int
    marks: tuple[Marker, ...]
    marks_count: int
    peak: str
    peak_call: int
    values: str


def make_memory_plot(memory: MemoryHistory, axis: Axis, devices: int, noted: Iterable[Noted]) -> MemoryPlot | None:
    """Return the plot, or None where nothing was allocated."""
    if not memory.moments:
        return None
    scale = Heights(byte_ticks([0, bounded(memory.peak_bytes)]))
    columns = [column(axis, moment) for moment in memory.moments]
    layers = tuple(
        _layer(series, area(columns, [*map(scale.unit, lower)], [*map(scale.unit, upper)]), colour, devices)
        for colour, (series, (lower, upper)) in enumerate(zip(memory.series, _stacked(memory.series), strict=True))
    )
    peak = bytes_in_words(memory.peak_bytes)
    return MemoryPlot(
        picture=Picture(
            sentence=_sentence(layers, peak, memory.peak_call),
            curves=tuple(_curve(layer) for layer in layers),
            x_name="calls",
            axis=axis,
            y_ticks=scale.y_ticks(),
        ),
        layers=layers,
        findings=_grouped(noted, axis),
        refused=_events(memory.refused, axis, "refused: "),
        refused_count=memory.refused_count,
        marks=_events(memory.marks, axis, "mark "),
        marks_count=memory.marks_count,
        peak=peak,
        peak_call=memory.peak_call,
        values=_values(memory, axis),
    )


def _stacked(series: Sequence[MemorySeries]) -> Iterable[tuple[list[int], list[int]]]:
    """Yield the lower and the upper edge of each series, each on top of those before it."""
    lower = [0] * len(series[0].bytes) if series else []
    for each in series:
        upper = [low + max(0, bounded(size_bytes)) for low, size_bytes in zip(lower, each.bytes, strict=True)]
        yield lower, upper
        lower = upper


def _layer(series: MemorySeries, path: str, colour: int, devices: int) -> Layer:
    name = (
        "all other memory"
        if series.kind == OTHER
        else kind_of(series.kind, series.device, series.stream, devices=devices)
    )
    return Layer(
        name=name[:1].upper() + name[1:],
        colour=None if series.kind == OTHER else colour,
        path=path,
        peak=bytes_in_words(series.peak_bytes),
        at_end=bytes_in_words(series.bytes[-1]),
        allocations=series.allocations,
    )


def _curve(layer: Layer) -> Curve:
    return Curve(
        name=layer.name,
        style=layer.style,
        title=f"{layer.name}: peak {layer.peak}, at the end {layer.at_end}",
        area=layer.path,
    )


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

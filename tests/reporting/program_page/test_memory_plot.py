"""The stacked step plot: what its paths enclose, where its marks stand, and what it says in words."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from quiesce.model.program_run import Event, MemoryHistory, MemorySeries
from quiesce.reporting.page.picture import HEIGHT, WIDTH
from quiesce.reporting.page.scale import Axis
from quiesce.reporting.program_page.memory_plot import MemoryPlot, Noted, make_memory_plot

MIB = 2**20
HISTORY = MemoryHistory(
    moments=(0, 2, 5, 8),
    series=(
        MemorySeries("device", 0, None, (4 * MIB, 4 * MIB, 0, 2 * MIB), 4 * MIB, 2),
        MemorySeries("pinned", 0, None, (0, 4 * MIB, 4 * MIB, 4 * MIB), 4 * MIB, 1),
    ),
    peak_bytes=8 * MIB,
    peak_call=2,
    refused=(Event(7, "cudaMalloc of 64 bytes"),),
    refused_count=9,
    marks=(Event(4, "step"),),
    marks_count=1,
)


def plotted(history: MemoryHistory = HISTORY, *noted: Noted, devices: int = 1) -> MemoryPlot:
    plot = make_memory_plot(history, Axis(0, 10), devices, noted)
    assert plot is not None
    return plot


def area(path: str) -> float:
    """What a closed path of vertical and horizontal steps encloses, as a part of the picture (shoelace formula)."""
    x, y = map(int, re.findall(r"\d+", path.partition("V")[0].partition("H")[0]))
    corners = [(x, y)]
    for way, length in re.findall(r"([VH])(\d+)", path):
        x, y = (x, int(length)) if way == "V" else (int(length), y)
        corners.append((x, y))
    pairs = zip(corners, [*corners[1:], corners[0]], strict=True)
    return abs(sum(x0 * y1 - x1 * y0 for (x0, y0), (x1, y1) in pairs)) / 2 / (WIDTH * HEIGHT)


def test_an_area_is_as_large_as_bytes_times_calls() -> None:
    first, second = plotted().layers
    # of 10 calls and 8 MiB; a moment begins in the middle of its call and ends with the next one
    assert area(first.path) == (2 * 4 + 3 * 4 + 3 * 0 + 1.5 * 2) / 80
    assert area(second.path) == (2 * 0 + 3 * 4 + 3 * 4 + 1.5 * 4) / 80


def test_a_series_stands_on_the_one_below() -> None:
    first, second = plotted().layers
    assert first.path.startswith(f"M100 {HEIGHT}V250H1100V500H1700V375H2000")
    assert second.path.startswith("M100 250H500V0H1100V250H1700V125H2000V375")


def test_names_tell_devices_apart_where_there_are_several() -> None:
    ordered = replace(
        HISTORY,
        series=(
            replace(HISTORY.series[0], stream=3),
            replace(HISTORY.series[0], stream=0, device=1),
            replace(HISTORY.series[0], kind="other", device=None),
        ),
    )
    assert [layer.name for layer in plotted(ordered, devices=2).layers] == [
        "Device memory of device 0, stream 3",
        "Device memory of device 1, default stream",
        "All other memory",
    ]
    assert plotted().layers[1].name == "Pinned host memory"


def test_neighbouring_findings_share_a_marker() -> None:
    noted = [Noted(1, "Race", "finding-1", 3), Noted(2, "Leak", "finding-2", None), Noted(3, "Leak", "finding-3", None)]
    markers = plotted(HISTORY, *noted).findings
    assert [(each.percent, each.text, each.href) for each in markers] == [
        (35.0, "1", "#finding-1"),
        (100.0, "2\N{EN DASH}3", "#finding-2"),
    ]


def test_refusals_and_marks_stand_at_their_call() -> None:
    plot = plotted()
    assert [(each.percent, each.title) for each in plot.refused] == [(75.0, "refused: cudaMalloc of 64 bytes (call 7)")]
    assert [(each.percent, each.title) for each in plot.marks] == [(45.0, "mark step (call 4)")]
    assert plot.refused_count == 9


def test_a_broken_counter_breaks_no_picture() -> None:
    plot = plotted(replace(HISTORY, series=(replace(HISTORY.series[0], bytes=(-5, 2**200, 0, 1)),), peak_bytes=2**200))
    assert json.loads(plot.values)["series"] == [[-5, 2**70, 0, 1]]
    assert "-" not in plot.layers[0].path


def test_nothing_is_drawn_where_nothing_was_allocated() -> None:
    empty = MemoryHistory((), (), 0, 0, (), 0, (), 0)
    assert make_memory_plot(empty, Axis(0, 10), 1, ()) is None

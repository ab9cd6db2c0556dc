from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.model.findings import Finding
from quiesce.model.results import Sample
from quiesce.reporting.page.plots import Timeline, make_timeline
from quiesce.reporting.page.scale import BUCKETS_MAX


def sample(index: int, live: int | None, pinned: int | None = None) -> Sample:
    return Sample(index, f"request {index}", "done", index + 1, live, None, pinned)


def made(samples: list[Sample], findings: list[Finding], listed: tuple[int, ...] = ()) -> Timeline:
    timeline = make_timeline(samples, findings, listed)
    assert timeline is not None
    return timeline


FOUND = Finding("rule", "this", "that", operation_index=1)
AT_CLOSING = Finding("rule", "this", "that")


def test_a_short_timeline_is_kept_whole() -> None:
    timeline = made([sample(0, 0), sample(1, 3 * 2**20)], [FOUND])
    assert timeline.operations == (0, 1)
    assert timeline.series == (("live", (0, 3 * 2**20)),)
    assert dict(timeline.texts)[1] == "operation 1 (line 2): request 1 → done"
    assert (timeline.offending, timeline.closing) == ((1,), None)
    assert [words for _, words in timeline.ticks] == ["0 B", "1 MiB", "2 MiB", "3 MiB"]


def test_what_stands_beside_it_is_not_said_twice() -> None:
    assert [index for index, _ in made([sample(0, 0), sample(1, 0)], [FOUND], listed=(1,)).texts] == [0]


def test_where_nothing_is_held_the_scale_still_has_a_top() -> None:
    assert made([sample(0, 0)], [FOUND]).ticks == ((0, "0 B"), (1, "1 B"))


def test_closing_stands_behind_the_last_operation() -> None:
    assert made([sample(0, 0), sample(1, 0)], [AT_CLOSING]).closing == 2


def test_without_a_reading_there_is_no_timeline() -> None:
    assert make_timeline([sample(0, None)], [FOUND], ()) is None
    assert make_timeline([], [FOUND], ()) is None


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=3000), st.data())
def test_thinning_keeps_extremes_ends_and_what_is_pointed_at(values: list[int], data: st.DataObject) -> None:
    wanted = data.draw(st.integers(0, len(values) - 1))
    timeline = made([sample(index, value) for index, value in enumerate(values)], [FOUND], (wanted,))
    ((_, kept),) = timeline.series
    assert len(kept) <= 2 * BUCKETS_MAX + 4
    numbers = [value for value in kept if value is not None]
    assert (min(numbers), max(numbers)) == (min(values), max(values))
    assert {0, wanted, len(values) - 1} <= set(timeline.operations)
    assert [values[operation] for operation in timeline.operations] == list(kept)


@given(st.lists(st.integers(), min_size=1, max_size=5))
def test_the_scale_holds_every_value_and_zero(values: list[int]) -> None:
    timeline = made([sample(index, value) for index, value in enumerate(values)], [])
    ((_, kept),) = timeline.series
    low, high = timeline.ticks[0][0], timeline.ticks[-1][0]
    assert low <= 0 <= high
    assert all(value is not None and low <= value <= high for value in kept)
    assert len(timeline.ticks) <= 8


def test_a_number_that_no_browser_reads_is_bounded() -> None:
    timeline = made([sample(0, 10**400)], [])
    assert json.loads(json.dumps(timeline.as_json()))["series"][0]["values"] == [2**70]


@pytest.mark.parametrize("length", [1, BUCKETS_MAX + 1, 4096])
def test_a_gauge_that_was_not_read_stays_a_hole(length: int) -> None:
    samples = [sample(index, index, None if index else 5) for index in range(length)]
    timeline = made(samples, [])
    assert dict(timeline.series)["pinned"][1:] == (None,) * (len(timeline.operations) - 1)

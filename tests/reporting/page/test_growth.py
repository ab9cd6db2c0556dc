from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.model.findings import RoundReadings
from quiesce.reporting.page.plots import NAME_LENGTH_MAX, UNIT_LENGTH_MAX, growth_words, make_growth_plot
from quiesce.reporting.page.scale import BUCKETS_MAX, BYTES_MAX

STEADY = RoundReadings("threads", "threads", 7, tuple(range(12)), 11, 1.0)


def test_readings_stand_over_their_rounds() -> None:
    plot = make_growth_plot(STEADY)
    assert plot.rounds == tuple(range(7, 19))
    assert plot.grown == tuple(range(12))
    assert (plot.gauge, plot.unit, plot.rate) == ("threads", "threads", "1 thread per round")
    assert plot.slope == ((11, 4.0), (18, 11.0))
    assert [words for _, words in plot.ticks] == ["0", "5", "10", "15"]


def test_the_line_goes_through_the_middle_of_what_was_measured() -> None:
    """One odd reading and the warm-up move it as little as they moved the growth."""
    readings = replace(STEADY, grown=(0, 90, 91, 92, 4, 5, 6, 70, 8, 9, 10, 11))
    assert make_growth_plot(readings).slope == ((11, 4.0), (18, 11.0))


def test_bytes_have_a_scale_of_bytes() -> None:
    plot = make_growth_plot(replace(STEADY, unit="bytes", grown=(0, 2**20), measured_from=7))
    assert [words for _, words in plot.ticks] == ["0 B", "256 KiB", "512 KiB", "768 KiB", "1 MiB"]


def test_many_bytes_are_told_as_in_the_finding() -> None:
    readings = replace(STEADY, unit="bytes", per_round=20971536.0)
    assert make_growth_plot(readings).rate == "20,971,536 bytes per round"
    assert "The growth of 20,971,536 bytes (20.0 MiB) per round was" in growth_words(readings)
    assert make_growth_plot(replace(readings, per_round=1008.0)).rate == "1,008 bytes per round"


def test_the_words_say_what_the_picture_shows() -> None:
    assert growth_words(STEADY) == (
        "threads: 11 threads more after round 18 than after round 7. "
        "The growth of 1 thread per round was measured over rounds 11 to 18."
    )
    assert growth_words(replace(STEADY, grown=(0, 1))).startswith("threads: 1 thread more after round 8 ")
    assert growth_words(replace(STEADY, unit="bytes", grown=(0, 2048))).startswith(
        "threads: 2,048 bytes (2 KiB) more after round 8 "
    )


def test_names_that_a_test_gave_are_cleaned_and_short() -> None:
    plot = make_growth_plot(replace(STEADY, gauge="\x1b[31mrows\n" * 40, unit="ro\x00ws"))
    assert plot.gauge.startswith("rows rows")
    assert len(plot.gauge) == NAME_LENGTH_MAX
    assert (plot.unit, plot.rate) == ("rows", "1 row per round")
    long = make_growth_plot(replace(STEADY, unit="rows of a table that is long"))
    assert long.rate == f"1 {long.unit} per round"
    assert len(long.unit) == UNIT_LENGTH_MAX


@given(st.lists(st.integers(), min_size=1, max_size=3000), st.integers(), st.floats(-(2**80), 2**80))
def test_whatever_a_journal_holds_a_browser_can_draw(values: list[int], measured_from: int, per_round: float) -> None:
    """A journal may have been edited, and a gauge of a test's own returns what it likes."""
    plot = make_growth_plot(RoundReadings("gauge", "things", 1, tuple(values), measured_from, per_round))
    assert len(plot.rounds) <= 2 * BUCKETS_MAX + 2
    assert (plot.rounds[0], plot.rounds[-1]) == (1, len(values))
    assert all(abs(value) <= BYTES_MAX for value in plot.grown)
    (start, _), (end, _) = plot.slope
    assert 1 <= start <= end == len(values)
    json.dumps(plot.as_json(), allow_nan=False)


@pytest.mark.parametrize("length", [1, 2, BUCKETS_MAX * 10])
def test_the_ends_are_kept(length: int) -> None:
    plot = make_growth_plot(replace(STEADY, grown=tuple(range(length)), measured_from=7))
    assert (plot.grown[0], plot.grown[-1]) == (0, length - 1)

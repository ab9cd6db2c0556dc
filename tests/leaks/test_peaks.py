"""Peaks of Python's memory within a round, and what keeps one from being known."""

from __future__ import annotations

import tracemalloc

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.meters.peaks import measure_peaks


def test_the_peak_is_what_a_round_adds_at_most() -> None:
    kept = bytes(8 << 20)

    def run_round() -> Outcome:
        assert kept
        bytes(2 << 20)
        bytes(3 << 20)
        return Outcome.PASSED

    peak = measure_peaks(run_round, ("python",), None).bytes_by_gauge["python"]
    assert 3 << 20 <= peak < (3 << 20) + 100_000
    assert not tracemalloc.is_tracing()


def test_traces_of_others_go_on() -> None:
    tracemalloc.start()
    try:
        peaks = measure_peaks(lambda: Outcome.PASSED, ("python", "device"), None)
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()
    assert peaks.bytes_by_gauge["python"] < 100_000
    assert not peaks.unknown


def test_a_peak_that_is_not_known_is_said() -> None:
    def run_round() -> Outcome:
        tracemalloc.stop()
        return Outcome.PASSED

    assert "the test stops tracemalloc" in measure_peaks(run_round, ("python",), None).unknown
    assert "did not pass" in measure_peaks(lambda: Outcome.FAILED, ("python",), None).unknown

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.reporting.page.scale import BUCKETS_MAX, extremes


@given(st.lists(st.none() | st.integers(), min_size=1, max_size=2000))
def test_no_peak_is_lost(values: list[int | None]) -> None:
    positions = set(extremes(values))
    assert len(positions) <= 2 * BUCKETS_MAX
    read = [value for value in values if value is not None]
    kept = [value for position in positions if (value := values[position]) is not None]
    assert (min(kept, default=0), max(kept, default=0)) == (min(read, default=0), max(read, default=0))


@pytest.mark.parametrize("length", [1, BUCKETS_MAX])
def test_what_is_short_is_kept_whole(length: int) -> None:
    assert sorted(set(extremes(list(range(length))))) == list(range(length))

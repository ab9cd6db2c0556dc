from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.reporting.page.scale import byte_ticks, count_ticks

Ticks = Callable[[Sequence[int]], tuple[tuple[int, str], ...]]


@pytest.mark.parametrize("ticks", [byte_ticks, count_ticks])
@given(values=st.lists(st.integers(-(2**70), 2**70), max_size=5))
def test_a_scale_holds_every_value_and_zero_in_a_few_lines(ticks: Ticks, values: list[int]) -> None:
    lines = [line for line, _ in ticks(values)]
    assert lines[0] <= min([0, *values])
    assert max([0, *values]) <= lines[-1]
    assert 0 in lines
    assert 2 <= len(lines) <= 8
    assert len({after - before for before, after in pairwise(lines)}) == 1


def test_bytes_have_binary_lines_and_things_decimal_ones() -> None:
    assert [words for _, words in byte_ticks([0, 3 * 2**20])] == ["0 B", "1 MiB", "2 MiB", "3 MiB"]
    assert [words for _, words in count_ticks([0, 63])] == ["0", "20", "40", "60", "80"]
    assert [words for _, words in count_ticks([9_000])] == ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.allocators.indexes import SizeIndex


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3))), st.integers(0, 45))
def test_sizes_come_in_order_from_the_least(entries: list[tuple[int, int]], least: int) -> None:
    index: SizeIndex[tuple[int, int]] = SizeIndex()
    model: set[tuple[int, int]] = set()
    for entry in entries:
        (index.remove if entry in model else index.add)(entry[0], entry)
        model ^= {entry}
    assert list(index.sizes_from(least)) == sorted({size for size, _ in model if size >= least})
    for size in range(1, 41):
        assert set(index.of_size(size)) == {entry for entry in model if entry[0] == size}


def test_many_sizes_stay_in_order_when_buckets_split_and_empty() -> None:
    random = Random(5)
    index: SizeIndex[int] = SizeIndex()
    sizes = random.sample(range(1, 1_000_000), 5000)
    for size in sizes:
        index.add(size, size)
    for size in sizes[:4000]:
        index.remove(size, size)
    kept = sorted(sizes[4000:])
    assert list(index.sizes_from(0)) == kept
    for least in random.sample(range(1_000_000), 200):
        assert next(index.sizes_from(least), None) == next((size for size in kept if size >= least), None)


def test_what_is_not_there_cannot_be_removed() -> None:
    index: SizeIndex[int] = SizeIndex()
    index.add(4, 1)
    with pytest.raises(KeyError):
        index.remove(4, 2)
    with pytest.raises(KeyError):
        index.remove(5, 1)

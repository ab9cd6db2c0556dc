from __future__ import annotations

import itertools
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from quiesce.allocators.reference.backing import Heap
from quiesce.allocators.reference.ledger import Ledger

BASE = 1 << 20
CAPACITY = 1 << 14

_requests = st.lists(
    st.one_of(
        st.tuples(st.just("allocate"), st.integers(1, 5000), st.sampled_from([1, 1, 2, 16, 512, 4096, 1 << 15])),
        st.tuples(st.just("free"), st.integers(0, 30), st.just(0)),
    ),
    max_size=60,
)


def _fits(used: dict[int, int], size: int, alignment: int) -> bool:
    """Whether some aligned place between the used ranges holds ``size``: a naive model of the heap."""
    edges = [(BASE - 1, 1), *sorted(used.items()), (BASE + CAPACITY, 0)]
    for (start, length), (end, _) in itertools.pairwise(edges):
        place = -(-(start + length) // alignment) * alignment
        if place + size <= end:
            return True
    return False


@given(_requests)
def test_none_means_that_no_free_range_fits(requests: list[tuple[str, int, int]]) -> None:
    heap = Heap(BASE, CAPACITY, Ledger())
    used: dict[int, int] = {}
    for what, number, alignment in requests:
        if what == "free":
            if used:
                address = sorted(used)[number % len(used)]
                assert heap.free(address) == used.pop(address)
            continue
        address_or_none = heap.allocate(number, alignment)
        assert (address_or_none is not None) == _fits(used, number, alignment)
        if address_or_none is not None:
            assert address_or_none % alignment == 0
            assert BASE <= address_or_none <= BASE + CAPACITY - number
            assert all(
                address_or_none + number <= start or start + size <= address_or_none for start, size in used.items()
            )
            used[address_or_none] = number
    for address in list(used):
        heap.free(address)
    assert heap.allocate(CAPACITY, 1) == BASE  # everything merged again


def test_neighbours_merge_on_both_sides() -> None:
    heap = Heap(BASE, 300, Ledger())
    a, b, c = (heap.allocate(100, 1) for _ in range(3))
    assert None not in (a, b, c)
    assert heap.free(a or 0) == 100
    assert heap.free(c or 0) == 100
    assert heap.allocate(200, 1) is None
    assert heap.free(b or 0) == 100
    assert heap.allocate(300, 1) == BASE


def test_the_smallest_range_that_fits_is_taken() -> None:
    heap = Heap(BASE, 1000, Ledger())
    addresses = [heap.allocate(size, 1) or 0 for size in (300, 50, 100, 50, 200, 50)]
    for address in (addresses[0], addresses[2], addresses[4]):
        heap.free(address)
    assert heap.allocate(90, 1) == addresses[2]


def test_an_address_that_does_not_begin_a_range_frees_nothing() -> None:
    heap = Heap(BASE, 1000, Ledger())
    address = heap.allocate(100, 1)
    assert address is not None
    assert heap.free(address + 1) is None
    assert heap.free(address) == 100
    assert heap.free(address) is None


def test_a_heap_without_capacity_holds_nothing() -> None:
    assert Heap(BASE, 0, Ledger()).allocate(1, 1) is None


def test_a_request_looks_at_a_bounded_number_of_ranges() -> None:
    ledger = Ledger()
    heap = Heap(0, 1 << 40, ledger)
    random = Random(2)
    addresses = [heap.allocate(random.randrange(1, 5000) * 512, 512) or 0 for _ in range(20_000)]
    for address in addresses[::2]:
        heap.free(address)
    most = 0
    for _ in range(5_000):
        before = ledger.steps
        assert heap.allocate(random.randrange(1, 6000) * 512, 512) is not None
        most = max(most, ledger.steps - before)
    assert most <= 4


def test_a_large_alignment_looks_at_a_bounded_number_of_ranges_while_a_longer_one_is_free() -> None:
    ledger = Ledger()
    heap = Heap(512, 1 << 30, ledger)
    addresses = [heap.allocate(4096, 1) or 0 for _ in range(5_000)]
    for address in addresses[::2]:
        heap.free(address)
    before = ledger.steps
    aligned = heap.allocate(4096, 1 << 16)
    assert aligned is not None
    assert aligned % (1 << 16) == 0
    assert ledger.steps - before <= 16

"""What the runtime takes of the C heap for itself: it is counted as the C library counts it."""

from __future__ import annotations

import ctypes
from pathlib import Path

from quiesce.leaks.meters.memory import HEAP, HeapMeter
from quiesce.simulator.runtime.build import COUNTED

from .conftest import Start

MADE = 3000
AT_HAND_BYTES = 8 * 1024
"""What malloc keeps at hand of freed chunks counts as in use there, and is not the runtime's any more."""


def test_what_a_client_makes_moves_both_counts_alike(start: Start) -> None:
    client = start()
    library, heap = client.machine.library, HeapMeter()
    library.quiesce_own_heap.restype = ctypes.c_uint64
    events = (ctypes.c_void_p * MADE)()
    readings = []

    def read() -> None:
        readings.append((heap.read()[HEAP], library.quiesce_own_heap()))

    read()
    read()
    for index in range(MADE):
        client.machine.call("EventCreate", ctypes.byref(events, 8 * index))
    read()
    for index in range(MADE):
        client.machine.call("EventDestroy", ctypes.c_void_p(events[index]))
    read()
    heap.rest()
    _, before, made, gone = readings
    grown, own = made[0] - before[0], made[1] - before[1]
    assert own > 64 * MADE
    assert abs(grown - own) < AT_HAND_BYTES
    assert abs((gone[0] - gone[1]) - (before[0] - before[1])) < AT_HAND_BYTES


def test_no_other_function_of_the_c_library_allocates_for_it(library: str) -> None:
    content = Path(library).read_bytes()
    others = ("aligned_alloc", "asprintf", "getdelim", "getline", "open_memstream", "posix_memalign", "reallocarray")
    assert [name for name in others if b"\0%s\0" % name.encode() in content] == []
    assert all(b"\0%s\0" % name.encode() in content for name in set(COUNTED) - {"strdup", "strndup"})

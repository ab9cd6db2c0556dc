"""Traces of Python's memory, one sample at a time: which code keeps how much."""

from __future__ import annotations

import linecache
import tracemalloc
from dataclasses import dataclass, field
from typing import Any, Final

from quiesce.leaks.owners import Frame, Owners

FRAMES: Final = 12
"""How deep a trace is: enough to reach tested code below the standard library. Each frame costs every allocation."""

SITES_SHOWN: Final = 5
SHARE_SHOWN: Final = 0.1

PYMALLOC_MAX_BYTES: Final = 512
"""Larger requests to Python's allocator go to the C heap (SMALL_REQUEST_THRESHOLD in CPython's obmalloc)."""

UNCOUNTED_BYTES: Final = 48
"""What a trace takes of the C heap beyond what tracemalloc says of itself: a chunk of 32 bytes, and 16 that malloc adds
to the entry of its table (_tracemalloc.c and hashtable.c of CPython)."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What is kept at one moment. ``sites`` has the bytes that tested code asked for, by file and line.

    ``on_c_heap_bytes`` is what Python itself takes of the C heap, for whomever, the traces included.
    """

    sites: dict[Frame, int] = field(default_factory=dict)
    on_c_heap_bytes: int = 0

    @property
    def size_bytes(self) -> int:
        """What tested code keeps."""
        return sum(self.sites.values())


def take_sample(owners: Owners) -> Sample:
    """Sort what is traced by who asked for it."""
    sites: dict[Frame, int] = {}
    snapshot: Any = tracemalloc.take_snapshot()
    traces = snapshot.traces._traces  # the public objects are twenty times as slow
    on_c_heap = tracemalloc.get_tracemalloc_memory() + UNCOUNTED_BYTES * len(traces)
    for _, size_bytes, frames, _ in traces:
        if size_bytes > PYMALLOC_MAX_BYTES:
            on_c_heap += size_bytes
        site = owners.owner(frames)
        if site is not None:
            sites[site] = sites.get(site, 0) + size_bytes
    return Sample(sites, on_c_heap)


def sites_that_grew(first: Sample, last: Sample) -> list[tuple[str, int, int]]:
    """Return file, line and bytes of growth, the largest growth first; what is small beside it is left out."""
    grown = [(*site, size - first.sites.get(site, 0)) for site, size in last.sites.items()]
    least = max((each[2] for each in grown), default=0) * SHARE_SHOWN
    return sorted((each for each in grown if each[2] > least), key=lambda each: (-each[2], each[:2]))


def site_text(filename: str, line: int) -> str:
    """Return ``file:line: the source line``."""
    source = linecache.getline(filename, line).strip()
    return f"{filename}:{line}: {source}" if source else f"{filename}:{line}"

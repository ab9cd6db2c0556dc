"""Traces of Python's memory: which code keeps how much after each round."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from quiesce.leaks.meters.memory import chunk_bytes
from quiesce.leaks.owners import Frame, Owners, frame_text
from quiesce.leaks.readings import UsualStep, doubles, growth_per_round, is_leak, rises_often, usual_step

FRAMES: Final = 12
"""How deep a trace is: enough to reach tested code below the standard library. Each frame costs every allocation."""

SITES_SHOWN: Final = 5
SHARE_SHOWN: Final = 0.1


PYMALLOC_MAX_BYTES: Final = 512
"""Larger requests to Python's allocator go to the C heap (SMALL_REQUEST_THRESHOLD in CPython's obmalloc)."""

TRACEMALLOC_LEAKS: Final = sys.version_info < (3, 13)
"""Whether to start and stop tracemalloc keeps 32 bytes of the C heap: CPython 3.11.7 and 3.12.1 do, 3.13.0 does not."""

DEBUG_BYTES: Final = 24
"""What Python's debug allocators add to each block, unseen by traces (``_PyMem_DebugRawAlloc`` in obmalloc.c)."""

PYTHONS_OWN: Final = 0
"""The domain of Python's allocators in traces. What others report in theirs, as NumPy does, is on the C heap."""


Kept: TypeAlias = tuple[int, int, int, int, int]
"""What one line keeps: bytes and blocks, how many of these bytes lie on the C heap, and how many blocks are small.

Small blocks are Python's own, or of ``PyMem_RawMalloc``, which are on the C heap and look the same in traces: locks
are, and the shapes of NumPy's arrays. The last figure is what malloc would take for all that are small.
"""

NOTHING: Final[Kept] = (0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Sample:
    """What is kept at one moment: what tested code asked for, by file and line.

    ``on_c_heap_bytes`` is what Python itself takes of the C heap, for whomever, in chunks of malloc.
    """

    sites: dict[Frame, Kept]
    on_c_heap_bytes: int


@dataclass(frozen=True, slots=True)
class Site:
    """A line of tested code that keeps ever more."""

    frame: Frame
    bytes_per_round: float
    blocks_per_round: float
    on_c_heap_per_round: float = 0.0
    small_per_round: float = 0.0
    small_in_chunks_per_round: float = 0.0

    def __str__(self) -> str:
        return frame_text(self.frame)


class Tracing:
    """Takes a sample after each round. Each site is judged alone: what fluctuates at one hides no leak at another."""

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._samples: list[Sample] = []
        self._stop = False
        # Without pymalloc, as PYTHONMALLOC=malloc has it, no block is counted and all of them are on the C heap.
        self._heap_from_bytes = PYMALLOC_MAX_BYTES if _counts_blocks() else 0
        is_debug = sys.flags.dev_mode or os.environ.get("PYTHONMALLOC", "").endswith("debug")
        self._added_bytes = DEBUG_BYTES if is_debug else 0

    def start(self) -> None:
        """Take traces, unless somebody else does already."""
        self._samples.clear()
        if not tracemalloc.is_tracing():
            tracemalloc.start(FRAMES)
            self._stop = True

    @property
    def is_on(self) -> bool:
        """Whether traces are taken for this check."""
        return self._stop

    def stop(self) -> None:
        """Take traces no more; idempotent."""
        if self._stop:
            tracemalloc.stop()
        self._stop = False

    def sample(self) -> bool:
        """Sort what is traced by who asked for it; return whether there are traces, which tested code can stop.

        A snapshot's own tuples are not traced. From CPython's free lists they would serve tested code, whose leak had
        no trace then, so these lists are emptied behind it, as every full collection does.
        """
        if not tracemalloc.is_tracing():
            return False
        self._samples.append(self._take())
        gc.collect()
        return True

    def _take(self) -> Sample:
        sites: dict[Frame, Kept] = {}
        snapshot: Any = tracemalloc.take_snapshot()
        on_c_heap = 0
        for domain, size_bytes, frames, _ in snapshot.traces._traces:  # the public objects are twenty times as slow
            if frames[0][0] == __file__:  # the samples themselves
                continue
            is_on_c_heap = domain != PYTHONS_OWN or size_bytes > self._heap_from_bytes
            in_chunks = chunk_bytes(size_bytes + self._added_bytes)
            on_c_heap += in_chunks if is_on_c_heap else 0
            site = self._owners.owner(frames)
            if site is not None:
                kept = sites.get(site, NOTHING)
                sites[site] = (
                    kept[0] + size_bytes,
                    kept[1] + 1,
                    kept[2] + size_bytes * is_on_c_heap,
                    kept[3] + (not is_on_c_heap),
                    kept[4] + in_chunks * (not is_on_c_heap),
                )
        return Sample(sites, on_c_heap)

    def replace_last(self) -> None:
        """Take the last sample anew: meanwhile something may have been given back."""
        if tracemalloc.is_tracing():
            self._samples.pop()
            self.sample()

    def on_c_heap_per_round(self) -> float:
        """Return by how many bytes per round that grows which Python itself takes of the C heap.

        What takes the place of something untraced is a step, of which there are a few.
        """
        taken = [sample.on_c_heap_bytes for sample in self._samples]
        return growth_per_round(taken) if rises_often(taken) and is_leak(taken, 0) else 0.0

    def usual_step_on_c_heap(self) -> UsualStep:
        """Return the same without the steps in which containers grow."""
        return usual_step([sample.on_c_heap_bytes for sample in self._samples])

    def leaking_sites(self) -> Sequence[Site]:
        """Return the sites that keep ever more, the fastest first.

        Lines of tested code that matter come before those of a library, which are what a trace of a library's own
        thread ends in. A table that doubles and leaves no blocks besides, as that of the threads at work does, is as
        large as the most entries it ever had at once; what is entered for good leaves blocks, or is there already.
        """
        found = []
        for frame in self._samples[-1].sites if self._samples else ():
            counts = zip(*(each.sites.get(frame, NOTHING) for each in self._samples), strict=True)
            kept, blocks, *_ = series = tuple(counts)
            if is_leak(kept, 0) and (is_leak(blocks, 0) or not doubles(kept)):
                found.append(Site(frame, *map(growth_per_round, series)))
        least = SHARE_SHOWN * max((site.bytes_per_round for site in found), default=0.0)
        return sorted(found, key=lambda site: (not self._is_telling(site, least), -site.bytes_per_round, site.frame))

    def _is_telling(self, site: Site, least_per_round: float) -> bool:
        return site.bytes_per_round > least_per_round and self._owners.is_tested(site.frame[0])

    def kept_bytes(self, sites: Iterable[Site]) -> tuple[int, ...]:
        """Return how much these sites kept together, sample by sample."""
        frames = [site.frame for site in sites]
        return tuple(sum(sample.sites.get(frame, NOTHING)[0] for frame in frames) for sample in self._samples)


def sites_text(sites: Sequence[Site]) -> str:
    """Return the sites that matter, a line each; what is small beside the fastest is left out."""
    if not sites:
        return ""
    most = max(site.bytes_per_round for site in sites)
    grown = [str(site) for site in sites if site.bytes_per_round > SHARE_SHOWN * most]
    left_out = len(grown) - SITES_SHOWN
    return "\n".join([*grown[:SITES_SHOWN], *([f"and {left_out} more lines"] if left_out > 0 else [])])


def _counts_blocks() -> bool:
    return hasattr(sys, "getallocatedblocks") and sys.getallocatedblocks() > 0

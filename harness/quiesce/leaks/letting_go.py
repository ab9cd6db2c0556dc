"""What is left once everything is let go that may hold memory: what is gone by then was a cache, or about to close."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from quiesce.leaks.quantities import DESCRIPTORS, PROCESSES, TASKS, THREADS, Quantity
from quiesce.leaks.readings import Readings
from quiesce.leaks.settling import BoundedCaches, OldObjects, collect_garbage
from quiesce.leaks.system_calls import SystemCalls

ENDING_SECONDS: Final = 0.05
ENDING_STEPS: Final = 10
"""Threads and connections that are just closing get ten times so long to be gone before they are called leaks."""


class LettingGo:
    """Lets go of what one check has left out of collections, and of what caches hold."""

    def __init__(self, old: OldObjects, readings: Readings) -> None:
        self._old = old
        self._readings = readings

    def let_go(self, caches: BoundedCaches) -> None:
        """Collect everything, and what caches hold that have a bound and so would come to rest in the end."""
        self._old.thaw()
        caches.empty_what_has_grown()
        collect_garbage()

    def still_there(self, growing: Iterable[Quantity], caches: BoundedCaches) -> list[Quantity]:
        """Return what has not gone away once all is let go, and what is just closing has had time to close."""
        left = list(growing)
        readings = self._readings
        ends = {quantity: readings.values(quantity)[-1] - readings.grown(quantity) / 2 for quantity in left}
        self.let_go(caches)
        for step in range(ENDING_STEPS):
            if not left:
                break
            now = readings.now()
            left = [each for each in left if now.get(each, math.inf) > ends[each]]
            if not any(quantity.family in (DESCRIPTORS, THREADS, TASKS, PROCESSES) for quantity in left):
                break
            if step + 1 < ENDING_STEPS:
                SystemCalls.sleep(ENDING_SECONDS)
        return left

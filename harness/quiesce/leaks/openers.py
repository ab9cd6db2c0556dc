"""Who opened what stays: the lines after which there are more descriptors, threads, processes or tasks."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Final

from quiesce.leaks.line_watch import ChangedBy, LineWatch, Things, extent
from quiesce.leaks.owners import Frame, Owners
from quiesce.leaks.quantities import DESCRIPTORS, PROCESSES, TASKS, THREADS, ListingMeter, Meter, Quantity
from quiesce.leaks.tasks import frames_of_tasks, pending_tasks

OPENED: Final = (DESCRIPTORS, THREADS, TASKS, PROCESSES)
"""Families of what somebody opens."""

RUNNING: Final = (THREADS, TASKS)
"""Of these, what runs functions of its own."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The lines that opened more of each quantity, and the functions that new threads and tasks are in."""

    lines: Mapping[Quantity, Sequence[ChangedBy]] = field(default_factory=dict)
    running: Sequence[tuple[str, int, int]] = ()

    def origin(self, quantity: Quantity) -> Frame | None:
        """Return the line that opened most of a quantity."""
        return next((each.frame for each in self.lines.get(quantity, ())), None)

    def comes_with(self, frame: Frame, *, is_library: bool) -> bool:
        """Whether memory that a line asked for belongs to what was opened.

        That of a descriptor comes from the line that opened it. A thread or a task is made and started on several lines
        of a function, the standard library keeps what it needs for it, and its own functions have variables. A task is
        made below the line that runs its loop, which takes memory for it.
        """
        filename, line = frame
        for quantity, lines in self.lines.items():
            for each in lines:
                first, last = each.function if quantity.family in RUNNING else (each.frame[1], each.frame[1])
                if filename == each.frame[0] and first <= line <= last:
                    return True
                if quantity.family == TASKS and frame in each.callers:
                    return True
            if quantity.family in RUNNING and is_library:
                return True
        return any(filename == file and first <= line <= last for file, first, last in self.running)


def who_opened(
    owners: Owners, meters: Sequence[Meter], left: Sequence[Quantity], run_round: Callable[[], None]
) -> Opened:
    """Run a few rounds for each quantity that is left and can be opened; return the lines that did."""
    before = frozenset(thread.ident for thread in threading.enumerate())
    tasks_before = pending_tasks()
    lines = {}
    for quantity in left:
        for meter in meters:
            if meter.family == quantity.family and isinstance(meter, ListingMeter):
                lines[quantity] = LineWatch(owners, Things(meter.present)).watch(run_round)
    running: list[FrameType] = []
    if any(quantity.family == THREADS for quantity in lines):
        running += frames_of_threads(before)
    if any(quantity.family == TASKS for quantity in lines):
        running += frames_of_tasks(tasks_before)
    functions = [
        (frame.f_code.co_filename, *extent(frame)) for frame in running if owners.is_tested(frame.f_code.co_filename)
    ]
    return Opened(lines, functions)


def frames_of_threads(before: frozenset[int | None]) -> Iterator[FrameType]:
    """Yield the functions that newer threads are in."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = None if thread.ident in before else frames.get(thread.ident or 0)
        while frame is not None:
            yield frame
            frame = frame.f_back

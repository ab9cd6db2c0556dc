"""The clock of a check: what the process worked and slept, without the time in which it waited for a processor.

Wall time runs faster than the tests on a busy machine, and processor time doesn't see what a test sleeps. Linux says of
each thread how long it was ready to run and did not (``/proc/<pid>/task/<tid>/schedstat``, Documentation/scheduler/
sched-stats.rst). A thread or a child that has begun and ended between two readings said so to nobody: how long it
waited is estimated from how many threads share a processor now. Elsewhere the clock counts waiting as sleep.

Not seen: a child that is still running. While the tested code waits for it, it counts as sleep.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from quiesce.leaks.system_calls import SystemCalls

NANOSECOND: Final = 1e-9

TICK_SECONDS: Final = 0.01
"""A running thread's own figures may be as old as the last tick of the scheduler: 10 ms at its slowest usual rate."""

UNEVEN: Final = 9 / 8
"""Threads are not shared out evenly: with 21 on two processors one has 11, which wait a tenth longer than the others.
So much more is left out where it is estimated: some sleep is lost rather than some waiting counted."""

ALL_PROCESSORS: Final = "/proc/loadavg"
"""Its fourth word is ``running/all``: how many threads of the whole machine run or could, right now (proc(5))."""


class ThreadTimes(NamedTuple):
    """What Linux says of a thread, in nanoseconds: how long it ran, and how long it waited for a processor."""

    ran: int
    waited: int


class Reading(NamedTuple):
    """What the system says at one moment. Times in seconds since any moment."""

    wall: float
    processor: float
    """Of all threads, those that have ended among them."""
    children: float
    """Of those that have ended and were waited for."""
    threads: Mapping[str, ThreadTimes]
    """Each living thread, by its number; none where the system doesn't tell."""


class System:
    """Asks the system itself."""

    def __init__(self, folder: str = "/proc/self/task") -> None:
        self._folder = folder if SystemCalls.is_folder(folder) else ""
        if not any(thread.ran for thread in self._threads().values()):
            self._folder = ""  # a kernel without these figures has no such file, or zeros in it

    def read(self) -> Reading:
        """Return what it says now."""
        return Reading(
            SystemCalls.monotonic_seconds(),
            SystemCalls.processor_seconds(),
            SystemCalls.ended_children_seconds(),
            self._threads() if self._folder else {},
        )

    def waits_per_run(self) -> float:
        """Return how long a thread waits now for each second that it runs, where all have equal shares."""
        try:
            running = int(SystemCalls.line(ALL_PROCESSORS).split()[3].partition(b"/")[0])
        except (OSError, IndexError, ValueError):
            return 0.0
        return max(0.0, running / (SystemCalls.processor_count() or 1) - 1)

    def _threads(self) -> dict[str, ThreadTimes]:
        found = {}
        folder, line = self._folder, SystemCalls.line
        for name in SystemCalls.list_folder(folder) if folder else ():
            try:
                ran, waited = line(f"{folder}/{name}/schedstat").split()[:2]
                found[name] = ThreadTimes(int(ran), int(waited))
            except (OSError, ValueError):
                continue  # it has just ended
        return found


class WorkClock:
    """Returns how many seconds of work there were since it was made. To be read between runs, from any thread."""

    def __init__(self, system: System | None = None) -> None:
        self._system = system or System()
        self._last = self._system.read()
        self._unseen = 0.0
        self._worked = 0.0
        self._waited = 0.0

    def __call__(self) -> float:
        """Return them."""
        last, now = self._last, self._system.read()
        self._last = now
        children = max(0.0, now.children - last.children)
        processor = max(0.0, now.processor - last.processor)
        idle = max(0.0, now.wall - last.wall - processor - children)
        waited = min(idle, self._waited_between(last, now, processor, children)) if now.threads else 0.0
        self._worked += processor + children + idle - waited
        self._waited += waited
        return self._worked

    @property
    def waited_seconds(self) -> float:
        """How long the process waited for a processor until the clock was last read: what it left out."""
        return self._waited

    def _waited_between(self, last: Reading, now: Reading, processor: float, children: float) -> float:
        """Return how long all threads waited, and what ended in between: more than the whole where many do at once."""
        ran = waited = 0
        for name, times in now.threads.items():
            before = last.threads.get(name)
            if before is None or before.ran > times.ran:
                before = ThreadTimes(0, 0)  # it is new, or has the number of one that has ended
            ran += times.ran - before.ran
            waited += times.waited - before.waited
        seen = waited * NANOSECOND
        self._unseen += processor - ran * NANOSECOND
        ended = children
        if abs(self._unseen) > TICK_SECONDS:
            ended += max(0.0, self._unseen)
            self._unseen = 0.0
        if not ended:
            return seen
        own = waited / ran if ran * NANOSECOND > TICK_SECONDS else 0.0
        return seen + UNEVEN * ended * max(own, self._system.waits_per_run())

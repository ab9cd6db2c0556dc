"""Moments for what is just ending: a thread that was joined, a child that was waited for, what either of them closes.

On a busy machine a pause ends before they ran at all, so a number of pauses alone says nothing. A pause counts only if
each thread that was ready to run when it began has run since. Linux says so (``stat`` and ``schedstat`` of proc(5));
elsewhere each pause counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from quiesce.leaks.system_calls import SystemCalls

THREADS: Final = "/proc/self/task"

READY: Final = b"R"
"""The state of a thread that runs or waits for a processor."""

MOST_PAUSES: Final = 100
"""How many pauses there are for each that is to count: a thread of the lowest priority may never run."""


def moments(count: int, seconds: float, ready: Callable[[], frozenset[object]]) -> Iterator[None]:
    """Yield so often, at once and then after pauses that count, to look whether all is gone.

    ``ready`` returns what waits for a processor now; the same one twice has not run in between.
    """
    yield
    before = ready()
    for _ in range(count * MOST_PAUSES):
        if count <= 1:
            return
        SystemCalls.sleep(seconds)
        now = ready()
        count -= not before & now
        before = now
        yield


def ready_to_run(children: Iterable[int] = (), folder: str = THREADS) -> frozenset[object]:
    """Return which threads of this process and of its children are, each with how long it ran and waited so far."""
    threads = [f"{folder}/{name}" for name in SystemCalls.list_folder(folder)] if SystemCalls.is_folder(folder) else []
    own = f"{folder}/{SystemCalls.thread_id()}"
    found = set()
    for each in (*threads, *(f"/proc/{child}" for child in children)):
        try:
            if each != own and SystemCalls.line(f"{each}/stat").rpartition(b") ")[2].startswith(READY):
                found.add((each, SystemCalls.line(f"{each}/schedstat")))
        except OSError:
            continue  # it has ended, or this kernel keeps no such figures
    return frozenset(found)

"""Tasks of asyncio that are not done, on loops that live: nobody waited for them, and nobody cancelled them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, Final

from quiesce.leaks.owners import Frame, Owners
from quiesce.leaks.quantities import TASKS, Quantity

PENDING: Final = Quantity(TASKS, "asyncio tasks", "tasks")

SHOWN: Final = 5

SETS: Final = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
"""Where ``asyncio.tasks`` has the tasks of all loops: the first until CPython 3.11, the others from 3.12 on."""

ARE_LISTED: Final = sys.version_info < (3, 14)
"""CPython 3.14 lists the tasks of one loop in one thread only."""

TRIES: Final = 100
"""Another thread may make or end tasks while they are counted; asyncio itself tries again as well."""


class TaskMeter:
    """Counts them. A program that does not use asyncio has none: it is not imported."""

    family = TASKS

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._known: frozenset[int] = frozenset()

    def absent(self) -> str:
        """Say so where no list of them is."""
        return "" if ARE_LISTED else "this version of Python does not list the tasks of all loops"

    def settle(self) -> None:
        """Do nothing: garbage is collected already."""

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        return {PENDING: len(_pending())}

    def present(self) -> frozenset[int]:
        """Return each by its identity."""
        return pending_tasks()

    def observe(self) -> None:
        """Remember which there are."""
        self._known = frozenset(map(id, _pending()))

    def rest(self) -> None:
        """Forget them."""
        self._known = frozenset()

    def origin(self, quantity: Quantity) -> str:
        """Say what the first new one runs."""
        return next(self._started(), "")

    def evidence(self, quantity: Quantity) -> str:
        """Say what the new ones run."""
        return "\n".join([line for line, _ in zip(self._started(), range(SHOWN), strict=False)])

    def _started(self) -> Iterator[str]:
        for task in sorted(_pending(), key=lambda each: (len(each.get_name()), each.get_name())):
            if id(task) not in self._known:
                made = self._made_at(task)
                yield f"task '{task.get_name()}'{_place(task)}" + (f", made at {made[0]}:{made[1]}" if made else "")

    def _made_at(self, task: Any) -> Frame | None:
        """Return the line that made a task, which asyncio knows in its debug mode."""
        stack = getattr(task, "_source_traceback", None) or ()
        return self._owners.owner([(frame.filename, frame.lineno) for frame in reversed(stack)]) if stack else None


def _pending() -> list[Any]:
    """Return the tasks that are not done."""
    module = sys.modules.get("asyncio.tasks")
    for _ in range(TRIES):
        try:
            return [task for name in SETS for task in getattr(module, name, ()) if not task.done()]
        except RuntimeError:
            continue
    return []


def frames_of_tasks(known: frozenset[int]) -> Iterator[FrameType]:
    """Yield the functions in which tasks wait that are not among the known ones."""
    for task in _pending():
        if id(task) not in known:
            yield from _frames(task)


def pending_tasks() -> frozenset[int]:
    """Return which tasks are not done, by their identity."""
    return frozenset(map(id, _pending()))


def _frames(task: Any) -> Iterator[FrameType]:
    """Yield the frames of a task's coroutine, and of those that it waits for, the outermost first."""
    coroutine = task.get_coro()
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is not None:
            yield frame
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)


def _place(task: Any) -> str:
    name = getattr(task.get_coro(), "__qualname__", "")
    frame = next(_frames(task), None)
    where = f" at {frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
    return f" of {name} waits{where}" if name else ""

"""What is opened and must be closed: file descriptors, threads, tasks of asyncio, and child processes.

A task counts that is not done, on a loop that lives: nobody waited for it, and nobody cancelled it. So does a child
that nobody has waited for: one that has ended stays in the system's table until somebody does.
"""

from __future__ import annotations

import sys
import threading
from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from types import FrameType
from typing import Any, Final

from quiesce.leaks.moments import moments, ready_to_run
from quiesce.leaks.owners import Frame, Owners
from quiesce.leaks.quantities import DESCRIPTORS, PROCESSES, TASKS, THREADS, BaseMeter, Meter, Quantity, Surroundings
from quiesce.leaks.system_calls import SystemCalls

OPEN: Final = Quantity(DESCRIPTORS, "open file descriptors", "descriptors")

SHOWN: Final = 5

ENDING_STEPS: Final = 10
ENDING_SECONDS: Final = 0.001


class OpenedMeter(BaseMeter):
    """Counts things that can be told apart: those that are not among the known ones are what was opened since."""

    unseen = ""
    """What is said where none of them is seen."""

    def __init__(self) -> None:
        self._known: frozenset[object] = frozenset()
        self._count = 0

    def rest(self) -> None:
        """Forget which are known."""
        self._known = frozenset()

    def origin(self, quantity: Quantity) -> str:
        """Say what the first new one is."""
        return next(self._new(), self.unseen)

    def evidence(self, quantity: Quantity) -> str:
        """Say what the new ones are."""
        return "\n".join(islice(self._new(), SHOWN))

    @abstractmethod
    def _new(self) -> Iterator[str]:
        """Yield a line about each new one."""

    def _give_time_to_end(self, alive: Callable[[], int], children: Callable[[], Iterable[int]] = tuple) -> None:
        """Give those that are just ending a moment."""
        for _ in moments(ENDING_STEPS, ENDING_SECONDS, lambda: ready_to_run(children())):
            if alive() <= self._count:
                return


class DescriptorMeter(OpenedMeter):
    """Counts the entries of the folder in which Linux and macOS list a process's descriptors."""

    family = DESCRIPTORS

    def __init__(self, folders: tuple[str, ...] = ("/proc/self/fd", "/dev/fd")) -> None:
        super().__init__()
        self._folder = next((name for name in folders if SystemCalls.is_folder(name)), "")
        self._listed: list[str] = []
        self._present: frozenset[tuple[int, int, int]] = frozenset()

    def absent(self) -> str:
        """Say so where no such folder is."""
        return "" if self._folder else "this system does not list a process's descriptors"

    def read(self) -> Mapping[Quantity, int]:
        """Count; the descriptor of the listing itself is always among them."""
        return {OPEN: len(SystemCalls.list_folder(self._folder))}

    def present(self) -> frozenset[tuple[int, int, int]]:
        """Return each with its number and what it is open on, which is asked only if other numbers are in use."""
        listed = SystemCalls.list_folder(self._folder)
        if listed != self._listed:
            self._listed, self._present = listed, frozenset(_identities(listed))
        return self._present

    def observe(self) -> None:
        """Remember which are open; the listing's own number is free again, and the next one to be opened has it."""
        self._known = frozenset(str(number) for number, _, _ in _identities(SystemCalls.list_folder(self._folder)))

    def rest(self) -> None:
        """Forget them."""
        super().rest()
        self._listed, self._present = [], frozenset()

    def _new(self) -> Iterator[str]:
        for name in sorted(set(SystemCalls.list_folder(self._folder)) - self._known, key=int):
            try:
                yield f"descriptor {name} on {SystemCalls.read_link(f'{self._folder}/{name}')}"
            except OSError:
                continue  # the listing's own, closed by now


def _identities(names: Iterable[str]) -> Iterator[tuple[int, int, int]]:
    for name in names:
        try:
            found = SystemCalls.descriptor_status(int(name))
        except OSError:
            continue  # the listing's own, closed by now
        yield int(name), found.st_dev, found.st_ino


ALIVE: Final = Quantity(THREADS, "threads", "threads")

_THREADING: Final = threading.__file__


class ThreadMeter(OpenedMeter):
    """Counts the threads that the system lists, those of native libraries among them; elsewhere those Python knows."""

    family = THREADS
    unseen = "native code"

    def __init__(self, folder: str = "/proc/self/task") -> None:
        super().__init__()
        self._folder = folder if SystemCalls.is_folder(folder) else ""

    def settle(self) -> None:
        """Give threads that are just ending a moment: a joined thread's last steps are the system's."""
        self._give_time_to_end(self._alive)

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        self._count = self._alive()
        return {ALIVE: self._count}

    def _alive(self) -> int:
        return len(SystemCalls.list_folder(self._folder)) if self._folder else threading.active_count()

    def present(self) -> frozenset[Hashable]:
        """Return each by its number."""
        if self._folder:
            return frozenset(SystemCalls.list_folder(self._folder))
        return frozenset(thread.ident for thread in threading.enumerate())

    def observe(self) -> None:
        """Remember which are alive."""
        self._known = frozenset(thread.ident for thread in threading.enumerate())

    def _new(self) -> Iterator[str]:
        frames = sys._current_frames()
        for thread in threading.enumerate():
            if thread.ident in self._known:
                continue
            frame = frames.get(thread.ident or 0)
            while frame is not None and frame.f_code.co_filename == _THREADING:
                frame = frame.f_back
            where = f" in {frame.f_code.co_filename}:{frame.f_lineno}" if frame is not None else ""
            yield f"thread '{thread.name}'{where}"


PENDING: Final = Quantity(TASKS, "asyncio tasks", "tasks")

SETS: Final = ("_all_tasks", "_scheduled_tasks", "_eager_tasks")
"""Where ``asyncio.tasks`` has the tasks of all loops: the first until CPython 3.11, the others from 3.12 on."""

ARE_LISTED: Final = sys.version_info < (3, 14)
"""CPython 3.14 lists the tasks of one loop in one thread only."""

TRIES: Final = 100
"""Another thread may make or end tasks while they are counted; asyncio itself tries again as well."""


class TaskMeter(OpenedMeter):
    """Counts them. A program that does not use asyncio has none: it is not imported."""

    family = TASKS

    def __init__(self, owners: Owners) -> None:
        super().__init__()
        self._owners = owners

    @classmethod
    def here(cls, surroundings: Surroundings) -> Sequence[Meter]:
        """Return the one that knows whose code a line is."""
        return (cls(surroundings.owners),)

    def absent(self) -> str:
        """Say so where no list of them is."""
        return "" if ARE_LISTED else "this version of Python does not list the tasks of all loops"

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        return {PENDING: len(_pending())}

    def present(self) -> frozenset[int]:
        """Return each by its identity."""
        return pending_tasks()

    def observe(self) -> None:
        """Remember which there are."""
        self._known = frozenset(map(id, _pending()))

    def _new(self) -> Iterator[str]:
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


CHILDREN: Final = Quantity(PROCESSES, "child processes", "processes")

ENDED: Final = "Z"
"""The state of a child that has ended and was not waited for (proc(5))."""


class ProcessMeter(OpenedMeter):
    """Counts the processes whose parent this one is. It looks through those of the system only if there are any."""

    family = PROCESSES

    def __init__(self, folder: str = "/proc") -> None:
        super().__init__()
        self._folder = folder
        self._lists = sys.platform == "linux" and SystemCalls.is_folder(folder)  # asked once: a list takes long

    def absent(self) -> str:
        """Say so where the system does not list processes."""
        return "" if self._lists else "this system lists no processes"

    def settle(self) -> None:
        """Wait for what :mod:`subprocess` would wait for at its next start, and for others that are just ending."""
        subprocess = sys.modules.get("subprocess")
        if subprocess is not None:
            subprocess._cleanup()
        self._give_time_to_end(lambda: len(self._children()), self._children)

    def read(self) -> Mapping[Quantity, int]:
        """Count."""
        self._count = len(self._children())
        return {CHILDREN: self._count}

    def present(self) -> frozenset[int]:
        """Return each by its number."""
        return frozenset(self._children())

    def observe(self) -> None:
        """Remember which there are."""
        self._known = frozenset(self._children())

    def _new(self) -> Iterator[str]:
        for number, (name, state) in sorted(self._children().items()):
            if number not in self._known:
                how = "has ended; nobody waited for it" if state == ENDED else "is still running"
                yield f"process {number} ({name}) {how}"

    def _children(self) -> dict[int, tuple[str, str]]:
        """Return the name and the state of each child, by its number."""
        if not SystemCalls.has_children():
            return {}
        own, found = str(SystemCalls.process_id()), {}
        for name in SystemCalls.list_folder(self._folder):
            if name.isdigit():
                try:
                    with SystemCalls.open_file(
                        f"{self._folder}/{name}/stat", encoding="utf-8", errors="replace"
                    ) as file:
                        text = file.read()
                except OSError:
                    continue  # it has just gone
                command, _, rest = text.partition("(")[2].rpartition(") ")
                state, parent = rest.split(" ", 2)[:2]
                if parent == own:
                    found[int(name)] = (command, state)
        return found

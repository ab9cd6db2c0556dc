"""Which line changes what: counts, or things that come and go, are read after each line of a few rounds.

It sees what leaves no trace: an entry that goes into the room that a list has, a descriptor, a thread, native memory.
So it tells which line makes a list longer or a variable hold more, and which one opened what stays open.
"""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, Protocol, TypeAlias

from quiesce.leaks.meters.lists import REFERENCE_BYTES, Listed
from quiesce.leaks.meters.opened import frames_of_tasks, pending_tasks
from quiesce.leaks.meters.tracing import FRAMES, Site
from quiesce.leaks.meters.variables import VariableMeter
from quiesce.leaks.owners import DEPENDENCY, TESTED, Frame, Owners
from quiesce.leaks.quantities import TASKS, THREADS, ListingMeter, Meter, Quantity
from quiesce.leaks.stages.rounds import OtherThreads
from quiesce.leaks.stages.settling import collect_garbage

ROUNDS: Final = 4
"""So many rounds show a line that changes something in some of them only."""

LINES_MAX: Final = 500_000
"""After so many lines nothing is read any more: each takes microseconds."""


COMPANY_COST: Final = 20
"""As many times as long a reading takes if there are other threads: the system is asked about each of them."""


@dataclass(frozen=True, slots=True)
class ChangedBy:
    """A line of tested code and what it changed in all rounds.

    ``function`` has the first and last line around it, and ``callers`` the lines of tested code that led there.
    """

    frame: Frame
    change: int
    function: tuple[int, int]
    callers: frozenset[Frame] = frozenset()


Place: TypeAlias = tuple[Frame, tuple[int, int]]
"""A line, and the first and last line of the function around it."""


class Tally(Protocol):
    """Puts down to lines what they change."""

    def note(self, owner: Callable[[], Place | None]) -> None:
        """Read; ``owner`` says, if something changed, which line was at work."""

    def changed(self) -> Mapping[Place, int]:
        """Return by how much each line changed what is more at the end."""


class Counts:
    """Counts, as ``now`` returns them: a line may change them up and down."""

    def __init__(self, now: Callable[[], Sequence[int]]) -> None:
        self._now = now
        self._begun = self._last = now()
        self._changes: list[dict[Place, int]] = [{} for _ in self._last]

    def note(self, owner: Callable[[], Place | None]) -> None:
        """Put down what changed since the last call."""
        now = self._now()
        if now != self._last:
            if (place := owner()) is not None:
                for changes, before, after in zip(self._changes, self._last, now, strict=True):
                    if after != before:
                        changes[place] = changes.get(place, 0) + after - before
            self._last = now

    def changed(self) -> Mapping[Place, int]:
        """Return what the lines added to counts that are higher at the end."""
        found: dict[Place, int] = {}
        for changes, before, after in zip(self._changes, self._begun, self._now(), strict=True):
            for place, change in changes.items():
                if after > before and change > 0:
                    found[place] = found.get(place, 0) + change
        return found


class Things:
    """Things that come and go, as ``present`` returns them.

    A line is asked about only for what is still there at the end: what it opened, other code may have closed, such as
    a plugin of pytest that no line is looked at of.
    """

    def __init__(self, present: Callable[[], frozenset[Hashable]]) -> None:
        self._present = present
        self._last = present()
        self._came: dict[Hashable, Place | None] = {}

    def note(self, owner: Callable[[], Place | None]) -> None:
        """Put down what came since the last call, and forget what went."""
        now = self._present()
        if now != self._last:
            for gone in self._last - now:
                self._came.pop(gone, None)
            self._came.update(dict.fromkeys(now - self._last, owner()))
            self._last = now

    def changed(self) -> Mapping[Place, int]:
        """Return how many things came with each line and are there for good: no garbage keeps them."""
        collect_garbage()
        now = self._present()
        return Counter(place for thing, place in self._came.items() if thing in now and place is not None)


class Company:
    """Knows whether another thread may have done what happened between two readings.

    It reads what the system says of all threads, but only while there is more than one of Python's. A thread of a
    native library alone is taken to work for the line that is at work. If ``may_begin``, a thread that has just begun
    does not count: it is what the line began.
    """

    def __init__(self, *, may_begin: bool) -> None:
        self.may_begin = may_begin
        self._before = self._now = self._look()

    def _look(self) -> tuple[int, int, OtherThreads | None]:
        """Return which thread looks, how many threads there are, and what the others have done, if there are any."""
        count = len(sys._current_frames())
        others = OtherThreads() if count > 1 else None
        if others is not None:
            others.remember()
        return threading.get_native_id(), count, others

    def begin(self) -> int:
        """Look, before a reading; return what it costs, in readings of a thread that is alone."""
        self._now = self._look()
        return 1 if self._now[2] is None else COMPANY_COST

    def end(self) -> None:
        """Let what was seen before the last reading be where the next one begins."""
        self._before = self._now

    def has_acted(self) -> bool:
        """Whether another thread than this one may have run between the last reading and this one."""
        thread, count, others = self._before
        if thread != threading.get_native_id():
            return True
        began = max(0, len(sys._current_frames()) - count)
        ran = began if others is None else others.ran()
        return ran > (began if self.may_begin else 0)


class LineWatch:
    """Has ``tally`` read after each line. A tracer that is there, as that of coverage, comes back.

    With ``company`` a change is put down to a line only if no other thread may have made it. The lines of threads that
    begin meanwhile are looked at too, unless these threads are what is looked for. A thread that was there before keeps
    its tracer: it cannot be asked for it. ``cost`` is how long a reading takes, in those of a number.
    """

    def __init__(self, owners: Owners, tally: Tally, company: Company | None = None, cost: int = 1) -> None:
        self._owners = owners
        self._tally = tally
        self._company = company
        self._cost = cost
        self._reading = threading.Lock()
        self._is_watching = False
        self._at_work: dict[int, tuple[FrameType | None, int]] = {}
        self._lines = 0
        self._callers: dict[Frame, frozenset[Frame]] = {}

    def watch(self, run_round: Callable[[], None]) -> Sequence[ChangedBy]:
        """Run rounds and return the lines of tested code after which there was more of what is more at the end."""
        for _ in range(ROUNDS):
            before, of_threads = sys.gettrace(), threading.gettrace()
            self._is_watching = True
            if self._company is not None and not self._company.may_begin:
                threading.settrace(self._enter)
            sys.settrace(self._enter)
            try:
                run_round()
            finally:
                sys.settrace(before)
                threading.settrace(of_threads)
                self._is_watching = False
                self._at_work.clear()
        return self._changed()

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        """Follow the lines of tested code; what it calls changes what the line changes that calls it."""
        if not self._is_watching:
            sys.settrace(None)  # of a thread that goes on
            return None
        if not self._is_followed(frame):
            return None
        return self._step(frame, "call", None)

    def _is_followed(self, frame: FrameType) -> bool:
        kind = self._owners.kind(frame.f_code.co_filename)
        if kind != DEPENDENCY:
            return kind == TESTED
        caller = frame.f_back  # an installed package is tested code where no other code calls it: tests come with some
        for _ in range(FRAMES):
            if caller is None:
                break
            if self._owners.is_tested(caller.f_code.co_filename):
                return False
            caller = caller.f_back
        return True

    def _step(self, frame: FrameType, event: str, _argument: Any) -> Any:
        """Put down what changed to the line that was at work since the last event."""
        if not self._is_watching:
            sys.settrace(None)
            return None
        if self._lines > LINES_MAX:
            return None
        self._read()
        at_work = frame.f_back if event == "return" else frame
        self._at_work[threading.get_ident()] = at_work, at_work.f_lineno if at_work is not None else 0
        return self._step

    def _read(self) -> None:
        """Read, unless another thread does: that one then knows that it was not alone."""
        if not self._reading.acquire(blocking=False):
            return
        try:
            self._lines += self._cost * (1 if self._company is None else self._company.begin())
            self._tally.note(self._owner)
            if self._company is not None:
                self._company.end()
        finally:
            self._reading.release()

    def _owner(self) -> Place | None:
        """Return the line of tested code that is at work, and where its function begins and ends."""
        if self._company is not None and self._company.has_acted():
            return None
        frames: list[Frame] = []
        functions: dict[Frame, tuple[int, int]] = {}
        frame, line = self._at_work.get(threading.get_ident(), (None, 0))
        while frame is not None and len(frames) < FRAMES:
            place = (frame.f_code.co_filename, line)
            frames.append(place)
            functions.setdefault(place, extent(frame))
            frame = frame.f_back
            line = frame.f_lineno if frame is not None else 0
        owner = self._owners.owner(frames) if frames else None
        if owner is None:
            return None
        callers = (each for each in frames if self._owners.is_tested(each[0]))
        self._callers[owner] = self._callers.get(owner, frozenset()).union(callers)
        return owner, functions[owner]

    def _changed(self) -> Sequence[ChangedBy]:
        changed = [
            ChangedBy(frame, change, function, self._callers[frame])
            for (frame, function), change in self._tally.changed().items()
        ]
        return sorted(changed, key=lambda each: (-each.change, each.frame))


def extent(frame: FrameType) -> tuple[int, int]:
    """Return the first and the last line of the function that a frame is of."""
    lines = [line for _, _, line in frame.f_code.co_lines() if line is not None]
    return min(lines, default=0), max(lines, default=0)


def longer_lists(owners: Owners, lists: Sequence[Listed], run_round: Callable[[], None]) -> Sequence[Site]:
    """Run a few rounds and return the lines of tested code that make lists longer, the fastest first."""
    changed = LineWatch(owners, Counts(lambda: tuple(map(len, lists)))).watch(run_round)
    return [Site(each.frame, REFERENCE_BYTES * each.change / ROUNDS, 0.0) for each in changed]


def fuller_variables(owners: Owners, variables: VariableMeter, run_round: Callable[[], None]) -> Sequence[Site]:
    """Run a few rounds and return the lines of tested code after which variables hold more, the fastest first."""
    changed = LineWatch(owners, Counts(lambda: (variables.held_bytes(),))).watch(run_round)
    return [Site(each.frame, each.change / ROUNDS, 0.0) for each in changed]


RUNNING: Final = (THREADS, TASKS)
"""Of what is opened, what runs functions of its own."""


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
                lines[quantity] = _opening(owners, meter, run_round)
    running: list[FrameType] = []
    if any(quantity.family == THREADS for quantity in lines):
        running += frames_of_threads(before)
    if any(quantity.family == TASKS for quantity in lines):
        running += frames_of_tasks(tasks_before)
    functions = [
        (frame.f_code.co_filename, *extent(frame)) for frame in running if owners.is_tested(frame.f_code.co_filename)
    ]
    return Opened(lines, functions)


def _opening(owners: Owners, meter: ListingMeter, run_round: Callable[[], None]) -> Sequence[ChangedBy]:
    company = Company(may_begin=meter.family == THREADS)
    return LineWatch(owners, Things(meter.present), company).watch(run_round)


def frames_of_threads(before: frozenset[int | None]) -> Iterator[FrameType]:
    """Yield the functions that newer threads are in."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = None if thread.ident in before else frames.get(thread.ident or 0)
        while frame is not None:
            yield frame
            frame = frame.f_back

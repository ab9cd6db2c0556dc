"""Where generated sequences run: in this process, or in several of its own.

A worker is a fresh interpreter that loads the backend by its name. It has one sequence at a time. If it dies, the
sequence that it had is known, and another worker goes on with the others.

A worker that was killed says nothing about its sequence: the user may have done it, or the kernel for lack of memory.
So the sequence runs once more, in another worker, and only a worker that dies of it again counts. A signal that a
process brings upon itself, such as SIGSEGV, counts at once.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from quiesce.allocators.generation import IN_FLIGHT_MAX, Died, Task
from quiesce.backends.registry import Usable
from quiesce.cli.answering import answer, is_refusal, refusal, result_of
from quiesce.cli.endings import interrupted_by_signals
from quiesce.cli.selection import choose_described
from quiesce.model.errors import BackendUnavailable

_AHEAD: Final = 8
"""So many results for each worker are kept until those before them are there."""
_END_SECONDS: Final = 5.0
_CRASHES: Final = frozenset(
    -getattr(signal, name)
    for name in ("SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSEGV", "SIGSYS", "SIGTRAP")
    if hasattr(signal, name)
)
"""How processes end of what they do themselves."""

_Place: TypeAlias = tuple[int, int]
"""Which run, and which of its tasks: a worker may still have one of a run whose results nobody wants any more."""


class Here:
    """Runs one task after another in this process."""

    def __init__(self, usable: Usable) -> None:
        self._usable = usable

    def run(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """Run each task when its result is asked for."""
        for task in tasks:
            yield task(self._usable.backend, self._usable.description)


class _Worker:
    def __init__(self, name: str, timeout_seconds: float | None) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_work, args=(theirs, name, timeout_seconds), daemon=False)
        self.process.start()
        theirs.close()
        self.place: _Place | None = None

    def give(self, place: _Place, task: Task) -> bool:
        """Hand out a task, and return whether the worker is there to take it: somebody may have killed it."""
        try:
            self.connection.send(task)
        except OSError:
            return False
        self.place = place
        return True

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join(_END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class _Tasks:
    """The tasks of one run that nobody has: first those of workers that were killed, then the next ones.

    At most ``in_flight`` are handed out whose results nobody has had.
    """

    def __init__(self, tasks: Iterable[Task], in_flight: int) -> None:
        self._following = enumerate(tasks)
        self._in_flight = in_flight
        self._handed_out: dict[int, Task] = {}
        self._again: list[int] = []
        self._died: set[int] = set()

    def take(self) -> tuple[int, Task] | None:
        """Return the next task and its number; None where there is none now."""
        if self._again:
            number = self._again.pop(0)
            return number, self._handed_out[number]
        if len(self._handed_out) == self._in_flight:
            return None
        if (following := next(self._following, None)) is not None:
            self._handed_out[following[0]] = following[1]
        return following

    def put_back(self, number: int) -> None:
        """Take back a task that nobody began."""
        self._again.insert(0, number)

    def try_again(self, number: int) -> bool:
        """Take back a task whose worker was killed, and return whether it was the first one that was."""
        if number in self._died:
            return False
        self._died.add(number)
        self._again.append(number)
        return True

    def is_done(self, number: int) -> None:
        """Forget a task."""
        self._handed_out.pop(number, None)


class Workers:
    """A context manager: so many processes that have loaded a backend. ``tell`` hears of workers that were killed."""

    def __init__(
        self, count: int, name: str, timeout_seconds: float | None, tell: Callable[[str], None] = lambda _: None
    ) -> None:
        self._count, self._name, self._timeout_seconds, self._tell = count, name, timeout_seconds, tell
        self._workers: list[_Worker] = []
        self._runs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.end()

    def run(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """Run as many tasks at a time as there are workers. Results that the caller does not ask for are lost.

        In the place of a task that failed, raises what :func:`result_of` does.
        """
        for answered in self.answers(tasks):
            yield result_of(answered)

    def answers(self, tasks: Iterable[Task]) -> Iterator[object]:
        """Run tasks likewise, and yield what can be sent on to another process: see :func:`result_of`."""
        self._runs += 1
        run, waiting = self._runs, _Tasks(tasks, min(IN_FLIGHT_MAX, _AHEAD * self._count))
        results: dict[int, Any] = {}
        following = 0
        while True:
            self._hand_out(waiting, run)
            busy = [worker for worker in self._workers if worker.place is not None]
            if following in results:
                waiting.is_done(following)
                yield results.pop(following)
                following += 1
                continue
            if not busy:
                return
            for ready in wait([worker.connection for worker in busy]):
                worker = next(each for each in busy if each.connection is ready)
                (of_run, number), result = self._take(worker)
                if of_run == run and not (self._was_killed(result) and self._runs_again(waiting, number, result)):
                    results[number] = result

    def _was_killed(self, result: object) -> bool:
        """Whether a worker died, but perhaps not of its task."""
        return isinstance(result, Died) and not result.is_crash

    def _runs_again(self, waiting: _Tasks, number: int, died: Died) -> bool:
        if not waiting.try_again(number):
            return False
        self._tell(f"a worker is gone: {died.how}; its sequence runs again")
        return True

    def _hand_out(self, waiting: _Tasks, run: int) -> None:
        """Give a task to each worker that has none; one that was killed meanwhile is replaced."""
        place = 0
        while place < self._count:
            if place == len(self._workers):
                self._workers.append(_Worker(self._name, self._timeout_seconds))
            worker = self._workers[place]
            if worker.place is None:
                if (taken := waiting.take()) is None:
                    return
                number, task = taken
                if not worker.give((run, number), task):
                    waiting.put_back(number)
                    self._remove(worker)
                    continue
            place += 1

    def _take(self, worker: _Worker) -> tuple[_Place, Any]:
        place = worker.place
        assert place is not None
        worker.place = None
        try:
            result = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(_END_SECONDS)
            code = worker.process.exitcode
            result = Died(_how_it_ended(code), is_crash=code in _CRASHES)
            self._remove(worker)
        if is_refusal(result):
            self._remove(worker)
            result_of(result)
        return place, result

    def _remove(self, worker: _Worker) -> None:
        worker.end()
        self._workers.remove(worker)


def _how_it_ended(code: int | None) -> str:
    if code is None:
        return "the process closed its connection"
    if code < 0:
        return f"the process was ended by {signal.Signals(-code).name}"
    return f"the process ended with exit code {code}"


def _work(connection: Connection, name: str, timeout_seconds: float | None) -> None:
    """Do what comes, until nobody sends any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who pressed Ctrl-C means the command, which ends its workers
    try:
        with interrupted_by_signals():
            usable = choose_described(name, timeout_seconds)
            while True:
                task: Task = connection.recv()
                connection.send(answer(task, usable))
    except BackendUnavailable as unavailable:
        connection.send(refusal(unavailable))
    except (EOFError, KeyboardInterrupt, OSError):
        pass

"""Where generated sequences run: in this process, or in several of its own.

A worker is a fresh interpreter that loads the backend by its name. It has one sequence at a time. If it dies, the
sequence that it had is known, and another worker goes on with the others.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from quiesce.backends.registry import Usable
from quiesce.cli.interruption import interrupted_by_signals
from quiesce.cli.selection import choose_described
from quiesce.errors import BackendUnavailable
from quiesce.generation.jobs import Died, Task

_AHEAD: Final = 8
"""So many results for each worker are kept until those before them are there."""
_END_SECONDS: Final = 5.0

_Place: TypeAlias = tuple[int, int]
"""Which run, and which of its tasks: a worker may still have one of a run whose results nobody wants any more."""


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why a worker cannot work: what :class:`BackendUnavailable` says."""

    backend: str
    reason: str
    remedy: str


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

    def give(self, place: _Place, task: Task) -> None:
        self.place = place
        self.connection.send(task)

    def end(self) -> None:
        self.connection.close()
        self.process.terminate()
        self.process.join(_END_SECONDS)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


class Workers:
    """A context manager: so many processes that have loaded a backend."""

    def __init__(self, count: int, name: str, timeout_seconds: float | None) -> None:
        self._count, self._name, self._timeout_seconds = count, name, timeout_seconds
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
        """Run as many tasks at a time as there are workers. Results that the caller does not ask for are lost."""
        self._runs += 1
        run, source = self._runs, enumerate(tasks)
        results: dict[_Place, Any] = {}
        following = 0
        while True:
            self._hand_out(source, run, following)
            busy = [worker for worker in self._workers if worker.place is not None]
            if (run, following) in results:
                yield results.pop((run, following))
                following += 1
                continue
            if not busy:
                return
            for ready in wait([worker.connection for worker in busy]):
                worker = next(each for each in busy if each.connection is ready)
                place, result = self._take(worker)
                results[place] = result

    def _hand_out(self, source: Iterator[tuple[int, Task]], run: int, following: int) -> None:
        while len(self._workers) < self._count:
            self._workers.append(_Worker(self._name, self._timeout_seconds))
        for worker in self._workers:
            if worker.place is not None or self._is_far_ahead(run, following):
                continue
            try:
                number, task = next(source)
            except StopIteration:
                return
            worker.give((run, number), task)

    def _is_far_ahead(self, run: int, following: int) -> bool:
        numbers = [worker.place[1] for worker in self._workers if worker.place is not None and worker.place[0] == run]
        return bool(numbers) and max(numbers) - following >= _AHEAD * self._count

    def _take(self, worker: _Worker) -> tuple[_Place, Any]:
        place = worker.place
        assert place is not None
        worker.place = None
        try:
            result = worker.connection.recv()
        except (EOFError, OSError):
            worker.process.join(_END_SECONDS)
            result = Died(_how_it_ended(worker.process.exitcode))
            worker.end()
            self._workers.remove(worker)
        if isinstance(result, _Refused):
            worker.end()
            self._workers.remove(worker)
            raise BackendUnavailable(result.backend, result.reason, result.remedy)
        return place, result


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
                connection.send(task(usable.backend, usable.description))
    except BackendUnavailable as unavailable:
        connection.send(_Refused(unavailable.backend, unavailable.reason, unavailable.remedy))
    except (EOFError, KeyboardInterrupt, OSError):
        pass

"""Generated sequences on somebody else's workers: any :class:`concurrent.futures.Executor` can run them.

An executor does not say which sequence ended its worker. So each sequence that it lost runs alone, in a process of its
own on this machine, the oldest first: that process names the sequence which ends it, and how it ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from quiesce.allocators.generation import IN_FLIGHT_MAX, Task
from quiesce.cli.answering import answer_by_name, result_of
from quiesce.cli.workers import Workers
from quiesce.model.errors import ConfigurationError

_LOSSES_MAX: Final = 3
"""An executor that was made anew so often, and ran nothing since, has no workers to run anything."""

_MPI: Final = "mpi"
_DASK: Final = "dask:"
_EXAMPLE: Final = "dask:tcp://127.0.0.1:8786"


@dataclass(frozen=True, slots=True)
class Engine:
    """What makes an executor, and what its workers call.

    ``lost`` are the exceptions by which it says that it lost a worker, beside those of the standard library. ``answer``
    returns the answer to a task on the backend of a name.
    """

    make: Callable[[], Executor]
    lost: tuple[type[Exception], ...] = ()
    answer: Callable[[str, float | None, Task], object] = answer_by_name


class OnExecutor:
    """A context manager: runs tasks on the executors that ``engine`` makes, another one where the last is broken.

    ``tell`` hears of each worker that is lost.
    """

    def __init__(
        self,
        engine: Engine,
        name: str,
        timeout_seconds: float | None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._engine, self._name, self._timeout_seconds, self._tell = engine, name, timeout_seconds, tell
        self._lost: tuple[type[Exception], ...] = (BrokenExecutor, CancelledError, *engine.lost)
        self._alone = Workers(1, name, timeout_seconds, tell)
        self._executor: Executor | None = None
        self._losses = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._alone.__exit__(kind, error, trace)
        self._close()

    def run(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """Run tasks, and yield their results in their order.

        In the place of a task that failed, raises what :func:`result_of` does. Raises :class:`ConfigurationError` where
        the executor can run nothing.
        """
        flying: deque[tuple[Task, Future[object]]] = deque()
        try:
            for task in tasks:
                flying.append((task, self._submit(task)))
                if len(flying) == IN_FLIGHT_MAX:
                    yield self._result(*flying.popleft())
            while flying:
                yield self._result(*flying.popleft())
        finally:
            for _, future in flying:
                future.cancel()

    def _submit(self, task: Task) -> Future[object]:
        while True:
            if self._executor is None:
                self._executor = self._engine.make()
            try:
                return self._executor.submit(self._engine.answer, self._name, self._timeout_seconds, task)
            except BrokenExecutor as error:
                self._close()
                self._losses += 1
                if self._losses == _LOSSES_MAX:
                    raise ConfigurationError(f"the executor has no workers: {_said(error)}; see its log") from error

    def _result(self, task: Task, future: Future[object]) -> Any:
        try:
            answered = future.result()
        except self._lost as error:
            self._tell(f"the executor lost a sequence: {_said(error)}; it runs alone")
            (result,) = self._alone.run([task])
            return result
        except Exception as error:  # what a task raises is an answer, so this is the executor's own
            said = f"the executor can't run a sequence: {_said(error)}"
            raise ConfigurationError(f"{said}; install the same quiesce where its workers are") from error
        self._losses = 0
        return result_of(answered)

    def _close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None


def engine_of(names: Sequence[str]) -> Engine:
    """Return the engine of these names. Raises :class:`ConfigurationError` for one that cannot be had."""
    if set(names) == {_MPI}:
        from quiesce.cli import mpi_ranks

        return Engine(mpi_ranks.pool, answer=mpi_ranks.answer_apart)
    addresses = [name.removeprefix(_DASK) for name in names if name.startswith(_DASK)]
    if len(addresses) < len(names) or not all(addresses):
        wrong = next(name for name in names if not name.startswith(_DASK) or name == _DASK)
        known = f"write dask:ADDRESS, such as {_EXAMPLE}, or {_MPI} alone"
        raise ConfigurationError(f"--executor: '{wrong}' is no executor here; {known}")
    from quiesce.cli import dask_clusters

    return Engine(partial(dask_clusters.Clusters, addresses), dask_clusters.losses())


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

"""Generated sequences on somebody else's workers: any :class:`concurrent.futures.Executor` can run them.

An executor does not say which sequence ended its worker. So each sequence that it lost runs alone, in a process of its
own on this machine, the oldest first: that process names the sequence which ends it, and how it ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from quiesce.allocators.generation import IN_FLIGHT_MAX, Task
from quiesce.cli.answering import answer_by_name, result_of
from quiesce.cli.workers import Workers
from quiesce.model.errors import ConfigurationError

_LOSSES_MAX: Final = 3
"""An executor that was made anew so often, and ran nothing since, has no workers to run anything."""

_DASK: Final = "dask:"
_EXAMPLE: Final = "dask:tcp://127.0.0.1:8786"


class OnExecutor:
    """A context manager: runs tasks on the executors that ``make`` makes, another one where the last is broken.

    ``lost`` are the exceptions by which an executor says that it lost a worker, beside those of the standard library.
    ``tell`` hears of each loss.
    """

    def __init__(
        self,
        make: Callable[[], Executor],
        name: str,
        timeout_seconds: float | None,
        tell: Callable[[str], None] = lambda _: None,
        lost: tuple[type[Exception], ...] = (),
    ) -> None:
        self._make, self._name, self._timeout_seconds, self._tell = make, name, timeout_seconds, tell
        self._lost: tuple[type[Exception], ...] = (BrokenExecutor, CancelledError, *lost)
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
                self._executor = self._make()
            try:
                return self._executor.submit(answer_by_name, self._name, self._timeout_seconds, task)
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


def executor_of(names: Sequence[str]) -> tuple[Callable[[], Executor], tuple[type[Exception], ...]]:
    """Return what makes the executor of these names, and the exceptions by which it says that it lost a worker.

    Raises :class:`ConfigurationError` for a name that there is not, and where its library is missing.
    """
    addresses = [name.removeprefix(_DASK) for name in names if name.startswith(_DASK)]
    if len(addresses) < len(names) or not all(addresses):
        wrong = next(name for name in names if not name.startswith(_DASK) or name == _DASK)
        raise ConfigurationError(f"--executor: '{wrong}' is no executor; write dask:ADDRESS, such as {_EXAMPLE}")
    from quiesce.cli import dask_clusters

    return partial(dask_clusters.Clusters, addresses), dask_clusters.losses()


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__

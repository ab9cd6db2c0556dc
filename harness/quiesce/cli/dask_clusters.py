"""Clusters of Dask as one executor: each sequence goes to the one that has the fewest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from typing import TYPE_CHECKING, Any

from quiesce.model.errors import ConfigurationError

if TYPE_CHECKING:
    from distributed import Client

_HINT = "start one with 'dask scheduler' and 'dask worker ADDRESS'"


def losses() -> tuple[type[Exception], ...]:
    """Return how Dask says that workers died of a task. Raises :class:`ConfigurationError` without Dask."""
    try:
        from distributed import KilledWorker
    except ImportError as error:
        said = "Dask runs sequences only where it is installed"
        raise ConfigurationError(f"{said}; pip install 'quiesce[dask]' here and where its workers are") from error
    return (KilledWorker,)


class Clusters(Executor):
    """Runs functions on clusters. One that is gone gets no more; without any, :class:`BrokenExecutor` is raised."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._clients: dict[str, Client] = {}
        self._has: Counter[str] = Counter()
        for address in addresses:
            self._clients[address] = _connected(address)

    def submit(self, function: Callable[..., Any], /, *words: Any, **named: Any) -> Future[Any]:
        """Hand a call to the cluster that has the fewest."""
        living = [each for each, client in self._clients.items() if client.status == "running"]
        if not living:
            raise BrokenExecutor(f"no scheduler answers any more at {' or '.join(self._clients)}")
        address = min(living, key=lambda each: self._has[each])
        future: Future[Any] = Future()
        theirs = self._clients[address].submit(function, *words, pure=False, **named)
        theirs.add_done_callback(partial(_hand_over, future))
        self._has[address] += 1
        future.add_done_callback(lambda _: self._has.subtract([address]))
        future.add_done_callback(lambda ours: theirs.cancel() if ours.cancelled() else None)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the clusters, which go on."""
        for client in self._clients.values():
            client.close()


def _hand_over(future: Future[Any], theirs: Any) -> None:
    """Give what came of a future of Dask to one of the standard library.

    That of ``Client.get_executor()`` never ends where a worker dies that has a result which nobody fetched yet: its
    ``_cascade_future`` lets :class:`FutureCancelledError` pass (distributed 2026.8, ``cfexecutor.py``).
    """
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = theirs.result()
    except BaseException as error:  # a CancelledError is none of Exception in each release
        future.set_exception(error)
    else:
        future.set_result(result)


def _connected(address: str) -> Client:
    from distributed import Client

    try:
        return Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        said = str(error).partition("\n")[0]
        raise ConfigurationError(f"no Dask scheduler answers at '{address}': {said}; {_HINT}") from error

"""What runs sequences in other processes: the tasks that go there, and what comes back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from quiesce.backend import Backend, Description

Task: TypeAlias = Callable[[Backend, Description], Any]
"""What a worker does: a function of a module with its arguments, so that it can be sent there."""


@dataclass(frozen=True, slots=True)
class Died:
    """What came of a task whose worker died: how the process ended, and whether by a signal of its own, as SIGSEGV."""

    how: str
    is_crash: bool = False


class Jobs(Protocol):
    """Runs tasks, and yields their results in the order of the tasks."""

    def run(self, tasks: Iterable[Task]) -> Iterator[Any]:
        """Run tasks; :class:`Died` is the result of one that ended its process, again where it was killed.

        Raises :class:`quiesce.errors.BackendUnavailable` where the backend cannot be opened there.
        """

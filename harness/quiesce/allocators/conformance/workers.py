"""Generated sequences in worker processes, monitored: their notes come back and are entered in their order."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from quiesce.allocators.conformance.monitor import Attentive, Notebook
from quiesce.allocators.generation import Died, Jobs, Ran, Search, Task, ended_process, run_sequence
from quiesce.model.backend import Backend, Description
from quiesce.model.errors import BackendUnavailable


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why the backend has no device for a sequence: what :class:`BackendUnavailable` says."""

    backend: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Noted:
    """What came of one sequence, and what was noticed meanwhile."""

    notebook: Notebook
    came: Ran | Refusal


def run_noted(
    backend: Backend, _described: Description, *, search: Search, number: int, description: Description, place: str
) -> Noted:
    """Run one sequence; ``description`` is what the backend said of itself where the run began."""
    notebook = Notebook()
    notebook.place = place
    try:
        ran = run_sequence(Attentive(backend, notebook, description), description, search, number)
    except BackendUnavailable as unavailable:
        return Noted(notebook, Refusal(unavailable.backend, unavailable.reason, unavailable.remedy))
    return Noted(notebook, ran)


def run_elsewhere(
    jobs: Jobs, backend: Backend, notebook: Notebook, description: Description, search: Search
) -> Iterator[Ran]:
    """Yield what comes of the sequences, in their order, and enter what was noticed.

    A backend that the processes cannot open runs here. Raises :class:`BackendUnavailable` for a sequence that the
    backend has no device for.
    """

    def task_of(number: int) -> Task:
        return partial(run_noted, search=search, number=number, description=description, place=notebook.place)

    for number, result in enumerate(_results(jobs, backend, description, task_of)):
        if isinstance(result, Died):
            yield ended_process(number, result)
            continue
        notebook.enter(result.notebook)
        if isinstance(result.came, Refusal):
            raise BackendUnavailable(result.came.backend, result.came.reason, result.came.remedy)
        yield result.came


def _results(
    jobs: Jobs, backend: Backend, description: Description, task_of: Callable[[int], Task]
) -> Iterator[Noted | Died]:
    number = 0
    try:
        for result in jobs.run(map(task_of, itertools.count())):
            number += 1
            yield result
    except BackendUnavailable:  # the refusal of a process: that of a sequence is a result
        for later in itertools.count(number):
            yield task_of(later)(backend, description)

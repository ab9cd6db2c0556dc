"""The ranks of an MPI job as one executor: the first one runs the campaign, and the others its sequences.

MPI ends all ranks where one dies. So a rank hands each sequence to a process of its own.
"""

from __future__ import annotations

import sys
from concurrent.futures import Executor
from functools import cache

from quiesce.allocators.generation import Task
from quiesce.cli.answering import refusal
from quiesce.cli.workers import Workers
from quiesce.model.errors import BackendUnavailable, ConfigurationError

_RUNNER = "mpi4py.futures"
_COMMAND = f"mpiexec -n 9 python -m {_RUNNER} -m quiesce explore --executor mpi"


def pool() -> Executor:
    """Return the ranks. Raises :class:`ConfigurationError` without mpi4py, and where this rank has no others."""
    try:
        from mpi4py import MPI
        from mpi4py.futures import MPIPoolExecutor
    except (ImportError, RuntimeError) as error:  # the second where no library of MPI is found
        said = f"MPI runs sequences only where mpi4py works: {error}"
        raise ConfigurationError(f"{said}; pip install 'quiesce[mpi]', and an MPI such as Open MPI") from error
    if _RUNNER not in sys.orig_argv or MPI.COMM_WORLD.Get_size() == 1:
        raise ConfigurationError(f"there are no ranks that wait for sequences; write {_COMMAND}")
    executor: Executor = MPIPoolExecutor()
    return executor


_workers = cache(Workers)


def answer_apart(name: str, timeout_seconds: float | None, task: Task) -> object:
    """Return the answer to a task on the backend of that name, from the process that this rank keeps for it."""
    try:
        (answered,) = _workers(1, name, timeout_seconds).answers([task])
    except BackendUnavailable as unavailable:
        return refusal(unavailable)
    return answered

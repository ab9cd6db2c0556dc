"""What a process answers to a task: its result, or why there is none, in words that can be sent to another process."""

from __future__ import annotations

import threading
import traceback
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from quiesce.allocators.generation import Task
from quiesce.backends.registry import Usable
from quiesce.cli.selection import choose_described
from quiesce.model.errors import BackendUnavailable, ConfigurationError, FailedInWorker, QuiesceError


@dataclass(frozen=True, slots=True)
class _Refused:
    """Why a worker cannot work: what :class:`BackendUnavailable` says."""

    backend: str
    reason: str
    remedy: str


@dataclass(frozen=True, slots=True)
class _Mistaken:
    """What is wrong with a file or an option, in words. Not every exception of quiesce can be sent."""

    text: str


@dataclass(frozen=True, slots=True)
class _Failed:
    """The traceback of an error in quiesce itself, which is no property of the backend."""

    text: str


def answer(task: Task, usable: Usable) -> object:
    """Return the answer to a task. Raises :class:`BackendUnavailable` where the backend cannot be opened."""
    try:
        return task(usable.backend, usable.description)
    except BackendUnavailable:
        raise
    except QuiesceError as error:
        return _Mistaken(str(error))
    except OSError as error:
        return error
    except Exception:
        return _Failed(traceback.format_exc())


def refusal(unavailable: BackendUnavailable) -> object:
    """Return the answer of a process that cannot work."""
    return _Refused(unavailable.backend, unavailable.reason, unavailable.remedy)


def is_refusal(answered: object) -> bool:
    """Whether an answer is that of a process that cannot work."""
    return isinstance(answered, _Refused)


def result_of(answered: object) -> Any:
    """Return the result of a task, or raise what it raised in the process that answered.

    That is :class:`OSError`, :class:`BackendUnavailable`, :class:`ConfigurationError` for the other errors that quiesce
    raises on purpose, and :class:`FailedInWorker` for an error in quiesce itself.
    """
    match answered:
        case _Refused(backend, reason, remedy):
            raise BackendUnavailable(backend, reason, remedy)
        case _Failed(text):
            raise FailedInWorker(text)
        case _Mistaken(text):
            raise ConfigurationError(text)
        case OSError():
            raise answered
    return answered


_ONE_AT_A_TIME: Final = threading.Lock()
"""An engine may run several tasks in threads of one process; a backend is made for one at a time."""

_loaded = cache(choose_described)


def answer_by_name(name: str, timeout_seconds: float | None, task: Task) -> object:
    """Return the answer to a task on the backend of that name, which this process loads once."""
    with _ONE_AT_A_TIME:
        try:
            return answer(task, _loaded(name, timeout_seconds))
        except BackendUnavailable as unavailable:
            return refusal(unavailable)
        except QuiesceError as error:
            return _Mistaken(str(error))

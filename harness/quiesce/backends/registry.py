"""Backends by name: entry points of the group ``quiesce.backends``, and five prefixes that take an argument.

NAME                an installed backend, quiesce's own or a third party's
command:COMMAND     a program that speaks the wire protocol (``docs/reference/wire_protocol.md``)
python:PLACE:FACTORY  what a factory in a file or module returns (``python:my_allocator.py:Backend``)
reference:FAULT     the reference with a fault of the museum switched on
served:NAME         an installed backend in a process of its own: what hangs or crashes there is a finding
subject:NAME/VARIANT@VERSION  the driver of an upstream release, fetched and built (``subject:burn_tape/base@0.15.0``)

Subjects are a room above this one: an entry point of the group ``quiesce.prefixes`` says who loads them.
"""

from __future__ import annotations

import difflib
import enum
import importlib.metadata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol, runtime_checkable

from quiesce.model.backend import Backend, Compiles, Description
from quiesce.model.errors import BackendUnavailable, ConfigurationError

GROUP: Final = "quiesce.backends"
"""The entry-point group; each entry point is a callable without arguments that returns a backend."""
PREFIXES: Final = "quiesce.prefixes"
"""The group of what loads backends with a prefix: a callable that takes the argument and the whole name."""


_SUBJECT: Final = "subject"
_ARGUMENTS: Final = {
    "command": "COMMAND, such as command:./driver",
    "python": "FILE.py:FACTORY, such as python:my_allocator.py:Backend",
    "reference": "FAULT, such as 'quiesce prove' lists",
    "served": "NAME, such as served:host",
    _SUBJECT: "NAME/VARIANT@VERSION, such as subject:thrust_pool/unsynchronized@2.8.2",
}
"""The prefixes, and what stands behind each."""


@runtime_checkable
class Watched(Backend, Protocol):
    """A backend whose contexts are processes that have a bound for every reply: a driver program."""

    def with_watchdog(self, seconds: float) -> Backend:
        """Return the same driver with another bound."""


@dataclass(frozen=True, slots=True)
class Usable:
    """A backend that described itself here."""

    name: str
    backend: Backend
    description: Description


class Lack(enum.StrEnum):
    """What a backend lacks."""

    PACKAGE = "not installed"
    COMPILATION = "not compiled yet"
    OTHER = "cannot work here"


@dataclass(frozen=True, slots=True)
class Unusable:
    """A backend that cannot be used here: in short, why, and what to do about it."""

    name: str
    reason: str
    remedy: str
    lack: Lack = Lack.OTHER

    @property
    def in_short(self) -> tuple[str, str]:
        """Return what is the matter in short, and the command that helps: equal for backends that share a line."""
        return str(self.lack), self.remedy if self.lack is Lack.COMPILATION else "see quiesce doctor"

    @property
    def explanation(self) -> str:
        """Why it cannot work and what to do about it, as one sentence."""
        return f"{self.reason}; {self.remedy}"


def backend_names() -> tuple[str, ...]:
    """Return the names of the installed backends, sorted. Nothing is imported."""
    return tuple(sorted({point.name for point in _entry_points()}))


def load_backend(name: str) -> Backend:
    """Return a new backend by its name, or by a prefix and its argument.

    Raises :class:`ConfigurationError` for an unknown name, a name that two distributions claim, or an entry point
    that makes something else; :class:`BackendUnavailable` where its factory cannot be imported or fails.
    """
    prefix, colon, argument = name.partition(":")
    if colon and prefix in _ARGUMENTS:
        return _load_with_argument(prefix, argument.strip(), name)
    point = _find(name)
    try:
        backend: object = point.load()()
    except (BackendUnavailable, ConfigurationError):
        raise
    except (Exception, SystemExit) as error:  # third-party code: whatever it raises, it cannot be used here
        remedy = f"repair or reinstall the distribution that declares '{point.value}'"
        raise BackendUnavailable(name, _describe(error), remedy) from error
    if not isinstance(backend, Backend):
        raise ConfigurationError(
            f"entry point '{name}' = '{point.value}' makes {type(backend).__name__}, which is not a backend; "
            "write a factory that returns an object with describe() and open(profile)"
        )
    return backend


def probe_backend(name: str, answer_seconds: float | None = None) -> Usable | Unusable:
    """Load a backend and let it describe itself; ``answer_seconds`` bounds each answer of a driver program.

    Raises :class:`ConfigurationError` as :func:`load_backend` does.
    """
    try:
        backend = load_backend(name)
        if answer_seconds is not None and isinstance(backend, Watched):
            backend = backend.with_watchdog(answer_seconds)
        return Usable(name, backend, backend.describe())
    except BackendUnavailable as error:
        lack = Lack.PACKAGE if isinstance(error.__cause__, ModuleNotFoundError) else Lack.OTHER
        return Unusable(name, error.reason, error.remedy, lack)
    except ConfigurationError:
        raise
    except (Exception, SystemExit) as error:  # describe() is third-party code as well
        return Unusable(name, _describe(error), "repair describe(): it raises BackendUnavailable or answers")


def probe_unnamed(name: str) -> Usable | Unusable:
    """Probe a backend that nobody asked for by name: one that would be compiled first can't be used yet.

    Raises :class:`ConfigurationError` as :func:`load_backend` does.
    """
    try:
        backend = load_backend(name)
        waits = isinstance(backend, Compiles) and not backend.is_compiled()
    except (Exception, SystemExit):  # probing it says what is wrong
        waits = False
    if waits:
        remedy = f"'quiesce doctor {name}' compiles it, once"
        return Unusable(name, str(Lack.COMPILATION), remedy, Lack.COMPILATION)
    return probe_backend(name)


def refused(name: str, error: ConfigurationError) -> Unusable:
    """Return a declared backend that cannot even be loaded, because two distributions claim its name or the like."""
    what, _, instead = str(error).rpartition("; ")
    return Unusable(name, what, instead)


def is_driver_program(usable: Usable) -> bool:
    """Whether a backend is a driver program: each of its contexts is a process."""
    return isinstance(usable.backend, Watched)


def bound_answers(usable: Sequence[Usable], seconds: float) -> list[Usable]:
    """Return the backends, with another bound for each answer of those that are driver programs.

    Raises :class:`ConfigurationError` where none is one.
    """
    bounded = []
    for each in usable:
        if isinstance(each.backend, Watched):
            bounded.append(replace(each, backend=each.backend.with_watchdog(seconds)))
    if not bounded:
        name = usable[0].name
        raise ConfigurationError(
            f"--timeout bounds the answers of a driver program, and '{name}' runs in quiesce's own process; "
            f"write --backend served:{name}"
        )
    changed = {each.name: each for each in bounded}
    return [changed.get(each.name, each) for each in usable]


def _nearest(word: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(word, sorted(known), n=1)
    return f", perhaps '{matches[0]}'" if matches else ""


def _load_with_argument(prefix: str, argument: str, name: str) -> Backend:
    if not argument:
        raise ConfigurationError(f"'{name}' names no argument; write {prefix}:{_ARGUMENTS[prefix]}")
    if prefix == "command":
        from quiesce.backends.command import parse_specification

        return parse_specification(argument)
    if prefix == "python":
        from quiesce.backends.python_source import load

        return load(argument, name)
    if prefix == "served":
        return _serve(argument)
    if prefix == _SUBJECT:
        return _load_elsewhere(prefix, argument, name)
    from quiesce.backends.reference import faulty

    return faulty(argument)


def _load_elsewhere(prefix: str, argument: str, name: str) -> Backend:
    points = importlib.metadata.entry_points(group=PREFIXES)
    load = next((point for point in points if point.name == prefix), None)
    if load is None:
        raise ConfigurationError(f"this installation has nothing for '{prefix}:'; install quiesce again")
    backend: Backend = load.load()(argument, name)
    return backend


def _serve(name: str) -> Backend:
    from quiesce.backends.command import serve

    if name.startswith(f"{_SUBJECT}:"):
        return load_backend(name)  # its driver is a process of its own
    if ":" not in name:
        _find(name)  # a wrong name is refused here, where it can be said, and not in the process
    return serve(name)


def _find(name: str) -> importlib.metadata.EntryPoint:
    points = _entry_points()
    # One distribution can be found twice on the path; two that differ under one name are a conflict.
    claims = {point.value: point for point in points if point.name == name}
    if len(claims) > 1:
        raise ConfigurationError(
            f"backend '{name}' is declared as {' and as '.join(sorted(claims))}; "
            "uninstall one of the distributions, or rename its entry point"
        )
    if not claims:
        known = sorted({point.name for point in points})
        raise ConfigurationError(f"unknown backend '{name}'{_nearest(name, known)}; write {_choices(known)}")
    return next(iter(claims.values()))


def _choices(known: list[str]) -> str:
    prefixes = "command:COMMAND, python:FILE.py:FACTORY, reference:FAULT, served:NAME or subject:NAME@VERSION"
    if not known:
        return f"{prefixes}, or install quiesce (pip install -e .), because no backend is declared here"
    return f"one of {', '.join(known)}, {prefixes}"


def _entry_points() -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group=GROUP)


def _describe(error: Exception | SystemExit) -> str:
    if isinstance(error, ImportError):
        return f"it cannot be imported: {error}"
    return f"it raised {type(error).__name__}: {error}"

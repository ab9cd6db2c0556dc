"""Which cases and which backends a command works on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quiesce.allocators.answers import check_description
from quiesce.allocators.cases import Case, Catalogue, below_here, find_cases, instead_of, load
from quiesce.backends.registry import (
    Unusable,
    Usable,
    backend_names,
    bound_answers,
    probe_backend,
    probe_unnamed,
    refused,
)
from quiesce.model.backend import BackendFault
from quiesce.model.errors import BackendUnavailable, ConfigurationError


@dataclass(frozen=True, slots=True)
class Choice:
    """The backends to use, which of them the user named, and those that cannot work here."""

    usable: tuple[Usable, ...]
    skipped: tuple[Unusable, ...] = ()
    named: tuple[str, ...] = ()


def _untold(_: str) -> None:
    pass


def choose_backends(
    requested: Sequence[str], timeout_seconds: float | None = None, preparing: Callable[[str], None] = _untold
) -> Choice:
    """Return the requested backends, or every installed one that works here without being compiled first.

    ``timeout_seconds`` bounds each answer of driver programs. ``preparing`` is told the name of each backend before it
    is loaded. Raises :class:`BackendUnavailable` where a requested one cannot work, and :class:`ConfigurationError`
    where a requested one is unknown, none at all works, or none is a driver program that ``timeout_seconds`` can bound.
    """
    usable: list[Usable] = []
    skipped: list[Unusable] = []
    for name in dict.fromkeys(requested or backend_names()):
        preparing(name)
        try:
            probed = probe_backend(name, timeout_seconds) if requested else probe_unnamed(name)
        except ConfigurationError as error:
            if requested:
                raise
            skipped.append(refused(name, error))
            continue
        if isinstance(probed, Usable):
            usable.append(probed)
        elif requested:
            raise BackendUnavailable(probed.name, probed.reason, probed.remedy)
        else:
            skipped.append(probed)
    if not usable:
        raise ConfigurationError("no backend works here, so nothing can run; write 'quiesce doctor' to see why")
    bounded = usable if timeout_seconds is None else bound_answers(usable, timeout_seconds)
    return Choice(tuple(bounded), tuple(skipped), tuple(dict.fromkeys(requested)))


def choose_described(
    name: str, timeout_seconds: float | None = None, preparing: Callable[[str], None] = _untold
) -> Usable:
    """Return the one backend that a command works with, whose description it relies on.

    Raises :class:`BackendUnavailable` where it cannot work or describes itself wrongly, and
    :class:`ConfigurationError` where it is unknown, or no driver program that ``timeout_seconds`` can bound.
    """
    described = check_described(choose_backends([name], timeout_seconds, preparing).usable[0])
    if isinstance(described, Usable):
        return described
    raise BackendUnavailable(described.name, described.reason, described.remedy)


def check_described(usable: Usable) -> Usable | Unusable:
    """Return the backend, or what is wrong with its description."""
    try:
        check_description(usable.description)
    except BackendFault as fault:
        return Unusable(usable.name, fault.observed, "repair describe(): it raises BackendUnavailable or answers")
    return usable


def select_cases(targets: Sequence[str], topics: Sequence[str] = ()) -> Catalogue:
    """Return the cases of ``targets`` (files, folders, identifiers; none: the whole corpus), of ``topics`` if any.

    Raises :class:`ConfigurationError` for a target that names no case, and for a topic without one.
    """
    files = find_cases([Path(target) for target in targets])
    catalogue = load([below_here(file) for file in files])
    return Catalogue(in_topics(catalogue.cases, topics), catalogue.errors) if topics else catalogue


def topic_of(case: Case) -> str:
    """Return the topic of a case: its identifier without the behaviour."""
    return case.identifier.rpartition("/")[0]


def in_topics(cases: Iterable[Case], topics: Sequence[str]) -> tuple[Case, ...]:
    """Return the cases of the topics. Raises :class:`ConfigurationError` for a topic without a case."""
    kept = tuple(cases)
    known = sorted({topic_of(case) for case in kept})
    for topic in topics:
        if topic not in known:
            raise ConfigurationError(f"no case has the topic '{topic}'; {instead_of(topic, known)}")
    return tuple(case for case in kept if topic_of(case) in topics)

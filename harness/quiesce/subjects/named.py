"""A release of a subject as a backend by name: ``subject:thrust_pool/unsynchronized@2.8.2``.

The driver is fetched and built as by ``quiesce subjects``, in the same cache. What the manifest expects and what cases
say is known of the release do not count: a release with a bug fails.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import replace
from typing import Final

from quiesce.allocators.cases import nearest
from quiesce.model import wording
from quiesce.model.backend import Backend, BackendFault, Context, Description, DeviceProfile
from quiesce.model.errors import BackendUnavailable, ConfigurationError, SubjectNotBuilt
from quiesce.subjects.build import build
from quiesce.subjects.catalogue import find_subjects, folders, subject_names
from quiesce.subjects.driver import Driver, open_driver
from quiesce.subjects.manifest import BASE, Release, Subject, Variant
from quiesce.subjects.row import Row

_FORM: Final = "subject:NAME/VARIANT@VERSION"
_OUTPUT_LINES: Final = 3


class ReleaseBackend:
    """A driver that has the name that it was asked for by, which no ``known:`` line speaks of."""

    def __init__(self, name: str, row: Row, driver: Driver) -> None:
        self._name = name
        self._row = row
        self._driver = driver

    def with_watchdog(self, seconds: float) -> ReleaseBackend:
        """Return the same driver with another bound for every reply."""
        return ReleaseBackend(self._name, self._row, self._driver.with_watchdog(seconds))

    def describe(self) -> Description:
        """Ask the driver what it is. Raises :class:`BackendUnavailable` where it does not start or says no hello."""
        try:
            return replace(self._driver.describe(), name=self._name)
        except BackendFault as fault:
            said = "; ".join(filter(None, [fault.observed, fault.evidence.strip()]))
            raise BackendUnavailable(self._name, said, f"see {wording.join(self._row.command)}") from fault

    def open(self, profile: DeviceProfile) -> Context:
        """Start a fresh process. Raises :class:`BackendUnavailable` for a profile that the driver refuses."""
        return self._driver.open(profile)


def load(argument: str, name: str) -> Backend:
    """Return the driver of the release that ``argument`` names, built; ``name`` is the whole name.

    Raises :class:`ConfigurationError` for a name of nothing and for a subject that is made of programs, and
    :class:`BackendUnavailable` where the machine lacks something or the release can't be fetched or built.
    """
    row = find_row(argument, name)
    assert row.subject.run is not None
    opened = ExitStack()
    try:
        built = build(row.subject, row.release)
        driver = opened.enter_context(open_driver(name, row.released, row.subject.run, row.variant, built))
    except SubjectNotBuilt as error:
        last = "; ".join(error.output.strip().splitlines()[-_OUTPUT_LINES:])
        remedy = f"repair what it says, and write {wording.join(row.command)}"
        raise BackendUnavailable(name, f"{error}{f': {last}' if last else ''}", remedy) from error
    except BackendUnavailable as error:
        raise BackendUnavailable(name, error.reason, error.remedy) from error
    atexit.register(_close_in, os.getpid(), opened)
    return ReleaseBackend(name, row, driver)


def _close_in(process: int, opened: ExitStack) -> None:
    """Remove what stands for the driver's libraries; a fork of the process leaves it to who made it."""
    if os.getpid() == process:
        opened.close()


def find_row(argument: str, name: str) -> Row:
    """Return the release and the variant that ``NAME/VARIANT@VERSION`` names. Raises :class:`ConfigurationError`."""
    place, at, version = argument.rpartition("@")
    if at and not (place and version):
        raise ConfigurationError(f"'{name}' names no {'release' if place else 'subject'}; write {_FORM}")
    subjects, variant_name = _subjects_in(place if at else argument)
    driven = [each for each in subjects if each.run is not None]
    if not driven:
        names = [each.name for each in subjects]
        command = ["quiesce", "subjects", *names]
        if at:
            command += ["--version", _release_of(subjects[0], version).version]
        are = "is made of programs, which" if len(names) == 1 else "are made of programs, which"
        raise ConfigurationError(f"{' and '.join(names)} {are} no case can drive; write {wording.join(command)}")
    if len(driven) > 1:
        names = [f"subject:{each.name}" for each in driven]
        raise ConfigurationError(f"'{name}' names {len(names)} subjects; write {' or '.join(names)}")
    (subject,) = driven
    if not at:
        raise ConfigurationError(f"'{name}' names no release; write {_FORM}, with {_listed(subject.releases)}")
    return Row(subject, _release_of(subject, version), _variant_of(subject, variant_name, version))


def _subjects_in(place: str) -> tuple[tuple[Subject, ...], str]:
    """Return the subjects of ``NAME`` or ``NAME/VARIANT``, and the variant, which is empty where none is named."""
    head, _, variant = place.rpartition("/")
    errors: dict[str, ConfigurationError] = {}
    for target, rest in ((place, ""), (head, variant)):
        if not target:
            continue
        try:
            found = find_subjects([target], *folders())
        except ConfigurationError as error:
            errors[target] = error
            continue
        if found.errors:
            raise found.errors[0]
        return found.subjects, rest
    known = [each for name in subject_names(*folders()) for each in (name, name.rpartition("/")[2])]
    raise next((error for target, error in reversed(errors.items()) if nearest(target, known)), errors[place])


def _release_of(subject: Subject, text: str) -> Release:
    """Return the release of a version, of a label, or of a word in a label, such as ``2.8.2``.

    Of several with one label it is that of the default matrix.
    """
    found = [each for each in subject.releases if each.version == text]
    found = found or [each for each in subject.releases if text in (each.label, *each.label.split())]
    if len(found) > 1:
        found = [each for each in found if each.is_default] or found
    if len(found) == 1:
        return found[0]
    what = f"'{text}' names {len(found)} releases of '{subject.name}'"
    if found:
        raise ConfigurationError(f"{what}; write {_listed(found)}")
    words = [word for each in subject.releases for word in (each.version, each.label, *each.label.split()) if word]
    near = nearest(text, words)
    instead = f"'{near}', or another of " if near else ""
    raise ConfigurationError(
        f"'{subject.name}' lists no release '{text}'; write {instead}{_listed(subject.releases)} "
        f"('{wording.join(['quiesce', 'subjects', subject.name, '--version', text])}' tries one that is not listed)"
    )


def _listed(releases: Iterable[Release]) -> str:
    return ", ".join(f"{each.version}{f' ({each.label})' if each.label else ''}" for each in releases)


def _variant_of(subject: Subject, name: str, version: str) -> Variant:
    known = {each.name: each for each in subject.variants}
    if not name and len(known) == 1:
        return known[BASE]
    if name in known:
        return known[name]
    choices = ", ".join(f"subject:{subject.name}/{each}@{version}" for each in known)
    near = nearest(name, known)
    if near:
        choices = f"subject:{subject.name}/{near}@{version}, or another of {', '.join(known)}"
    what = f"'{subject.name}' has no variant '{name}'" if name else f"'{subject.name}' has {len(known)} variants"
    raise ConfigurationError(f"{what}; write {'' if near else 'one of '}{choices}")

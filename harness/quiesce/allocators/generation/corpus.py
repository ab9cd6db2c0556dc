"""What campaigns found, kept in one of Hypothesis' databases: a folder, or whatever else shares it between machines.

A sequence is kept as the text of its case. That means the same in every version, where the bytes that it was decoded
from mean something else once an action is added. A case that does not fail any more stays: it may fail again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Protocol, TypeVar

from quiesce.allocators.cases import CASE_SUFFIX, Case, parse_text, write_case
from quiesce.allocators.generation.saving import FOLDER
from quiesce.allocators.generation.sequence import sequence_of
from quiesce.model.errors import CaseError, ConfigurationError

_DIGITS: Final = 8

_Test = TypeVar("_Test", bound=Callable[..., object])


class Database(Protocol):
    """Of Hypothesis' ``ExampleDatabase`` the part that is used here."""

    def fetch(self, key: bytes) -> Iterable[bytes]:
        """Yield what is kept under a key."""

    def save(self, key: bytes, value: bytes) -> None:
        """Keep a value under a key, once."""

    def delete(self, key: bytes, value: bytes) -> None:
        """Remove a value, if it is there."""


def folder_database(folder: Path) -> Database:
    """Return Hypothesis' database of a folder. Raises :class:`ConfigurationError` without Hypothesis."""
    try:
        from hypothesis.database import DirectoryBasedExampleDatabase
    except ImportError as error:
        said = "a corpus is kept by Hypothesis, which is not installed"
        raise ConfigurationError(f"{said}; pip install 'quiesce[hypothesis]'") from error
    return DirectoryBasedExampleDatabase(folder)


def keep(database: Database, backend: str, case: Case, *, hostile: bool) -> None:
    """Keep a failing case of the backend that describes itself by that name."""
    database.save(_key(backend, hostile), write_case(case).encode())


def forget(database: Database, backend: str, case: Case, *, hostile: bool) -> None:
    """Remove what was kept."""
    database.delete(_key(backend, hostile), write_case(case).encode())


def kept(database: Database, backend: str, *, hostile: bool) -> tuple[list[Case], int]:
    """Return the cases that are kept for a backend, in an order of their own, and how many others can't be read."""
    cases, unreadable = [], 0
    for value in sorted(set(database.fetch(_key(backend, hostile))), key=lambda each: (len(each), each)):
        digest = hashlib.sha256(value).hexdigest()[:_DIGITS]
        try:
            case = parse_text(value.decode(), f"{FOLDER}/kept_{digest}{CASE_SUFFIX}", f"{FOLDER}/kept_{digest}")
        except (CaseError, UnicodeDecodeError):
            unreadable += 1
        else:
            cases.append(case)
    return cases, unreadable


def with_kept_sequences(database: Database, backend: str, *, hostile: bool = False) -> Callable[[_Test], _Test]:
    """Return a decorator that lets a test of one drawn sequence begin with those that campaigns found."""
    from hypothesis import example

    def decorate(test: _Test) -> _Test:
        for case in reversed(kept(database, backend, hostile=hostile)[0]):
            test = example(sequence_of(case, hostile=hostile))(test)
        return test

    return decorate


def _key(backend: str, hostile: bool) -> bytes:
    return f"quiesce {'hostile' if hostile else 'valid'} sequences of {backend}".encode()

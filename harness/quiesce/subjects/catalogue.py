"""Which subjects there are: folders with a manifest, below ``fixtures/`` or wherever they are named."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.errors import ConfigurationError
from quiesce.subjects.manifest import Subject
from quiesce.subjects.parser import MANIFEST, read_manifest

FOLDER: Final = "fixtures"


@dataclass(frozen=True, slots=True)
class Subjects:
    """Those that can be read, and why the others cannot."""

    subjects: tuple[Subject, ...]
    errors: tuple[ConfigurationError, ...]


def find_subjects(targets: Sequence[str], folder: Path) -> Subjects:
    """Return the subjects that ``targets`` name, or all below ``folder``.

    A target is the name of a subject (``host/thrust_pool``, or its last part), or the path of a folder with a manifest.
    Raises :class:`ConfigurationError` for one that names none, and where there are none at all.
    """
    below = sorted(folder.glob(f"*/*/{MANIFEST}")) if folder.is_dir() else []
    if not targets:
        if not below:
            what = f"no subject is below '{folder}'"
            raise ConfigurationError(f"{what}; run in quiesce's repository, or name a folder that holds a {MANIFEST}")
        return _read(below)
    return _read([path for target in targets for path in _named(target, below)])


def _named(target: str, below: Sequence[Path]) -> list[Path]:
    manifest = Path(target) / MANIFEST
    if manifest.is_file():
        return [manifest]
    wanted = tuple(Path(target).parts)
    named = [path for path in below if path.parent.parts[-len(wanted) :] == wanted]
    if not named:
        known = sorted("/".join(path.parent.parts[-2:]) for path in below)
        names = [*known, *(name.rpartition("/")[2] for name in known)]
        near = difflib.get_close_matches(target, names, n=1)
        one_of = f"one of {', '.join(known)}, or " if known else ""
        advice = f"'{near[0]}'" if near else f"{one_of}a folder that holds a {MANIFEST}"
        raise ConfigurationError(f"there is no subject '{target}'; write {advice}")
    return named


def _read(paths: Sequence[Path]) -> Subjects:
    subjects: dict[Path, Subject] = {}
    errors = []
    for path in paths:
        try:
            subject = read_manifest(path)
        except ConfigurationError as error:
            errors.append(error)
        else:
            subjects[subject.folder] = subject
    return Subjects(tuple(subjects.values()), tuple(errors))

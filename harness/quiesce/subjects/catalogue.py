"""Which subjects there are: folders with a manifest, below ``fixtures/`` or wherever they are named."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quiesce.model.errors import ConfigurationError
from quiesce.subjects.manifest import Subject
from quiesce.subjects.parser import MANIFEST, read_manifest

FOLDER: Final = "fixtures"
_PACKAGE: Final = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class Subjects:
    """Those that can be read, and why the others cannot."""

    subjects: tuple[Subject, ...]
    errors: tuple[ConfigurationError, ...]


def folders() -> tuple[Path, ...]:
    """Return where subjects are: below the current folder, and those that come with quiesce.

    These are in a wheel inside the package, else in the checkout.
    """
    return Path(FOLDER), _PACKAGE / FOLDER, _PACKAGE.parents[1] / FOLDER


def find_subjects(targets: Sequence[str], *places: Path) -> Subjects:
    """Return the subjects that ``targets`` name, or all below the first of the ``places`` that has some.

    A target is the name of a subject (``host/thrust_pool``, or its last part), or the path of a folder with a manifest.
    Raises :class:`ConfigurationError` for one that names none, and where there are none at all.
    """
    below = [manifests for place in places if (manifests := sorted(place.glob(f"*/*/{MANIFEST}")))]
    if not targets:
        if not below:
            what = f"no subject is below '{places[0]}'"
            raise ConfigurationError(f"{what}; name a folder that holds a {MANIFEST}")
        return _read(below[0])
    return _read([path for target in targets for path in _named(target, below)])


def subject_names(*places: Path) -> tuple[str, ...]:
    """Return the names of all subjects below ``places``, sorted."""
    return tuple(sorted({_name(path) for place in places for path in place.glob(f"*/*/{MANIFEST}")}))


def _name(manifest: Path) -> str:
    return "/".join(manifest.parent.parts[-2:])


def _named(target: str, below: Sequence[Sequence[Path]]) -> list[Path]:
    manifest = Path(target) / MANIFEST
    if manifest.is_file():
        return [manifest]
    wanted = tuple(Path(target).parts)
    for manifests in below:
        if named := [path for path in manifests if path.parent.parts[-len(wanted) :] == wanted]:
            return named
    known = sorted({_name(path) for manifests in below for path in manifests})
    names = [*known, *(name.rpartition("/")[2] for name in known)]
    near = difflib.get_close_matches(target, names, n=1)
    one_of = f"one of {', '.join(known)}, or " if known else ""
    advice = f"'{near[0]}'" if near else f"{one_of}a folder that holds a {MANIFEST}"
    raise ConfigurationError(f"there is no subject '{target}'; write {advice}")


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

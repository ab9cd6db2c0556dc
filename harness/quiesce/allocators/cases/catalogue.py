"""The catalogue: where the cases are, which of them a user means, and all of them read."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.parser import CASE_SUFFIX, parse_case
from quiesce.allocators.cases.wording import did_you_mean, near_names
from quiesce.model.errors import CaseError, ConfigurationError

_PACKAGE = Path(__file__).resolve().parents[2]


def _corpus_places() -> tuple[Path, Path]:
    return _PACKAGE / "corpus", _PACKAGE.parent.parent / "cases"


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The cases that could be read, and the errors of the files that could not, both in the order of their paths."""

    cases: tuple[Case, ...]
    errors: tuple[CaseError, ...]


def corpus_directory() -> Path:
    """Return the folder of the cases that come with quiesce: in a wheel inside the package, else the checkout's.

    Raises :class:`ConfigurationError` for an installation that has neither.
    """
    places = _corpus_places()
    for directory in places:
        if directory.is_dir():
            return directory
    raise ConfigurationError(
        f"this installation holds no cases (there is no {' and no '.join(map(str, places))}); "
        "install quiesce from its wheel, or name a folder of cases"
    )


def find_cases(paths: Sequence[Path]) -> tuple[Path, ...]:
    """Return the case files that ``paths`` name, each once, sorted; no paths at all mean the whole corpus.

    A path is a case file, a folder of them, or, where nothing of that name exists here, an identifier or a topic
    of the corpus (``pool/squeeze_before_oom``, ``pool``). Raises :class:`ConfigurationError` for a path that
    exists neither here nor in the corpus, and for one that holds no case or a folder that may not be read.
    """
    found: dict[Path, Path] = {}
    for path in paths or (corpus_directory(),):
        for file in _files_of(path):
            found.setdefault(file.resolve(), file)
    return tuple(sorted(found.values(), key=lambda file: file.as_posix()))


def load(paths: Sequence[Path]) -> Catalogue:
    """Read every case that ``paths`` name, as :func:`find_cases` does.

    An error in one file never hides another file. A second case of one identifier is an error, because results
    could not be told apart. Raises :class:`ConfigurationError` for paths that name no case.
    """
    cases: dict[str, Case] = {}
    errors: list[CaseError] = []
    for file in find_cases(paths):
        try:
            case = parse_case(file)
        except CaseError as error:
            errors.append(error)
            continue
        first = cases.setdefault(case.identifier, case)
        if first is not case:
            what = f"the case is called '{case.identifier}' like the one in {first.path}"
            errors.append(CaseError(case.path, 1, what, "rename one of the two files, or run them apart"))
    return Catalogue(tuple(cases.values()), tuple(errors))


def below_here(path: Path) -> Path:
    """Return the path relative to the working directory where it lies below, so that reports are equal everywhere."""
    try:
        return path.resolve().relative_to(Path.cwd())
    except ValueError:
        return path


def _files_of(path: Path) -> list[Path]:
    place = path if path.exists() else _in_corpus(path)
    if place is None:
        raise ConfigurationError(f"there is no case or folder '{path.as_posix()}'; {_advice(path)}")
    if place.is_dir():
        files = list(_files_below(place))
        if not files:
            raise ConfigurationError(
                f"the folder '{path.as_posix()}' holds no case; name a folder of files that end in {CASE_SUFFIX}"
            )
        return files
    if place.suffix != CASE_SUFFIX:
        raise ConfigurationError(
            f"'{path.as_posix()}' is not a case; name a file that ends in {CASE_SUFFIX}, a folder or an identifier"
        )
    return [place]


def _files_below(folder: Path) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise ConfigurationError(
            f"the folder '{error.filename}' cannot be read ({error.strerror}); name one whose folders you may read"
        )

    for place, _, names in os.walk(folder, onerror=refuse):
        files = (Path(place, name) for name in names if name.endswith(CASE_SUFFIX))
        yield from (file for file in files if file.is_file())


def _in_corpus(path: Path) -> Path | None:
    if path.is_absolute() or ".." in path.parts:
        return None
    insides = [corpus / path for corpus in _corpus_places()]
    candidates = [place for inside in insides for place in (inside.with_name(inside.name + CASE_SUFFIX), inside)]
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _advice(path: Path) -> str:
    known = {
        file.relative_to(corpus).as_posix().removesuffix(CASE_SUFFIX)
        for corpus in _corpus_places()
        for file in corpus.rglob(f"*{CASE_SUFFIX}")
    }
    topics = {name.rpartition("/")[0] for name in known}
    near = near_names(path.as_posix().removesuffix(CASE_SUFFIX), known | topics)
    return did_you_mean(near) if near else "name a case file, a folder of them, or an identifier of the corpus"

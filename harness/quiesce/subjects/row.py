"""A row of the matrix: one release of one subject in one variant, run, and held to what the manifest expects.

What it showed is compared with the expectations in both directions.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from quiesce.allocators.cases import Case, below_here, find_cases, identify, load
from quiesce.allocators.conformance import run_conformance
from quiesce.allocators.execution import KNOWN_STILL_THERE, run_case
from quiesce.model import wording
from quiesce.model.errors import ConfigurationError
from quiesce.model.findings import Finding
from quiesce.model.results import Result, Verdict
from quiesce.model.rules import Kind
from quiesce.subjects.build import Built
from quiesce.subjects.driver import open_driver
from quiesce.subjects.manifest import BASE, Expectation, Release, Subject, Variant
from quiesce.subjects.programs import TOPIC, run_judged

_EXPECT: Final = "the manifest's 'expect' no longer holds: remove or correct it"


def hold_to(expectations: Iterable[Expectation], variant: str, results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results of one row as the manifest has them.

    A finding that is expected becomes *known upstream*, with its number; one that nobody expects stays a failure; an
    expectation that nothing shows becomes a failure, also where its case did not even run.
    """
    chosen = [each for each in expectations if each.holds_in(variant)]
    judged = [_judge(result, [each for each in chosen if each.covers(result.case)]) for result in results]
    shown = {(each, name) for each in chosen for name in _shown(each, results)}
    missing = [each for each in chosen if (each, each.finds) not in shown]
    for each in missing:
        covered = [index for index, result in enumerate(judged) if each.covers(result.case)]
        if covered:
            index = covered[0]
            judged[index] = _without(each, judged[index])
        else:
            judged.append(_never_ran(each, results[0].backend if results else variant))
    return tuple(judged)


def _shown(expectation: Expectation, results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        if expectation.covers(result.case):
            yield from (finding.rule for finding in result.findings)


def _judge(result: Result, expectations: Sequence[Expectation]) -> Result:
    """Return a result whose every finding is expected as known, any other as it is."""
    expected = {each.finds: each.upstream for each in expectations}
    names = {finding.rule for finding in result.findings}
    if not names or result.verdict is Verdict.BROKEN_CASE:
        return result
    if names <= expected.keys():
        numbers = ", ".join(dict.fromkeys(expected[name] for name in sorted(names)))
        return replace(result, verdict=Verdict.KNOWN_UPSTREAM, reason=numbers)
    if expected:
        wanted = ", ".join(sorted(expected))
        return replace(result, verdict=Verdict.FAILED, reason=f"expected: {wanted}; it found something else")
    return result


def _without(expectation: Expectation, result: Result) -> Result:
    """Return a result as a failure, because what it was expected to show it did not."""
    finding = _missing(
        expectation, f"the result is '{result.verdict}'" + (f": {result.reason}" if result.reason else "")
    )
    return replace(result, verdict=Verdict.FAILED, reason="", findings=(*result.findings, finding))


def _never_ran(expectation: Expectation, backend: str) -> Result:
    finding = _missing(expectation, "nothing ran under that name")
    return Result(expectation.case, "", "", backend, Verdict.FAILED, findings=(finding,))


def _missing(expectation: Expectation, observed: str) -> Finding:
    expected = f"{expectation.finds} ({expectation.upstream})"
    return Finding(KNOWN_STILL_THERE, expected, f"{observed}; {_EXPECT}", kind=Kind.OUTDATED_EXPECTATION)


@dataclass(frozen=True, slots=True)
class Row:
    """One release in one variant."""

    subject: Subject
    release: Release
    variant: Variant

    @property
    def released(self) -> Subject:
        """The subject, on the runtime that this release is simulated with."""
        simulated = self.release.simulated
        return self.subject if simulated is None else replace(self.subject, simulated=simulated)

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command that runs it."""
        words = ("quiesce", "subjects", self.subject.name, "--version", self.release.version)
        return words if self.variant.name == BASE else (*words, "--variant", self.variant.name)

    @property
    def series(self) -> str:
        """The subject and its variant: what the rows of all releases have in common."""
        name = self.variant.name
        return self.subject.name if name == BASE else f"{self.subject.name}[{name}]"

    @property
    def name(self) -> str:
        """The name that results carry: ``host/thrust_pool[synchronized] 13.0.85``."""
        return f"{self.series} {self.release.version}"


@dataclass(frozen=True, slots=True)
class RowResult:
    """What came of a row: results as the manifest has them, and the sequences that were found and shrunk."""

    row: Row
    results: tuple[Result, ...]
    found: tuple[Case, ...] = field(default=())


def rows_of(subject: Subject, versions: Sequence[str], variants: Sequence[str], *, all_versions: bool) -> list[Row]:
    """Return the rows of ``versions`` (none: those of the default matrix) in ``variants`` (none: all).

    Raises :class:`ConfigurationError` for a variant that the subject does not have.
    """
    known = [variant.name for variant in subject.variants]
    for name in variants:
        if name not in known:
            what = f"'{subject.name}' has no variant '{name}'"
            raise ConfigurationError(f"{what}; write one of {', '.join(known)}")
    chosen = [each for each in subject.variants if not variants or each.name in variants]
    if versions:
        releases = [subject.release(version) for version in versions]
    else:
        releases = [each for each in subject.releases if each.is_default or all_versions]
    if subject.run is None:  # nothing but programs, which take no variant's arguments
        chosen = [each for each in chosen if each.name == BASE]
    return [Row(subject, release, variant) for release in releases for variant in chosen]


def run_row(row: Row, built: Built, only: Sequence[str]) -> RowResult:
    """Run a row that was built. ``only`` are patterns of results: then those cases and programs alone run.

    Raises :class:`QuiesceError` where the driver cannot be started here.
    """
    subject, variant = row.released, row.variant
    results: list[Result] = []
    found: tuple[Case, ...] = ()
    if subject.run is not None:
        cases = select(subject, variant, only)
        operations = subject.operations if variant.operations is None else variant.operations
        with open_driver(row.name, subject, subject.run, variant, built) as driver:
            if only or not operations:
                results += [run_case(case, driver) for case in cases]
            else:
                conformance = run_conformance(
                    driver,
                    seed=subject.seed,
                    operations=operations,
                    cases=cases,
                    name=row.name,
                    trials_max=subject.trials_max,
                )
                results += conformance.results
                found = conformance.found
    if variant.name == BASE:
        for program in subject.programs:
            if not only or _matches(f"{TOPIC}/{program.name}", only):
                results.append(run_judged(program, built, seed=subject.seed, backend=row.name))
    named = tuple(replace(each, backend=row.name, reproduce=reproduce_command(row, each)) for each in results)
    expected = row.release.expectations or ()
    kept = [each for each in expected if not only or any(each.covers(result.case) for result in named)]
    return RowResult(row, hold_to(kept, variant.name, named), found)


def result_names(subject: Subject) -> Iterator[str]:
    """Yield the names of the cases that a subject may be driven by, and of its programs."""
    if subject.run is not None:
        yield from map(identify, _case_files(subject))
    yield from (f"{TOPIC}/{program.name}" for program in subject.programs)


def _case_files(subject: Subject) -> tuple[Path, ...]:
    """Return the cases of the corpus, and those of the subject's own folder."""
    return (*find_cases([]), *sorted(subject.folder.glob("*.case")))


def select(subject: Subject, variant: Variant, only: Sequence[str]) -> tuple[Case, ...]:
    """Return the cases of the corpus, and of the subject's own folder, that a variant is driven by.

    Raises :class:`ConfigurationError` for a pattern without a case, and :class:`CaseError`.
    """
    catalogue = load([below_here(path) for path in _case_files(subject)])
    if catalogue.errors:
        raise catalogue.errors[0]
    patterns = subject.cases if variant.cases is None else variant.cases
    names = [case.identifier for case in catalogue.cases]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise ConfigurationError(f"{subject.name}: no case is named '{pattern}'; write a TOPIC/* of the corpus")
    chosen = [case for case in catalogue.cases if _matches(case.identifier, patterns)]
    return tuple(case for case in chosen if not only or _matches(case.identifier, only))


def reproduce_command(row: Row, result: Result) -> str:
    """Return the command line that shows one result again, quoted for a POSIX shell."""
    words = list(row.command)
    if result.path or result.case.startswith(f"{TOPIC}/"):
        words += ["--case", result.case]
    return wording.join(words)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)

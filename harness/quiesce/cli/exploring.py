"""The course of ``quiesce explore``: run sequences, save what fails, shrink it, and keep one case for each cause.

With ``--corpus`` what earlier searches found runs first, and what this one finds is kept.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice, takewhile
from pathlib import Path
from typing import Final

from quiesce.allocators.cases import CASE_SUFFIX, Case, write_case
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation import (
    IN_FLIGHT_MAX,
    CampaignResult,
    Cause,
    Died,
    Discovery,
    Failing,
    Jobs,
    Ran,
    Search,
    Tally,
    case_name,
    distinct,
    ended_process,
    generate_one,
    in_short_names,
    named_case,
    reproduce_command,
    run_sequence,
    save,
    shrink_failing,
)
from quiesce.allocators.generation.corpus import Database, folder_database, forget, keep, kept
from quiesce.backends import python_source
from quiesce.cli.console import Console
from quiesce.cli.endings import explain
from quiesce.cli.saved_cases import save_or_complain, tell_how_to_run, tell_shrinking
from quiesce.model.backend import Backend, Description
from quiesce.model.errors import ConfigurationError, is_own_error
from quiesce.model.results import Result, Verdict
from quiesce.model.wording import counted
from quiesce.reporting import clean_line


@dataclass(frozen=True, slots=True)
class Exploring:
    """Where failing sequences are saved, and who is told.

    ``found`` hears of each that will be shrunk, as a case, with all that is known by then; ``keep`` of how far it has
    come.
    """

    directory: Path
    console: Console
    found: Callable[[Case, Explored], None] = lambda _, __: None
    keep: Callable[[Tally], None] = lambda _: None


@dataclass(frozen=True, slots=True)
class Explored:
    """What came of it; ``interrupted`` says that somebody ended it, and ``error`` that one in quiesce itself did."""

    tally: Tally
    causes: tuple[Cause, ...]
    interrupted: bool
    error: Exception | None = None


def explore(
    search: Search,
    jobs: Jobs,
    description: Description,
    exploring: Exploring,
    tally: Tally,
    seconds: float | None,
) -> Explored:
    """Run a search to its end and shrink what fails; Ctrl-C ends it with what was found by then, if anything.

    ``tally`` has what an earlier process came to, if one did.
    """
    whole = {each.number: _as_it_is(search, description, each) for each in tally.to_shrink()}
    for failing in tally.to_shrink():
        _save_whole(whole[failing.number].case, failing, exploring)
    interrupted, own_error = False, None
    try:
        try:
            for failing in _search(search, jobs, tally, exploring, seconds):
                if failing in tally.to_shrink():
                    whole[failing.number] = _as_it_is(search, description, failing)
                    _save_whole(whole[failing.number].case, failing, exploring)
                    by_now = Explored(tally, tuple(distinct(whole.values(), seed=search.seed)), interrupted=True)
                    exploring.found(whole[failing.number].case, by_now)
                    exploring.keep(tally)
        finally:
            if not tally.is_entering:
                exploring.keep(tally)
        shrunk = _shrink(search, jobs, tally, whole, exploring.directory)
    except KeyboardInterrupt:
        if not whole:
            raise
        interrupted, shrunk = True, dict(whole)
    except Exception as error:
        if not is_own_error(error):
            raise
        own_error, shrunk = error, dict(whole)
    finally:
        exploring.console.end_progress()
    causes = distinct(shrunk.values(), seed=search.seed)
    kept = {cause.discovery.case.identifier for cause in causes}
    for identifier in {discovery.case.identifier for discovery in whole.values()} - kept:
        with contextlib.suppress(OSError):
            (exploring.directory / f"{identifier.rpartition('/')[2]}{CASE_SUFFIX}").unlink(missing_ok=True)
    return Explored(tally, tuple(causes), interrupted, own_error)


def _search(search: Search, jobs: Jobs, tally: Tally, exploring: Exploring, seconds: float | None) -> Iterator[Failing]:
    """Run sequences until it is enough, and yield those that fail, in their order."""
    if tally.is_over:
        return
    ends_at = None if seconds is None else time.monotonic() + seconds
    following = islice(search.numbers(), tally.sequences, None)
    numbers = takewhile(lambda _: ends_at is None or time.monotonic() < ends_at, following)
    sent: list[int] = []

    def tasks() -> Iterator[partial[Ran]]:
        for number in numbers:
            sent.append(number)
            yield partial(run_sequence, search=search, number=number)

    for place, result in enumerate(jobs.run(tasks())):
        ran = result
        if isinstance(result, Died):
            ran = ended_process(sent[place], result)
        failing = tally.add(ran)
        said = f"operations, sequence {ran.number}"
        exploring.console.progress(tally.operations, tally.operations_max or 0, said)
        if failing is not None:
            yield failing
        if tally.is_over:
            return
        if tally.sequences % IN_FLIGHT_MAX == 0:
            exploring.keep(tally)


def whole_case(search: Search, description: Description, failing: Failing) -> Case:
    """Return a failing sequence as it is, as a case."""
    sequence = generate_one(description, search.seed, failing.number, hostile=search.hostile)
    command = reproduce_command(
        search.name, search.seed, hostile=search.hostile, operations=max(1, failing.operations), shard=search.shard
    )
    return named_case(sequence.case(), failing.finding, description, found_by=command, name=case_name(search, failing))


def _as_it_is(search: Search, description: Description, failing: Failing) -> Discovery:
    """Return a failing sequence as what was found, as long as nobody has shortened it."""
    sequence = generate_one(description, search.seed, failing.number, hostile=search.hostile)
    said = in_short_names(failing.finding, sequence.case())
    return Discovery(
        failing.number, failing.finding, whole_case(search, description, failing), said, 0, interrupted=True
    )


def _save_whole(case: Case, failing: Failing, exploring: Exploring) -> None:
    """Save a failing sequence as it is, so that nothing that comes later can lose it."""
    with contextlib.suppress(OSError):  # it is told when the shorter one cannot be saved either
        save(case, exploring.directory)
    if failing.is_first:
        tell_shrinking(case, exploring.console)


def _shrink(
    search: Search, jobs: Jobs, tally: Tally, whole: dict[int, Discovery], directory: Path
) -> dict[int, Discovery]:
    """Shrink what is to be shrunk, and save it at once. What ends its process stays as it is."""
    shrunk = dict(whole)
    chosen = tally.to_shrink()
    with contextlib.suppress(KeyboardInterrupt):
        results = jobs.run(partial(shrink_failing, search=search, failing=failing) for failing in chosen)
        for failing, discovery in zip(chosen, results, strict=True):
            if not isinstance(discovery, Died):
                shrunk[failing.number] = discovery
                with contextlib.suppress(OSError):  # it is told when the causes are saved
                    save(discovery.case, directory)
    return shrunk


def results_of(result: CampaignResult, explored: Explored, search: Search) -> list[Result]:
    """Return what was explored as results for reports."""
    kind = "hostile" if search.hostile else "valid"
    shard = "" if search.shard == (1, 1) else f"_{search.shard[0]}_of_{search.shard[1]}"
    command = reproduce_command(
        search.name, search.seed, hostile=search.hostile, operations=max(1, result.operations), shard=search.shard
    )
    reason = f"{counted(len(explored.tally.failing), 'sequence')} of {result.sequences:,} failed"
    if explored.tally.failing:
        verdict = Verdict.FAILED
    elif explored.error is not None:
        verdict, reason = Verdict.INCONCLUSIVE, "an error in quiesce itself ended the search"
    else:
        verdict = Verdict.PASSED if result.operations else Verdict.UNSUPPORTED
    return [
        Result(
            case=f"generated/{kind}_sequences_with_seed_{search.seed}{shard}",
            title=f"{kind.capitalize()} sequences that were generated find nothing",
            path="",
            backend=search.name,
            verdict=verdict,
            reason=reason,
            findings=tuple(cause.discovery.shrunk for cause in explored.causes),
            operations=result.operations,
            skipped=result.skipped,
            reproduce=command,
        )
    ]


FROM_SOURCE: Final = f"{python_source.PREFIX}:"


@dataclass(frozen=True, slots=True)
class Corpus:
    """What is kept for one backend and one mode."""

    database: Database
    backend: str
    search: Search

    def replay(self, jobs: Jobs, directory: Path, console: Console, without: Container[str] = ()) -> list[Result]:
        """Run what is kept, and show and save what still fails; ``without`` has cases of this very campaign."""
        cases, unreadable = kept(self.database, self.backend, hostile=self.search.hostile)
        cases = [case for case in cases if write_case(case) not in without]
        if unreadable:
            console.complain(f"{counted(unreadable, 'sequence')} of the corpus can't be read by this version")
        results = []
        for case, ran in zip(cases, jobs.run(partial(_run, case=case) for case in cases), strict=True):
            result = _ended(case, self.search, ran) if isinstance(ran, Died) else ran
            results.append(result)
            if result.verdict.is_failure:
                self._show(case, result, directory, console)
        failing = sum(result.verdict.is_failure for result in results)
        if results:
            console.write(f"{failing} of {counted(len(results), 'sequence')} of the corpus {_fails(failing)}\n")
        return results

    def keep(self, case: Case, console: Console) -> None:
        """Keep what was found; a database that can't be written takes nothing else away."""
        try:
            keep(self.database, self.backend, case, hostile=self.search.hostile)
        except Exception as error:
            said = explain(error) if isinstance(error, OSError) else f"{type(error).__name__}: {error}"
            console.complain(f"a sequence is not kept in the corpus: {said}")

    def forget(self, case: Case) -> None:
        """Take out a case of which a shorter one is kept; one that stays there is no harm."""
        with contextlib.suppress(Exception):
            forget(self.database, self.backend, case, hostile=self.search.hostile)

    def _show(self, case: Case, result: Result, directory: Path, console: Console) -> None:
        for finding in result.findings[:1]:
            console.write(f"{finding.rule} is still broken by a sequence of the corpus\n")
            console.write(f"  expected: {clean_line(finding.expected)}\n")
            console.write(f"  observed: {clean_line(finding.observed)}\n")
            console.write(f"  kind:     {clean_line(finding.kind)}\n\n")
        saved = save_or_complain(case, directory, console)
        console.write(f"{write_case(case)}\n")
        if saved is not None:
            tell_how_to_run(saved, self.search.name, console)


def open_corpus(name: str, description: Description, search: Search) -> Corpus:
    """Return the corpus of a folder, or what a factory of the user's makes.

    Raises :class:`QuiesceError` where there is none.
    """
    if not name.startswith(FROM_SOURCE):
        return Corpus(folder_database(Path(name)), description.name, search)
    made = python_source.make(name.removeprefix(FROM_SOURCE), name)
    if not all(callable(getattr(made, name, None)) for name in ("fetch", "save", "delete")):
        raise ConfigurationError(f"'{name}' makes {type(made).__name__}, which is none of Hypothesis' databases")
    database: Database = made  # type: ignore[assignment]  # it has the methods
    return Corpus(database, description.name, search)


def _run(backend: Backend, description: Description, case: Case) -> Result:
    return run_case(case, backend)


def _ended(case: Case, search: Search, died: Died) -> Result:
    finding = ended_process(0, died).finding
    findings = () if finding is None else (finding,)
    return Result(case.identifier, case.title, case.path, search.name, Verdict.FAILED, findings=findings)


def _fails(count: int) -> str:
    return "still fails" if count == 1 else "still fail"


def is_red(results: Sequence[Result]) -> bool:
    """Whether something of the corpus still fails."""
    return any(result.verdict.is_failure for result in results)

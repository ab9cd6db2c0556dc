"""The course of ``quiesce explore``: run sequences, save what fails, shrink it, and keep one case for each cause."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Final

from quiesce.amounts import counted
from quiesce.backend import Description
from quiesce.cases.parser import CASE_SUFFIX
from quiesce.cli.console import Console
from quiesce.cli.saved_cases import tell_shrinking
from quiesce.errors import is_own_error
from quiesce.generation.bulk import generate_one
from quiesce.generation.campaign import CampaignResult, Discovery, reproduce_command
from quiesce.generation.jobs import Died, Jobs
from quiesce.generation.running import Ran, Search, ended_process, run_sequence
from quiesce.generation.saving import named_case, save
from quiesce.generation.search import (
    Cause,
    Failing,
    Tally,
    case_name,
    distinct,
    shrink_failing,
)
from quiesce.results import Result, Verdict

_DEATHS_MAX: Final = 3
"""After so many sequences that ended their process, a search ends: each of them costs a new one."""


@dataclass(frozen=True, slots=True)
class Exploring:
    """Where failing sequences are saved, and who is told."""

    directory: Path
    console: Console


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
    operations: int | None,
    seconds: float | None,
) -> Explored:
    """Run a search to its end and shrink what fails; Ctrl-C ends it with what was found by then, if anything."""
    tally = Tally(operations)
    whole: dict[int, Discovery] = {}
    interrupted, own_error = False, None
    try:
        for failing in _search(search, jobs, tally, exploring.console, operations, seconds):
            if failing in tally.to_shrink():
                whole[failing.number] = _save_whole(search, description, failing, exploring)
        shrunk = _shrink(search, jobs, tally, whole)
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


def _search(
    search: Search, jobs: Jobs, tally: Tally, console: Console, operations: int | None, seconds: float | None
) -> Iterator[Failing]:
    """Run sequences until it is enough, and yield those that fail, in their order."""
    ends_at = None if seconds is None else time.monotonic() + seconds
    deaths = 0
    numbers = takewhile(lambda _: ends_at is None or time.monotonic() < ends_at, search.numbers())
    sent: list[int] = []

    def tasks() -> Iterator[partial[Ran]]:
        for number in numbers:
            sent.append(number)
            yield partial(run_sequence, search=search, number=number)

    for place, result in enumerate(jobs.run(tasks())):
        ran = result
        if isinstance(result, Died):
            deaths += 1
            ran = ended_process(sent[place], result)
        failing = tally.add(ran)
        console.progress(tally.operations, operations or 0, f"operations, sequence {ran.number}")
        if failing is not None:
            yield failing
        if tally.is_enough or deaths == _DEATHS_MAX:
            return


def _save_whole(search: Search, description: Description, failing: Failing, exploring: Exploring) -> Discovery:
    """Save a failing sequence as it is, so that nothing that comes later can lose it."""
    sequence = generate_one(description, search.seed, failing.number, hostile=search.hostile)
    command = reproduce_command(
        search.name, search.seed, hostile=search.hostile, operations=max(1, failing.operations), shard=search.shard
    )
    case = named_case(sequence.case(), failing.finding, description, found_by=command, name=case_name(search, failing))
    with contextlib.suppress(OSError):  # it is told when the shorter one cannot be saved either
        save(case, exploring.directory)
    if failing.is_first:
        tell_shrinking(case, exploring.console)
    return Discovery(failing.number, failing.finding, case, failing.finding, 0, interrupted=True)


def _shrink(search: Search, jobs: Jobs, tally: Tally, whole: dict[int, Discovery]) -> dict[int, Discovery]:
    """Shrink what is to be shrunk. What ends its process stays as it is."""
    shrunk = dict(whole)
    chosen = tally.to_shrink()
    with contextlib.suppress(KeyboardInterrupt):
        results = jobs.run(partial(shrink_failing, search=search, failing=failing) for failing in chosen)
        for failing, discovery in zip(chosen, results, strict=True):
            if not isinstance(discovery, Died):
                shrunk[failing.number] = discovery
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

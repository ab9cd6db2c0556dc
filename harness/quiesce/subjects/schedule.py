"""Builds and rows, several at a time: a process for each, and what one of them breaks the others outlive."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from quiesce.model import wording
from quiesce.model.errors import BackendUnavailable, QuiesceError, SubjectNotBuilt, reproduced_by
from quiesce.subjects.build import Built, build
from quiesce.subjects.manifest import Release, Subject
from quiesce.subjects.row import Row, RowResult, run_row

Tell: TypeAlias = Callable[[str, str], None]
"""Is told the name of something, and what became of it."""
_Made = TypeVar("_Made")


@dataclass(frozen=True, slots=True)
class Unready:
    """Why something did not run: the machine lacks something (``is_skip``), or it failed."""

    reason: str
    is_skip: bool


@dataclass(frozen=True, slots=True)
class Ended:
    """A row, and what came of it."""

    row: Row
    outcome: RowResult | Unready


def run_rows(rows: Sequence[Row], only: Sequence[str], jobs: int, tell: Tell) -> Iterator[Ended]:
    """Build what the rows need, run them, ``jobs`` at a time, and yield each as it ends."""
    by_release: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_release.setdefault((row.subject.name, row.release.version), []).append(row)
    with _pool(jobs) as pool:
        builds = {pool.submit(prepare, of[0].subject, of[0].release): of for of in by_release.values()}
        running: dict[Future[RowResult | Unready], Row] = {}
        while builds or running:
            unfinished: list[Future[Any]] = [*builds, *running]
            done, _ = wait(unfinished, return_when=FIRST_COMPLETED)
            for future in builds.keys() & done:
                of = builds.pop(future)
                made = _result(future)
                if isinstance(made, Unready):
                    yield from (Ended(row, made) for row in of)
                    continue
                tell(f"{of[0].subject.name} {of[0].release.version}", "built")
                running |= {pool.submit(perform, row, made, tuple(only)): row for row in of}
            for ended in running.keys() & done:
                yield Ended(running.pop(ended), _result(ended))


def prepare(subject: Subject, release: Release) -> Built | Unready:
    """Build a release, or say why not; no exception leaves, for not every one can pass between processes."""
    try:
        return build(subject, release)
    except QuiesceError as error:
        return _why(error)


def perform(row: Row, built: Built, only: Sequence[str]) -> RowResult | Unready:
    """Run a row, or say why not."""
    try:
        with reproduced_by(wording.join(row.command)):
            return run_row(row, built, only)
    except QuiesceError as error:
        return _why(error)


def _why(error: QuiesceError) -> Unready:
    if isinstance(error, BackendUnavailable):
        return Unready(f"{error.reason}; {error.remedy}", is_skip=True)
    output = f"\n{error.output}".rstrip() if isinstance(error, SubjectNotBuilt) else ""
    return Unready(f"{error}{output}", is_skip=False)


def _result(future: Future[_Made | Unready]) -> _Made | Unready:
    try:
        return future.result()
    except BrokenProcessPool as broken:
        return Unready(f"the process that ran it is gone: {broken}", is_skip=False)


@contextmanager
def _pool(jobs: int) -> Iterator[ProcessPoolExecutor]:
    pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), initializer=_end_with_parent)
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


def _end_with_parent() -> None:
    """Let this process end with the one that started it, which may be killed; a driver ends with its input."""
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()

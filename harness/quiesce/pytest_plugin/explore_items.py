"""Generated sequences as pytest's items, without a test file: each runs one shard, as ``quiesce explore --shard`` does.

How many there are depends on the number of operations only, so that the workers of pytest-xdist share the same items,
whatever their number.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from quiesce.allocators.cases import write_case
from quiesce.allocators.generation import (
    FOLDER,
    Search,
    Tally,
    distinct,
    reproduce_command,
    run_sequence,
    save,
    shrink_failing,
)
from quiesce.model.results import Result, Verdict
from quiesce.model.wording import counted
from quiesce.pytest_plugin.case_items import ResultItem
from quiesce.pytest_plugin.selection import chosen

if TYPE_CHECKING:
    import pytest

    from quiesce.allocators.cases import Case
    from quiesce.model.backend import Backend

_OPERATIONS: Final = 10_000
"""So many operations an item performs: a second or two of processor time on the fastest backends."""


class ExploreItem(ResultItem):
    """One shard of the sequences of a seed."""

    def __init__(self, *, backend: Backend, search: Search, operations: int, **named: Any) -> None:
        super().__init__(**named)
        self._backend, self._search, self._operations = backend, search, operations
        self._cases = ""

    def make(self) -> Result:
        """Run the shard's sequences, shrink what fails, and save a case for each cause."""
        backend, search, tally = self._backend, self._search, Tally(self._search.share_of(self._operations))
        description = backend.describe()
        for number in search.numbers():
            tally.add(run_sequence(backend, description, search, number))
            if tally.is_over:
                break
        shrunk = [shrink_failing(backend, description, search, failing) for failing in tally.to_shrink()]
        causes = distinct(shrunk, seed=search.seed)
        self._cases = "\n".join(self._saved(cause.discovery.case) for cause in causes)
        verdict = Verdict.FAILED if causes else Verdict.PASSED if tally.operations else Verdict.UNSUPPORTED
        reason = f"{counted(len(tally.failing), 'sequence')} of {tally.sequences:,} failed"
        findings = tuple(cause.discovery.shrunk for cause in causes)
        return replace(self.fail(reason), verdict=verdict, findings=findings, operations=tally.operations)

    def fail(self, reason: str) -> Result:
        """Return a failed result of this shard, under the name that ``quiesce explore`` gives it."""
        search = self._search
        share = search.share_of(self._operations)
        command = reproduce_command(search.name, search.seed, hostile=False, operations=share, shard=search.shard)
        name = f"generated/valid_sequences_with_seed_{search.seed}_{search.shard[0]}_of_{search.shard[1]}"
        title = "Valid sequences that were generated find nothing"
        return Result(name, title, "", search.name, Verdict.FAILED, reason, reproduce=command)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Return what heads a failure."""
        return self.path, None, self.name

    def _failure(self, result: Result) -> str:
        return f"{self._cases}\nthis command finds the same: {result.reproduce}"

    def _saved(self, case: Case) -> str:
        place, shards = self._search.shard
        path = save(case, self.config.rootpath / FOLDER / f"shard_{place}_of_{shards}")
        return f"{write_case(case)}\nsaved as {path.as_posix()}\n"


def explore_items(session: pytest.Session, operations: int, seed: int) -> list[ExploreItem]:
    """Return the items that perform so many operations on each backend of the run."""
    shards = -(-operations // _OPERATIONS)
    return [
        ExploreItem.from_parent(
            session,
            name=f"sequences[{name}-{place}/{shards}]",
            backend=backend,
            search=Search(name, seed, hostile=False, shard=(place, shards)),
            operations=operations,
        )
        for name, backend in chosen(session.config).backends.items()
        for place in range(1, shards + 1)
    ]

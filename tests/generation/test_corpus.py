"""A corpus: what campaigns found is kept in Hypothesis' databases, and read from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis.database import (
    DirectoryBasedExampleDatabase,
    InMemoryExampleDatabase,
    MultiplexedDatabase,
    ReadOnlyDatabase,
)

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation.campaign import run_campaign
from quiesce.allocators.generation.corpus import folder_database, keep, kept, with_kept_sequences
from quiesce.allocators.generation.saving import SequenceFailed, check_sequence
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.generation.strategies import allocation_sequences
from quiesce.backends.reference import faulty
from quiesce.model.results import Verdict

FAULTY = faulty("pool.no_squeeze")
NAME = FAULTY.describe().name


@pytest.fixture(scope="module")
def found() -> Case:
    """What a campaign finds."""
    discovery = run_campaign(FAULTY, seed=3, operations=8_000).discovery
    assert discovery is not None
    return discovery.case


def test_what_is_kept_fails_again(found: Case, tmp_path: Path) -> None:
    keep(folder_database(tmp_path), NAME, found, hostile=False)
    cases, unreadable = kept(folder_database(tmp_path), NAME, hostile=False)
    assert unreadable == 0
    assert [run_case(case, FAULTY).verdict for case in cases] == [Verdict.FAILED]


def test_what_is_kept_twice_is_there_once_for_its_backend_and_mode(found: Case) -> None:
    database = InMemoryExampleDatabase()
    for _ in range(2):
        keep(database, NAME, found, hostile=False)
    assert len(kept(database, NAME, hostile=False)[0]) == 1
    assert kept(database, NAME, hostile=True) == ([], 0)
    assert kept(database, "another", hostile=False) == ([], 0)


def test_what_another_machine_kept_is_read_and_not_changed(found: Case, tmp_path: Path) -> None:
    theirs, mine = InMemoryExampleDatabase(), DirectoryBasedExampleDatabase(tmp_path / "mine")
    keep(theirs, NAME, found, hostile=False)
    shared = MultiplexedDatabase(mine, ReadOnlyDatabase(theirs))
    other = parse_text("title: another\nkind: found\nupstream: u\nfinds: f\n\na = allocate 1\n", "x.case", "x")
    keep(shared, NAME, other, hostile=False)
    assert [len(kept(each, NAME, hostile=False)[0]) for each in (shared, mine, theirs)] == [2, 1, 1]


def test_what_cannot_be_read_is_counted(found: Case) -> None:
    database = InMemoryExampleDatabase()
    keep(database, NAME, found, hostile=False)
    (key,) = database.data
    for value in (b"\xff", b"no case"):
        database.save(key, value)
    cases, unreadable = kept(database, NAME, hostile=False)
    assert (len(cases), unreadable) == (1, 2)


def test_a_test_begins_with_what_a_campaign_found(found: Case) -> None:
    database = InMemoryExampleDatabase()
    keep(database, NAME, found, hostile=False)

    @settings(phases=[Phase.explicit], database=None)
    @with_kept_sequences(database, NAME)
    @given(allocation_sequences(FAULTY.describe()))
    def test(sequence: GeneratedSequence) -> None:
        check_sequence(FAULTY, sequence)

    with pytest.raises(SequenceFailed, match="request_fits_but_out_of_memory"):
        test()

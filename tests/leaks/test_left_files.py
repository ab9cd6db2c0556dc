"""Files that rounds leave in the temporary folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.leaks.explaining.left_files import STEP_NANOSECONDS, Entries, LeftFilesSearch
from quiesce.leaks.explaining.lines import ROUNDS
from quiesce.leaks.owners import Owners
from quiesce.leaks.system_calls import SystemCalls


def test_entries_are_counted_again_only_where_a_change_may_have_no_time_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = tmp_path.stat().st_mtime_ns
    now = [changed + STEP_NANOSECONDS - 1]
    entries = Entries(str(tmp_path), lambda: now[0])
    monkeypatch.setattr(SystemCalls, "changed", lambda _: changed)
    assert entries.count() == 0
    (tmp_path / "one").touch()
    assert entries.count() == 1  # the time of change may be that of the step before
    now[0] += 1
    (tmp_path / "two").touch()
    assert entries.count() == 1
    changed += 1
    assert entries.count() == 2


def test_a_folder_that_is_not_there_has_no_entries(tmp_path: Path) -> None:
    assert Entries(str(tmp_path / "none")).count() == 0


@pytest.mark.parametrize(
    ("made", "left"),
    [
        (lambda number: ["one"], 0),
        (lambda number: [str(number)], 1),
        (lambda number: [f"{number}-{part}" for part in range(3)], 3),
        (lambda number: [f"{number}-{part}" for part in range(1 + number // ROUNDS)], 0),
    ],
    ids=["one name", "a file", "three files", "others make some"],
)
def test_each_round_must_leave_as_many(
    made: Callable[[int], list[str]], left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    rounds = iter(range(1, 100))

    def run_round() -> None:
        for name in made(next(rounds)):
            (tmp_path / name).touch()

    search = LeftFilesSearch(Owners([]))
    search.begin()
    found = search.find(run_round)
    assert (0 if found is None else found.per_round) == left
    assert found is None or [filename for filename, _ in found.lines] == [__file__]

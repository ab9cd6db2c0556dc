"""Which subjects a target names, and what is said where there are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.subjects.catalogue import find_subjects

Write = Callable[..., Path]


def names(targets: list[str], folder: Path) -> list[str]:
    return [subject.name for subject in find_subjects(targets, folder).subjects]


def test_all_are_found_and_named_by_their_folders(write_subject: Write, tmp_path: Path) -> None:
    for name in ("cuda/events", "hip/events", "host/pool"):
        write_subject(name=name)
    folder = tmp_path / "fixtures"
    assert names([], folder) == ["cuda/events", "hip/events", "host/pool"]
    assert names(["events"], folder) == ["cuda/events", "hip/events"]
    assert names(["hip/events"], folder) == ["hip/events"]
    assert names([str(folder / "host" / "pool"), "pool"], folder) == ["host/pool"]


def test_a_name_that_nothing_has_is_answered_with_the_nearest(write_subject: Write, tmp_path: Path) -> None:
    write_subject(name="host/thrust_pool")
    with pytest.raises(ConfigurationError, match="there is no subject 'thrust'; write 'thrust_pool'"):
        find_subjects(["thrust"], tmp_path / "fixtures")
    with pytest.raises(ConfigurationError, match=r"subject 'zzz'; write a folder that holds a subject\.toml"):
        find_subjects(["zzz"], tmp_path / "elsewhere")
    with pytest.raises(ConfigurationError, match="write one of host/thrust_pool, or a folder"):
        find_subjects(["zzz"], tmp_path / "fixtures")


def test_a_place_without_subjects_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no subject is below"):
        find_subjects([], tmp_path)


def test_one_that_cannot_be_read_does_not_hide_the_others(write_subject: Write, tmp_path: Path) -> None:
    write_subject(name="host/good")
    write_subject("title = 1", name="host/bad")
    found = find_subjects([], tmp_path / "fixtures")
    assert [subject.name for subject in found.subjects] == ["host/good"]
    assert "host/bad" in str(found.errors[0])

"""What is kept is whole, made once, and made again where making it was cut short."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from quiesce.subjects.storage import digest_of, kept


def fill(folder: Path) -> None:
    (folder / "made").touch()


def test_it_is_made_once(cache: Path) -> None:
    calls: list[Path] = []
    first = kept("a/b", "1", calls.append)
    assert kept("a/b", "1", calls.append) == first
    assert calls == [first]
    assert first.is_relative_to(cache)
    assert kept("a/b", "2", fill) != first


def test_what_fails_is_not_kept() -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError

    with pytest.raises(RuntimeError):
        kept("a", "1", fail)
    assert [path.name for path in kept("a", "1", fill).iterdir()] == ["made"]


def test_what_a_killed_process_left_is_cleared(cache: Path) -> None:
    half = cache / "a-1" / "content"
    half.mkdir(parents=True)
    (half / "half").touch()
    assert [path.name for path in kept("a", "1", fill).iterdir()] == ["made"]


def test_of_two_that_make_the_same_one_waits_for_the_other() -> None:
    started, go_on = threading.Event(), threading.Event()
    made: list[str] = []

    def slowly(folder: Path) -> None:
        started.set()
        assert go_on.wait(30)
        made.append("first")

    first = threading.Thread(target=kept, args=("a", "1", slowly))
    second = threading.Thread(target=kept, args=("a", "1", lambda folder: made.append("second")))
    first.start()
    assert started.wait(30)
    second.start()
    go_on.set()
    first.join()
    second.join()
    assert made == ["first"]


def test_a_digest_tells_parts_apart() -> None:
    assert digest_of(["ab", "c"]) != digest_of(["a", "bc"])
    assert digest_of(["ab", "c"]) == digest_of(["ab", "c"])

"""Chunks that glibc's malloc keeps at hand: their counts are read, and only what is missing is filled up."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from quiesce.leaks.meters.at_hand import AT_HAND_COUNT, AT_HAND_SIZES, ChunksAtHand
from quiesce.leaks.meters.memory import GlibcHeap

pytestmark = pytest.mark.skipif(bool(GlibcHeap().absent), reason="this system has no glibc with mallinfo2")


class Library:
    """The C library, with a note of each size that is asked for."""

    def __init__(self) -> None:
        library = GlibcHeap().library
        self.free, self.malloc_usable_size = library.free, library.malloc_usable_size
        self.asked: list[int] = []
        self.malloc: Any = Malloc(library.malloc, self.asked)


class Malloc:
    """The function, to which ctypes' declarations can be given."""

    def __init__(self, malloc: Any, asked: list[int]) -> None:
        vars(self).update(_malloc=malloc, _asked=asked)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(vars(self)["_malloc"], name, value)

    def __call__(self, size: int) -> int:
        vars(self)["_asked"].append(size)
        address: int = vars(self)["_malloc"](size)
        return address


@pytest.fixture
def library() -> Library:
    return Library()


@pytest.fixture
def filled(library: Library) -> ChunksAtHand:
    at_hand = ChunksAtHand(library)
    at_hand.fill_up()
    if not at_hand.reads_counts:
        pytest.skip("this glibc has the counts elsewhere")
    at_hand.fill_up()
    library.asked.clear()
    return at_hand


@pytest.mark.parametrize("size", [AT_HAND_SIZES[0], 520, AT_HAND_SIZES[-1]])
def test_only_a_size_of_which_some_are_missing_is_filled_up(filled: ChunksAtHand, library: Library, size: int) -> None:
    taken = library.malloc(size)
    library.asked.clear()
    filled.fill_up()
    assert size in library.asked
    assert len(library.asked) < AT_HAND_COUNT * len(AT_HAND_SIZES), "no other size is touched but those near it"
    library.free(taken)


def test_another_thread_has_counts_of_its_own_and_fills_up_all(filled: ChunksAtHand, library: Library) -> None:
    thread = threading.Thread(target=filled.fill_up)
    thread.start()
    thread.join()
    assert set(AT_HAND_SIZES) <= set(library.asked)


@pytest.mark.parametrize(
    "maps", ["", "1000-2000 rw-p 00000000 00:00 0 \n", "1000-2000 r--p 00000000 00:00 0  [heap]\n"]
)
def test_where_no_heap_is_listed_all_sizes_are_filled_up_each_time(library: Library, tmp_path: Path, maps: str) -> None:
    (tmp_path / "maps").write_text(maps, encoding="ascii")
    at_hand = ChunksAtHand(library, str(tmp_path / "maps"))
    at_hand.fill_up()
    library.asked.clear()
    at_hand.fill_up()
    assert not at_hand.reads_counts
    assert set(AT_HAND_SIZES) <= set(library.asked)


def test_a_list_that_cannot_be_read_is_as_one_without_a_heap(library: Library, tmp_path: Path) -> None:
    at_hand = ChunksAtHand(library, str(tmp_path / "none"))
    at_hand.fill_up()
    assert not at_hand.reads_counts


def test_a_chunk_of_another_size_at_the_start_of_the_heap_is_not_taken_for_the_counts(
    library: Library, tmp_path: Path
) -> None:
    ChunksAtHand(library)  # declares the functions, without which addresses are cut short
    address = library.malloc(64)  # its own head is what malloc says of 64 bytes
    (tmp_path / "maps").write_text(f"{address - 16:x}-{address + 64:x} rw-p 00000000 00:00 0  [heap]\n")
    at_hand = ChunksAtHand(library, str(tmp_path / "maps"))
    at_hand.fill_up()
    assert not at_hand.reads_counts
    library.free(address)

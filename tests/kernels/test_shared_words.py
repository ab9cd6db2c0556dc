"""Words of shared memory that a kernel notes by itself, as long as no two threads meet there."""

from __future__ import annotations

import itertools
import random
from functools import cache
from typing import Any, Final

import numpy as np
import pytest
from tests.kernels import executor
from tests.kernels.executor import tuned
from tests.kernels.judged import CHANGE as BY_ATOMIC
from tests.kernels.judged import LOAD, SHARED, SIZES, STORE, Judged

LANES_MOMENTS = 24
MOMENT, CHANGING, CELLS, CELL_BYTES, CELL_COUNT = 8, 16, 280, 48, 232_448 // 4
CHANGE: Final = np.dtype(
    [("lane", "u4"), ("moment", "u4"), ("site", "u4"), ("own", "u4"), ("bytes", "u4"), ("unused", "u4")]
)


@pytest.fixture
def words() -> np.ndarray[Any, Any]:
    """What the runtime keeps of each word of a block's shared memory, in the turn of block 0."""
    made = np.zeros(CELLS + 64 * CELL_BYTES, "u1")
    made[MOMENT] = 1
    return made


def touch(judged: Judged, threads: int, *who: tuple[int, int]) -> list[tuple[int, int]]:
    """Let threads access words, each a number of a thread and a word; return what the runtime was told."""
    judged.told.clear()
    for thread, word in who:
        judged.run(np.uint32(thread), np.uint32(word), threads=threads)
    return list(judged.told)


def access(kind: int, words: np.ndarray[Any, Any], size: int = 4) -> Judged:
    judged = _access(kind, size, tuned[0])
    judged.kernel.places["shared_words"] = words.ctypes.data
    return judged


@cache
def _access(kind: int, size: int, tuned: bool) -> Judged:
    register = {4: "%r4", 8: "%rd4", 16: "{%r4, %r5, %r6, %r7}"}[size]
    line = f"ld.shared.{SIZES[size]} {register}, [%rd3];" if kind == LOAD else ""
    line = line or f"st.shared.{SIZES[size]} [%rd3], {register};"
    line = f"red.shared.add.{SIZES[size]} [%rd3], 1;" if kind == BY_ATOMIC else line
    return Judged(
        f".shared .align 16 .b8 cells[256];\nld.param.u32 %r1, [t];\nld.param.u32 %r2, [w];\nmov.u32 %r3, %tid.x;\n"
        f"setp.ne.u32 %p1, %r1, %r3;\n@%p1 bra over;\nmov.u64 %rd1, cells;\nmul.wide.u32 %rd2, %r2, {size};\n"
        f"add.u64 %rd3, %rd1, %rd2;\n{line}\nover: bar.sync 0;",
        ".param .u32 t, .param .u32 w",
    )


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize(("first", "second"), list(itertools.product((LOAD, STORE), repeat=2)))
def test_two_threads_that_meet_at_a_word_are_told_of(
    first: int, second: int, size: int, words: np.ndarray[Any, Any]
) -> None:
    one, two = access(first, words, size), access(second, words, size)
    for other in (1, 31, 32, 33):
        words[MOMENT] += 1
        assert touch(one, 64, (0, 3)) == [], "it is noted"
        assert touch(two, 64, (0, 3)) == [], "it is the same thread"
        assert touch(two, 64, (other, 4)) == [], "it is another word"
        assert bool(touch(two, 64, (other, 3))) == (STORE in (first, second))


@pytest.mark.parametrize("other", [1, 32])
def test_a_barrier_parts_them(other: int, words: np.ndarray[Any, Any]) -> None:
    write = access(STORE, words)
    assert touch(write, 64, (0, 3)) == []
    words[MOMENT] = 2
    assert touch(write, 64, (other, 3)) == []
    assert touch(write, 64, (0, 3)) == [(12, 4 | STORE | SHARED)]


def test_two_threads_that_read_are_both_known_to_one_that_writes(words: np.ndarray[Any, Any]) -> None:
    read, write = access(LOAD, words), access(STORE, words)
    for readers in ((0, 1), (1, 0), (0, 40), (40, 0)):
        words[MOMENT] += 1
        assert touch(read, 64, *((reader, 5) for reader in readers)) == []
        assert touch(write, 64, (readers[0], 5)) != [], "it meets the other reader"


def test_nothing_is_noted_in_the_turn_of_another_block(words: np.ndarray[Any, Any]) -> None:
    words[0] = 7
    read = access(LOAD, words)
    assert touch(read, 1, (0, 3)) == [(12, 4 | LOAD | SHARED)]
    assert not words[CELLS:].any()


def test_what_is_outside_is_told_and_not_noted(words: np.ndarray[Any, Any]) -> None:
    read = access(LOAD, words)
    assert touch(read, 1, (0, 64)) == [(256, 4 | LOAD | SHARED)]
    assert [access & 0xFF for _, access in read.asked] == [4]
    assert not words[CELLS:].any()


@pytest.fixture
def changing() -> np.ndarray[Any, Any]:
    """The same where the kernel may note changes by atomic operations, and nothing else."""
    made = np.zeros(CELLS + CELL_COUNT * (CELL_BYTES + 2 * CHANGE.itemsize), "u1")
    made[:8] = 0xFF
    made[MOMENT] = 1
    return made


def changes_of(words: np.ndarray[Any, Any], word: int) -> np.ndarray[Any, Any]:
    pairs: np.ndarray[Any, Any] = words[CELLS + CELL_COUNT * CELL_BYTES :].view(CHANGE).reshape(-1, 2)
    found: np.ndarray[Any, Any] = pairs[word]
    return found


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize(("first", "second"), [(0, 1), (33, 1), (40, 40)])
def test_changes_by_two_threads_are_noted(size: int, first: int, second: int, changing: np.ndarray[Any, Any]) -> None:
    change = access(BY_ATOMIC, changing, size)
    assert touch(change, 64, (first, 3), (second, 3), (first, 3)) == []
    for word in range(3 * size // 4, 4 * size // 4):
        noted = changes_of(changing, word)
        whose = [first] if first == second else [first, second]
        assert noted["lane"][: len(whose)].tolist() == [(each // 32) << 27 | each % 32 for each in whose]
        assert noted["moment"].tolist() == [1] * len(whose) + [0] * (2 - len(whose))
        assert set(noted["bytes"][: len(whose)].tolist()) == {15}
    assert not changes_of(changing, 3 * size // 4 - 1)["moment"].any()


@pytest.mark.parametrize("which", range(3))
def test_a_change_of_a_word_that_is_used_otherwise_is_told(which: int, changing: np.ndarray[Any, Any]) -> None:
    change = access(BY_ATOMIC, changing)
    cell = changing[CELLS + 3 * CELL_BYTES :][:CELL_BYTES].view("u4").reshape(3, 4)
    for moment, told in ((0, []), (1, [(12, 4 | BY_ATOMIC | SHARED)])):
        cell[which][1] = moment
        assert touch(change, 1, (0, 3)) == told
    assert touch(change, 1, (0, 4)) == [], "it is another word"


def test_changes_are_told_where_plain_accesses_are_noted(words: np.ndarray[Any, Any]) -> None:
    words[CHANGING : CHANGING + 8] = 0xFF
    assert touch(access(BY_ATOMIC, words), 1, (0, 3)) == [(12, 4 | BY_ATOMIC | SHARED)]


def test_plain_accesses_are_told_where_changes_are_noted(changing: np.ndarray[Any, Any]) -> None:
    assert touch(access(LOAD, changing), 1, (0, 3)) == [(12, 4 | LOAD | SHARED)]


@cache
def _loads_of_some(size: int, wide: bool) -> Judged:
    """A kernel in which the threads of a mask load from one place; as rows of threads or one after another."""
    executor.tuned[0] = executor.wide[0] = wide
    register = {4: "%r4", 8: "%rd4", 16: "{%r4, %r5, %r6, %r7}"}[size]
    return Judged(
        f".shared .align 16 .b8 cells[256];\nld.param.u64 %rd5, [m];\nld.param.u32 %r2, [w];\nmov.u32 %r3, %tid.x;\n"
        "activemask.b32 %r8;\nshr.u64 %rd5, %rd5, %r3;\nand.b64 %rd5, %rd5, 1;\nsetp.eq.u64 %p1, %rd5, 0;\n"
        f"@%p1 bra over;\nmov.u64 %rd1, cells;\nmul.wide.u32 %rd2, %r2, {size};\nadd.u64 %rd3, %rd1, %rd2;\n"
        f"ld.shared.{SIZES[size]} {register}, [%rd3];\nover: bar.sync 0;",
        ".param .u64 m, .param .u32 w",
    )


@pytest.mark.parametrize("size", [4, 8, 16])
@pytest.mark.parametrize("seed", range(8))
def test_a_row_that_loads_from_one_place_notes_what_its_threads_would(
    size: int, seed: int, words: np.ndarray[Any, Any]
) -> None:
    found = []
    for wide in (False, True):
        chosen, own = random.Random(seed), words.copy()
        loads, write = _loads_of_some(size, wide), access(STORE, own, size)
        loads.kernel.places["shared_words"] = own.ctypes.data
        told: list[list[tuple[int, int]]] = []
        for _ in range(60):
            word = np.uint32(chosen.randrange(3))
            lanes = chosen.choice((chosen.getrandbits(64), (1 << 64) - 1, 1 << chosen.randrange(64), (1 << 32) - 1))
            step = chosen.randrange(8)
            own[MOMENT] += step == 0
            own[LANES_MOMENTS + 4 * chosen.randrange(2) : LANES_MOMENTS + 256].view("u4")[::32] += step == 1
            if step == 2:
                told.append(touch(write, 64, (chosen.randrange(64), int(word))))
                continue
            loads.told.clear()
            loads.run(np.uint64(lanes), word, threads=64)
            told.append(list(loads.told))
        cells = own[CELLS:].view("u8").reshape(-1, 6)
        cells[:, 1], cells[:, 3::2] = 0, cells[:, 3::2] > 0  # a place in the text has several numbers
        found.append((told, own.tobytes()))
    assert found[0] == found[1]
    assert any(found[0][0]), "some threads met"

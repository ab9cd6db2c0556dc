"""Accesses that the code judges by itself, and those of which it asks the runtime: by the bits of each byte."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Iterator
from typing import Final

import numpy as np
import pytest
from tests.kernels.judged import CHANGE, COPY, LOAD, LOCAL, SHARED, SIZES, STORE, Judged
from tests.kernels.shadow import (
    CONSTANTS_BASE,
    KINDS,
    MEMORY_BASE,
    TOUCHED_STRIDE,
    bits_of,
    cell_of,
    device_memory,
    known_bits,
    set_bits,
    touched_bits,
)

PAGE: Final = 4096
READ, WRITE, STRONG_READ, STRONG_WRITE, ATOMIC = (1 << kind for kind in range(KINDS))


@pytest.fixture(scope="module")
def memory() -> int:
    return device_memory(MEMORY_BASE + 16 * PAGE)


@pytest.fixture(scope="module")
def constants() -> int:
    return device_memory(CONSTANTS_BASE + PAGE)


@pytest.fixture(autouse=True)
def forgotten(memory: int, constants: int) -> Iterator[None]:
    """Begin and end with memory of which nothing is known and that nobody has used."""
    yield
    for page in (memory, constants):
        set_bits(known_bits(), page, PAGE, False)
        for kind in range(KINDS):
            set_bits(touched_bits() + kind * TOUCHED_STRIDE, page, PAGE, False)
        for address in range(page, page + PAGE, 512):
            cell_of(address).value = 0


def body_of(kind: int, size: int, words: str = "") -> str:
    """Return the body of a kernel that makes one access at the address that it is given."""
    register = {1: "%r1", 2: "%h1", 4: "%r1", 8: "%rd2", 16: "{%r1, %r2, %r3, %r4}"}[size]
    if kind == CHANGE:
        return f"ld.param.u64 %rd1, [p];\natom.global.add.{SIZES[size]} {register}, [%rd1], 1;"
    line = f"ld{words}.global.{SIZES[size]} {register}, [%rd1];"
    line = line if kind == LOAD else f"st{words}.global.{SIZES[size]} [%rd1], {register};"
    return f"ld.param.u64 %rd1, [p];\n{line}"


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("kind", "use"), [(LOAD, READ), (STORE, WRITE)])
def test_the_runtime_is_asked_unless_every_byte_is_known(kind: int, use: int, size: int, memory: int) -> None:
    judged = Judged(body_of(kind, size))
    draw = random.Random(size)
    asked = 0
    for _ in range(60):
        place = memory + draw.randrange(0, 256)
        set_bits(known_bits(), memory, 512, draw.random() < 0.7)
        for _ in range(draw.randint(0, 3)):
            set_bits(known_bits(), memory + draw.randrange(0, 256), draw.choice((1, 1, 8)), draw.random() < 0.5)
        cell_of(place).value = 0xFF
        is_right = all(bits_of(known_bits(), place, size)) and place % size == 0
        assert judged.run(np.uint64(place)) == ([] if is_right else [(place, size | kind | use << 16)])
        asked += not is_right
    assert asked < 60


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("kind", "words", "use"),
    [
        (LOAD, "", READ),
        (STORE, "", WRITE),
        (LOAD, ".volatile", STRONG_READ),
        (STORE, ".relaxed.gpu", STRONG_WRITE),
    ],
)
def test_the_first_use_of_a_kind_in_a_cell_asks_and_its_bytes_are_noted(
    kind: int, words: str, use: int, size: int, memory: int
) -> None:
    judged = Judged(body_of(kind, size, words))
    set_bits(known_bits(), memory, PAGE, True)
    at = memory + 1024 + 16
    for others in (0, 0xFF & ~use):
        cell_of(at).value = others
        assert judged.run(np.uint64(at)) == [(at, size | kind | use << 16)]
    cell_of(at).value = use
    assert judged.run(np.uint64(at)) == []
    for number in range(KINDS):
        noted = bits_of(touched_bits() + number * TOUCHED_STRIDE, at - 16, 64)
        assert noted == [use == 1 << number and 16 <= place < 16 + size for place in range(64)]


@pytest.mark.parametrize("size", [4, 8])
@pytest.mark.parametrize(("looks", "use"), [(False, ATOMIC), (True, ATOMIC | STRONG_READ)])
def test_an_atomic_operation_is_noted_once(looks: bool, use: int, size: int, memory: int) -> None:
    register = "%r1" if size == 4 else "%rd2"
    look = f"\nst.global.{SIZES[size]} [%rd3], {register};" if looks else ""
    judged = Judged("ld.param.u64 %rd3, [q];\n" + body_of(CHANGE, size) + look, ".param .u64 p, .param .u64 q")
    ctypes.memset(memory, 0, PAGE)
    set_bits(known_bits(), memory, PAGE, True)
    at, seen = memory + 2048 + 8, memory + 3072
    cell_of(seen).value = 0xFF
    word = size | CHANGE | use << 16
    assert judged.run(np.uint64(at), np.uint64(seen)) == [(at, word)], "the first one in the cell"
    cell_of(at).value = use
    assert judged.run(np.uint64(at), np.uint64(seen)) == []
    cell_of(at).value = 0
    assert judged.run(np.uint64(at), np.uint64(seen)) == [], "its bytes are noted, so nobody looks at the cell"
    set_bits(touched_bits() + 4 * TOUCHED_STRIDE, at + size - 1, 1, False)
    assert judged.run(np.uint64(at), np.uint64(seen)) == [(at, word)], "not all of them are"
    cell_of(at).value = use
    set_bits(known_bits(), at + size - 1, 1, False)
    assert judged.run(np.uint64(at), np.uint64(seen)) == [(at, word)], "it is wrong"
    place = ctypes.c_uint32 if size == 4 else ctypes.c_uint64
    assert place.from_address(at).value == 2, "what the runtime was asked about happened elsewhere"


@pytest.mark.parametrize("kind", [LOAD, STORE, CHANGE])
def test_constants_are_never_written_whatever_is_known(kind: int, constants: int) -> None:
    judged = Judged(body_of(kind, 4))
    set_bits(known_bits(), constants, 64, True)
    cell_of(constants).value = 0xFF
    assert bool(judged.run(np.uint64(constants))) == (kind != LOAD)


@pytest.mark.parametrize("kind", [LOAD, STORE])
def test_memory_that_has_no_bits_is_asked_about(kind: int) -> None:
    judged = Judged(body_of(kind, 4))
    host = np.zeros(4, "u4")
    assert [address for address, _ in judged.run(np.uint64(host.ctypes.data))] == [host.ctypes.data]
    for address in (0, MEMORY_BASE - 4, 1 << 63):
        assert [at for at, _ in judged.run(np.uint64(address))] == [address]


def test_an_access_goes_to_the_place_that_is_answered(memory: int) -> None:
    judged = Judged(body_of(STORE, 4).replace("st.global", "mov.u32 %r1, 77;\nst.global"))
    ctypes.memset(memory, 0, 64)
    judged.run(np.uint64(memory))
    assert judged.nobodys.view("u4")[0] == 77
    assert ctypes.c_uint32.from_address(memory).value == 0
    set_bits(known_bits(), memory, 4, True)
    cell_of(memory).value = 0xFF
    judged.run(np.uint64(memory))
    assert ctypes.c_uint32.from_address(memory).value == 77


def test_a_text_with_many_accesses_calls_one_function_for_those_that_are_alike(memory: int) -> None:
    lines = "\n".join(f"ld.global.u32 %r1, [%rd1+{4 * number}];" for number in range(300))
    judged = Judged(f"ld.param.u64 %rd1, [p];\n{lines}")
    set_bits(known_bits(), memory, PAGE, True)
    for address in range(memory, memory + PAGE, 512):
        cell_of(address).value = 0xFF
    assert judged.run(np.uint64(memory)) == []
    for number in (0, 255, 256, 299):
        set_bits(known_bits(), memory + 4 * number, 4, False)
    expected = [(memory + 4 * number, 4 | LOAD | READ << 16) for number in (0, 255, 256, 299)]
    assert judged.run(np.uint64(memory)) == expected


# -- shared and local memory -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_shared_memory_is_asked_about_outside_of_it(size: int) -> None:
    register = "%r1" if size < 8 else "%rd2"
    lines = f"mov.u64 %rd3, cells;\nadd.u64 %rd1, %rd1, %rd3;\nld.shared.{SIZES[size]} {register}, [%rd1];"
    register = "%h1" if size == 2 else register
    lines = lines.replace("%r1, [", f"{register}, [")
    body = f".shared .align 16 .b8 cells[64];\nld.param.u64 %rd1, [p];\n{lines}\nbar.sync 0;"
    judged = Judged(body)
    for offset in (-size, -1, 0, 1, size, 63, 64 - size, 64, 65, 64 - size // 2):
        judged.told.clear()
        is_right = 0 <= offset <= 64 - size and offset % size == 0
        asked = judged.run(np.uint64(offset % (1 << 64)))
        assert [access for _, access in asked] == [size | LOAD | SHARED] * (not is_right), offset
        assert judged.told == [(offset, size | LOAD | SHARED)], "whether threads race there, the runtime knows"


@pytest.mark.parametrize(("count", "rows"), [(1, 8), (2, 16), (4, 32)])
def test_only_the_threads_that_name_a_row_of_a_matrix_are_judged(count: int, rows: int) -> None:
    registers = ", ".join(f"%r{number}" for number in range(4, 4 + count))
    judged = Judged(
        ".shared .align 16 .b8 cells[16];\nmov.u64 %rd1, cells;\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 16;\n"
        "add.u64 %rd1, %rd1, %rd2;\n"
        f"ldmatrix.sync.aligned.m8n8.x{count}.shared.b16 {{{registers}}}, [%rd1];\nld.param.u64 %rd3, [p];\n"
        "st.global.u32 [%rd3], %r4;"
    )
    asked = judged.run(np.zeros(4, "u4"), threads=32)
    shared = [access for _, access in asked if access & 0xF000 == SHARED]
    assert shared == [16 | LOAD | SHARED] * (rows - 1), "all but the first row lie outside"


@pytest.mark.parametrize("size", [1, 4, 8])
def test_local_memory_is_asked_about_outside_of_all_arrays(size: int) -> None:
    names = ".local .align 16 .b8 one[32];\n.local .align 16 .b8 two[8];\n.local .align 16 .b8 three[16];\n"
    for array, bytes_ in (("one", 32), ("two", 8), ("three", 16)):
        register = "%r1" if size < 8 else "%rd4"
        access = f"ld.local.{SIZES[size]} {register}, [%rd3];"
        judged = Judged(f"{names}ld.param.u64 %rd1, [p];\nmov.u64 %rd2, {array};\nadd.u64 %rd3, %rd2, %rd1;\n{access}")
        for offset in range(0, bytes_ - size + 1):
            assert judged.run(np.uint64(offset)) == []
        judged.arrays.clear()
        (asked,) = judged.run(np.uint64((1 << 64) - (1 << 20)))
        assert asked[1] == size | LOAD | LOCAL
        ((distance, _),) = judged.arrays
        assert -(1 << 20) - 128 < distance < -(1 << 19), "that which is nearest"


def test_the_array_that_a_wrong_access_is_nearest_to_is_told() -> None:
    judged = Judged(
        ".local .align 16 .b8 one[16];\n.local .align 16 .b8 two[16];\nld.param.u64 %rd1, [p];\nmov.u64 %rd2, one;\n"
        "mov.u64 %rd5, two;\nsub.u64 %rd6, %rd5, %rd2;\nadd.u64 %rd3, %rd2, %rd1;\nld.local.u8 %r1, [%rd3];\n"
        "ld.param.u64 %rd7, [q];\nst.global.u64 [%rd7], %rd6;",
        ".param .u64 p, .param .u64 q",
    )
    distance = np.zeros(1, "i8")
    judged.run(np.uint64(0), distance)
    (between,) = judged.nobodys[:8].view("i8").tolist()
    for offset in (between + 16, between - 1, between - 40, 16, -1, -40):
        judged.arrays.clear()
        judged.run(np.uint64(offset % (1 << 64)), distance)
        nearest = min((0, between), key=lambda start: start - offset if offset < start else offset - start - 15)
        if 0 <= offset < 16 or between <= offset < between + 16:
            assert judged.arrays == []
        else:
            assert judged.arrays == [(offset - nearest, 16)]


def test_copies_to_shared_memory_are_told_when_they_begin_and_when_they_are_waited_for() -> None:
    judged = Judged(
        ".shared .align 16 .b8 cells[32];\nld.param.u64 %rd1, [p];\ncp.async.ca.shared.global [cells], [%rd1], 4;\n"
        "cp.async.commit_group;\ncp.async.ca.shared.global [cells+8], [%rd1], 8;\ncp.async.commit_group;\n"
        "cp.async.wait_group 1;\ncp.async.wait_all;"
    )
    judged.run(np.zeros(4, "u4"))
    assert [each for each in judged.copies if "bytes" not in each] == [
        "thread 0 commits",
        "thread 0 commits",
        "thread 0 waits until 1 are left",
        "thread 0 commits",
        "thread 0 waits until 0 are left",
    ]
    sides = [(access & 0xFF, access & 0xF00, access & 0xF000) for _, access in judged.asked + judged.told]
    assert (4, LOAD, 0) in sides
    assert (4, COPY, SHARED) in sides
    assert (8, COPY, SHARED) in sides


def test_both_sides_of_a_copy_of_any_length_are_asked_about() -> None:
    judged = Judged(
        ".shared .align 16 .b8 cells[64];\n.shared .align 8 .b64 barrier;\nld.param.u64 %rd1, [p];\n"
        "mbarrier.init.shared.b64 [barrier], 1;\n"
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [cells], [%rd1], 64, [barrier];\n"
        "ld.shared.u32 %r1, [cells+20];\nst.global.u32 [%rd1], %r1;"
    )
    given = np.arange(16, dtype="u4")
    asked = judged.run(given)
    assert judged.copies == ["asks for 64 bytes", "asks for 64 bytes", "64 bytes"]
    assert [access & 0xF000 for _, access in asked[:2]] == [SHARED, 0]
    assert [access & 0xF00 for _, access in asked[:2]] == [STORE, LOAD]
    assert asked[1][0] == given.ctypes.data
    assert judged.nobodys.view("u4")[0] == 5, "what was copied, where nobody's memory is"

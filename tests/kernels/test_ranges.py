"""Accesses that are judged as ranges before a loop: they are those that the threads make, one by one."""

from __future__ import annotations

import ctypes
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pytest
from tests.kernels import executor
from tests.kernels.executor import Kernel
from tests.kernels.programs import HEADER
from tests.kernels.shadow import touched_bits

RANGE: Final = np.dtype(
    [("address", "u8"), ("steps", "i8", 3), ("first", "u4", 3), ("counts", "u4", 3), ("access", "u4"), ("site", "u4")]
)
COUNT_BITS: Final = 0xFFFF


@pytest.fixture(autouse=True, params=[False, True], ids=["usual", "tuned"])
def tuned(request: pytest.FixtureRequest) -> Iterator[bool]:
    """Choose how kernels are compiled. Rows of threads are judged row by row."""
    executor.tuned[0] = request.param
    yield request.param
    executor.tuned[0] = False


Access = tuple[int, int, int]
"""Line, size and kind, and address."""


class Judge:
    """Notes every access that the code asks about, and whether it was asked about as part of a range."""

    def __init__(self, text: str, are_right: bool) -> None:
        self.accesses: Counter[Access] = Counter()
        self.in_ranges = 0
        self._are_right = are_right
        word, wide = ctypes.c_uint32, ctypes.c_uint64
        place, number = ctypes.c_void_p, ctypes.CFUNCTYPE(word, ctypes.c_void_p, ctypes.c_void_p, word)
        one = ctypes.CFUNCTYPE(place, place, wide, word, word, word, place)
        functions = {
            "quiesce_kernel_ranges": number(self._ranges),
            "quiesce_kernel_check": one(self._one),
            "quiesce_kernel_shared": ctypes.CFUNCTYPE(None, place, wide, word, word, word)(self._shared),
            "quiesce_kernel_barrier": ctypes.CFUNCTYPE(None, place)(lambda context: None),
            "quiesce_kernel_lanes": ctypes.CFUNCTYPE(None, place, *4 * [word])(lambda *_: None),
            "quiesce_kernel_line": ctypes.CFUNCTYPE(word, place, place, word, place)(self._line),
        }
        self.kernel = Kernel(text, "k", checks=functions)
        self.kernel.places["touched"] = touched_bits()

    def _note(self, site: int, access: int, address: int, times: int = 1) -> None:
        self.accesses[self.kernel.site(site)[0], access & 0xFFF, address] += times

    def _one(self, context: int, address: int, access: int, site: int, thread: int, frame: int | None) -> int:
        if not access >> 12 & 0xF:
            self._note(site, access, address)
        return address

    def _shared(self, context: int, address: int, access: int, site: int, thread: int) -> None:
        self._note(site, access, address - self._shared_base(context))

    def _shared_base(self, context: int) -> int:
        return ctypes.c_uint64.from_address(context + 40).value

    def _ranges(self, context: int, ranges: int, count: int) -> int:
        if not self._are_right:
            return 0
        size = (count & COUNT_BITS) * RANGE.itemsize
        for each in np.frombuffer(ctypes.string_at(ranges, size), RANGE):
            base = self._shared_base(context) if each["access"] >> 12 == 1 else 0
            for index in itertools.product(*(range(length) for length in each["counts"].tolist())):
                offset = sum(step * at for step, at in zip(each["steps"].tolist(), index, strict=True))
                self._note(int(each["site"]), int(each["access"]), int(each["address"]) + offset - base)
                self.in_ranges += 1
        return 1

    def _line(self, context: int, array: int, size: int, steps: int) -> int:
        x, y, z = (ctypes.c_uint32 * 3).from_address(context + 12)
        kind = ctypes.c_uint32 if size == 4 else ctypes.c_uint64
        values = np.ctypeslib.as_array((kind * (x * y * z)).from_address(array)).reshape(z, y, x)
        zero = values[0, 0, 0]
        found = [int(each - zero) if length > 1 else 0 for each, length in self._neighbours(values)]
        ctypes.memmove(steps, np.array(found, "i8").tobytes(), 24)
        k, j, i = np.indices(values.shape).astype(values.dtype)
        scaled = [axis * values.dtype.type(step) for axis, step in zip((i, j, k), found, strict=True)]
        return int((values == zero + scaled[0] + scaled[1] + scaled[2]).all())

    @staticmethod
    def _neighbours(values: np.ndarray[Any, Any]) -> list[tuple[Any, int]]:
        z, y, x = values.shape
        return [(values[0, 0, min(1, x - 1)], x), (values[0, min(1, y - 1), 0], y), (values[min(1, z - 1), 0, 0], z)]


def compare(body: str, parameters: str, grid: Sequence[int], block: Sequence[int], *arguments: Any) -> int:
    """Run a kernel with ranges that are right and with ranges that are not; return how many accesses were in ranges."""
    registers = ".reg .b32 %r<30>;\n.reg .b64 %rd<30>;\n.reg .f32 %f<9>;\n.reg .pred %p<9>;\n"
    lines = body.replace("; ", ";\n")
    text = f"{HEADER}\n.visible .entry k({parameters})\n{{\n{registers}{lines}\n}}\n"
    judges = [Judge(text, are_right) for are_right in (True, False)]
    results = []
    for judge in judges:
        given = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        arrays = [each for each in given if isinstance(each, np.ndarray) and each.ndim]
        judge.kernel.launch(grid, block, *given)
        starts = [(each.ctypes.data, each.nbytes) for each in arrays]
        judge.accesses = Counter({_placed(access, starts): count for access, count in judge.accesses.items()})
        results.append([each.tolist() for each in arrays])
    assert results[0] == results[1]
    assert judges[0].accesses == judges[1].accesses
    return judges[0].in_ranges


def _placed(access: Access, starts: list[tuple[int, int]]) -> Access:
    line, word, address = access
    for number, (start, size) in enumerate(starts):
        if start <= address < start + size:
            return line, word, (number + 1 << 32) + address - start
    return access


INDEX: Final = "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r4, %r3, %r2, %r1; "
LOADS: Final = "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [c]; ld.param.u32 %r5, [n]; "
PARAMETERS: Final = ".param .u64 a, .param .u64 c, .param .u32 n"
COPY: Final = (
    "mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r6, [%rd4]; "
    "add.s64 %rd5, %rd2, %rd3; st.global.u32 [%rd5], %r6; "
)


OWN: Final = "mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r7, [%rd4]; "
LEAVE: Final = "setp.gt.u32 %p2, %r7, 50; @%p2 bra end; "


@pytest.mark.parametrize("count", [0, 1, 31, 32, 33, 64, 100, 1000])
@pytest.mark.parametrize(
    "guard",
    [
        "setp.ge.s32 %p1, %r4, %r5; @%p1 bra end; ",
        "setp.lt.s32 %p1, %r4, %r5; @!%p1 bra end; ",
        "setp.le.u32 %p1, %r5, %r4; @%p1 bra end; ",
        "sub.s32 %r7, %r5, %r4; setp.lt.s32 %p1, %r7, 1; @%p1 bra end; ",
        "mul.lo.s32 %r7, %r4, 3; mul.lo.s32 %r8, %r5, 3; setp.ge.s32 %p1, %r7, %r8; @%p1 bra end; ",
        "cvt.s64.s32 %rd7, %r4; cvt.s64.s32 %rd8, %r5; setp.gt.s64 %p1, %rd8, %rd7; @!%p1 bra end; ",
        "setp.ge.s32 %p1, %r4, %r5; @%p1 ret; ",
    ],
)
def test_threads_below_a_bound(guard: str, count: int) -> None:
    memory = np.arange(96, dtype="u4")
    number = compare(
        INDEX + LOADS + guard + COPY + "end: ret;", PARAMETERS, [3], [32], memory, np.zeros(96, "u4"), np.uint32(count)
    )
    assert number == 2 * min(count, 96)


@pytest.mark.parametrize("block", [(8, 4), (4, 2, 3), (1, 16), (32,)])
def test_two_bounds(block: tuple[int, ...]) -> None:
    """An image with a pitch that only the launch knows, of which blocks leave some out on two sides."""
    body = (
        "mov.u32 %r1, %tid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %ctaid.x; mad.lo.s32 %r4, %r3, %r2, %r1; "
        "mov.u32 %r11, %tid.y; mov.u32 %r12, %ntid.y; mov.u32 %r13, %ctaid.y; mad.lo.s32 %r14, %r13, %r12, %r11; "
        f"{LOADS}ld.param.u32 %r15, [m]; "
        "setp.ge.s32 %p1, %r4, %r5; setp.ge.s32 %p2, %r14, %r15; or.pred %p3, %p1, %p2; @%p3 bra end; "
        "ld.param.u32 %r16, [pitch]; mad.lo.s32 %r4, %r14, %r16, %r4; "
    )
    image = np.arange(64 * 20, dtype="u4")
    sizes = (np.uint32(27), np.uint32(19), np.uint32(64))
    parameters = f"{PARAMETERS}, .param .u32 m, .param .u32 pitch"
    number = compare(f"{body}{COPY}end: ret;", parameters, [4, 2], block, image, np.zeros(64 * 20, "u4"), *sizes)
    assert number


@pytest.mark.parametrize(
    ("body", "is_covered"),
    [
        ("sub.s32 %r4, 63, %r4; " + COPY, True),
        ("shl.b32 %r4, %r4, 1; " + COPY, True),
        ("shl.b32 %r4, %r4, 1; or.b32 %r4, %r4, 1; " + COPY, False),
        ("and.b32 %r4, %r4, 7; " + COPY, False),
        ("setp.ne.s32 %p1, %r4, 5; @%p1 bra end; " + COPY, True),
        ("setp.eq.s32 %p1, %r4, 5; @%p1 bra end; " + COPY, False),
        ("cvt.s64.s32 %rd7, %r4; shl.b64 %rd7, %rd7, 32; shr.s64 %rd7, %rd7, 32; cvt.u32.u64 %r4, %rd7; " + COPY, True),
        ("add.s32 %r8, %r4, 0x7FFFFFF0; setp.lt.s32 %p1, %r8, 0; @%p1 bra end; " + COPY, False),
        ("@%p5 st.global.u32 [%rd2], %r4; " + COPY, True),
        ("setp.gt.s32 %p1, %r4, 9; @%p1 bra over; mov.u32 %r4, 3; over: " + COPY, False),
        ("setp.gt.s32 %p1, %r4, 9; @%p1 bra over; mov.u32 %r9, 3; over: " + COPY, True),
        ("ld.global.u32 %r7, [%rd1]; setp.gt.u32 %p1, %r7, 9; @%p1 bra end; " + COPY, True),
        ("mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r4, [%rd4]; " + COPY, True),
        (OWN + "setp.gt.u32 %p1, %r7, 40; @%p1 bra left; bra over; left: " + LEAVE + "over: " + COPY, True),
        ("mul.wide.s32 %rd3, %r4, 8; add.s64 %rd4, %rd1, %rd3; ld.global.v2.u32 {%r6, %r7}, [%rd4]; ", True),
    ],
)
def test_other_indices(body: str, is_covered: bool) -> None:
    memory = np.arange(128, dtype="u4")
    setup = INDEX + LOADS + "setp.ne.u32 %p5, %r5, %r5; "
    number = compare(f"{setup}{body}end: ret;", PARAMETERS, [1], [64], memory, np.zeros(128, "u4"), np.uint32(9))
    assert bool(number) == is_covered


ROUNDS: Final = (
    "mov.u32 %r6, %nctaid.x; mul.lo.u32 %r7, %r6, %r2; setp.ge.s32 %p1, %r4, %r5; @%p1 bra end; "
    "again: mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r8, [%rd4]; add.s64 %rd5, %rd2, %rd3; "
    "st.global.u32 [%rd5], %r8; add.s32 %r4, %r4, %r7; setp.lt.s32 %p2, %r4, %r5; @%p2 bra again; end: ret;"
)


@pytest.mark.parametrize("count", [0, 1, 63, 64, 65, 200, 256, 1000])
def test_rounds_of_a_loop(count: int, tuned: bool) -> None:
    memory = np.arange(1000, dtype="u4")
    number = compare(INDEX + LOADS + ROUNDS, PARAMETERS, [2], [32], memory, np.zeros(1000, "u4"), np.uint32(count))
    left = [(turn, min(32, max(0, count - start - 64 * turn))) for start in (0, 32) for turn in range(16)]
    whole = sum(threads for turn, threads in left if not turn or threads == 32)  # later rounds are of whole blocks
    assert number == 2 * whole * tuned


def test_a_sum_in_shared_memory(tuned: bool) -> None:
    body = (
        "mul.wide.s32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; ld.global.u32 %r6, [%rd4]; "
        "mul.wide.u32 %rd7, %r1, 4; mov.u64 %rd8, cells; add.s64 %rd9, %rd8, %rd7; st.shared.u32 [%rd9], %r6; "
        "shr.u32 %r9, %r2, 1; "
        "again: bar.sync 0; setp.ge.s32 %p3, %r1, %r9; @%p3 bra over; mul.wide.s32 %rd12, %r9, 4; "
        "add.s64 %rd13, %rd9, %rd12; ld.shared.u32 %r10, [%rd9]; ld.shared.u32 %r11, [%rd13]; "
        "add.s32 %r10, %r10, %r11; st.shared.u32 [%rd9], %r10; "
        "over: shr.u32 %r9, %r9, 1; setp.ne.s32 %p4, %r9, 0; @%p4 bra again; "
        "setp.ne.s32 %p5, %r1, 0; @%p5 bra end; ld.shared.u32 %r12, [cells]; mul.wide.u32 %rd15, %r3, 4; "
        "add.s64 %rd16, %rd2, %rd15; st.global.u32 [%rd16], %r12; end: ret;"
    )
    shared = ".shared .align 4 .b8 cells[256];\n"
    memory = np.arange(128, dtype="u4")
    number = compare(shared + INDEX + LOADS + body, PARAMETERS, [2], [64], memory, np.zeros(2, "u4"), np.uint32(0))
    before, rounds, after = 2 * 64, 3 * (32 + 16 + 8 + 4 + 2 + 1), 2
    assert number == 2 * (before + rounds + after) * tuned


def test_indices_that_do_not_fit() -> None:
    """What is beyond 32 bits is no even step: the threads are judged one by one."""
    memory = np.arange(64, dtype="u4")
    body = (
        "add.u32 %r8, %r4, 0xFFFFFFF0; cvt.u64.u32 %rd7, %r8; and.b64 %rd7, %rd7, 63; shl.b64 %rd7, %rd7, 2; "
        "add.s32 %r9, %r4, 0xFFFFFFF0; mul.wide.u32 %rd8, %r9, 4; setp.gt.u64 %p1, %rd8, 1000; @%p1 bra end; "
        "add.s64 %rd4, %rd1, %rd8; ld.global.u32 %r6, [%rd4]; "
    )
    assert not compare(INDEX + LOADS + body + "end: ret;", PARAMETERS, [1], [32], memory, memory, np.uint32(0))

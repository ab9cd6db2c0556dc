"""Kernels widened to rows of threads against the same kernels for one thread at a time: the same bits."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Final

import numpy as np
import pytest
from tests.kernels import executor
from tests.kernels.executor import Kernel
from tests.kernels.programs import HEADER

from quiesce.simulator.kernels.compiler import can_widen, compile_kernel
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation import pipeline
from quiesce.simulator.kernels.translation.lane_function import NARROW
from quiesce.simulator.kernels.translation.program import Variant
from quiesce.simulator.kernels.widening.flow import flow_of
from quiesce.simulator.kernels.widening.shapes import Row, Shape, find_shapes
from quiesce.simulator.kernels.widening.text import NotUnderstood, read_function

_WORDS: Final = 64
_OWN: Final = 8
_DECLARED: Final = (
    ".reg .pred %p<64>;\n.reg .b32 %r<64>;\n.reg .b32 %c<64>;\n.reg .f32 %f<8>;\n.reg .b64 %rd<32>;\n.reg .b32 %t<8>;\n"
)


@pytest.fixture(autouse=True)
def tuned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Widen kernels without a loop as well; tests say themselves which form they run."""
    monkeypatch.setattr(pipeline, "is_worth_rows", lambda *_: True)
    yield
    executor.tuned[0] = executor.wide[0] = False


class Program:
    """A random kernel: nested branches and loops, uniform ones and others, with arithmetic on a few registers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._count = 0
        self._lines: list[str] = []
        self._exits: list[str] = []
        self._left = 40
        self._block(3)

    def text(self) -> str:
        begin = (
            "ld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nld.param.u64 %rd3, [counts];\n"
            "ld.param.u32 %r20, [n];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nmov.u32 %r3, %ntid.x;\n"
            "mov.u32 %r4, %ctaid.x;\n"
            "mad.lo.u32 %r5, %r2, %r3, %r1;\nmov.u32 %r6, %ntid.y;\nmul.lo.u32 %r6, %r6, %r3;\n"
            f"mad.lo.u32 %r5, %r4, %r6, %r5;\nmul.wide.u32 %rd4, %r5, {4 * _OWN};\nadd.s64 %rd4, %rd2, %rd4;\n"
            "mov.u32 %r10, %r1;\nmov.u32 %r11, %r5;\nmov.u32 %r12, %r20;\nmov.u32 %r13, 7;\nmov.f32 %f1, 0f3F800000;\n"
            "cvt.rn.f32.u32 %f2, %r5;\n"
        )
        ends = "".join(f"st.global.u32 [%rd4+{4 * place}], %r{10 + place};\n" for place in range(4))
        return (
            f"{HEADER}.visible .entry k(.param .u64 in, .param .u64 out, .param .u64 counts, .param .u32 n)\n{{\n"
            f"{_DECLARED}{begin}{''.join(self._lines)}DONE:\n{ends}st.global.f32 [%rd4+16], %f1;\n"
            "st.global.f32 [%rd4+20], %f2;\nret;\n}\n"
        )

    def _name(self) -> int:
        self._count += 1
        return self._count

    def _any(self) -> str:
        return self._random.choice(("%r10", "%r11", "%r12", "%r13"))

    def _source(self) -> str:
        others = ("%r1", "%r5", "%r20", "%r4", str(self._random.randrange(1, 9)), *self._counters())
        return self._random.choice((self._any(), self._random.choice(others)))

    def _counters(self) -> list[str]:
        return [f"%c{number}" for number in range(1, min(self._count, 60)) if f"add.u32 %c{number}," in self._seen()]

    def _seen(self) -> str:
        return "".join(self._lines[-12:])

    def _block(self, depth: int) -> None:
        for _ in range(self._random.randrange(1, 5)):
            kind = self._random.random()
            if self._left <= 0 or not depth or kind < 0.5:
                self._statement()
            elif kind < 0.72:
                self._branch(depth)
            elif kind < 0.9:
                self._loop(depth)
            elif kind < 0.95:
                self._branches(depth)
            elif self._exits:
                self._leave()

    def _statement(self) -> None:
        self._left -= 1
        self._lines.append(self._random.choice(self._statements())())

    def _statements(self) -> tuple[Callable[[], str], ...]:
        often = (self._sum, self._load, self._store, self._float)
        return (*often, *often, self._atomic, self._swap, self._ordered)

    def _swap(self) -> str:
        """Change a word of the thread's own, if it is as expected."""
        return (
            f"atom.global.cas.b32 %t4, [%rd4+{4 * self._random.randrange(6, _OWN)}], {self._source()}, "
            f"{self._source()};\nxor.b32 {self._any()}, {self._any()}, %t4;\n"
        )

    def _ordered(self) -> str:
        """Write in order, and read in order where that is in no loop: threads of such a loop wait for each other."""
        place = 4 * self._random.randrange(6, _OWN)
        word, other = self._random.choice((("relaxed", "relaxed"), ("release", "acquire")))
        store = f"st.{word}.gpu.global.u32 [%rd4+{place}], {self._source()};\n"
        return store if self._exits else f"{store}ld.{other}.gpu.global.u32 {self._any()}, [%rd1+{place}];\n"

    def _sum(self) -> str:
        name = self._random.choice(("add.u32", "sub.u32", "xor.b32", "mul.lo.u32", "min.s32", "max.u32", "and.b32"))
        return f"{name} {self._any()}, {self._source()}, {self._source()};\n"

    def _load(self) -> str:
        number = self._name() % 16 + 8
        return (
            f"and.b32 %t1, {self._source()}, {_WORDS - 1};\nmul.wide.s32 %rd{number}, %t1, 4;\n"
            f"add.s64 %rd{number}, %rd1, %rd{number};\nld.global.u32 {self._any()}, [%rd{number}];\n"
        )

    def _store(self) -> str:
        return f"st.global.u32 [%rd4+{4 * self._random.randrange(6, _OWN)}], {self._source()};\n"

    def _float(self) -> str:
        ftz = self._random.choice(("", ".ftz"))
        return self._random.choice(
            (
                f"add{ftz}.f32 %f1, %f1, %f2;\nmul{ftz}.f32 %f2, %f2, 0f3F000000;\n",
                f"cvt.rn.f32.s32 %f2, {self._source()};\nfma.rn{ftz}.f32 %f1, %f2, %f1, %f2;\n",
                f"setp.lt{ftz}.f32 %p1, %f1, %f2;\nselp.b32 {self._any()}, {self._any()}, {self._any()}, %p1;\n",
            )
        )

    def _atomic(self) -> str:
        return (
            f"and.b32 %t1, {self._source()}, 15;\nmul.wide.u32 %rd5, %t1, 4;\nadd.s64 %rd5, %rd3, %rd5;\n"
            f"red.global.add.u32 [%rd5], {self._source()};\n"
        )

    def _condition(self) -> str:
        """Write a condition, and return its predicate: of uniform numbers, of the thread's index, or of any."""
        number = self._name() % 60 + 2
        first = self._random.choice(("%r20", "%r4", "%r1", "%r5", self._any(), self._any()))
        how = self._random.choice(("lt.u32", "ge.s32", "ne.u32", "eq.u32"))
        self._lines.append(f"and.b32 %t2, {first}, 31;\nsetp.{how} %p{number}, %t2, {self._random.randrange(1, 32)};\n")
        return f"%p{number}"

    def _branch(self, depth: int) -> None:
        number, predicate = self._name(), self._condition()
        self._lines.append(f"@{predicate} bra E{number};\n")
        self._block(depth - 1)
        if self._random.random() < 0.5:
            self._lines.append(f"bra F{number};\nE{number}:\n")
            self._block(depth - 1)
            self._lines.append(f"F{number}:\n")
        else:
            self._lines.append(f"E{number}:\n")

    def _branches(self, depth: int) -> None:
        """Branch by an index; two indices go to one place."""
        number = self._name()
        places = [f"I{number}_{each}" for each in (0, 1, 0, 2)]
        self._lines.append(
            f"and.b32 %t2, {self._source()}, 3;\nT{number}: .branchtargets {', '.join(places)};\n"
            f"brx.idx %t2, T{number};\n"
        )
        for each in range(3):
            self._lines.append(f"I{number}_{each}:\n")
            self._block(depth - 1)
            self._lines.append(f"bra J{number};\n")
        self._lines.append(f"J{number}:\n")

    def _loop(self, depth: int) -> None:
        number = self._name() % 60 + 1
        label = self._name()
        counter, most = f"%c{number}", self._random.choice(("%r20", "%r1", self._any(), "5"))
        self._lines.append(f"mov.u32 {counter}, 0;\nand.b32 %t3, {most}, 7;\nmov.u32 %c{number + 1}, %t3;\nL{label}:\n")
        self._exits.append(f"X{label}")
        self._block(depth - 1)
        self._exits.pop()
        self._lines.append(
            f"add.u32 {counter}, {counter}, 1;\nsetp.lt.u32 %p1, {counter}, %c{number + 1};\n"
            f"@%p1 bra L{label};\nX{label}:\n"
        )

    def _leave(self) -> None:
        target = self._random.choice((*self._exits, "DONE"))
        self._lines.append(f"@{self._condition()} bra {target};\n")


def _run(text: str, wide: bool, block: tuple[int, int], blocks: int, seed: int) -> tuple[bytes, bytes]:
    executor.tuned[0] = executor.wide[0] = wide
    values = np.random.default_rng(seed).integers(0, 2**32, _WORDS, dtype=np.uint32)
    out = np.zeros(blocks * block[0] * block[1] * _OWN, np.uint32)
    counts = np.zeros(16, np.uint32)
    Kernel(text, "k").launch(blocks, block, values, out, counts, np.uint32(seed % 40))
    return out.tobytes(), counts.tobytes()


@pytest.mark.parametrize("seed", range(40))
def test_random_kernels_do_the_same(seed: int) -> None:
    text = Program(seed).text()
    block = random.Random(seed).choice(((16, 1), (40, 2), (33, 1), (8, 3), (64, 1), (5, 2)))
    assert _run(text, True, block, 2, seed) == _run(text, False, block, 2, seed)


@pytest.mark.parametrize(
    ("before", "is_wide"),
    [
        ("", True),
        ("fence.sc.gpu;\nld.relaxed.gpu.global.u32 %r10, [%rd1];\n", True),
        ("st.relaxed.gpu.global.u32 [%rd4+24], %r10;\nld.acquire.gpu.global.u32 %r10, [%rd4+24];\n", True),
        ("mul.hi.u64 %rd9, %rd4, %rd1;\n", True),
        ("atom.global.cas.b32 %t4, [%rd4+24], 0, %r1;\nadd.u32 %r10, %r10, %t4;\n", True),
        (".local .align 4 .b8 own[8];\nst.local.u32 [own], %r1;\nld.local.u32 %r10, [own];\n", False),
    ],
)
def test_what_is_not_understood_keeps_its_form(before: str, is_wide: bool) -> None:
    """The object of a widened kernel has a second form too, for narrow blocks."""
    text = Program(0).text().replace("mov.u32 %r11, %r5;\n", f"mov.u32 %r11, %r5;\n{before}")
    made = compile_kernel(Module(text), "k", Variant(tuned=True, wide=True))
    assert (NARROW.encode() in made) is (is_wide and can_widen())
    assert _run(text, True, (33, 1), 2, 5) == _run(text, False, (33, 1), 2, 5)


@pytest.mark.parametrize("rounds", [1, 5])
@pytest.mark.parametrize(("type_", "first"), [("u16", 65_530), ("s16", 32_760), ("u16", 3), ("s16", 65_530)])
def test_a_row_whose_index_wraps(type_: str, first: int, rounds: int) -> None:
    """Also where a loop goes on from there, by the same step for all lanes."""
    text = (
        f"{HEADER}.visible .entry k(.param .u64 in, .param .u64 out)\n{{\n.reg .b64 %rd<8>;\n.reg .b32 %r<5>;\n"
        ".reg .b16 %h<4>;\nld.param.u64 %rd1, [in];\nld.param.u64 %rd2, [out];\nmov.u32 %r1, %tid.x;\n"
        f"cvt.u16.u32 %h1, %r1;\nadd.u16 %h1, %h1, {first};\ncvt.s64.{type_} %rd3, %h1;\nshl.b64 %rd3, %rd3, 2;\n"
        "add.s64 %rd3, %rd1, %rd3;\nadd.s64 %rd3, %rd3, 131072;\nmov.u32 %r2, 0;\nmov.u32 %r3, 0;\n.reg .pred %p1;\n"
        "again:\nld.global.u32 %r4, [%rd3];\nadd.u32 %r2, %r2, %r4;\nadd.s64 %rd3, %rd3, 8;\nadd.u32 %r3, %r3, 1;\n"
        f"setp.lt.u32 %p1, %r3, {rounds};\n@%p1 bra again;\n"
        "mul.wide.u32 %rd4, %r1, 4;\nadd.s64 %rd4, %rd2, %rd4;\nst.global.u32 [%rd4], %r2;\nret;\n}\n"
    )
    values = np.arange((3 << 15) + 16, dtype=np.uint32)
    out = np.zeros(20, np.uint32)
    executor.tuned[0] = executor.wide[0] = True
    Kernel(text, "k").launch(1, 20, values, out)
    indices = (np.arange(20) + first).astype(np.uint16).astype(np.int16 if type_ == "s16" else np.uint16)
    each = indices.astype(int) + (1 << 15)
    assert out.tolist() == (rounds * each + sum(2 * number for number in range(rounds))).tolist()


HEAD: Final = "define i32 @f(ptr %context, i32 %x, i32 %n) local_unnamed_addr #0 {\nentry:\n"
LOOP: Final = """  br label %L
L:
  %i = phi i32 [ 0, %entry ], [ %j, %T ]
  %j = add i32 %i, 1
  {}
T:
  %d = icmp slt i32 %j, %n
  br i1 %d, label %L, label %E
E:
  %s = phi i32 [ %j, %T ]{}
  ret i32 0
}}
"""


def _shapes(body: str) -> tuple[dict[str, Shape], set[str]]:
    function = read_function(f"{HEAD}{body}")
    found = find_shapes(function, flow_of(function), {"%context": Row(), "%x": Row(1), "%n": Row()})
    return found.values, found.left_early


def test_rows_grow_by_steps() -> None:
    values, _ = _shapes(
        "  %a = add i32 %x, %n\n  %b = mul i32 %a, 3\n  %c = sub i32 %a, %x\n  %d = sext i32 %b to i64\n"
        "  %e = getelementptr float, ptr %context, i64 %d\n  %f = load float, ptr %e, align 4\n"
        "  %g = mul i32 %x, %n\n  %h = load i32, ptr %context, align 4\n  %i = zext i32 %x to i64\n"
        "  %j = sub i64 %d, %i\n  %k = mul i64 %i, 3\n  %l = sub i64 %k, %d\n  ret i32 0\n}\n"
    )
    assert [values[f"%{name}"] for name in "abch"] == [Row(1), Row(3), Row(), Row()]
    tested = frozenset({"%d"})
    assert [values[f"%{name}"] for name in "def"] == [Row(3, tested), Row(12, tested), None]
    assert values["%j"] == Row(2, frozenset({"%d", "%i"}))
    assert values["%l"] == Row(0, frozenset({"%d", "%i"}))  # the same numbers, if none of them wraps
    assert values["%g"] is None  # any step


def test_a_loop_that_all_lanes_leave_together() -> None:
    values, left_early = _shapes(LOOP.format("br label %T", ""))
    assert (values["%i"], values["%s"], left_early) == (Row(), Row(), set())


@pytest.mark.parametrize("is_before", [True, False])
def test_places_that_a_loop_goes_on_from(is_before: bool) -> None:
    """They are a row if the first ones are, which has to be tested before the loop."""
    test = "  %d = sext i32 %x to i64\n"
    values, _ = _shapes(
        f"{test if is_before else ''}  br label %O\nO:\n{'' if is_before else test}"
        "  %p = getelementptr float, ptr %context, i64 %d\n  br label %L\nL:\n"
        "  %q = phi ptr [ %p, %O ], [ %r, %L ]\n  %r = getelementptr i8, ptr %q, i64 96\n"
        "  %c = icmp eq ptr %context, null\n  br i1 %c, label %L, label %M\nM:\n"
        "  br i1 %c, label %O, label %E\nE:\n  ret i32 0\n}\n"
    )
    wanted = Row(4, frozenset({"%d"}))
    assert [values[f"%{name}"] for name in "pqr"] == [wanted, *([wanted, wanted] if is_before else [None, None])]


def test_a_row_whose_test_is_that_of_an_argument_holds_in_all_rounds() -> None:
    """A warp may go on in the next line of its block: whether it does is found out before all blocks."""
    turning = Row(1, frozenset({"%x"}))
    body = LOOP.format("br label %T", "").replace("[ 0, %entry ], [ %j, %T ]", "[ %x, %entry ], [ %x, %T ]")
    function = read_function(f"{HEAD}{body}")
    found = find_shapes(function, flow_of(function), {"%context": Row(), "%x": turning, "%n": Row()})
    assert found.values["%i"] == turning


@pytest.mark.parametrize("condition", ["slt i32 %x, 7", "slt i32 %i, %x"])
def test_a_loop_that_some_lanes_leave_before_others(condition: str) -> None:
    left = f"%q = icmp {condition}\n  br i1 %q, label %T, label %E"
    values, left_early = _shapes(LOOP.format(left, ", [ %i, %L ]"))
    assert (values["%i"], values["%s"], left_early) == (Row(), None, {"%L"})


@pytest.mark.parametrize(("site", "shape"), [("i32 7", Row(4, frozenset({"%r"}))), ("i32 %v", None)])
def test_places_that_are_judged(site: str, shape: Shape) -> None:
    """A row of them is judged at once if the lanes differ in nothing but their places."""
    function = read_function(
        f"{HEAD}  %v = mul i32 %x, %n\n  %p = getelementptr float, ptr %context, i64 0\n  %i = sext i32 %x to i64\n"
        "  %q = getelementptr float, ptr %p, i64 %i\n"
        f"  %r = call ptr @check0(ptr %context, ptr %q, {site}, i32 %x, ptr null)\n"
        "  %f = load float, ptr %r, align 4\n  ret i32 0\n}\n"
    )
    arguments: dict[str, Shape] = {"%context": Row(), "%x": Row(1), "%n": Row()}
    assert find_shapes(function, flow_of(function), arguments, {"check0": 4}).values["%r"] == shape
    assert find_shapes(function, flow_of(function), arguments, {"check0": 8}).values["%r"] is None


def test_a_uniform_exit_in_a_block_that_some_lanes_run() -> None:
    left = (
        "%q = icmp slt i32 %x, 7\n  br i1 %q, label %T, label %M\nM:\n  %u = icmp eq i32 %i, %n\n"
        "  br i1 %u, label %E, label %T"
    )
    values, left_early = _shapes(LOOP.format(left, ", [ %i, %M ]"))
    assert (values["%u"], values["%s"], left_early) == (Row(), None, {"%L"})


@pytest.mark.parametrize(
    "body",
    [
        "  %a = alloca i32, align 4\n  ret i32 0\n}\n",
        "  %a = load <2 x i32>, ptr %context, align 4\n  ret i32 0\n}\n",
        "  %a = load atomic i32, ptr %context seq_cst, align 4\n  ret i32 0\n}\n",
        "  store atomic i32 0, ptr %context seq_cst, align 4\n  ret i32 0\n}\n",
        "  %a = add i256 0, 1\n  ret i32 0\n}\n",
        "  %a = extractvalue { i32, i1 } %b, 0\n  ret i32 0\n}\n",
        "  %a = ptrtoint ptr getelementptr (i8, ptr @g, i64 4) to i64\n  ret i32 0\n}\n",
        "  %a = frobnicate i32 %x\n  ret i32 0\n}\n",
        "  %c = icmp eq i32 %x, 0\n  br i1 %c, label %A, label %B\nA:\n  br label %B\nB:\n  br label %A\n}\n",
    ],
)
def test_other_text_is_refused(body: str) -> None:
    with pytest.raises(NotUnderstood):
        flow_of(read_function(f"{HEAD}{body}"))

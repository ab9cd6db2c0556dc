"""Which registers are the same for all threads, which loops all threads run together, and which strides are guessed."""

from __future__ import annotations

import pytest
from tests.kernels.programs import HEADER

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.barrier_splitting import shared_loops
from quiesce.simulator.kernels.translation.control_flow import flow_of
from quiesce.simulator.kernels.translation.data_flow import uniform_registers
from quiesce.simulator.kernels.translation.program import Program
from quiesce.simulator.kernels.translation.stride_specialisation import guess_strides

PARAMETERS = ".param .u64 a, .param .u32 n, .param .u32 m, .param .u64 b"


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """Nothing here is compiled."""
    return False


def parsed(body: str) -> Function:
    registers = ".reg .b32 %r<12>;\n.reg .b64 %rd<9>;\n.reg .pred %p<5>;\n.reg .f32 %f<5>;\n"
    text = f"{HEADER}.shared .b8 cells[64];\n.visible .entry k({PARAMETERS})\n{{\n{registers}{body}\nret;\n}}\n"
    return Program(Module(text)).parse("k")


def uniform(body: str) -> set[str]:
    function = parsed(body)
    parameters = frozenset(each.name for each in function.parameters)
    return {each.name for each in uniform_registers(flow_of(function), parameters)}


SAME = "ld.param.u32 %r0, [n];\n"
OTHER = "mov.u32 %r1, %tid.x;\n"


@pytest.mark.parametrize(
    ("line", "is_same"),
    [
        ("mov.u32 %r2, 5;", True),
        ("mov.u32 %r2, %ntid.x;", True),
        ("mov.u32 %r2, %ctaid.y;", True),
        ("mov.u32 %r2, %nctaid.z;", True),
        ("mov.u32 %r2, %tid.y;", False),
        ("mov.u32 %r2, %laneid;", False),
        ("mov.u32 %r2, %clock;", False),
        ("add.u32 %r2, %r0, 7;", True),
        ("add.u32 %r2, %r0, %r1;", False),
        ("mad.lo.u32 %r2, %r0, %r0, %r0;", True),
        ("selp.b32 %r2, %r0, 1, %p1;", False),
        ("ld.global.u32 %r2, [%rd0];", False),
        ("ld.param.u32 %r2, [m];", True),
        ("popc.b32 %r2, %r0;", False),
        ("atom.global.add.u32 %r2, [%rd0], 1;", False),
        ("shfl.sync.idx.b32 %r2, %r0, 0, 31, -1;", False),
    ],
)
def test_a_result_of_what_is_the_same_is_the_same(line: str, is_same: bool) -> None:
    found = uniform(f"{SAME}{OTHER}ld.param.u64 %rd0, [a];\nsetp.lt.u32 %p1, %r1, 4;\n{line}")
    assert ("%r2" in found) == is_same
    assert {"%r0", "%rd0"} <= found
    assert not found & {"%r1", "%p1"}


@pytest.mark.parametrize(("condition", "is_same"), [("%r0", True), ("%r1", False)])
def test_what_only_some_threads_compute_differs_until_they_are_together_again(condition: str, is_same: bool) -> None:
    found = uniform(
        f"{SAME}{OTHER}mov.u32 %r2, 0;\nmov.u32 %r3, 0;\nsetp.lt.u32 %p1, {condition}, 4;\n@%p1 bra then;\n"
        "mov.u32 %r2, 1;\nbra over;\nthen: mov.u32 %r3, 2;\nover: mov.u32 %r4, 3;\n"
    )
    assert ("%r2" in found, "%r3" in found, "%r4" in found) == (is_same, is_same, True)


@pytest.mark.parametrize(("limit", "is_same"), [("%r0", True), ("%r1", False)])
def test_a_counter_is_the_same_if_all_threads_do_as_many_rounds(limit: str, is_same: bool) -> None:
    found = uniform(
        f"{SAME}{OTHER}mov.u32 %r2, 0;\nagain: add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p1, %r2, {limit};\n@%p1 bra again;\n"
        "mov.u32 %r3, 5;\n"
    )
    assert ("%r2" in found) == is_same
    assert "%r3" in found


def test_what_a_guard_decides_differs_where_the_guard_does() -> None:
    text = f"{SAME}{OTHER}mov.u32 %r2, 0;\nsetp.lt.u32 %p1, {{}}, 4;\n@%p1 mov.u32 %r2, 1;\n"
    assert "%r2" in uniform(text.format("%r0"))
    assert "%r2" not in uniform(text.format("%r1"))


def test_a_long_kernel_has_none() -> None:
    labels = "".join(f"L{number}: add.u32 %r0, %r0, 1;\n" for number in range(298))
    assert "%r0" in uniform(SAME + labels)
    assert uniform(f"{SAME}{labels}more: add.u32 %r0, %r0, 1;\n") == set()


def loops(body: str) -> int:
    function = parsed(body)
    return len(shared_loops(function, flow_of(function)))


LOOP = "again: ld.global.u32 %r2, [%rd1];\n{}\nadd.u32 %r3, %r3, 1;\nsetp.lt.u32 %p1, %r3, 9;\n@%p1 bra again;\n"


@pytest.mark.parametrize(
    ("line", "is_shared"),
    [
        ("", True),
        ("st.global.u32 [%rd1], %r2;", True),
        ("bar.sync 0;", False),
        ("shfl.sync.idx.b32 %r2, %r0, 0, 31, -1;", False),
        ("atom.global.add.u32 %r2, [%rd0], 1;", False),
        ("red.global.add.u32 [%rd0], 1;", False),
        ("trap;", False),
        ("ld.volatile.global.u32 %r2, [%rd1];", False),
        ("ld.acquire.gpu.global.u32 %r2, [%rd1];", False),
        ("st.relaxed.gpu.global.u32 [%rd1], %r2;", False),
        ("add.u32 %r4, %r4, 1;\n" * 196, True),
        ("add.u32 %r4, %r4, 1;\n" * 197, False),
    ],
)
def test_a_loop_that_reads_memory_and_waits_for_nobody_is_run_together(line: str, is_shared: bool) -> None:
    assert loops(LOOP.format(line)) == is_shared


@pytest.mark.parametrize("space", ["param", "shared", "local", "const"])
def test_one_that_reads_no_array_is_not(space: str) -> None:
    assert loops(LOOP.format("").replace("ld.global", f"ld.{space}")) == 0


def test_only_the_innermost_loop_is() -> None:
    inner = LOOP.format("")
    assert loops(f"outer: add.u32 %r5, %r5, 1;\n{inner}setp.lt.u32 %p2, %r5, 9;\n@%p2 bra outer;\n") == 1
    assert loops(inner + inner.replace("again", "second")) == 2


def guesses(body: str) -> dict[tuple[int, int], int]:
    return guess_strides(parsed(f"ld.param.u64 %rd0, [a];\nld.param.u32 %r0, [n];\n{OTHER}{body}"))


AT = "cvt.u64.u32 %rd1, %r2;\nadd.u64 %rd2, %rd0, %rd1;\n"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (f"mul.lo.u32 %r2, %r1, %r0;\n{AT}ld.global.u32 %r3, [%rd2];", 4),
        (f"mul.lo.u32 %r2, %r1, %r0;\n{AT}st.global.u64 [%rd2], %rd0;", 8),
        (f"mul.lo.u32 %r2, %r1, %r0;\n{AT}ld.global.v2.f32 {{%f1, %f2}}, [%rd2];", 8),
        (f"mul.lo.u32 %r2, %r1, %r0;\n{AT}ld.global.v4.u32 {{%r3, %r4, %r5, %r6}}, [%rd2];", 16),
        (f"mul.lo.u32 %r2, %r1, %r0;\n{AT}ld.global.u32 %r3, [%rd2];\nld.global.u8 %r4, [%rd2];", None),
        (f"mad.lo.u32 %r2, %r1, %r0, 7;\nshl.b32 %r2, %r2, 0;\n{AT}ld.global.u16 %r3, [%rd2];", 2),
        (f"add.u32 %r2, %r1, %r0;\n{AT}ld.global.u32 %r3, [%rd2];", None),
        (f"mul.lo.u32 %r2, %r1, %r0;\nand.b32 %r2, %r2, 7;\n{AT}", None),
        (f"mul.lo.u32 %r2, %r1, %r0;\n{AT}st.global.u64 [%rd0], %rd2;", None),
        (f"mul.lo.u32 %r2, %r1, 4;\n{AT}ld.global.u32 %r3, [%rd2];", None),
    ],
)
def test_a_number_that_indices_are_multiplied_with_is_probably_the_size_of_an_element(
    body: str, found: int | None
) -> None:
    assert guesses(body) == ({} if found is None else {(8, 32): found})


def test_more_strides_than_an_array_can_have_are_none() -> None:
    one = "ld.param.u8 %r0, [a+{}];\nmul.lo.u32 %r2, %r1, %r0;\n" + AT + "ld.global.u32 %r3, [%rd2];\n"
    many = [guess_strides(parsed("".join(one.format(place) for place in range(count)))) for count in (1, 8, 9)]
    assert [len(each) for each in many] == [1, 8, 0]

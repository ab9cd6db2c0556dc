"""Threads that wait for each other: barriers, votes, shuffles, matches, reductions."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.executor import Deadlocked, Kernel
from tests.kernels.programs import Source, evaluate, evaluate_all
from tests.kernels.test_memory import kernel, run

from quiesce.model.errors import RefusedKernel

LANES: Source = ("u32", range(32))
ALL = "0xFFFFFFFF"


def test_sum_of_a_block_by_halves() -> None:
    text = kernel(
        ".shared .align 4 .b8 sums[1024];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n"
        "mul.wide.u32 %rd2, %r1, 4;\n"
        "mov.u64 %rd3, sums;\nadd.s64 %rd4, %rd3, %rd2;\nmul.lo.u32 %r2, %r1, %r1;\nst.shared.u32 [%rd4], %r2;\n"
        "mov.u32 %r3, 128;\n"
        "again:\nbar.sync 0;\nsetp.ge.u32 %p1, %r1, %r3;\n@%p1 bra skip;\nmul.wide.u32 %rd5, %r3, 4;\n"
        "add.s64 %rd6, %rd4, %rd5;\n"
        "ld.shared.u32 %r4, [%rd6];\nld.shared.u32 %r5, [%rd4];\nadd.u32 %r4, %r4, %r5;\nst.shared.u32 [%rd4], %r4;\n"
        "skip:\nshr.u32 %r3, %r3, 1;\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra again;\n"
        "setp.ne.u32 %p3, %r1, 0;\n@%p3 bra end;\nld.shared.u32 %r6, [sums];\nst.global.u32 [%rd1], %r6;\nend:"
    )
    assert run(text, block=256)[0] == sum(n * n for n in range(256))


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("up.b32 %x|%y, %a, 3, 0", [lane - 3 if lane >= 3 else lane for lane in range(32)]),
        ("down.b32 %x|%y, %a, 3, 31", [lane + 3 if lane + 3 < 32 else lane for lane in range(32)]),
        ("bfly.b32 %x|%y, %a, 5, 31", [lane ^ 5 for lane in range(32)]),
        ("idx.b32 %x|%y, %a, 7, 31", [7] * 32),
        ("idx.b32 %x|%y, %a, 2, 0x181F", [lane & ~7 | 2 for lane in range(32)]),
    ],
)
def test_shuffle(form: str, expected: list[int]) -> None:
    values, inside = evaluate_all(f"shfl.sync.{form}, {ALL};", [LANES], ["u32", "pred"])
    assert values == expected
    moves = {"up": 3, "down": 3}.get(form[: form.index(".")], 0)
    assert sum(inside) == 32 - moves


def test_vote() -> None:
    lines = (
        f"setp.lt.u32 %p1, %a, 4;\nvote.sync.ballot.b32 %x, %p1, {ALL};\nvote.sync.any.pred %p2, %p1, {ALL};\n"
        f"vote.sync.all.pred %p3, !%p1, {ALL};\nvote.sync.uni.pred %p4, %p1, {ALL};\nselp.u32 %y, 1, 0, %p2;\n"
        "selp.u32 %z, 1, 0, %p3;\nselp.u32 %w, 1, 0, %p4;"
    )
    assert evaluate_all(lines, [LANES], ["u32"] * 4) == [[15] * 32, [1] * 32, [0] * 32, [0] * 32]


def test_match() -> None:
    lines = (
        f"and.b32 %r1, %a, 1;\nmatch.any.sync.b32 %x, %r1, {ALL};\nmatch.all.sync.b32 %y|%p1, %r1, {ALL};\n"
        f"selp.u32 %z, 1, 0, %p1;\nmov.u64 %rd1, 5;\nmatch.all.sync.b64 %w|%p2, %rd1, {ALL};"
    )
    odd, every, agreed, same = evaluate_all(lines, [LANES], ["u32"] * 4)
    assert odd == [0x55555555, 0xAAAAAAAA] * 16
    assert (every, agreed, same) == ([0] * 32, [0] * 32, [0xFFFFFFFF] * 32)


def test_reductions_of_a_warp() -> None:
    lines = (
        f"sub.u32 %r1, %a, 4;\nredux.sync.add.u32 %x, %r1, {ALL};\nredux.sync.min.s32 %y, %r1, {ALL};\n"
        f"redux.sync.max.u32 %z, %r1, {ALL};\nredux.sync.xor.b32 %w, %a, {ALL};"
    )
    found = evaluate_all(lines, [LANES], ["u32"] * 4)
    assert [each[0] for each in found] == [sum(range(-4, 28)), 0xFFFFFFFC, 0xFFFFFFFF, 0]


def test_only_lanes_of_the_mask_take_part() -> None:
    lines = (
        "mov.u32 %x, 0;\nsetp.lt.u32 %p1, %a, 8;\n@!%p1 bra other;\nredux.sync.add.u32 %x, %a, 0xFF;\nbra end;\n"
        "other:\nredux.sync.max.u32 %x, %a, 0xFFFFFF00;\nend:\nbar.warp.sync 0xFFFFFFFF;"
    )
    assert evaluate(lines, LANES, result="u32") == [28] * 8 + [31] * 24


def test_reductions_at_a_barrier() -> None:
    lines = (
        "setp.lt.u32 %p1, %a, 40;\nbar.red.popc.u32 %x, 0, %p1;\nbar.red.and.pred %p2, 0, %p1;\n"
        "barrier.cta.red.or.pred %p3, 0, !%p1;\nselp.u32 %y, 1, 0, %p2;\nselp.u32 %z, 1, 0, %p3;"
    )
    found = evaluate_all(lines, [("u32", range(64))], ["u32"] * 3)
    assert found == [[40] * 64, [0] * 64, [1] * 64]


def test_named_barriers_for_some_threads() -> None:
    """The first warp announces itself, the second one waits for it."""
    text = kernel(
        ".shared .align 4 .b8 cell[4];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nsetp.ge.u32 %p1, %r1, 32;\n"
        "@%p1 bra second;\nst.shared.u32 [cell], 9;\nbar.arrive 1, 64;\nret;\nsecond:\nbarrier.sync 1, 64;\n"
        "ld.shared.u32 %r2, [cell];\nst.global.u32 [%rd1], %r2;"
    )
    assert run(text, block=64)[0] == 9


def test_values_live_across_a_barrier() -> None:
    lines = (
        "cvt.u64.u32 %rd1, %a;\nshl.b64 %rd1, %rd1, 40;\nsetp.gt.u32 %p1, %a, 5;\ncvt.u16.u32 %h1, %a;\nbar.sync 0;\n"
        "mov.u64 %x, %rd1;\nselp.u32 %y, 1, 0, %p1;\nbarrier.sync.aligned 0;\ncvt.u32.u16 %z, %h1;"
    )
    found = evaluate_all(lines, [("u32", range(8))], ["u64", "u32", "u32"])
    assert found == [[n << 40 for n in range(8)], [int(n > 5) for n in range(8)], list(range(8))]


def test_a_guarded_operation_of_a_warp() -> None:
    lines = "mov.u32 %x, 7;\nsetp.lt.u32 %p1, %a, 4;\n@%p1 redux.sync.add.u32 %x, %a, 0xF;"
    assert evaluate(lines, LANES, result="u32") == [6] * 4 + [7] * 28


def test_threads_that_ended_are_not_waited_for() -> None:
    lines = "setp.lt.u32 %p1, %a, 8;\n@%p1 bra more;\nbra end;\nmore:\nredux.sync.add.u32 %x, %a, 0xFFFFFFFF;\nend:"
    assert evaluate(lines, ("u32", range(12)), result="u32")[:8] == [28] * 8


def test_threads_that_wait_for_ever() -> None:
    text = kernel("mov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 0;\n@%p1 bar.sync 1, 64;\n@!%p1 bar.sync 2, 64;")
    with pytest.raises(Deadlocked):
        Kernel(text, "k").launch(1, 64, np.zeros(1, "u4"))


def test_one_lane_leads() -> None:
    lines = "elect.sync %x|%p1, 0xFFFFFFF0;\nselp.u32 %y, 1, 0, %p1;\nactivemask.b32 %z;\nnanosleep.u32 100;"
    leader, leads, active = evaluate_all(lines, [LANES], ["u32"] * 3)
    assert (leader, leads) == ([4] * 32, [0] * 4 + [1] + [0] * 27)
    assert active == [0xFFFFFFFF] * 32


def test_lanes_that_are_active_are_those_of_one_branch() -> None:
    lines = (
        "setp.lt.u32 %p1, %a, 5;\n@%p1 bra first;\nactivemask.b32 %x;\nbra end;\nfirst:\nactivemask.b32 %x;\nend:\n"
        "activemask.b32 %y;"
    )
    branch, again = evaluate_all(lines, [LANES], ["u32"] * 2)
    assert branch == [0x1F] * 5 + [0xFFFFFFE0] * 27
    assert all(again[lane] >> lane & 1 for lane in range(32))


EXCHANGED = """
.func (.param .b32 result) exchanged(.param .b32 value)
{
.reg .b32 %r<6>;
.reg .b64 %rd<4>;
.reg .pred %p<2>;
.shared .align 4 .b8 cells[128];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd1, %r2, 4;
mov.u64 %rd2, cells;
add.s64 %rd3, %rd2, %rd1;
ld.param.u32 %r1, [value];
st.shared.u32 [%rd3], %r1;
bar.sync 0;
xor.b32 %r3, %r2, 1;
mul.wide.u32 %rd1, %r3, 4;
add.s64 %rd3, %rd2, %rd1;
ld.shared.u32 %r4, [%rd3];
bar.sync 0;
setp.eq.u32 %p1, %r4, 99;
@%p1 bra last;
st.param.b32 [result], %r4;
ret;
last:
st.param.b32 [result], 0;
ret;
}
"""


def test_barriers_in_a_function_that_is_called_twice() -> None:
    call = (
        "{ .param .b32 in; st.param.b32 [in], %r1; .param .b32 back; call.uni (back), exchanged, (in);"
        " ld.param.b32 %r2, [back]; }\n"
    )
    lines = f"mul.lo.u32 %r1, %a, 3;\n{call}mov.u32 %x, %r2;\nadd.u32 %r1, %r2, 1;\n{call}mov.u32 %y, %r2;"
    first, second = evaluate_all(lines, [LANES], ["u32", "u32"], EXCHANGED)
    assert first == [0 if (lane ^ 1) == 33 else 3 * (lane ^ 1) for lane in range(32)]
    assert second == [3 * lane + 1 for lane in range(32)]


def test_barriers_in_a_function_of_a_function() -> None:
    outer = (
        EXCHANGED
        + """
.func (.param .b32 result) twice(.param .b32 value)
{
.reg .b32 %r<4>;
ld.param.u32 %r1, [value];
{ .param .b32 in; st.param.b32 [in], %r1; .param .b32 back; call (back), exchanged, (in); ld.param.b32 %r2, [back]; }
add.u32 %r2, %r2, 100;
st.param.b32 [result], %r2;
ret;
}
"""
    )
    lines = (
        "{ .param .b32 in; st.param.b32 [in], %a; .param .b32 back; call (back), twice, (in);"
        " ld.param.b32 %x, [back]; }"
    )
    assert evaluate(lines, LANES, result="u32", before=outer) == [100 + (lane ^ 1) for lane in range(32)]


def pausing(time: str) -> str:
    """Return a function that adds 1, and pauses for a time before."""
    return f"""
.func (.param .b32 result) next(.param .b32 value)
{{
.reg .b32 %r<4>;
ld.param.u32 %r1, [value];
mov.u32 %r2, {time};
nanosleep.u32 %r2;
add.u32 %r1, %r1, 1;
st.param.b32 [result], %r1;
ret;
}}
"""


CALLED = (
    "{ .param .b32 in; st.param.b32 [in], %r1; .param .b32 back; call.uni (back), next, (in);"
    " ld.param.b32 %r1, [back]; }\n"
)


def test_a_pause_of_no_time_is_none() -> None:
    lines = f"mov.u32 %r1, %a;\n{CALLED * 300}mov.u32 %x, %r1;"
    assert evaluate(lines, LANES, result="u32", before=pausing("0")) == [lane + 300 for lane in range(32)]
    with pytest.raises(RefusedKernel, match="too long"):
        evaluate(lines, LANES, result="u32", before=pausing("1"))


RETURNS_ABOVE = """
.func (.param .b32 result) next(.param .b32 value)
{
.reg .b32 %r<4>;
.reg .pred %p<2>;
.local .align 4 .b32 place[1];
ld.param.u32 %r1, [value];
bra begin;
leave:
st.param.b32 [result], %r1;
ret;
begin:
st.local.u32 [place], 1;
ld.volatile.local.u32 %r2, [place];
add.u32 %r1, %r1, %r2;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra leave;
add.u32 %r1, %r1, 5;
bra leave;
}
"""


def test_a_branch_to_a_return_above_is_no_loop_in_which_threads_wait() -> None:
    lines = f"mov.u32 %r1, %a;\n{CALLED * 300}mov.u32 %x, %r1;"
    assert evaluate(lines, LANES, result="u32", before=RETURNS_ABOVE) == [lane + 300 for lane in range(32)]
    looping = RETURNS_ABOVE.replace("leave:\n", "leave:\nsetp.gt.u32 %p1, %r1, 9999;\n@%p1 bra begin;\n")
    with pytest.raises(RefusedKernel, match="too long"):
        evaluate(lines, LANES, result="u32", before=looping)


@pytest.mark.parametrize("word", ["volatile", "relaxed.cta", "acquire.gpu"])
def test_a_thread_that_looks_at_memory_until_another_one_wrote_it(word: str) -> None:
    text = kernel(
        ".shared .align 4 .b8 flag[4];\nld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nsetp.eq.u32 %p1, %r1, 5;\n"
        f"@%p1 st.shared.u32 [flag], 7;\nagain:\nld.{word}.shared.u32 %r2, [flag];\nsetp.eq.u32 %p2, %r2, 0;\n"
        "@%p2 bra again;\nmad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], %r2;"
    )
    assert run(text, block=8) == [7] * 8

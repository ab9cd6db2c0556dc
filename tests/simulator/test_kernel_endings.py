"""Kernels that do not come to their end, and those whose blocks and threads wait for each other by memory."""

from __future__ import annotations

import ctypes
import os
import signal

import pytest
from tests.simulator.kernel_programs import INDEX, MakeDevice, entry, pointers_to

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.ledger import Seen

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

ILLEGAL_ADDRESS, ASSERTED, LAUNCH_FAILURE = 700, 710, 719
ALL = "0xFFFFFFFF"


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ("trap;", LAUNCH_FAILURE, "kernel 'work' ended with a trap, in block (2, 0, 0)"),
        (
            f"mov.u32 %r4, %laneid;\nsetp.lt.u32 %p1, %r4, 8;\n@%p1 vote.sync.ballot.b32 %r5, %p1, {ALL};\n@!%p1 bra o;"
            f"\nbar.sync 0;\no: bar.warp.sync {ALL};",
            LAUNCH_FAILURE,
            "kernel 'work' can't go on: its threads wait for each other for ever, in block (2, 0, 0)",
        ),
        (
            "mov.u64 %rd1, 64;\nst.global.u32 [%rd1], %r1;",
            ILLEGAL_ADDRESS,
            "kernel 'work' used an address at which there is no memory: 0x40, in block (2, 0, 0)",
        ),
        (
            "bar.sync 0;\nmov.u64 %rd1, 0x7000000000000000;\nst.global.u32 [%rd1], %r1;",
            ILLEGAL_ADDRESS,
            "kernel 'work' used an address at which there is no memory, in block (2, 0, 0)",
        ),
        (
            "st.shared.u32 [small+4096], %r1;",
            ILLEGAL_ADDRESS,
            "kernel 'work' used an address at which there is no memory: 0x",
        ),
        (
            "mov.u32 %r2, small;\nadd.u32 %r2, %r2, -4096;\nst.shared.u32 [%r2], %r1;",
            ILLEGAL_ADDRESS,
            "kernel 'work' used an address at which there is no memory: 0x",
        ),
        ("call deeper;", ILLEGAL_ADDRESS, "kernel 'work' needs more stack than a thread has (cudaLimitStackSize)"),
        (
            "{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], 8; st.param.b64 [b], 0;\n"
            "call.uni (c), vprintf, (a, b); }",
            ILLEGAL_ADDRESS,
            "kernel 'work' used an address at which there is no memory: 0x8, in block (2, 0, 0)",
        ),
        (
            "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
            "cvta.global.u64 %rd1, text;\nst.param.b64 [a], %rd1; st.param.b64 [b], %rd1; st.param.b32 [c], 12;\n"
            "st.param.b64 [d], %rd1; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }",
            ASSERTED,
            "kernel 'work' ended with a failed assertion, in block (2, 0, 0)",
        ),
    ],
)
def test_a_kernel_that_ends_before_its_time_breaks_its_context(
    device: MakeDevice, body: str, status: int, said: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = device()
    before = (
        ".global .align 1 .b8 text[2] = {65, 0};\n.extern .func __assertfail(.param .b64 a, .param .b64 b, "
        ".param .b32 c, .param .b64 d, .param .b64 e);\n"
        ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);\n"
        ".shared .align 4 .u32 small;\n"
        ".func deeper() { .local .b8 room[4096]; .reg .b64 %a; mov.u64 %a, room; st.local.u64 [room], %a; call deeper; "
        "ld.local.u64 %a, [room+8]; st.local.u64 [room], %a; ret; }\n"
    )
    start = "mov.u32 %r1, %ctaid.x;\nsetp.lt.u32 %p1, %r1, 2;\n@%p1 ret;\n"
    function = given.kernel(before + entry("work", "", start + body), "work")
    given.launch(function, 4, 32)
    assert given.client.call("DeviceSynchronize") == status
    assert given.client.call("DeviceSynchronize") == status, "it stays broken"
    assert said in capfd.readouterr().err
    assert [record.other for record in given.client.seen(Seen.CONTEXT_BROKEN)] == [status]


@pytest.mark.parametrize("waits", ["", "bar.sync 0;\n"])
def test_a_failed_assertion_names_its_block_and_thread(
    device: MakeDevice, waits: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = device()
    before = (
        ".global .align 1 .b8 text[2] = {65, 0};\n.extern .func __assertfail(.param .b64 a, .param .b64 b, "
        ".param .b32 c, .param .b64 d, .param .b64 e);\n"
    )
    body = waits + (
        "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %tid.y;\nmov.u32 %r3, %tid.z;\nmov.u32 %r4, %ctaid.x;\n"
        "shl.b32 %r2, %r2, 8;\nshl.b32 %r3, %r3, 16;\nshl.b32 %r4, %r4, 24;\nor.b32 %r1, %r1, %r2;\n"
        "or.b32 %r1, %r1, %r3;\nor.b32 %r1, %r1, %r4;\nsetp.ne.u32 %p1, %r1, 0x03010203;\n@%p1 ret;\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"
        "cvta.global.u64 %rd1, text;\nst.param.b64 [a], %rd1; st.param.b64 [b], %rd1; st.param.b32 [c], 12;\n"
        "st.param.b64 [d], %rd1; st.param.b64 [e], 1; call.uni __assertfail, (a, b, c, d, e); }"
    )
    given.launch(given.kernel(before + entry("work", "", body), "work"), 4, (5, 4, 2))
    assert given.client.call("DeviceSynchronize") == ASSERTED
    said = capfd.readouterr().err
    assert "A:12: A: block: [3,0,0], thread: [3,2,1] Assertion `A` failed." in said


def test_a_text_to_print_that_is_nowhere(device: MakeDevice, capfd: pytest.CaptureFixture[str]) -> None:
    given = device()
    before = (
        ".global .align 1 .b8 format[4] = {37, 115, 10, 0};\n.extern .func (.param .b32 r) vprintf(.param .b64 f, "
        ".param .b64 v);\n"
    )
    body = (
        ".local .align 8 .b8 values[8];\nmov.u64 %rd2, values;\ncvta.local.u64 %rd3, %rd2;\nst.local.u64 [%rd2], 16;\n"
        "cvta.global.u64 %rd7, format;\n{ .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %rd7;\n"
        "st.param.b64 [b], %rd3; call.uni (c), vprintf, (a, b); }"
    )
    given.launch(given.kernel(before + entry("work", "", body), "work"), 1, 1)
    assert given.client.call("DeviceSynchronize") == ILLEGAL_ADDRESS
    assert "0x10" in capfd.readouterr().err


def test_signals_that_are_not_the_kernel_s_go_to_the_client(device: MakeDevice) -> None:
    given = device()
    met: list[int] = []
    before = signal.signal(signal.SIGBUS, lambda number, _: met.append(number))
    try:
        given.run("st.global.u32 [%rd1], 1;")
        os.kill(os.getpid(), signal.SIGBUS)
    finally:
        signal.signal(signal.SIGBUS, before)
    assert met == [signal.SIGBUS]


# -- blocks that wait for each other -----------------------------------------------------------------------------------


GRID_SYNC = (
    "mov.u32 %r2, %envreg2;\nmov.u32 %r3, %envreg1;\nmov.b64 %rd5, {%r2, %r3};\nadd.u64 %rd5, %rd5, 4;\nbar.sync 0;\n"
    "mov.u32 %r4, %tid.x;\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 bra together;\nmov.u32 %r5, %nctaid.x;\n"
    "mov.u32 %r6, %ctaid.x;\nsetp.eq.u32 %p2, %r6, 0;\nsub.u32 %r5, 0x80000001, %r5;\nselp.b32 %r7, %r5, 1, %p2;\n"
    "atom.add.release.gpu.u32 %r8, [%rd5], %r7;\nagain:\nld.acquire.gpu.u32 %r9, [%rd5];\nxor.b32 %r9, %r9, %r8;\n"
    "setp.gt.s32 %p3, %r9, -1;\n@%p3 bra again;\ntogether:\nbar.sync 0;\n"
)
"""As the headers of cooperative groups write it: one thread of each block counts, and waits for the sign to change."""


LINKED_SYNC = (
    "mov.u32 %r2, %envreg2;\nmov.u32 %r3, %envreg1;\nmov.b64 %rd5, {%r2, %r3};\n"
    "{ .param .b64 handle; .param .b32 flags; .param .b32 result; st.param.b64 [handle], %rd5; st.param.b32 [flags], 0;"
    "call (result), cudaCGSynchronize, (handle, flags); }\n"
)
"""As nvcc writes it with ``-rdc=true``, and numba-cuda: a function of CUDA's library waits."""


@pytest.mark.parametrize("sync", [GRID_SYNC, LINKED_SYNC, 3 * LINKED_SYNC, LINKED_SYNC + GRID_SYNC + LINKED_SYNC])
@pytest.mark.parametrize("blocks", [1, 7, 200])
def test_all_blocks_of_a_cooperative_launch_wait_for_each_other(device: MakeDevice, blocks: int, sync: str) -> None:
    given = device()
    count = 8 * blocks
    to, other = given.words(*[0] * count), given.words(*[0] * count)
    body = (
        INDEX + "ld.param.u64 %rd1, [to];\nadd.u64 %rd2, %rd1, %rd9;\nst.global.u32 [%rd2], %r1;\n"
        "mov.u32 %r19, %r1;\nmov.u64 %rd3, %rd9;\n" + sync + f"sub.u32 %r10, {count - 1}, %r19;\n"
        "mul.wide.u32 %rd4, %r10, 4;\nadd.u64 %rd4, %rd4, %rd1;\nld.global.u32 %r11, [%rd4];\n"
        "ld.param.u64 %rd6, [other];\nadd.u64 %rd6, %rd6, %rd3;\nst.global.u32 [%rd6], %r11;"
    )
    asks = ".extern .func (.param .b32 result) cudaCGSynchronize (.param .b64 handle, .param .b32 flags);\n"
    function = given.kernel(asks + entry("work", ".param .u64 to, .param .u64 other", body), "work")
    passed = pointers_to([ctypes.c_uint64(to), ctypes.c_uint64(other)])
    assert given.driver.cuLaunchCooperativeKernel(function, blocks, 1, 1, 8, 1, 1, 0, None, passed) == 0
    assert given.read(other, count) == list(range(count))[::-1]
    assert given.client.call("DeviceSynchronize") == 0


def test_a_block_waits_for_one_that_begins_later(device: MakeDevice) -> None:
    given = device()
    to = given.words(*[0] * 33)
    body = (
        "mov.u32 %r1, %ctaid.x;\nld.param.u64 %rd1, [to];\nadd.u32 %r2, %r1, 1;\nmul.wide.u32 %rd2, %r2, 4;\n"
        "add.u64 %rd2, %rd1, %rd2;\nsetp.eq.u32 %p1, %r1, 31;\n@%p1 bra go;\n"
        "again:\nld.volatile.global.u32 %r3, [%rd2];\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 bra again;\n"
        "go:\nmov.u32 %r4, 1;\n@!%p1 add.u32 %r4, %r3, 1;\nst.volatile.global.u32 [%rd2+-4], %r4;"
    )
    given.ok(given.kernel(entry("work", ".param .u64 to", body), "work"), 32, 1, to)
    assert given.read(to, 33) == [*range(32, 0, -1), 0]


def test_a_thread_waits_for_a_later_one_that_only_atomics_tell_of(device: MakeDevice) -> None:
    body = (
        "ld.param.u64 %rd3, [to];\nsetp.eq.u32 %p1, %r1, 31;\n@%p1 atom.global.exch.b32 %r3, [%rd3+124], 5;\n"
        "@%p1 ret;\nagain:\natom.global.add.u32 %r4, [%rd3+124], 0;\nsetp.eq.u32 %p2, %r4, 0;\n@%p2 bra again;\n"
        "st.global.u32 [%rd1], %r4;"
    )
    assert device().run(body) == [5] * 32

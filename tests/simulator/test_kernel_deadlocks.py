"""Threads of a kernel that wait for ever, calls that need more stack than there is, and kernels without an end."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import entry, pointers_to
from tests.simulator.test_kernel_endings import GRID_SYNC

from quiesce.model.findings import Finding
from quiesce.model.program_rules import BARRIERS_END, KERNELS_INSIDE_STACK, WAITS_END
from quiesce.model.rules import Kind
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
ILLEGAL_ADDRESS, LAUNCH_TIMEOUT, LAUNCH_FAILURE = 700, 702, 719
STACK_SIZE = 0
"""The number of the limit (cudaLimitStackSize)."""
FLAGS = ".global .align 4 .b32 flags[8];\n"
SPIN = "{0}:\nld.volatile.global.u32 %r4, [flags+{1}];\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 bra {0};\n"
LOCK = "AGAIN:\natom.global.cas.b32 %r4, [flags], 0, 1;\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 bra AGAIN;\n"


def only(given: Checked) -> Finding:
    """Return the one finding."""
    (finding,) = given.findings()
    assert finding.kind is Kind.DEADLOCK
    return finding


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            "setp.ne.u32 %p2, %r1, 31;\n@!%p2 st.volatile.global.u32 [flags], 1;\n" + SPIN.format("A", 0),
            id="a-flag-that-the-last-thread-sets",
        ),
        pytest.param(LOCK + "atom.global.exch.b32 %r5, [flags], 0;\n", id="a-lock-that-is-given-back"),
        pytest.param(
            "mov.u32 %r6, 0;\nA:\nadd.u32 %r6, %r6, 1;\nld.volatile.global.u32 %r4, [flags];\n"
            "setp.eq.u32 %p1, %r4, 0;\nsetp.lt.and.u32 %p1, %r6, 3000, %p1;\n@%p1 bra A;\n",
            id="rounds-that-are-counted",
        ),
        pytest.param(
            "mov.u64 %rd5, %clock64;\nA:\nmov.u64 %rd6, %clock64;\nsub.u64 %rd6, %rd6, %rd5;\n"
            "ld.volatile.global.u32 %r4, [flags];\nsetp.eq.u32 %p1, %r4, 0;\n"
            "setp.lt.and.u64 %p1, %rd6, 300000, %p1;\n@%p1 bra A;\n",
            id="a-clock",
        ),
    ],
)
def test_waits_that_end(checked: MakeDevice, body: str) -> None:
    given = checked()
    given.work("st.volatile.global.u32 [flags], 0;\n" + body, block=32, before=FLAGS)
    assert given.client.call("DeviceSynchronize") == 0
    assert given.rules() == []


def test_a_flag_that_nobody_sets(checked: MakeDevice) -> None:
    given = checked()
    given.work(SPIN.format("A", 12), block=32, before=FLAGS, answer=LAUNCH_FAILURE)
    finding = only(given)
    assert finding.rule == WAITS_END
    assert "thread (0, 0, 0) of block (0, 0, 0) waits for a change of 4 bytes at " in finding.observed
    assert ", 12 bytes into variable 'flags' of 32 bytes, at 'ld.volatile.global.u32 " in finding.observed


BLOCKING, NONBLOCKING = 0, 1
"""Flags of a stream."""


def make_stream(given: Checked, flags: int | None) -> int:
    """Return a new stream, or the default one where there are no flags."""
    return 0 if flags is None else given.client.make("StreamCreateWithFlags", flags)


@pytest.mark.parametrize(
    ("launching", "other", "ends"),
    [
        (None, BLOCKING, False),
        (BLOCKING, None, False),
        (None, NONBLOCKING, True),
        (NONBLOCKING, None, True),
        (BLOCKING, BLOCKING, True),
    ],
)
def test_a_flag_that_another_stream_could_set(
    checked: MakeDevice, launching: int | None, other: int | None, ends: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    """The default stream and a blocking one wait for each other, so that none can set what the other waits for."""
    given = checked()
    stream = make_stream(given, launching)
    make_stream(given, other)
    given.work(SPIN.format("A", 12), block=32, stream=stream, before=FLAGS, answer=LAUNCH_FAILURE)
    said = capfd.readouterr().err
    assert given.rules() == ([] if ends else [WAITS_END])
    assert (
        "kernel 'work' can't go on: it waits for memory that another stream would have to change, and each launch runs "
        "to its end before other work, in block (0, 0, 0), thread (0, 0, 0), at 'ld.volatile.global.u32 " in said
    ) == ends


def test_a_flag_that_another_device_could_set(checked: MakeDevice) -> None:
    given = checked(devices=2)
    given.client.ok("SetDevice", 1)
    given.client.ok("DeviceEnablePeerAccess", 0, 0)
    given.client.ok("SetDevice", 0)
    given.work(SPIN.format("A", 12), before=FLAGS, answer=LAUNCH_FAILURE)
    assert given.rules() == []


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(LOCK, id="a-lock"),
        pytest.param("st.volatile.global.u32 [flags], 0;\n" + SPIN.format("A", 0), id="a-flag-that-was-set-back"),
        pytest.param("setp.eq.u32 %p1, %r1, 0;\n@%p1 bar.sync 1, 64;\n", id="a-barrier"),
    ],
)
def test_waits_among_the_threads_of_a_launch_are_no_matter_of_other_streams(checked: MakeDevice, body: str) -> None:
    given = checked()
    streams = [make_stream(given, NONBLOCKING) for _ in range(2)]
    given.work(body, block=2, stream=streams[0], before=FLAGS, answer=LAUNCH_FAILURE)
    only(given)


def test_blocks_that_wait_for_each_other(checked: MakeDevice) -> None:
    given = checked()
    body = (
        "mov.u32 %r2, %ctaid.x;\nsetp.ne.u32 %p2, %r2, 0;\n@%p2 bra SECOND;\n"
        + (SPIN.format("A", 4) + "st.volatile.global.u32 [flags], 1;\nret;\n")
        + ("SECOND:\n" + SPIN.format("B", 0) + "st.volatile.global.u32 [flags+4], 1;\n")
    )
    given.work(body, grid=2, before=FLAGS, answer=LAUNCH_FAILURE)
    observed = only(given).observed
    assert "thread (0, 0, 0) of block (0, 0, 0) waits for a change of 4 bytes" in observed
    assert "; thread (0, 0, 0) of block (1, 0, 0) waits at '@%p1 bra B' (line " in observed


def test_a_lock_that_is_not_given_back(checked: MakeDevice) -> None:
    given = checked()
    given.work(LOCK, block=2, before=FLAGS, answer=LAUNCH_FAILURE)
    assert only(given).observed.startswith("kernel 'work': its threads wait for each other for ever; thread (1, 0, 0)")


def test_a_block_that_leaves_out_a_barrier_of_the_grid(checked: MakeDevice) -> None:
    given = checked()
    body = "mov.u32 %r1, %ctaid.x;\nsetp.eq.u32 %p1, %r1, 2;\n@%p1 ret;\n" + GRID_SYNC
    function = given.kernel(entry("work", "", body), "work")
    launch = given.driver.cuLaunchCooperativeKernel
    assert launch(function, 4, 1, 1, 8, 1, 1, 0, None, pointers_to([])) == LAUNCH_FAILURE
    finding = only(given)
    assert finding.rule == WAITS_END
    assert "; thread (0, 0, 0) of block (0, 0, 0) waits at 'ld.acquire.gpu.u32 %r9, [%rd5]' (line " in finding.observed
    assert "; thread (0, 0, 0) of block (1, 0, 0) waits at " in finding.observed


def test_barriers_that_too_few_come_to(checked: MakeDevice) -> None:
    given = checked()
    body = "setp.lt.u32 %p1, %r1, 32;\n@%p1 bar.sync 1, 96;\n@!%p1 bar.sync 2, 64;\n"
    given.work(body, block=64, before=FLAGS, answer=LAUNCH_FAILURE)
    finding = only(given)
    assert finding.rule == BARRIERS_END
    assert "; thread (0, 0, 0) of block (0, 0, 0) waits at '@%p1 bar.sync 1, 96' (line " in finding.observed
    assert "; thread (32, 0, 0) of block (0, 0, 0) waits at '@!%p1 bar.sync 2, 64' (line " in finding.observed


DEEPER = (
    ".func deeper(.param .b32 depth) { .local .align 4 .b8 room[24]; .reg .b32 %n; .reg .pred %p; .reg .b64 %a;\n"
    "ld.param.b32 %n, [depth]; mov.u64 %a, room; st.local.b32 [%a], %n; setp.eq.u32 %p, %n, 0; @%p ret;\n"
    "sub.u32 %n, %n, 1; { .param .b32 next; st.param.b32 [next], %n; call deeper, (next); }\nret; }\n"
)
CALLED = "{{ .param .b32 first; st.param.b32 [first], {0}; call deeper, (first); }}\n"


@pytest.mark.parametrize(("depth", "limit", "fits"), [(31, 1024, True), (32, 1024, False), (1000, 1 << 16, True)])
def test_calls_fit_into_the_stack(checked: MakeDevice, depth: int, limit: int, fits: bool) -> None:
    """Each call needs 32 bytes: 24 of its own, and the address that it returns to."""
    given = checked()
    given.client.ok("DeviceSetLimit", STACK_SIZE, ctypes.c_size_t(limit))
    given.work(CALLED.format(depth), block=4, before=DEEPER, answer=0 if fits else ILLEGAL_ADDRESS)
    assert given.rules() == ([] if fits else [KERNELS_INSIDE_STACK])
    if not fits:
        (finding,) = given.findings()
        assert finding.kind is Kind.STACK_OVERFLOW
        assert (
            "of which each thread has 1,024 bytes (1 KiB), in thread (0, 0, 0) of block (0, 0, 0)" in finding.observed
        )


@pytest.mark.long
@pytest.mark.parametrize("waits", ["", "bar.sync 0;\n"])
def test_a_kernel_without_an_end_is_stopped_and_named(
    checked: MakeDevice, waits: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = checked(seconds=1)
    body = (
        f"{waits}mov.u32 %r2, %ctaid.x;\nsetp.ne.u32 %p1, %r2, 1;\nsetp.ne.or.u32 %p1, %r1, 3, %p1;\n@%p1 ret;\n"
        "mov.u32 %r3, 1;\nAGAIN:\nmad.lo.u32 %r3, %r3, 3, 2;\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 bra AGAIN;\n"
        "st.global.u32 [flags], %r3;\n"
    )
    given.work(body, block=8, grid=2, before=FLAGS, answer=LAUNCH_TIMEOUT)
    said = capfd.readouterr().err
    assert "kernel 'work' was stopped after the time that --kernel-seconds gives it, in block (1, 0, 0), " in said
    assert "thread (3, 0, 0), at '@%p2 bra AGAIN' (line " in said
    assert given.rules() == []

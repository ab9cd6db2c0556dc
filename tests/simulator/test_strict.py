"""What ``quiesce exec --strict`` reports and other runs leave alone: many correct programs do it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import INDEX, TO_DEVICE, TO_HOST

from quiesce.model.program_rules import BARRIERS_SAME, COPIES_READ_WRITTEN, KERNELS_READ_WRITTEN
from quiesce.model.rules import Kind
from quiesce.model.wording import bytes_in_words
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import Judgement, judge
from quiesce.simulator.kernels.server import ONE_BY_ONE_VARIABLE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
READ_WORD = INDEX + "add.u64 %rd1, %rd1, %rd9;\nld.global.u32 %r5, [%rd1];\n"
STRICT = pytest.mark.parametrize("strict", [0, 1])


@STRICT
@pytest.mark.parametrize(("written", "seen"), [(32, 0), (29, 1), (30, 1), (31, 1)])
def test_words_that_are_partly_written(checked: MakeDevice, strict: int, written: int, seen: int) -> None:
    given = checked(strict=strict)
    memory = given.client.make("Malloc", 32)
    given.client.ok("Memset", memory, 0, written)
    given.work(READ_WORD, memory, block=8)
    findings = given.findings()
    assert [(each.rule, each.seen) for each in findings] == [(KERNELS_READ_WRITTEN, seen)] * (strict and seen)
    if findings:
        assert "of which nobody has written some, in thread (7, 0, 0)" in findings[0].observed


ARRAY = ".shared .align 4 .b8 cells[256];\n"
CELL = "mov.u32 %r2, cells;\nmad.lo.u32 %r3, %r1, 4, %r2;\nxor.b32 %r6, %r1, 32;\nmad.lo.u32 %r4, %r6, 4, %r2;\n"
HALF = "setp.ge.u32 %p1, %r1, 32;\n"
BARRIER, READ, READ_OTHER = "bar.sync 0;\n", "ld.shared.u32 %r5, [%r3];\n", "ld.shared.u32 %r5, [%r4];\n"


@STRICT
@pytest.mark.parametrize("is_tuned", [False, True], ids=["one-by-one", "together"])
@pytest.mark.parametrize(
    ("body", "unwritten"),
    [
        pytest.param("st.shared.u32 [%r3], %r1;\n" + BARRIER + READ_OTHER, 0, id="all"),
        pytest.param("@!%p1 st.shared.u32 [%r3], %r1;\n" + BARRIER + READ, 32, id="half of it"),
        pytest.param(READ, 64, id="nothing"),
        pytest.param("st.volatile.shared.u32 [%r3], %r1;\n" + BARRIER + READ_OTHER, 0, id="volatile"),
        pytest.param("atom.shared.exch.b32 %r5, [%r3], %r1;\n" + BARRIER + READ_OTHER, 0, id="atomic operations"),
        pytest.param("st.shared.u8 [%r3], %r1;\n" + BARRIER + READ_OTHER, 0, id="a byte of each word"),
        pytest.param("st.shared.u32 [%r3], 0;\n" + BARRIER + READ_OTHER, 0, id="zeros"),
    ],
)
def test_shared_memory_that_nobody_wrote(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, body: str, unwritten: int, is_tuned: bool, strict: int
) -> None:
    if not is_tuned:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    given = checked(strict=strict)
    given.work(CELL + HALF + body, block=64, grid=2, before=ARRAY)
    found = [(each.rule, each.seen) for each in given.findings()]
    assert found == ([(KERNELS_READ_WRITTEN, 2 * unwritten)] if strict and unwritten else [])


@STRICT
@pytest.mark.parametrize(("threads", "is_found"), [(72, True), (64, False), (128, False)])
def test_threads_that_end_before_their_warp_waits(
    checked: MakeDevice, threads: int, is_found: bool, strict: int
) -> None:
    given = checked(strict=strict)
    given.work(f"setp.ge.u32 %p1, %r1, {threads};\n@%p1 ret;\nbar.sync 0;\n", block=128)
    findings = given.findings()
    assert [each.rule for each in findings] == [BARRIERS_SAME] * (strict and is_found)
    if findings:
        assert findings[0].kind is Kind.DIVERGENT_BARRIER
        assert "thread (72, 0, 0) of the same warp has ended, and never comes there" in findings[0].observed


def _about_copies(judgement: Judgement) -> list[str]:
    return [note for note in judgement.notes if "to the host" in note]


def _judged(given: Checked) -> Judgement:
    return judge(given.client.machine.ledger, AtExit.NONE, touched=given.client.machine.touched)


@STRICT
@pytest.mark.parametrize(
    ("size_bytes", "written", "unwritten"), [(4096, 4096, 0), (4096, 4000, 96), (123, 0, 123), (200, 65, 135)]
)
@pytest.mark.parametrize("function", ["Memcpy", "MemcpyAsync"])
def test_what_the_host_reads_and_nobody_wrote(
    checked: MakeDevice, function: str, size_bytes: int, written: int, unwritten: int, strict: int
) -> None:
    given = checked(strict=strict)
    memory, host = given.client.make("Malloc", size_bytes), ctypes.create_string_buffer(size_bytes)
    if written:
        given.client.ok("Memset", memory, 7, written)
    for _ in range(2):
        given.client.ok(function, host, memory, size_bytes, TO_HOST, *([0] if function == "MemcpyAsync" else []))
    judgement = _judged(given)
    notes = _about_copies(judgement)
    if not unwritten:
        assert (judgement.findings, notes) == ((), [])
        return
    told = [each.observed for each in judgement.findings] if strict else notes
    assert f"copies {unwritten} bytes to the host that nobody has written, the first " in told[0]
    assert f"{bytes_in_words(written)} into a device block" in told[0] or not written
    assert [(each.rule, each.kind) for each in judgement.findings] == [
        (COPIES_READ_WRITTEN, Kind.UNWRITTEN) for _ in told if strict
    ]


def test_what_kernels_wrote_the_host_may_read(checked: MakeDevice) -> None:
    given = checked(strict=1)
    memory, host = given.client.make("Malloc", 4096), ctypes.create_string_buffer(4096)
    given.work(INDEX + "add.u64 %rd1, %rd1, %rd9;\nst.global.u32 [%rd1], %r1;\n", memory, block=256, grid=4)
    given.client.ok("Memcpy", host, memory, 4096, TO_HOST)
    other = given.client.make("Malloc", 4096)
    given.client.ok("Memcpy", other, memory, 4096, 3)
    given.client.ok("Memcpy", host, other, 4096, TO_HOST)
    given.client.ok("Memcpy", other, host, 4096, TO_DEVICE)
    judgement = _judged(given)
    assert (judgement.findings, _about_copies(judgement)) == ((), [])

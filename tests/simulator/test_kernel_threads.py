"""Launches whose blocks run on several cores: the same words as on one, and the same ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from tests.kernels.footprints import Memory, why_alone
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import HEADER, INDEX, Device, entry

from quiesce.simulator.runtime.kernel_compiler import kernels_can_run
from quiesce.simulator.runtime.ledger import Seen

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Device]
ILLEGAL_ADDRESS, LAUNCH_TIMEOUT = 700, 702
BLOCKS, THREADS = 200, 64
COUNT: Final = BLOCKS * THREADS
POINTERS: Final = "ld.param.u64 %rd1, [to];\nld.param.u64 %rd2, [from];\n"
PLACES: Final = INDEX + POINTERS + "add.u64 %rd3, %rd1, %rd9;\nadd.u64 %rd4, %rd2, %rd9;\nld.global.u32 %r4, [%rd4];\n"
ROUNDS: Final = (
    "mov.u32 %r5, 0;\nAGAIN:\nmad.lo.u32 %r4, %r4, 1664525, %r1;\nadd.u32 %r5, %r5, 1;\nsetp.lt.u32 %p1, %r5, 400;\n"
    "@%p1 bra AGAIN;\n"
)
"""Work: a launch takes several milliseconds."""
BODIES: Final = {
    "words": PLACES + ROUNDS + "st.global.u32 [%rd3], %r4;\n",
    "barrier": "{ .shared .b32 cells[64];\n.reg .b32 %s<4>;\n"
    + PLACES
    + ROUNDS
    + "shl.b32 %s1, %r3, 2;\nmov.u32 %s2, cells;\nadd.u32 %s1, %s1, %s2;\nst.shared.u32 [%s1], %r4;\nbar.sync 0;\n"
    "xor.b32 %s1, %s1, 4;\nld.shared.u32 %r4, [%s1];\nbar.sync 0;\nst.global.u32 [%rd3], %r4;\n}\n",
    "counts": PLACES
    + ROUNDS
    + "and.b32 %r4, %r4, 1023;\nmul.wide.u32 %rd5, %r4, 4;\nadd.u64 %rd5, %rd1, %rd5;\nred.global.add.u32 [%rd5], 1;\n",
    "floats": PLACES + ROUNDS + "cvt.rn.f32.u32 %f1, %r4;\nsqrt.rn.f32 %f1, %f1;\nst.global.f32 [%rd3], %f1;\n",
}


SHARED: Final = (
    "{ .shared .b32 cells[64];\n.reg .b32 %s<6>;\nshl.b32 %s1, %r3, 2;\nmov.u32 %s2, cells;\nadd.u32 %s1, %s1, %s2;\n"
)
"""The word of the thread in shared memory is at ``%s1``, and the first one at ``%s2``."""
RESULT: Final = "st.global.u32 [%rd3], %r4;\n}\n"
WRONG: Final = {
    "race in shared memory": SHARED
    + ROUNDS
    + "st.shared.u32 [%s1], %r4;\nxor.b32 %s3, %s1, 128;\nld.shared.u32 %r4, [%s3];\n"
    + RESULT,
    "race of some blocks": SHARED + ROUNDS + "st.shared.u32 [%s1], %r4;\nmov.u32 %r6, %ctaid.x;\nrem.u32 %r6, %r6, 7;\n"
    "setp.ne.u32 %p2, %r6, 5;\n@%p2 bar.sync 0;\n"
    "xor.b32 %s3, %s1, 128;\nld.shared.u32 %r4, [%s3];\n" + RESULT,
    "two writes": SHARED + ROUNDS + "st.shared.u32 [%s2], %r4;\nbar.sync 0;\nld.shared.u32 %r4, [%s2];\n" + RESULT,
    "two equal writes": SHARED + ROUNDS + "st.shared.u32 [%s2], 7;\nbar.sync 0;\nld.shared.u32 %r4, [%s2];\n" + RESULT,
    "outside of shared memory": SHARED
    + ROUNDS
    + "mov.u32 %r6, %ctaid.x;\nmad.lo.u32 %s1, %r6, 4, %s1;\nst.shared.u32 [%s1], %r4;\n"
    "bar.sync 0;\nld.shared.u32 %r4, [%s2];\n" + RESULT,
    "a read and an atomic operation": SHARED
    + ROUNDS
    + "st.shared.u32 [%s1], 0;\nbar.sync 0;\nsetp.eq.u32 %p2, %r3, 0;\n@%p2 red.shared.add.u32 [%s2+8], 1;\n"
    "setp.eq.u32 %p2, %r3, 40;\n@%p2 ld.shared.u32 %r4, [%s2+8];\nbar.sync 0;\n" + RESULT,
    "a sum in shared memory": SHARED
    + ROUNDS
    + "st.shared.u32 [%s1], %r4;\nbar.sync 0;\nmov.u32 %s5, 128;\nHALF:\nadd.u32 %s3, %s1, %s5;\nshl.b32 %r6, %r3, 2;\n"
    "setp.ge.u32 %p2, %r6, %s5;\n@%p2 bra SKIP;\nld.shared.u32 %s4, [%s3];\n"
    "ld.shared.u32 %r4, [%s1];\nadd.u32 %r4, %r4, %s4;\n"
    "st.shared.u32 [%s1], %r4;\nSKIP:\nbar.sync 0;\nshr.u32 %s5, %s5, 1;\nsetp.ge.u32 %p2, %s5, 4;\n@%p2 bra HALF;\n"
    "ld.shared.u32 %r4, [%s2];\n" + RESULT,
    "shuffles": "{ .reg .b32 %s<4>;\n"
    + ROUNDS
    + "shfl.sync.bfly.b32 %s1, %r4, 1, 31, 0xffffffff;\nadd.u32 %r4, %r4, %s1;\n"
    + RESULT,
    "out of bounds": "setp.lt.u32 %p2, %r1, 9000;\n@%p2 bra RIGHT;\nadd.u64 %rd4, %rd4, 51200;\nRIGHT:\n"
    "ld.global.u32 %r4, [%rd4];\n" + ROUNDS + "st.global.u32 [%rd3], %r4;\n",
    "misaligned": "setp.lt.u32 %p2, %r1, 7000;\n@%p2 bra RIGHT;\nadd.u64 %rd4, %rd4, 1;\nRIGHT:\n"
    "ld.global.u32 %r4, [%rd4];\n" + ROUNDS + "st.global.u32 [%rd3], %r4;\n",
    "never written": "ld.global.u32 %r4, [%rd4+51200];\n" + ROUNDS + "st.global.u32 [%rd3], %r4;\n",
    "nothing": "ld.global.u32 %r4, [%rd4];\n" + ROUNDS + "st.global.u32 [%rd3], %r4;\n",
    "every third word": ROUNDS + "rem.u32 %r6, %r1, 3;\nsetp.ne.u32 %p2, %r6, 0;\n@%p2 ret;\n"
    "st.global.u32 [%rd3], %r4;\n",
    "a place that is read": "and.b32 %r6, %r4, 1020;\nmul.wide.u32 %rd6, %r6, 4;\nadd.u64 %rd6, %rd2, %rd6;\n"
    "ld.global.u32 %r4, [%rd6];\n" + ROUNDS + "st.global.u32 [%rd3], %r4;\n",
    "all words of a row": "shl.b32 %r6, %r1, 1;\nmul.wide.u32 %rd6, %r6, 4;\nadd.u64 %rd6, %rd1, %rd6;\n"
    + ROUNDS
    + "st.global.u32 [%rd6], %r4;\nst.global.u32 [%rd6+4], %r4;\n",
}


@pytest.mark.parametrize("body", [*BODIES.values(), *(PLACES + each for each in WRONG.values())])
def test_what_is_tested_here_may_run_on_several_cores(body: str) -> None:
    text = HEADER + entry("work", ".param .u64 to, .param .u64 from", body)
    assert not why_alone(text, "work", (BLOCKS, 1, 1), (THREADS, 1, 1), (Memory(0), Memory(1)))


def results(device: Device, body: str) -> list[int]:
    from_, to = device.words(*range(COUNT)), device.words(*[0] * COUNT)
    function = device.kernel(entry("work", ".param .u64 to, .param .u64 from", body), "work")
    for _ in range(3):
        device.ok(function, BLOCKS, THREADS, to, from_)
    return device.read(to, COUNT)


def expected(name: str) -> list[int]:
    """Return what the kernels compute, by NumPy."""
    index = np.arange(COUNT, dtype="u4")
    words = index.copy()
    for _ in range(400):
        words = words * np.uint32(1664525) + index
    if name == "barrier":
        words = words[index ^ 1]
    if name == "floats":
        words = np.sqrt(words.astype("f4")).view("u4")
    if name == "counts":
        words = 3 * np.bincount(words & 1023, minlength=COUNT)
    return [int(each) for each in words]


@pytest.mark.parametrize("threads", [1, 2, 8])
@pytest.mark.parametrize("name", BODIES)
def test_words_are_those_of_one_core(device: MakeDevice, name: str, threads: int) -> None:
    assert results(device(threads=threads), BODIES[name]) == expected(name)


def test_why_a_kernel_runs_on_one_core_is_said_once(device: MakeDevice, capfd: pytest.CaptureFixture[str]) -> None:
    given = device(threads=2)
    body = PLACES + "st.global.u32 [%rd1], %r4;\n"
    from_, to = given.words(*[0] * 65_536), given.words(0)
    function = given.kernel(entry("work", ".param .u64 to, .param .u64 from", body), "work")
    given.ok(function, 65_536 // THREADS - 1, THREADS, to, from_)
    assert "one core" not in capfd.readouterr().err
    for _ in range(2):
        given.ok(function, 65_536 // THREADS, THREADS, to, from_)
    said = capfd.readouterr().err
    assert said.count("quiesce: kernel 'work' runs on one core: two blocks may write the same byte\n") == 1


def tasks() -> int:
    return len(list(Path("/proc/self/task").iterdir()))


def test_threads_are_made_once_and_kept(device: MakeDevice) -> None:
    given = device(threads=4)
    results(given, BODIES["words"])
    made = tasks()
    results(given, BODIES["words"])
    assert tasks() == made >= 4


@pytest.mark.parametrize("threads", [1, 4])
def test_an_address_without_memory_names_the_first_block(
    device: MakeDevice, threads: int, capfd: pytest.CaptureFixture[str]
) -> None:
    """Whichever block comes to it first: one core would have come to block 50 only."""
    body = (
        PLACES + ROUNDS + "mov.u32 %r6, %ctaid.x;\nsetp.lt.u32 %p2, %r6, 50;\n@%p2 bra RIGHT;\n"
        "add.u64 %rd4, %rd4, 0xA00000000000;\nRIGHT:\nld.global.u32 %r7, [%rd4];\nadd.u32 %r4, %r4, %r7;\n"
        "st.global.u32 [%rd3], %r4;\n"
    )
    given = device(threads=threads)
    from_, to = given.words(*range(COUNT)), given.words(*[0] * COUNT)
    function = given.kernel(entry("work", ".param .u64 to, .param .u64 from", body), "work")
    assert given.launch(function, BLOCKS, THREADS, to, from_) == ILLEGAL_ADDRESS
    assert "in block (50, 0, 0)" in capfd.readouterr().err


READS_UNWRITTEN: Final = ("race in shared memory", "race of some blocks", "outside of shared memory")
"""On one core they find in shared memory what the block before left there."""
RIGHT: Final = {
    *("nothing", "every third word", "a place that is read", "all words of a row", "two equal writes", "shuffles"),
    "a sum in shared memory",
}


def observed(checked: Callable[..., Checked], body: str, threads: int) -> tuple[object, ...]:
    """Return all that is known of three launches: findings, touched bytes with their places, and words."""
    given = checked(threads=threads)
    from_, to = given.client.make("Malloc", 8 * COUNT), given.client.make("Malloc", 8 * COUNT)
    given.client.ok("Memset", from_, 1, 4 * COUNT)
    function = given.kernel(entry("work", ".param .u64 to, .param .u64 from", PLACES + body), "work")
    for _ in range(3):
        given.ok(function, BLOCKS, THREADS, to, from_)
    launches = [record.number for record in given.client.machine.ledger.records() if record.seen is Seen.LAUNCHED]
    touched = [given.client.machine.touched.of(each) for each in launches]
    assert len(launches) == 3
    assert all(touched)
    found = [(each.rule, each.seen, each.observed) for each in given.findings()]
    words = given.read(to, COUNT)
    given.client.machine.close()
    return found, touched, words


@pytest.mark.parametrize("name", WRONG)
def test_findings_and_touched_bytes_are_those_of_one_core(checked: Callable[..., Checked], name: str) -> None:
    alone = observed(checked, WRONG[name], 1)
    assert bool(alone[0]) == (name not in RIGHT)
    two, eight = (observed(checked, WRONG[name], threads) for threads in (2, 8))
    assert two[:2] == eight[:2] == alone[:2]
    assert two[2] == eight[2]
    if name not in READS_UNWRITTEN:
        assert two[2] == alone[2]


@pytest.mark.long
@pytest.mark.parametrize("waits", ["", "bar.sync 0;\n"])
def test_a_kernel_without_an_end_is_stopped_on_all_cores(
    device: MakeDevice, waits: str, capfd: pytest.CaptureFixture[str]
) -> None:
    given = device(threads=3, seconds=1)
    body = PLACES + waits + "ENDLESS:\nadd.u32 %r4, %r4, 2;\nor.b32 %r4, %r4, 1;\nsetp.ne.u32 %p2, %r4, 0;\n"
    body += "@%p2 bra ENDLESS;\nst.global.u32 [%rd3], %r4;\n"
    from_, to = given.words(*range(COUNT)), given.words(*[0] * COUNT)
    function = given.kernel(entry("work", ".param .u64 to, .param .u64 from", body), "work")
    assert given.launch(function, BLOCKS, THREADS, to, from_) == LAUNCH_TIMEOUT
    assert "was stopped after the time that --kernel-seconds gives it, in block (0, 0, 0)" in capfd.readouterr().err

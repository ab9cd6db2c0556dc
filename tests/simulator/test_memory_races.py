"""Races of threads of one launch in memory of the device: they are found, and what is in order is left alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked
from tests.simulator.kernel_programs import INDEX, TO_DEVICE, entry

from quiesce.model.findings import Finding
from quiesce.model.program_rules import BLOCKS_ORDERED, KERNELS_ANY_ORDER, THREADS_ORDERED
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]

OWN_WORD = INDEX + "add.u64 %rd2, %rd1, %rd9;\nadd.u64 %rd2, %rd2, 64;\n"
"""The address of each thread's own word in ``%rd2``: the first 16 words are for what threads share."""
BARRIER = "bar.sync 0;\n"
FENCE = "membar.gl;\n"
COUNT = "ld.global.u32 %r5, [%rd1];\nadd.u32 %r5, %r5, 1;\nst.global.u32 [%rd1], %r5;\n"
STORE_OWN = "st.global.u32 [%rd2], %r1;\n"
ADD_ONE = "red.global.add.u32 [%rd1], 1;\n"
TICKET = "atom.global.add.u32 %r6, [%rd1], 1;\nsetp.ne.u32 %p1, %r6, 3;\n@%p1 ret;\n"
"""Only the last one of four goes on."""
SUM = (
    "mov.u64 %rd4, %rd1;\nmov.u32 %r9, 0;\nNEXT:\nld.global.u32 %r7, [%rd4+64];\nadd.u32 %r8, %r8, %r7;\n"
    "add.u64 %rd4, %rd4, 4;\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p1, %r9, 4;\n@%p1 bra NEXT;\n"
)
"""Adds the words of four threads up."""
RESULT = "st.global.u32 [%rd1+32], %r8;\n"
LOCK = "AGAIN:\natom.global.cas.b32 %r6, [%rd1+8], 0, 1;\nsetp.ne.u32 %p1, %r6, 0;\n@%p1 bra AGAIN;\n"
UNLOCK = "atom.global.exch.b32 %r6, [%rd1+8], 0;\n"
SWAP = (
    "ld.global.u32 %r5, [%rd1];\nSWAP:\nadd.u32 %r6, %r5, %r1;\natom.global.cas.b32 %r7, [%rd1], %r5, %r6;\n"
    "setp.ne.u32 %p1, %r7, %r5;\nmov.u32 %r5, %r7;\n@%p1 bra SWAP;\n"
)
"""An atomic addition by what there is on every device: a first guess, which the exchange verifies."""
PUBLISH = "st.volatile.global.u32 [%rd2+128], 1;\n"
FIRST_LEAVES = "setp.eq.u32 %p2, %r1, 0;\n@%p2 ret;\n"
AWAIT_BEFORE = "WAIT:\nld.volatile.global.u32 %r6, [%rd2+124];\nsetp.eq.u32 %p1, %r6, 0;\n@%p1 bra WAIT;\n"
AWAIT_BEFORE_BY_VOTE = AWAIT_BEFORE.replace("@%p1 bra", "vote.sync.any.pred %p1, %p1, 1;\n@%p1 bra")
READ_BEFORE = "ld.global.u32 %r7, [%rd2-4];\n"
READ_OWN = "ld.global.u32 %r7, [%rd2];\n"
WRITE_BEFORE = "st.global.u32 [%rd2-4], 7;\n"
OTHERS_WORD = "xor.b32 %r5, %r1, {lanes};\nmul.wide.u32 %rd5, %r5, 4;\nadd.u64 %rd5, %rd1, %rd5;\n"
READ_OTHERS = "ld.global.u32 %r7, [%rd5+64];\n"


IN_ALL_ORDERS = {"orders": 2}
IN_FIRST_LAUNCHES = {"races": 2}
HOW = [pytest.param(IN_ALL_ORDERS, id="all"), pytest.param(IN_FIRST_LAUNCHES, id="first")]


def _races(
    checked: MakeDevice, body: str, grid: int, block: int = 1, how: dict[str, int] = IN_ALL_ORDERS
) -> list[Finding]:
    given = checked(**how)
    given.work(INDEX + OWN_WORD + body, given.words(*[0] * 1024), grid=grid, block=block)
    return [each for each in given.findings() if each.rule != KERNELS_ANY_ORDER]


@pytest.mark.parametrize(
    ("body", "verb"),
    [
        pytest.param(COUNT, "reads", id="a histogram without atomicAdd"),
        pytest.param("st.global.u32 [%rd1], %r1;\n", "writes", id="the last one wins"),
        pytest.param(
            COUNT.replace("u32 %r5, [", "u8 %r5, [").replace("st.global.u32", "st.global.u8"), "reads", id="a byte"
        ),
        pytest.param(STORE_OWN + READ_BEFORE, "reads", id="what the block before writes"),
        pytest.param(READ_OWN + WRITE_BEFORE, "reads", id="what the next block writes"),
        pytest.param(READ_OWN + PUBLISH + WRITE_BEFORE, "reads", id="a flag that nobody looks at"),
        pytest.param(STORE_OWN + TICKET + SUM + RESULT, "reads", id="the last block without a fence"),
        pytest.param(STORE_OWN + "membar.cta;\n" + TICKET + SUM, "reads", id="a fence for one block"),
        pytest.param(STORE_OWN + TICKET + FENCE + SUM, "reads", id="a fence that comes too late"),
        pytest.param(LOCK + COUNT + UNLOCK, "reads", id="a lock without a fence"),
        pytest.param(
            "red.global.add.u32 [%rd1], 1;\nld.global.u32 %r7, [%rd1];\n", "reads", id="a total that is read too early"
        ),
        pytest.param("st.global.u32 [%rd1], 9;\n" + ADD_ONE, "writes", id="a start value"),
        pytest.param(
            STORE_OWN + PUBLISH + FIRST_LEAVES + AWAIT_BEFORE + READ_BEFORE, "reads", id="a flag without a fence"
        ),
    ],
)
@pytest.mark.parametrize("how", HOW)
def test_blocks_that_nothing_orders(checked: MakeDevice, body: str, verb: str, how: dict[str, int]) -> None:
    finding, *others = _races(checked, body, grid=4, how=how)
    assert (finding.rule, others) == (BLOCKS_ORDERED, [])
    assert f"kernel 'work' {verb} " in finding.observed
    assert " writes there at '" in finding.observed
    assert finding.observed.endswith(", and nothing orders the two blocks")
    assert " a device block of 4,096 bytes" in finding.observed
    assert "__threadfence()" in finding.expected or "atomicAdd" in finding.expected
    assert finding.allocated_by == "cudaMalloc (call 0)"


@pytest.mark.parametrize(
    "before",
    [
        pytest.param("shfl.sync.down.b32 %r7, %r1, 1, 31, -1;\n", id="a shuffle"),
        pytest.param(
            f"mov.u32 %r9, 0;\nNEXT:\nadd.u32 %r9, %r9, 1;\nsetp.lt.u32 %p1, %r9, 4;\n@%p1 bra NEXT;\n{BARRIER}",
            id="a loop before a barrier",
        ),
    ],
)
@pytest.mark.parametrize("how", HOW)
def test_one_lane_of_each_block_writes_to_one_word(checked: MakeDevice, before: str, how: dict[str, int]) -> None:
    """A store counts if it changes something. That of a lane is done before the next lane's is looked at."""
    body = (
        f"{before}mov.u32 %r5, %tid.x;\nsetp.eq.u32 %p2, %r5, 5;\nselp.u64 %rd2, %rd1, %rd2, %p2;\n"
        "add.u32 %r6, %r1, 1;\nst.global.u32 [%rd2], %r6;\n"
    )
    (race,) = _races(checked, body, grid=4, block=64, how=how)
    assert race.rule == BLOCKS_ORDERED


def test_a_word_that_is_claimed_may_be_looked_at(checked: MakeDevice) -> None:
    """A search by breadth marks nodes by ``atomicCAS``, and reads the marks of others without any order."""
    claim = "atom.global.cas.b32 %r6, [%rd2-4], 0, 5;\n" + READ_OWN + "st.global.u32 [%rd2+256], %r7;\n"
    assert _races(checked, claim, grid=4, how=IN_FIRST_LAUNCHES) == []
    (finding,) = _races(checked, claim, grid=4, how=IN_ALL_ORDERS)
    assert finding.rule == BLOCKS_ORDERED
    (finding,) = _races(
        checked, claim.replace("cas.b32 %r6, [%rd2-4], 0", "exch.b32 %r6, [%rd2-4]"), grid=4, how=IN_FIRST_LAUNCHES
    )
    assert finding.rule == BLOCKS_ORDERED


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(STORE_OWN, id="a word for each"),
        pytest.param(ADD_ONE, id="a histogram with atomicAdd"),
        pytest.param(SWAP, id="a sum by compare and swap"),
        pytest.param("st.global.u32 [%rd1], 1;\n", id="a flag that all set"),
        pytest.param(
            "cvt.u64.u32 %rd6, %r1;\nadd.u64 %rd2, %rd1, %rd6;\nst.global.u8 [%rd2], 7;\n",
            id="a byte for each",
        ),
        pytest.param(STORE_OWN + FENCE + TICKET + SUM + RESULT, id="the last block with a fence"),
        pytest.param(
            STORE_OWN + "fence.acq_rel.gpu;\n" + TICKET + SUM + RESULT, id="the last block with another fence"
        ),
        pytest.param(STORE_OWN + TICKET.replace("atom", "atom.acq_rel.gpu") + SUM, id="an operation that is a fence"),
        pytest.param(LOCK + COUNT + FENCE + UNLOCK, id="a lock with a fence"),
        pytest.param(STORE_OWN + FENCE + PUBLISH + FIRST_LEAVES + AWAIT_BEFORE + READ_BEFORE, id="a flag with a fence"),
        pytest.param(
            STORE_OWN + FENCE + PUBLISH + FIRST_LEAVES + AWAIT_BEFORE_BY_VOTE + READ_BEFORE, id="a flag and a vote"
        ),
        pytest.param(READ_OWN + PUBLISH + FIRST_LEAVES + AWAIT_BEFORE + WRITE_BEFORE, id="a flag after a read"),
        pytest.param(
            STORE_OWN
            + PUBLISH.replace("volatile", "release.gpu")
            + FIRST_LEAVES
            + AWAIT_BEFORE.replace("volatile", "acquire.gpu")
            + READ_BEFORE,
            id="release and acquire",
        ),
        pytest.param(
            "ld.volatile.global.u32 %r6, [%rd1];\nadd.u32 %r6, %r6, 1;\nst.volatile.global.u32 [%rd1], %r6;\n",
            id="volatile",
        ),
    ],
)
@pytest.mark.parametrize("how", HOW)
def test_blocks_in_order(checked: MakeDevice, body: str, how: dict[str, int]) -> None:
    assert _races(checked, body, grid=4, how=how) == []


@pytest.mark.parametrize("how", HOW)
def test_a_second_launch_orders_blocks(checked: MakeDevice, how: dict[str, int]) -> None:
    given = checked(**how)
    words = given.words(*[0] * 1024)
    given.work(INDEX + OWN_WORD + STORE_OWN, words, grid=4)
    given.work(INDEX + OWN_WORD + SUM, words, grid=4)
    assert given.findings() == ()


@pytest.mark.parametrize(
    ("lanes", "between", "barrier"),
    [
        (32, "", "__syncthreads()"),
        (32, "membar.gl;\n", "__syncthreads()"),
        (32, "bar.warp.sync -1;\n", "__syncthreads()"),
        (1, "", "__syncwarp()"),
        (1, "vote.sync.any.pred %p3, %p2, -1;\n", "__syncwarp()"),
    ],
)
def test_threads_of_a_block_that_nothing_orders(checked: MakeDevice, lanes: int, between: str, barrier: str) -> None:
    body = STORE_OWN + between + OTHERS_WORD.format(lanes=lanes) + READ_OTHERS
    finding, *others = _races(checked, body, grid=1, block=64)
    assert (finding.rule, others) == (THREADS_ORDERED, [])
    assert finding.expected.endswith(barrier)


@pytest.mark.parametrize(("lanes", "between"), [(32, BARRIER), (1, BARRIER), (1, "bar.warp.sync -1;\n"), (0, "")])
def test_threads_of_a_block_in_order(checked: MakeDevice, lanes: int, between: str) -> None:
    body = STORE_OWN + between + OTHERS_WORD.format(lanes=lanes) + READ_OTHERS
    assert _races(checked, body, grid=1, block=64) == []


def test_lanes_that_read_before_they_meet(checked: MakeDevice) -> None:
    body = OTHERS_WORD.format(lanes=1) + READ_OTHERS + "vote.sync.any.pred %p3, %p2, -1;\n" + STORE_OWN
    assert _races(checked, body, grid=1, block=32) == []


def test_no_launch_that_is_looked_at_finds_no_races(checked: MakeDevice) -> None:
    given = checked()
    given.work(INDEX + COUNT, given.words(0), grid=4)
    assert given.findings() == ()


LATER_COUNT = "setp.eq.u64 %p1, %rd2, 0;\n@%p1 bra LEAVE;\n" + COUNT + "LEAVE:\n"
"""It counts only if the second argument is not 0."""


@pytest.mark.parametrize(("harmless", "found"), [(0, True), (1, True), (2, False)])
def test_the_first_two_launches_are_looked_at(checked: MakeDevice, harmless: int, found: bool) -> None:
    given = checked(**IN_FIRST_LAUNCHES)
    words = given.words(*[0] * 4)
    text = entry(
        "work", ".param .u64 a, .param .u64 b", f"ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n{LATER_COUNT}"
    )
    function = given.kernel(text, "work")
    for counts in [*[0] * harmless, 1]:
        values = [ctypes.c_uint64(words), ctypes.c_uint64(counts)]
        pointers = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
        assert given.driver.cuLaunchKernel(function, 4, 1, 1, 1, 1, 1, 0, None, pointers, None) == 0
    assert (BLOCKS_ORDERED in given.rules()) is found


NEXT_ROW = "ld.global.u32 %r7, [%rd2+1024];\nst.global.u32 [%rd2], %r7;\n"
"""Reads what the same thread of the next block of 256 threads writes."""


@pytest.mark.parametrize(("body", "is_race"), [(STORE_OWN, False), (READ_OWN + STORE_OWN, False), (NEXT_ROW, True)])
@pytest.mark.parametrize("grid", [4, 1200])
def test_blocks_that_use_whole_rows(checked: MakeDevice, body: str, is_race: bool, grid: int) -> None:
    given = checked(**IN_FIRST_LAUNCHES)
    size_bytes = 1024 * grid + 4096
    memory = given.client.make("Malloc", size_bytes)
    given.client.ok("Memcpy", memory, bytes(at % 251 for at in range(size_bytes)), size_bytes, TO_DEVICE)
    given.work(INDEX + OWN_WORD + body, memory, grid=grid, block=256)
    assert given.rules() == [BLOCKS_ORDERED] * is_race


SAY = (
    "and.b32 %r5, %r1, 3;\nmul.wide.u32 %rd5, %r5, 4;\nadd.u64 %rd5, %rd1, %rd5;\nld.global.u32 %r6, [%rd5];\n"
    "setp.ne.u32 %p1, %r6, 0;\n@%p1 ret;\nst.global.u32 [%rd5], {value};\n"
)
"""Sets one of four words if it is 0."""


FOLLOW = (
    "mov.u32 %r6, %r1;\nNEXT:\nmov.u32 %r5, %r6;\nmul.wide.u32 %rd5, %r5, 4;\nadd.u64 %rd5, %rd1, %rd5;\n"
    "ld.global.u32 %r6, [%rd5];\nsetp.ne.u32 %p1, %r5, %r6;\n@%p1 bra NEXT;\n"
    "add.u64 %rd2, %rd1, %rd9;\nst.global.u32 [%rd2], %r5;\n"
)
"""Follows indices to their end, and makes the way of the thread's own index shorter."""


@pytest.mark.parametrize("strict", [0, 1])
def test_reads_that_follow_indices(checked: MakeDevice, strict: int) -> None:
    given = checked(**IN_FIRST_LAUNCHES, strict=strict)
    words = given.words(*[max(0, at - 1) for at in range(64)])
    given.work(INDEX + FOLLOW, words, grid=4, block=16)
    assert given.read(words, 64) == [0] * 64
    assert given.rules() == [BLOCKS_ORDERED] * strict


@pytest.mark.parametrize(
    ("body", "strict", "found"),
    [
        pytest.param(SAY.format(value="1"), 0, False, id="all say the same"),
        pytest.param(SAY.format(value="1"), 1, True, id="all say the same, strictly"),
        pytest.param("add.u32 %r8, %r1, 1;\n" + SAY.format(value="%r8"), 0, True, id="each says something else"),
        pytest.param("st.global.u32 [%rd1], 1;\n", 1, True, id="a flag that all set, strictly"),
    ],
)
def test_what_all_blocks_say(checked: MakeDevice, body: str, strict: int, found: bool) -> None:
    given = checked(**IN_FIRST_LAUNCHES, strict=strict)
    given.work(INDEX + body, given.words(*[0] * 8), grid=8)
    assert (BLOCKS_ORDERED in given.rules()) is found


def test_more_memory_than_is_looked_at(checked: MakeDevice, capfd: pytest.CaptureFixture[str]) -> None:
    given = checked(orders=2)
    words = given.client.make("Malloc", 4096 * 20000)
    body = INDEX + "mul.wide.u32 %rd9, %r1, 4096;\nadd.u64 %rd1, %rd1, %rd9;\nst.global.u32 [%rd1], 1;\n"
    given.work(body, words, grid=20000)
    assert "races of blocks of kernel 'work' are not looked for: it uses more than 64 MiB" in capfd.readouterr().err
    assert given.rules() == []

"""Barriers of a block to which the threads of one warp come at different instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import BARRIERS_SAME
from quiesce.model.rules import Kind
from quiesce.simulator.kernels.server import ONE_BY_ONE_VARIABLE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
AT_72, AT_64 = "setp.lt.u32 %p1, %r1, 72;\n", "setp.lt.u32 %p1, %r1, 64;\n"
BRANCHES: Final = "@%p1 bra THEN;\n{0};\nbra END;\nTHEN:\n{0};\nEND:\n"
BAR, ALIGNED, UNALIGNED = "bar.sync 0", "barrier.sync.aligned 0", "barrier.sync 0"
VOTE: Final = "bar.red.popc.u32 %r6, 0, %p1"
ONE_OF_TWO: Final = "@%p1 bar.sync 0;\nadd.u32 %r2, %r1, 1;\nbar.sync 0;\n"
ROUNDS: Final = (
    "and.b32 %r2, %r1, {0};\nLOOP:\nbar.sync 0;\nsetp.eq.u32 %p1, %r2, 0;\nsub.u32 %r2, %r2, 1;\n@!%p1 bra LOOP;\n"
    "bar.sync 0;\n"
)
"""A loop with a barrier in it; ``and`` decides how many rounds a thread does."""
LEFT: Final = "@!%p1 ret;\nbar.sync 0;\n"
CALLED: Final = ".func meet()\n{\nbar.sync 0;\nret;\n}\n"
CALLS: Final = "@%p1 bra THEN;\ncall meet;\nbra END;\nTHEN:\ncall meet;\nEND:\n"


@pytest.mark.parametrize("is_tuned", [False, True], ids=["one-by-one", "together"])
@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        pytest.param(AT_72 + BRANCHES.format(BAR), True, id="one-in-each-branch"),
        pytest.param(AT_72 + BRANCHES.format(ALIGNED), True, id="aligned"),
        pytest.param(AT_72 + BRANCHES.format(VOTE), True, id="with-a-vote"),
        pytest.param(AT_72 + BRANCHES.format("bar.sync 1, 128"), True, id="of-so-many-threads"),
        pytest.param(AT_72 + ONE_OF_TWO, True, id="left-out-by-some"),
        pytest.param(ROUNDS.format(3), True, id="rounds-of-a-lane"),
        pytest.param(AT_64 + BRANCHES.format(BAR), False, id="branches-of-whole-warps"),
        pytest.param(AT_72 + BRANCHES.format(UNALIGNED), False, id="not-aligned"),
        pytest.param(AT_64 + ONE_OF_TWO, False, id="left-out-by-whole-warps"),
        pytest.param(ROUNDS.format(96), False, id="rounds-of-a-warp"),
        pytest.param(AT_72 + LEFT, False, id="others-have-ended"),
        pytest.param(AT_72 + CALLS, False, id="one-that-is-called-twice"),
    ],
)
def test_threads_of_a_warp_come_to_one_barrier(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, body: str, is_found: bool, is_tuned: bool
) -> None:
    if not is_tuned:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    given = checked()
    given.work(body, block=128, before=CALLED if "call" in body else "")
    assert given.rules() == ([BARRIERS_SAME] if is_found else [])


def test_a_finding_names_both_barriers(checked: MakeDevice) -> None:
    given = checked()
    given.work(AT_72 + BRANCHES.format(BAR), block=128, grid=3)
    (finding,) = given.findings()
    assert finding.kind is Kind.DIVERGENT_BARRIER
    assert finding.seen == 3
    assert "waits at a barrier, in thread (64, 0, 0) of block (0, 0, 0), at 'bar.sync 0' (line" in finding.observed
    assert "; thread (72, 0, 0) of the same warp waits at 'bar.sync 0' (line" in finding.observed

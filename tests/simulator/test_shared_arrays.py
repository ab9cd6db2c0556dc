"""Arrays of shared memory that lie one after another: an access that begins at one of them stays inside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import KERNELS_INSIDE_SHARED
from quiesce.simulator.kernels.server import ONE_BY_ONE_VARIABLE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]
BEFORE: Final = (
    ".shared .align 4 .b8 a[128];\n.shared .align 4 .b8 _ZZ4workPiE4next[128];\n.extern .shared .align 4 .b8 rest[];\n"
)
BEGIN: Final = (
    "mov.u32 %r2, a;\nmov.u32 %r3, _ZZ4workPiE4next;\nmad.lo.u32 %r4, %r1, 4, %r2;\nmad.lo.u32 %r5, %r1, 4, %r3;\n"
    "st.shared.u32 [%r4], %r1;\nst.shared.u32 [%r5], %r1;\nsetp.eq.u32 %p1, %r1, 0;\nbar.sync 0;\n"
)
"""The first words of both arrays, one for each of 32 threads."""
CHOSEN: Final = "selp.u32 %r6, %r2, %r3, %p1;\nld.shared.u32 %r7, [%r6+128];\n"
WALK: Final = (
    "mov.u32 %r6, %r2;\nmov.u32 %r8, 0;\nagain:\nld.volatile.shared.u32 %r7, [%r6];\nadd.u32 %r6, %r6, 4;\n"
    "add.u32 %r8, %r8, 1;\nsetp.lt.u32 %p2, %r8, ROUNDS;\n@%p2 bra again;\n"
)
"""Goes through the first array by a pointer."""


@pytest.mark.parametrize("is_tuned", [False, True], ids=["one-by-one", "together"])
@pytest.mark.parametrize(
    ("body", "where"),
    [
        (
            "ld.shared.u32 %r6, [%r4+4];\n",
            "at byte 128 of shared memory, directly after the end of 'a', a shared array",
        ),
        (
            "ld.shared.u32 %r6, [%r5+-4];\n",
            "at byte 124 of shared memory, 4 bytes before the start of 'next', a shared",
        ),
        (
            "@%p1 red.shared.add.u32 [a+128], 1;\n",
            "directly after the end of 'a', a shared array of 128 bytes, in 'next'",
        ),
        (
            "@%p1 ld.shared.v2.u32 {%r6, %r7}, [%r2+128];\n",
            "reads 8 bytes at byte 128 of shared memory, directly after",
        ),
        (WALK.replace("ROUNDS", "33"), "directly after the end of 'a', a shared array of 128 bytes, in 'next'"),
        ("ld.shared.u32 %r6, [%r5+4];\n", "directly after the end of 'next', a shared array of 128 bytes, in thread"),
    ],
)
def test_an_array_that_is_left(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, body: str, where: str, is_tuned: bool
) -> None:
    if not is_tuned:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    given = checked()
    given.work(BEGIN + body, block=32, before=BEFORE, shared_bytes=64)
    (finding,) = given.findings()
    assert finding.rule == KERNELS_INSIDE_SHARED
    assert where in finding.observed


@pytest.mark.parametrize("is_tuned", [False, True], ids=["one-by-one", "together"])
@pytest.mark.parametrize(
    "body",
    [
        pytest.param("ld.shared.u32 %r6, [%r4];\nld.shared.u32 %r6, [%r5];\n", id="inside"),
        pytest.param(CHOSEN.replace("+128", ""), id="one-of-two"),
        pytest.param("selp.u32 %r6, %r2, %r2, %p1;\nld.shared.u32 %r7, [%r6+128];\n", id="not-followed"),
        pytest.param("mov.u32 %r6, 128;\nld.shared.u32 %r7, [%r6];\n", id="no-array"),
        pytest.param("mov.u32 %r6, rest;\nld.shared.u32 %r7, [%r6+32];\n", id="dynamic"),
        pytest.param(WALK.replace("ROUNDS", "32"), id="walk"),
        pytest.param("sub.u32 %r6, %r2, 8;\nadd.u32 %r6, %r6, 12;\nld.shared.u32 %r7, [%r6];\n", id="there-and-back"),
        pytest.param(
            "st.shared.u32 [a], %r3;\nbar.sync 0;\nmov.u32 %r6, %r2;\n@%p1 ld.shared.u32 %r6, [a];\n"
            "ld.shared.u32 %r7, [%r6];\n",
            id="a-pointer-from-memory",
        ),
    ],
)
def test_what_stays_inside_or_is_not_known(
    checked: MakeDevice, monkeypatch: pytest.MonkeyPatch, body: str, is_tuned: bool
) -> None:
    if not is_tuned:
        monkeypatch.setenv(ONE_BY_ONE_VARIABLE, "1")
    given = checked()
    given.work(BEGIN + body, block=32, before=BEFORE, shared_bytes=64)
    assert given.rules() == []

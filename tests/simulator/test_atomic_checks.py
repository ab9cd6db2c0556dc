"""Atomic operations of kernels, whose check is short where the same place was used before."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked

from quiesce.model.program_rules import KERNELS_ALIGNED, KERNELS_OWN_DEVICE
from quiesce.simulator.runtime.kernel_compiler import kernels_can_run

pytestmark = pytest.mark.skipif(not kernels_can_run(), reason="needs what compiles kernels: quiesce[kernels]")

MakeDevice = Callable[..., Checked]


def test_atomic_operations_on_places_that_others_used_before(checked: MakeDevice) -> None:
    """What is right for one place says nothing of others, even if no bits are kept for either."""
    given = checked()
    words = given.words(0, 0)
    shared = "mov.u64 %rd3, numbers;\ncvta.shared.u64 %rd3, %rd3;\natom.add.u32 %r2, [%rd3], 1;\n"
    right = "atom.add.u32 %r2, [%rd1], 1;\n" * 3
    before = ".shared .align 4 .b8 numbers[128];\n"
    given.work(shared + right, words, block=8, before=before)
    assert given.rules() == []
    assert given.read(words, 2) == [24, 0]
    given.work(shared + right + "red.add.u32 [%rd1+2], 1;\nred.add.u32 [%rd2], 1;\n", words, 0, block=8, before=before)
    assert [(each.rule, each.seen) for each in given.findings()] == [(KERNELS_ALIGNED, 8), (KERNELS_OWN_DEVICE, 8)]

"""Lanes of a warp may store one number to one place of shared memory, also a sum that is a NaN."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.simulator.checked_kernels import Checked

SHARED = ".shared .align 4 .b8 sums[4];\n.shared .align 8 .b8 pairs[8];\n"
OWN_NAN = "or.b32 %r2, %r1, 0x7fc00000;\n"
"""A NaN in each lane, of its own bits."""
EXCHANGE = "shfl.sync.bfly.b32 %r4, %r2, 1, 31, 0xffffffff;\n"
ONE_PAIR = "and.b32 %r6, %r1, 30;\nsetp.ne.u32 %p2, %r6, 0;\n@%p2 bra done;\n"
"""Two lanes with one sum go on."""
STORE_BITS = "st.shared.b32 [sums], %r5;\n"
READ = "bar.sync 0;\nld.shared.u32 %r3, [sums];\nst.global.u32 [%rd1], %r3;\n"


def run(checked: Callable[..., Checked], body: str) -> tuple[list[str], int]:
    """Run a warp; return the rules that were broken, and the word that lane 0 read and stored."""
    on = checked()
    words = on.words(0)
    on.work(body + "setp.ne.u32 %p1, %r1, 0;\n" + READ.replace("st.global", "@!%p1 st.global"), words, block=32,
            before=SHARED)  # fmt: skip
    on.client.ok("DeviceSynchronize")
    return on.rules(), on.read(words, 1)[0]


@pytest.mark.parametrize(
    "store",
    [
        "mov.b32 %f1, %r2;\nmov.b32 %f2, %r4;\nadd.rn.f32 %f3, %f1, %f2;\nst.shared.f32 [sums], %f3;\n",
        "add.rn.f32 %r5, %r2, %r4;\nst.shared.b32 [sums], %r5;\n",
    ],
)
def test_lanes_may_store_one_sum(checked: Callable[..., Checked], store: str) -> None:
    rules, word = run(checked, OWN_NAN + EXCHANGE + ONE_PAIR + store + "done:\n")
    assert rules == []
    assert word == 0x7FFFFFFF


@pytest.mark.parametrize("numbers", ["or.b32 %r5, %r1, 0x7fc00000;\n", "add.u32 %r5, %r1, 0xfffffff0;\n"])
def test_words_that_look_like_it_race(checked: Callable[..., Checked], numbers: str) -> None:
    rules, _ = run(checked, numbers + STORE_BITS)
    assert rules == ["threads_of_a_block_are_ordered"]


@pytest.mark.parametrize(
    "store", [STORE_BITS, "st.shared.v2.b32 [pairs], {%r5, %r5};\n", "st.shared.b16 [sums], %h1;\n"]
)
def test_lanes_may_store_one_number(checked: Callable[..., Checked], store: str) -> None:
    numbers = ".reg .b16 %h<2>;\nmov.u32 %r2, 7;\n" + EXCHANGE + "add.u32 %r5, %r2, %r4;\ncvt.u16.u32 %h1, %r5;\n"
    assert run(checked, numbers + "st.shared.b32 [sums], 0;\nbar.sync 0;\n" + store)[0] == []


@pytest.mark.parametrize("store", [STORE_BITS, "st.shared.v2.b32 [pairs], {%r2, %r5};\n"])
def test_lanes_that_store_different_numbers_race(checked: Callable[..., Checked], store: str) -> None:
    numbers = "mov.u32 %r2, %r1;\n" + EXCHANGE + "add.u32 %r5, %r2, %r1;\n"
    assert run(checked, numbers + store)[0] == ["threads_of_a_block_are_ordered"]

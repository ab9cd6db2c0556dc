"""Branches, guards, loops and the ends of threads."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.executor import Kernel, Trapped
from tests.kernels.programs import evaluate, with_registers
from tests.kernels.test_memory import kernel, run


def test_loop() -> None:
    """Powers by squaring, as many rounds as each thread needs."""
    lines = (
        "mov.u32 %x, 1;\nmov.u32 %r1, %a;\nmov.u32 %r2, %b;\nagain:\nsetp.eq.u32 %p1, %r2, 0;\n@%p1 bra done;\n"
        "and.b32 %r3, %r2, 1;\nsetp.ne.u32 %p2, %r3, 0;\n@%p2 mul.lo.u32 %x, %x, %r1;\nmul.lo.u32 %r1, %r1, %r1;\n"
        "shr.u32 %r2, %r2, 1;\nbra.uni again;\ndone:"
    )
    bases, exponents = [2, 3, 5, 7, 1], [10, 0, 3, 1, 31]
    found = evaluate(lines, ("u32", bases), ("u32", exponents), result="u32")
    assert found == [base**exponent for base, exponent in zip(bases, exponents, strict=True)]


def test_guards() -> None:
    lines = "setp.gt.u32 %p1, %a, 2;\nmov.u32 %x, 0;\n@%p1 mov.u32 %x, 1;\n@!%p1 add.u32 %x, %x, 5;"
    assert evaluate(lines, ("u32", [1, 2, 3]), result="u32") == [5, 5, 1]


def test_branch_by_index() -> None:
    lines = (
        "targets: .branchtargets first, second, third;\nbrx.idx %a, targets;\n"
        "first: mov.u32 %x, 10;\nbra end;\nsecond: mov.u32 %x, 20;\nbra end;\nthird: mov.u32 %x, 30;\nend:"
    )
    assert evaluate(lines, ("u32", [0, 1, 2, 1]), result="u32") == [10, 20, 30, 20]


def test_blocks_in_braces_have_names_of_their_own() -> None:
    lines = (
        "mov.u32 %x, 1;\n{ .reg .b32 t; mov.u32 t, 5; bra done; mov.u32 %x, 99; done: add.u32 %x, %x, t; }\n"
        "{ .reg .b32 t; mov.u32 t, 7; bra done; mov.u32 %x, 99; done: add.u32 %x, %x, t; }"
    )
    assert evaluate(lines, result="u32") == [13]


@pytest.mark.parametrize("end", ["ret", "exit"])
def test_threads_end_one_by_one(end: str) -> None:
    text = kernel(
        f"ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nsetp.gt.u32 %p1, %r1, 2;\n@%p1 {end};\n"
        "mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], 1;"
    )
    assert run(text, block=6) == [1, 1, 1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("waits", [False, True])
def test_trap(waits: bool) -> None:
    text = kernel(f"mov.u32 %r1, %tid.x;\n{'bar.sync 0;' if waits else ''}\nsetp.eq.u32 %p1, %r1, 3;\n@%p1 trap;")
    with pytest.raises(Trapped):
        Kernel(text, "k").launch(1, 8, np.zeros(1, "u4"))
    Kernel(text, "k").launch(1, 3, np.zeros(1, "u4"))


def test_a_register_that_was_never_written_is_zero() -> None:
    assert run(kernel("ld.param.u64 %rd1, [out];\nst.global.u32 [%rd1], %r5;\nmov.u32 %r5, 9;"), block=2)[0] == 0


def test_blocks_of_three_axes_and_a_grid() -> None:
    text = kernel(
        "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %ctaid.y; mov.u32 %r2, %nctaid.x; mov.u32 %r3, %ctaid.x;\n"
        "mad.lo.u32 %r1, %r1, %r2, %r3;\nmov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
        "mov.u32 %r2, %ntid.z; mov.u32 %r3, %tid.z;\nmad.lo.u32 %r1, %r1, %r2, %r3;\n"
        "mad.wide.u32 %rd2, %r1, 4, %rd1;\nred.global.add.u32 [%rd2], 1;"
    )
    out = np.zeros(3 * 2 * 5 * 4, "u4")
    Kernel(text, "k").launch((3, 2), (5, 1, 4), out)
    assert (out == 1).all()


def test_a_register_that_is_an_address_may_change_in_a_loop() -> None:
    """Addresses are kept as pointers too, next to their numbers."""
    text = kernel(
        "ld.param.u64 %rd1, [out];\nmov.u64 %rd2, %rd1;\nmov.u32 %r1, 0;\nagain:\nst.global.u32 [%rd2], %r1;\n"
        "setp.eq.u32 %p1, %r1, 4;\n@!%p1 add.s64 %rd2, %rd2, 4;\n@%p1 mov.u64 %rd2, %rd1;\nadd.u32 %r1, %r1, 1;\n"
        "setp.lt.u32 %p2, %r1, 6;\n@%p2 bra again;\nadd.s64 %rd3, 8, %rd1;"
    ).replace("add.s64 %rd3, 8, %rd1;", "mov.u64 %rd4, 8;\nadd.s64 %rd3, %rd4, %rd1;\nst.global.u32 [%rd3+12], 77;")
    assert run(text)[:6] == [5, 1, 2, 3, 4, 77]


@pytest.mark.parametrize(
    ("lines", "states"),
    [
        ("add.u32 %r1, %r1, 1;\nst.global.u32 [%d1], %r1;", 0),
        ("bar.sync 0;", 1),
        ("bar.sync 0;\nst.global.u32 [%d1], %r1;\nbar.sync 0;", 2),
    ],
)
def test_threads_need_memory_only_while_they_wait(lines: str, states: int) -> None:
    before = "ld.param.u64 %d1, [p];\nld.global.u32 %r1, [%d1];\n"
    kernel = Kernel(with_registers(f"{before}{lines}"), "k")
    assert (bool(kernel.waits), len(kernel.states)) == (bool(states), states)
    assert (kernel.frame_bytes, kernel.array_bytes > 0) == (0, bool(states)), "registers are kept in arrays"

"""A function in which threads wait becomes part of its caller: it computes what its text computes in a kernel."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels.executor import Kernel
from tests.kernels.programs import HEADER

from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.inlining import inline_waiting_functions, reached, waits
from quiesce.simulator.kernels.translation.program import Program

THREADS = 8
REGISTERS = ".reg .b32 %r<12>;\n.reg .b64 %rd<9>;\n.reg .pred %p<4>;\n.reg .b16 %h<4>;\n"
BEFORE = """.global .u32 counter;
.func (.param .b32 out) twice(.param .b32 in) {
.reg .b32 %q; ld.param.b32 %q, [in]; add.u32 %q, %q, %q; st.param.b32 [out], %q; ret; }
"""
BEGIN = "mov.u32 %r1, %tid.x;\nmul.wide.u32 %rd2, %r1, 16;\nadd.u64 %rd1, %rd1, %rd2;\nbar.sync 0;\n"
STORE = "st.global.u32 [%rd1], %r2;\n"

BODIES = {
    "vectors": "mov.b64 %rd3, {%r1, 7};\nmov.b64 {%r4, %r5}, %rd3;\nshl.b32 %r5, %r5, 4;\nor.b32 %r2, %r4, %r5;\n",
    "a vector of memory": "ld.global.v2.u32 {%r4, %r5}, [%rd1+8];\nsub.u32 %r2, %r5, %r4;\n",
    "a pair": "setp.lt.u32 %p1|%p2, %r1, 3;\nselp.u32 %r2, 10, 20, %p1;\n@%p2 add.u32 %r2, %r2, 1;\n",
    "half of a pair": "setp.lt.u32 _|%p2, %r1, 3;\nselp.u32 %r2, 10, 20, %p2;\n",
    "a condition that is negated": (
        "setp.lt.u32 %p1, %r1, 3;\nsetp.lt.and.u32 %p2, %r1, 6, !%p1;\nselp.u32 %r2, 10, 20, %p2;\n"
    ),
    "a guard": "mov.u32 %r2, 5;\nsetp.lt.u32 %p1, %r1, 3;\n@!%p1 mov.u32 %r2, 6;\n",
    "branches": "mov.u32 %r2, 0;\nagain: add.u32 %r2, %r2, 3;\nsetp.lt.u32 %p1, %r2, %r1;\n@%p1 bra again;\n",
    "a table of labels": (
        "and.b32 %r4, %r1, 1;\nto: .branchtargets even, odd;\nbrx.idx %r4, to;\neven: mov.u32 %r2, 5;\nbra.uni over;\n"
        "odd: mov.u32 %r2, 6;\nover: add.u32 %r2, %r2, 1;\n"
    ),
    "an address in a register": "ld.global.u32 %r4, [%rd1+12];\nadd.u32 %r2, %r4, 1;\n",
    "memory that all share": (
        ".shared .align 4 .b8 cells[64];\nmov.u32 %r4, cells;\nshl.b32 %r5, %r1, 2;\nadd.u32 %r5, %r5, %r4;\n"
        "st.shared.u32 [%r5], %r1;\nbar.sync 0;\nld.shared.u32 %r2, [cells+8];\n"
    ),
    "memory of its own": (
        ".local .align 4 .b8 mine[16];\nst.local.u32 [mine+4], %r1;\nbar.sync 0;\nld.local.u32 %r2, [mine+4];\n"
    ),
    "a function that it calls": (
        "{ .param .b32 to; .param .b32 back;\nst.param.b32 [to], %r1;\ncall (back), twice, (to);\n"
        "ld.param.b32 %r2, [back]; }\n"
    ),
    "a function whose address it has": (
        "mov.u64 %rd3, twice;\n{ .param .b32 to; .param .b32 back;\nst.param.b32 [to], %r1;\n"
        "kind: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (back), %rd3, (to), kind;\n"
        "ld.param.b32 %r2, [back]; }\n"
    ),
    "an end in the midst": (
        f"mov.u32 %r2, 5;\nsetp.lt.u32 %p1, %r1, 3;\n@%p1 ret;\nmov.u32 %r2, 6;\n{STORE}bar.sync 0;\n"
    ),
}


def in_a_kernel(body: str) -> str:
    return (
        f"{HEADER}{BEFORE}.visible .entry k(.param .u64 out)\n{{\n{REGISTERS}ld.param.u64 %rd1, [out];\n"
        f"{BEGIN}{body}{STORE}ret;\n}}\n"
    )


def in_a_function(body: str, call: str = "call work, (in);") -> str:
    function = (
        f".func work(.param .b64 where)\n{{\n{REGISTERS}ld.param.u64 %rd1, [where];\n{BEGIN}{body}{STORE}ret;\n}}\n"
    )
    return (
        f"{HEADER}{BEFORE}{function}.visible .entry k(.param .u64 out)\n{{\n.reg .b64 %rd1;\n.reg .b32 %r1;\n"
        f".reg .pred %p1;\nld.param.u64 %rd1, [out];\nmov.u32 %r1, 77;\n{{ .param .b64 in;\nst.param.b64 [in], %rd1;\n"
        f"{call}\n}}\nret;\n}}\n"
    )


def run(text: str) -> list[int]:
    memory = np.arange(4 * THREADS, dtype="u4") ** 2
    Kernel(text, "k").launch(1, THREADS, memory)
    return [int(each) for each in memory]


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_function_computes_what_its_text_computes_in_a_kernel(body: str) -> None:
    expected = run(in_a_kernel(body))
    assert expected != [number**2 for number in range(4 * THREADS)]
    assert run(in_a_function(body)) == expected


def test_two_calls_have_names_of_their_own() -> None:
    adds = "@%p1 bra less;\nadd.u32 %r2, %r2, 1;\nless: add.u32 %r2, %r2, 1;\n"
    body = f"ld.global.u32 %r2, [%rd1];\nsetp.lt.u32 %p1, %r1, 3;\n{adds}"
    twice = run(in_a_function(body, "call work, (in);\ncall work, (in);"))
    assert [twice[4 * thread] for thread in range(THREADS)] == [
        (4 * thread) ** 2 + (2 if thread < 3 else 4) for thread in range(THREADS)
    ]


@pytest.mark.parametrize(("guard", "called"), [("@%p1 ", True), ("@!%p1 ", False)])
def test_a_call_with_a_guard(guard: str, called: bool) -> None:
    text = in_a_function("mov.u32 %r2, 5;\n", f"setp.eq.u32 %p1, %r1, 77;\n{guard}call work, (in);")
    assert (run(text)[0] == 5) == called


FUNCTIONS = """.func leaf() { ret; }
.func waits() { bar.sync 0; ret; }
.func middle() { call leaf; call waits; ret; }
.func again() { call again; ret; }
.func both() { call both; bar.sync 0; ret; }
.extern .func outside();
"""


@pytest.mark.parametrize(
    ("called", "does"),
    [("leaf", False), ("waits", True), ("middle", True), ("again", False), ("both", True), ("outside", False)],
)
def test_which_functions_wait(called: str, does: bool) -> None:
    program = Program(Module(f"{HEADER}{FUNCTIONS}.visible .entry k() {{ call {called}; ret; }}\n"))
    assert waits(program, program.parse("k")) == does


def test_which_functions_are_reached() -> None:
    program = Program(
        Module(f"{HEADER}{FUNCTIONS}.visible .entry k() {{ call middle; call again; call outside; ret; }}\n")
    )
    assert sorted(each.name for each in reached(program, program.parse("k"))) == [
        *("again", "k", "leaf", "middle", "waits")
    ]


def test_a_kernel_without_such_calls_stays_as_it_is() -> None:
    program = Program(Module(f"{HEADER}{FUNCTIONS}.visible .entry k() {{ call leaf; bar.sync 0; ret; }}\n"))
    function = program.parse("k")
    assert inline_waiting_functions(program, function) == (function, frozenset())

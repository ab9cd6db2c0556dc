"""Functions: calls, recursion, addresses of functions, and those that every device has."""

from __future__ import annotations

import numpy as np
import pytest
from tests.kernels import executor
from tests.kernels.conftest import stack_bytes
from tests.kernels.executor import Trapped
from tests.kernels.programs import evaluate
from tests.kernels.test_memory import kernel, run

TWICE = """
.func (.param .b32 result) twice(.param .b32 value)
{
.reg .b32 %r<3>;
ld.param.u32 %r1, [value];
add.u32 %r2, %r1, %r1;
st.param.b32 [result+0], %r2;
ret;
}
"""
CALL = (
    "{ .param .b32 in; st.param.b32 [in], %a; .param .b32 back; call.uni (back), %s, (in); ld.param.b32 %x, [back]; }"
)


def test_call() -> None:
    assert evaluate(CALL.replace("%s", "twice"), ("u32", [1, 21]), result="u32", before=TWICE) == [2, 42]


def test_a_result_of_a_function_that_has_none_is_not_taken() -> None:
    text = ".func none(.param .b32 value)\n{\nret;\n}\n"
    lines = CALL.replace("%s", "none") + "\nadd.u32 %x, %a, 1;"
    assert evaluate(lines, ("u32", [1, 21]), result="u32", before=text) == [2, 22]


def test_recursion() -> None:
    fibonacci = """
.func (.param .b32 result) fib(.param .b32 value)
{
.reg .b32 %r<6>;
.reg .pred %p<2>;
ld.param.u32 %r1, [value];
setp.lt.u32 %p1, %r1, 2;
@%p1 bra done;
sub.u32 %r2, %r1, 1;
{ .param .b32 in; st.param.b32 [in], %r2; .param .b32 back; call.uni (back), fib, (in); ld.param.b32 %r3, [back]; }
sub.u32 %r2, %r1, 2;
{ .param .b32 in; st.param.b32 [in], %r2; .param .b32 back; call.uni (back), fib, (in); ld.param.b32 %r4, [back]; }
add.u32 %r1, %r3, %r4;
done:
st.param.b32 [result], %r1;
ret;
}
"""
    stack_bytes.clear()
    assert evaluate(CALL.replace("%s", "fib"), ("u32", range(10)), result="u32", before=fibonacci) == [
        *(0, 1, 1, 2, 3, 5, 8, 13, 21, 34)
    ]
    assert max(stack_bytes) == 8, "each call keeps the address that it returns to"
    assert sum(stack_bytes) == 0, "what a call takes of the stack it gives back"


def test_parameters_in_registers() -> None:
    weighted = """
.func (.reg .f32 sum) weighted(.reg .f32 first, .reg .f32 second)
{
fma.rn.f32 sum, first, 0f40000000, second;
ret;
}
"""
    lines = "call (%x), weighted, (%a, 0f3F800000);"
    assert evaluate(lines, ("f32", [1.0, 3.0]), result="f32", before=weighted) == [0x40400000, 0x40E00000]


def test_function_by_its_address() -> None:
    squared = TWICE.replace("twice", "squared").replace("add.u32 %r2", "mul.lo.u32 %r2")
    lines = (
        "mov.u64 %rd1, twice;\nmov.u64 %rd2, squared;\nsetp.gt.u32 %p1, %a, 4;\nselp.b64 %rd3, %rd1, %rd2, %p1;\n"
        "{ .param .b32 in; st.param.b32 [in], %a; .param .b32 back;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\ncall (back), %rd3, (in), proto;\n"
        "ld.param.b32 %x, [back]; }"
    )
    assert evaluate(lines, ("u32", [3, 4, 5]), result="u32", before=TWICE + squared) == [9, 16, 10]


def test_structures_by_value() -> None:
    length = """
.func (.param .align 8 .b8 result[16]) turned(.param .align 8 .b8 pair[16])
{
.reg .b64 %rd<4>;
ld.param.v2.b64 {%rd1, %rd2}, [pair];
st.param.b64 [result], %rd2;
st.param.b64 [result+8], %rd1;
ret;
}
"""
    lines = (
        "{ .param .align 8 .b8 in[16]; st.param.b64 [in], %a; st.param.b64 [in+8], 9; .param .align 8 .b8 back[16];\n"
        "call (back), turned, (in); ld.param.b64 %x, [back+8]; }"
    )
    assert evaluate(lines, ("b64", [1 << 40]), result="b64", before=length) == [1 << 40]


def test_a_function_may_end_its_thread_or_the_kernel() -> None:
    ends = """
.func ends(.param .b32 value)
{
.reg .b32 %r<2>;
.reg .pred %p<3>;
ld.param.u32 %r1, [value];
setp.eq.u32 %p1, %r1, 1;
@%p1 exit;
setp.eq.u32 %p2, %r1, 5;
@%p2 trap;
ret;
}
"""
    text = kernel(
        "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\n{ .param .b32 in; st.param.b32 [in], %r1; "
        "call ends, (in); }\n"
        "mad.wide.u32 %rd2, %r1, 4, %rd1;\nst.global.u32 [%rd2], 1;",
        before=ends,
    )
    assert run(text, block=3) == [1, 0, 1, 0, 0, 0, 0, 0]
    with pytest.raises(Trapped):
        run(text, block=6)


PRINTF = ".extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);\n"


def test_printf() -> None:
    text = kernel(
        ".local .align 8 .b8 values[16];\nmov.u64 %rd1, format;\ncvta.global.u64 %rd2, %rd1;\nmov.u64 %rd3, values;\n"
        "cvta.local.u64 %rd4, %rd3;\nmov.u32 %r1, %tid.x;\nst.local.v4.u32 [%rd3], {%r1, 2, 3, 4};\n"
        "{ .param .b64 a; .param .b64 b; .param .b32 back; st.param.b64 [a], %rd2; st.param.b64 [b], %rd4;\n"
        "call.uni (back), vprintf, (a, b); ld.param.b32 %r2, [back]; }\n"
        "ld.param.u64 %rd5, [out]; st.global.u32 [%rd5], %r2;",
        before=PRINTF + ".global .align 1 .b8 format[8];",
    )
    executor.printed.clear()
    assert run(text, block=2, variables={"format": np.frombuffer(b"x=%d\n\0\0\0", "u1")})[0] == 4
    assert executor.printed == [b"x=%d\n [0, 2, 3, 4]", b"x=%d\n [1, 2, 3, 4]"]


def test_failed_assertion() -> None:
    declared = (
        ".extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);\n"
        ".global .align 1 .b8 word[4];"
    )
    text = kernel(
        "mov.u64 %rd1, word;\n{ .param .b64 m; .param .b64 f; .param .b32 l; .param .b64 n; .param .b64 s;\n"
        "st.param.b64 [m], %rd1; st.param.b64 [f], %rd1; st.param.b32 [l], 12; st.param.b64 [n], %rd1; "
        "st.param.b64 [s], 1;\n"
        "call.uni __assertfail, (m, f, l, n, s); }\nld.param.u64 %rd2, [out]; st.global.u32 [%rd2], 1;",
        before=declared,
    )
    executor.printed.clear()
    with pytest.raises(Trapped, match="-2"):
        run(text, variables={"word": np.frombuffer(b"abc\0", "u1")})
    assert executor.printed == [b"abc:12: abc: abc"]


def test_memory_from_the_device() -> None:
    declared = (
        ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n.extern .func free(.param .b64 address);\n"
    )
    text = kernel(
        "{ .param .b64 n; .param .b64 back; st.param.b64 [n], 64; call (back), malloc, (n); "
        "ld.param.b64 %rd1, [back]; }\n"
        "st.u32 [%rd1+60], 31;\nld.u32 %r1, [%rd1+60];\n{ .param .b64 at; st.param.b64 [at], %rd1; call free, (at); }\n"
        "ld.param.u64 %rd2, [out];\nst.global.u32 [%rd2], %r1;",
        before=declared,
    )
    assert run(text)[0] == 31
    assert executor.allocated == {}


def test_functions_that_every_device_has_take_registers_and_literals() -> None:
    declared = (
        PRINTF + ".extern .func (.param .b64 result) malloc(.param .b64 bytes);\n.extern .func free(.param .b64 a);\n"
    )
    text = kernel(
        ".local .align 8 .b8 values[16];\nmov.u64 %rd1, format;\nmov.u64 %rd3, values;\n"
        "st.local.v4.u32 [%rd3], {5, 6, 7, 8};\ncall (%r2), vprintf, (%rd1, %rd3);\n"
        "ld.param.u64 %rd5, [out];\nst.global.u32 [%rd5], %r2;\ncall (%rd6), malloc, (48);\n"
        "st.global.u64 [%rd6+40], 9;\nld.global.u32 %r3, [%rd6+40];\nst.global.u32 [%rd5+4], %r3;\ncall free, (%rd6);",
        before=declared + ".global .align 1 .b8 format[8];",
    )
    executor.printed.clear()
    before = dict(executor.allocated)
    assert run(text, variables={"format": np.frombuffer(b"y=%d\n\0\0\0", "u1")})[:2] == [4, 9]
    assert executor.printed == [b"y=%d\n [5, 6, 7, 8]"]
    assert executor.allocated == before

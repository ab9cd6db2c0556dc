"""What is not executed is refused by the name of the instruction and its line: it never silently succeeds."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import pytest
from tests.kernels.compiling import compile_kernel, translate_kernel
from tests.kernels.programs import kernel_around

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.module import Module


def translate(lines: str, before: str = "") -> str:
    return translate_kernel(Module(kernel_around(lines, ["u32"], ["u32"], before)), "k")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("cp.async.ca.shared.global [%rd1], [%rd2], 5;", "'cp.async.ca.shared.global' is not executed"),
        ("cp.async.bulk.tensor.1d.shared::cluster.global [%rd1], [%rd2];", "'cp.async.bulk.tensor.1d"),
        ("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4};", "'mma.sync.aligned"),
        ("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4}, %r5, 0;", "'mma.sp.sync"),
        ("multimem.red.relaxed.gpu.global.add.f32 [%rd1], %x;", "'multimem.red"),
        ("barrier.cluster.arrive;", "'.cluster' of 'barrier' is not executed"),
        ("mapa.shared::cluster.u32 %x, %a, 1;", "'mapa.shared::cluster.u32' is not executed"),
        ("tex.1d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [t, {%r4}];", "there is no texture or surface"),
        ("tex.2dms.v4.f32.s32 {%r0, %r1, %r2, %r3}, [%rd1, {%r4}];", "'tex.2dms.v4.f32.s32' is not executed"),
        ("wgmma.fence.sync.aligned;", "'wgmma.fence.sync.aligned' is not executed"),
        ("mbarrier.frob.shared.b64 [%rd1], 4;", "'mbarrier.frob.shared.b64' is not executed"),
        ("add.cool.u32 %x, %a, 1;", "'.cool' of 'add' is not executed"),
        ("add.u32 %x, %a;", "'add' has 2 operands"),
        ("add.u32 %x, %a, %rd1;", "register '%rd1' has 64 bits, not 32"),
        ("add.u8 %x, %a, 1;", "has a type that is not executed"),
        ("add %x, %a, 1;", "'add' is not executed"),
        ("add.sat.u32 %x, %a, 1;", "has a type that is not executed"),
        ("mul.wide.u64 %rd1, %rd2, %rd3;", "a product has more than 64 bits"),
        ("mad.wide.s64 %rd1, %rd2, %rd3, %rd4;", "a product has more than 64 bits"),
        ("mul.lo.hi.u32 %x, %a, 1;", "has no form that is executed"),
        ("mul.u32 %x, %a, 1;", "has no form that is executed"),
        ("mad.lo.sat.u32 %x, %a, 1, 2;", "has a type that is not executed"),
        ("madc.lo.u16 %x, %a, 1, 2;", "has a type that is not executed"),
        ("mul24.lo.u64 %rd1, %rd2, 1;", "has a type that is not executed"),
        ("neg.u32 %x, %a;", "has a type that is not executed"),
        ("abs.u32 %x, %a;", "has a type that is not executed"),
        ("min.relu.u32 %x, %a, 1;", "has a type that is not executed"),
        ("popc.u32 %x, %a;", "has a type that is not executed"),
        ("bfind.b32 %x, %a;", "has a type that is not executed"),
        ("bfind.u16 %x, %a;", "has a type that is not executed"),
        ("brev.u32 %x, %a;", "has a type that is not executed"),
        ("dp4a.u32.u64 %x, %a, 1, 2;", "has a type that is not executed"),
        ("dp4a.lo.u32.u32 %x, %a, 1, 2;", "'.lo' of 'dp4a' is not executed"),
        ("dp2a.u32.u32 %x, %a, 1, 2;", "has no form that is executed"),
        ("add.cc.u16 %x, %a, 1;", "has a type that is not executed"),
        ("addc.sat.u32 %x, %a, 1;", "'.sat' of 'addc' is not executed"),
        ("setp.lt.b32 %p1, %a, 1;", "'.lt' does not compare this type"),
        ("mov.u32 %x, %envreg3;", "'%envreg3' is not executed"),
        ("mov.u64 %rd1, nothing;", "there is no 'nothing'"),
        ("ld.global.u32 %x, [nothing];", "'nothing' is not in .global memory"),
        ("st.const.u32 [%rd1], %x;", "no address that can be written to"),
        ("call nothing;", "there is no function 'nothing'"),
        ("call outside, (%a);", "function 'outside' is not executed"),
        ("brkpt;", "'brkpt' is not executed"),
        ("mov.u32 5, %a;", "a destination is no register"),
        ("mov.f32 %x, 5;", "a number without a fraction"),
        ("ld.acquire.release.u32 %x, [%rd1];", "has no form that is executed"),
        ("ld.release.gpu.u32 %x, [%rd1];", "'.release' does not go with 'ld'"),
        (".shared .b8 large[300000];\nmov.u32 %x, large;", "more than .shared memory has"),
        (".local .b8 large[600000];", "more than .local memory has"),
        ("lop3.b32 %x, %a, %a, %a, %a;", "the table of 'lop3' is no literal"),
    ],
)
def test_by_name_and_line(lines: str, reason: str) -> None:
    before = ".extern .func outside(.param .b32 a);"
    text = kernel_around(lines, ["u32"], ["u32"], before)
    with pytest.raises(RefusedKernel) as caught:
        translate_kernel(Module(text), "k")
    assert reason in caught.value.reason
    wanted = next((n for n, line in enumerate(text.split("\n"), 1) if line == lines.rsplit("\n", maxsplit=1)[-1]), 0)
    assert caught.value.line in (wanted, 0)
    if wanted and caught.value.line:
        assert caught.value.instruction
        assert f"line {wanted} of its PTX: " in str(caught.value)


BEFORE: Final = """.extern .func outside(.param .b32 a);
.extern .func (.param .b32 result) vprintf(.param .b64 format, .param .b64 values);
.extern .func (.param .b64 result) malloc(.param .b64 bytes);
.extern .func free(.param .b64 a);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.visible .entry other() { ret; }
.func (.reg .b32 y) twice(.reg .b32 x) { add.u32 y, x, x; ret; }
.func (.param .b32 out) plus(.param .b32 one) {
.reg .b32 %q; ld.param.b32 %q, [one]; st.param.b32 [out], %q; ret; }
.global .texref image;
"""


def test_each_form_that_is_nearly_one_is_refused_for_its_reason(tuned: bool) -> None:
    """``refused.txt`` has an instruction and a reason in each line."""
    text = (Path(__file__).parent / "refused.txt").read_text(encoding="utf-8")
    listed = dict(line.split(" => ", 1) for line in text.splitlines())
    told = {}
    for instruction in listed:
        try:
            translate_kernel(Module(kernel_around(instruction, ["u32"], ["u32"], BEFORE)), "k", tuned)
        except RefusedKernel as refused:
            told[instruction] = refused.reason
    assert told == listed


@pytest.mark.parametrize(
    ("lines", "before", "reason"),
    [
        ("call waits;", ".func waits() { bar.sync 0; call waits; ret; }", "make 'k' too long"),
        ("call waits, (%a);", ".func waits(.reg .b32 n) { bar.sync 0; ret; }", "is not given memory"),
        (
            "mov.u64 %rd1, waits;\nproto: .callprototype _ ();\ncall %rd1, (), proto;",
            ".func waits() { bar.sync 0; ret; }",
            "threads wait for each other in a function",
        ),
    ],
)
def test_functions_that_wait_and_that_are_no_part_of_their_caller(lines: str, before: str, reason: str) -> None:
    with pytest.raises(RefusedKernel, match=reason):
        translate(lines, before)


def test_a_kernel_that_is_not_there() -> None:
    module = Module(kernel_around("", [], [], ".func f() { ret; }"))
    with pytest.raises(RefusedKernel, match="there is no function 'other'"):
        translate_kernel(module, "other")
    with pytest.raises(RefusedKernel, match="'f' is no kernel"):
        translate_kernel(module, "f")


MUTATED = """
{ .reg .b64 t<3>; .param .b32 in; .shared .align 4 .b8 s[64]; st.param.b32 [in], %a;
shl.b32 %x, %a, 3; mad.lo.s32 %x, %x, %a, -7; setp.lt.and.u32 %p1|%p2, %x, 9, !%p3; @!%p1 bra over;
cvt.rn.f32.s32 %r1, %x; fma.rn.ftz.f32 %r2, %r1, 0f3F000000, %r1; shfl.sync.down.b32 %r3|%p2, %r2, 4, 31, -1;
over: atom.global.add.u32 %r4, [%address+4], %x; ld.shared.v2.u32 {%r5, %r6}, [s+8]; bar.sync 0;
prmt.b32 %x, %r5, %r6, 0x3210; bfe.u32 %x, %x, 3, 9; mov.b64 t1, {%x, %r6}; cvta.to.shared.u64 t2, t1; }
"""


def mutated(text: str, generator: random.Random) -> str:
    """Return a text with a few changes: characters and words that are gone, doubled, or exchanged."""
    for _ in range(generator.randint(1, 4)):
        start = generator.randrange(len(text))
        end = min(len(text), start + generator.choice((1, 1, 2, 5, 12)))
        other = generator.randrange(len(text) - 12)
        new = generator.choice(
            ("", text[start:end] * 2, text[other : other + end - start], generator.choice(";{}[]().,%@!0-"))
        )
        text = text[:start] + new + text[end:]
    return text


@pytest.mark.parametrize("seed", range(4))
def test_hostile_text_is_refused(seed: int, tuned: bool) -> None:
    """Whatever comes is translated to something valid, or refused: nothing else is raised."""
    generator = random.Random(seed)
    original = kernel_around(MUTATED, ["u32"], ["u32"])
    refused = 0
    for _ in range(250):
        try:
            translate_kernel(Module(mutated(original, generator)), "k", tuned)
        except RefusedKernel:
            refused += 1
    assert 50 < refused < 250


@pytest.mark.parametrize("seed", range(3))
def test_hostile_text_that_is_translated_is_valid(seed: int, tuned: bool) -> None:
    generator = random.Random(1000 + seed)
    original = kernel_around(MUTATED, ["u32"], ["u32"])
    compiled = 0
    while compiled < 3:
        try:
            module = Module(mutated(original, generator))
            translate_kernel(module, "k", tuned)
        except RefusedKernel:
            continue
        assert compile_kernel(module, "k", tuned).startswith(b"\x7fELF")
        compiled += 1

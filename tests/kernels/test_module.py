"""The text of a module: its functions and variables, and the parser of bodies."""

from __future__ import annotations

import pytest

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import Instruction
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.ptx.operands import TYPES, Address, Register, Symbol
from quiesce.simulator.kernels.ptx.parsing import parse_function

TEXT = """// a comment with { and "
.version 8.4
.target sm_90a, debug
.address_size 64
.file 1 "a{b.cu"
.global .align 4 .u32 counter = 5, other;
.visible .global .align 8 .b8 names[12] = {104, 105, 0};
.extern .shared .align 16 .b8 open[];
.const .align 16 .v4 .f32 vectors[2][3];
.global .align 8 .u64 table[2] = {first, counter};
.extern .func (.param .b32 result) vprintf(.param .b64 a, .param .b64 b);
.func (.param .b32 result) first(.param .b32 value);
.func (.param .b32 result) first(.param .b32 value) .noreturn
{ ret; /* } */ }
.visible .entry kernel_name(
    .param .u64 a, .param .align 16 .b8 pair[20], .param .u8 small // }
)
.maxntid 128, 1, 1
{
    .reg .b32 %r<10>, single;
    .loc 1 12 7, function_name $L_info, inlined_at 1 3 4
    mov.u32 %r9, single; // } {
    ld.param.u32 %r1, [pair+-4];
    { .reg .b32 %r<2>; mov.u32 %r1, counter; }
    bra.uni $L__end;
$L__end: ret;
}
.section .debug_str { .b8 1,2,3 ; }
"""


def test_what_a_module_has() -> None:
    module = Module(TEXT)
    assert module.version == (8, 4)
    assert module.architecture == 90
    assert module.entries == ("kernel_name",)
    assert set(module.functions) == {"vprintf", "first", "kernel_name"}
    assert module.functions["vprintf"].body is None
    assert module.functions["first"].body is not None


def test_variables() -> None:
    variables = Module(TEXT).variables
    assert {name: (each.space, each.bytes, each.alignment) for name, each in variables.items()} == {
        "counter": ("global", 4, 4),
        "other": ("global", 4, 4),
        "names": ("global", 12, 8),
        "open": ("shared", 0, 16),
        "vectors": ("const", 96, 16),
        "table": ("global", 16, 8),
    }
    assert variables["open"].is_external


def test_places_of_parameters() -> None:
    module = Module(TEXT)
    signature = module.signature(module.find("kernel_name"))
    assert [(each.name, each.offset, each.bytes) for each in signature.parameters] == [
        ("a", 0, 8),
        ("pair", 16, 20),
        ("small", 36, 1),
    ]
    assert [each.name for each in module.signature(module.find("vprintf")).returned] == ["result"]


def test_a_body() -> None:
    module = Module(TEXT)
    function = parse_function(module, module.find("kernel_name"))
    first, second, third, branch, end = function.instructions()
    assert (first.opcode, first.operands[0], first.location) == ("mov", Register("%r9", TYPES["b32"]), (1, 12))
    assert first.caller == (1, 3)
    assert second.operands[1] == Address(Symbol("pair"), -4)
    assert second.line == 1 + TEXT.split("\n").index("    ld.param.u32 %r1, [pair+-4];")
    assert third.operands == (Register("%r1@1", TYPES["b32"]), Symbol("counter"))
    assert branch.operands == (Symbol("$L__end"),)
    assert end.opcode == "ret"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("mov.u32 %r1 %r2;", "an operand is not understood"),
        ("mov.u32 %r1, %r2", "an operand is not understood"),
        ("bra nowhere;", "there is no label 'nowhere'"),
        ("bra %r1;", "a branch has no label"),
        ("again: again: ret;", "label 'again' is there twice"),
        ("@%r1 ret;", "a guard is no predicate"),
        ("mov.u32 %r1, !%r2;", "no predicate"),
        ("ld.u32 %r1, [%rd1+%r1];", "an offset is no number"),
        (".reg .f8 %x;", "registers of type '.f8' are not executed"),
        (".local .align 3 .b8 x[4];", "no power of two"),
        (".local .b8 x[99999999999999];", "a count is no number"),
        (".surface x;", "directive '.surface' is not executed"),
        ("mov.u32 %r1, -%r2;", "a sign stands before something that is no number"),
        ("call (%r1;", "')' is missing"),
    ],
)
def test_no_ptx(body: str, reason: str) -> None:
    text = f".entry k() {{ .reg .b32 %r<4>; .reg .b64 %rd<4>;\n{body}\n}}"
    module = Module(text)
    with pytest.raises(RefusedKernel) as caught:
        parse_function(module, module.find("k"))
    assert reason in caught.value.reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (".entry k() { ret;", "a brace is not closed"),
        (".entry k(.param .q32 a) { ret; }", "no type that is executed"),
        (".entry k(.foo .u32 a) { ret; }", "neither '.param' nor '.reg'"),
    ],
)
def test_no_module(text: str, reason: str) -> None:
    def parse() -> None:
        module = Module(text)
        parse_function(module, module.find("k"))

    with pytest.raises(RefusedKernel) as caught:
        parse()
    assert reason in caught.value.reason


LINKED = """
.version 8.4
.target sm_80
.visible .entry {name}()
{{
    .loc {own} 12 7
    membar.gl;
    .loc {tool} 3 1, function_name $L_info, inlined_at {own} 20 4
    ret;
}}
.file {own} "{name}.cu"
.file {tool} "/usr/local/cuda/include/cub/header.cuh"
"""


def test_texts_that_were_linked_keep_their_source_files() -> None:
    module = Module(LINKED.format(name="first", own=1, tool=2) + LINKED.format(name="second", own=2, tool=1))
    assert module.files[1] == "first.cu"
    for name in ("first", "second"):
        places = [
            each.location for each in parse_function(module, module.find(name)).items if isinstance(each, Instruction)
        ]
        assert [(module.files[file], line) for file, line in places] == [(f"{name}.cu", 12), (f"{name}.cu", 20)]
    alone = LINKED.format(name="second", own=2, tool=1)
    assert Module(alone).text == alone


def test_a_function_that_two_linked_texts_define_is_refused_unless_it_is_weak() -> None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    first = f"{head}.func own() {{ ret; }}\n.weak .func shared() {{ ret; }}\n"
    module = Module(first + first)
    assert module.find("shared").body is not None
    with pytest.raises(RefusedKernel, match="two of the texts that were linked have a function 'own'"):
        module.find("own")


def test_functions_of_cudas_library_for_kernels_are_there_unless_the_text_has_them() -> None:
    head = ".version 8.0\n.target sm_80\n.address_size 64\n"
    asks = ".extern .func (.param .b64 a) cudaCGGetIntrinsicHandle(.param .b32 b);\n"
    has = ".func (.param .b64 a) cudaCGGetIntrinsicHandle(.param .b32 b) { trap; ret; }\n"
    for text, wanted in ((asks, "%envreg2"), (has, "trap")):
        module = Module(head + text)
        function = module.find("cudaCGGetIntrinsicHandle")
        assert function.body is not None
        assert wanted in module.text[slice(*function.body)]
        parse_function(module, module.find("cudaCGSynchronize"))
    assert "cudaCGSynchronize" not in Module(head).functions

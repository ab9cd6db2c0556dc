"""Every instruction with its forms (``forms.txt``): those that are executed, and those that are refused by name."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.kernels.programs import with_registers

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")

from tests.kernels.compiling import translate_kernel

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.compiler import compile_text
from quiesce.simulator.kernels.ptx.module import Module

_LINES = [line for line in (Path(__file__).parent / "forms.txt").read_text().splitlines() if line[:1] != "#"]
EXECUTED = _LINES[: _LINES.index("refused")]
REFUSED = _LINES[_LINES.index("refused") + 1 :]


def test_forms_are_translated(tuned: bool) -> None:
    for line in EXECUTED:
        translate_kernel(Module(with_registers(line)), "k", tuned)


@pytest.mark.parametrize("start", range(0, len(EXECUTED), 200))
def test_what_is_translated_is_valid(start: int, tuned: bool) -> None:
    """Many forms in one kernel, each after a branch that may skip it."""
    parts = []
    for number, line in enumerate(EXECUTED[start : start + 200]):
        parts.append(f"setp.eq.u32 %p3, %r15, {number}; @%p3 bra over{number};\n{line}\nover{number}:")
    text = translate_kernel(Module(with_registers("mov.u32 %r15, %tid.x;\n" + "\n".join(parts))), "k", tuned)
    assert compile_text(text).startswith(b"\x7fELF")


@pytest.mark.parametrize("line", REFUSED)
def test_forms_that_are_refused_by_name(line: str) -> None:
    with pytest.raises(RefusedKernel) as refused:
        translate_kernel(Module(with_registers(line)), "k")
    opcode = re.split(r"[\s;]", line)[0]
    assert any(word in str(refused.value) for word in (opcode, opcode.partition(".")[0]))
    assert refused.value.line


@pytest.mark.long
def test_forms_with_fewer_or_more_operands_are_refused_or_translated() -> None:
    for line in EXECUTED:
        opcode, _, operands = line.rstrip(";").partition(" ")
        words = [each for each in re.split(r",\s*(?![^\[{(]*[\]})])", operands) if each]
        for count in range(len(words) + 2):
            changed = f"{opcode} {', '.join([*words, '%r1'][:count])};"
            try:
                translate_kernel(Module(with_registers(changed)), "k")
            except RefusedKernel:
                continue


@pytest.mark.parametrize("line", ["ld.global.u32 %r3, [nowhere];", "mov.u64 %d1, nowhere;"])
def test_a_name_that_ranges_meet_first_is_refused(line: str) -> None:
    with pytest.raises(RefusedKernel, match="nowhere") as refused:
        translate_kernel(Module(with_registers(line)), "k", checks=True)
    assert refused.value.line


@pytest.mark.parametrize(
    "line", ["mul.lo.s32 %r3, %r1;", "add.s32 %r3;", "and.b32 %r3, %r1;", "cvt %r3, %r1;", "ld.global %r3, [%d1];"]
)
def test_missing_operands_that_ranges_meet_first_are_refused(line: str) -> None:
    with pytest.raises(RefusedKernel) as refused:
        translate_kernel(Module(with_registers(f"mov.u32 %r1, %tid.x;\n{line}")), "k", checks=True)
    assert refused.value.line


def test_a_kernel_with_a_result_is_refused() -> None:
    text = with_registers("").replace(".entry k(.param .u64 p)", ".entry (.param .u64 a) k(.param .u64 p)")
    module = Module(text)
    with pytest.raises(RefusedKernel, match="has a result"):
        translate_kernel(module, module.entries[0])

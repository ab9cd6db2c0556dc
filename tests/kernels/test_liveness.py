"""Which registers still matter where: compared with every way through drawn programs."""

from __future__ import annotations

import random

import pytest
from tests.kernels.programs import HEADER

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.control_flow import Flow, flow_of
from quiesce.simulator.kernels.translation.data_flow import effects_of, liveness_of
from quiesce.simulator.kernels.translation.program import Program

REGISTERS = 5
BLOCKS = 6


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """Nothing here is compiled."""
    return False


def parsed(body: str, before: str = "") -> Function:
    registers = f".reg .b32 %r<{REGISTERS}>;\n.reg .b64 %rd<5>;\n.reg .pred %p<5>;\n.reg .b16 %h<5>;\n"
    text = f"{HEADER}{before}.visible .entry k(.param .u64 a)\n{{\n{registers}{body}\n}}\n"
    return Program(Module(text)).parse("k")


def drawn(seed: int) -> Function:
    draw = random.Random(seed)
    lines = []
    for number in range(BLOCKS):
        lines.append(f"B{number}:")
        for _ in range(draw.randint(1, 3)):
            target, first, second = (draw.randrange(REGISTERS) for _ in range(3))
            guard = draw.choice(("", "", "", "@%p1 "))
            lines.append(f"{guard}add.u32 %r{target}, %r{first}, %r{second};")
        ending = draw.choice(("", "bra", "if", "ret"))
        guard = f"@%p{draw.randrange(2)} " if ending == "if" else ""
        if ending in ("bra", "if"):
            lines.append(f"{guard}bra B{draw.randrange(BLOCKS)};")
        elif ending == "ret":
            lines.append("ret;")
    return parsed("\n".join([*lines, "ret;"]))


def live_at(flow: Flow, block: int, place: int) -> set[str]:
    """Return what some way reads before it writes it: each register by itself, over every way."""
    names = {
        register.name
        for each in flow.blocks
        for i in each.instructions
        for register in (*effects_of(i)[0], *effects_of(i)[1])
    }
    return {name for name in names if _is_read(flow, name, block, place)}


def _is_read(flow: Flow, name: str, block: int, place: int) -> bool:
    waiting, seen = [(block, place)], set()
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        number, position = at
        if position == len(flow.blocks[number].instructions):
            waiting += [(each, 0) for each in flow.blocks[number].successors]
            continue
        i = flow.blocks[number].instructions[position]
        if _reads(i, name):
            return True
        if not _ends(i, name):
            waiting.append((number, position + 1))
    return False


def _reads(i: Instruction, name: str) -> bool:
    """Say whether an instruction reads a register, or may leave it as it is: one with a guard may not run."""
    if i.guard and name in (i.guard.register.name, getattr(i.operands[0], "name", "")):
        return True
    return any(getattr(each, "name", "") == name for each in i.operands[i.opcode == "add" :])


def _ends(i: Instruction, name: str) -> bool:
    return i.opcode == "add" and getattr(i.operands[0], "name", "") == name


def test_a_register_is_live_where_some_way_reads_it_before_it_is_written() -> None:
    for seed in range(40):
        flow = flow_of(drawn(seed))
        liveness = liveness_of(flow)
        assert {each.name for each in liveness.at_entry()} == live_at(flow, 0, 0)
        for number, block in enumerate(flow.blocks):
            assert {each.name for each in liveness.at_start(number)} == live_at(flow, number, 0)
            for place in range(len(block.instructions)):
                after = {each.name for each in liveness.after(number, place)}
                assert after == live_at(flow, number, place + 1)


@pytest.mark.parametrize(
    ("line", "read", "written"),
    [
        ("add.u32 %r0, %r1, %r2;", "%r1 %r2", "%r0"),
        ("@%p1 add.u32 %r0, %r1, 5;", "%r1 %p1 %r0", "%r0"),
        ("st.global.u32 [%rd1+4], %r1;", "%rd1 %r1", ""),
        ("ld.global.v2.u32 {%r0, %r1}, [%rd1];", "%rd1", "%r0 %r1"),
        ("setp.lt.u32 %p1|%p2, %r1, %r2;", "%r1 %r2", "%p1 %p2"),
        ("add.cc.u32 %r0, %r1, %r2;", "%r1 %r2", "%r0 %carry@"),
        ("addc.u32 %r0, %r1, %r2;", "%r1 %r2 %carry@", "%r0"),
        ("madc.lo.cc.u32 %r0, %r1, %r2, %r3;", "%r1 %r2 %r3 %carry@", "%r0 %carry@"),
        ("bar.sync %r1;", "%r1", ""),
        ("bar.red.popc.u32 %r0, %r1, %p1;", "%r1 %p1", "%r0"),
        ("call (%r0), f, (%r1);", "%r1", "%r0"),
        ("call f, (%r1);", "%r1", ""),
        ("red.global.add.u32 [%rd1], %r1;", "%rd1 %r1", ""),
        ("atom.global.add.u32 %r0, [%rd1], %r1;", "%rd1 %r1", "%r0"),
        ("@!%p1 bra over;", "%p1", ""),
        ("nanosleep.u32 %r1;", "%r1", ""),
        ("prefetch.global.L1 [%rd1];", "%rd1", ""),
    ],
)
def test_what_an_instruction_reads_and_writes(line: str, read: str, written: str) -> None:
    before = ".func (.reg .b32 out) f(.reg .b32 in) { ret; }\n"
    instruction = parsed(f"{line}\nover: ret;", before).instructions()[0]
    found = [[each.name for each in some] for some in effects_of(instruction)]
    assert sorted(found[0]) == sorted(read.split())
    assert sorted(found[1]) == sorted(written.split())

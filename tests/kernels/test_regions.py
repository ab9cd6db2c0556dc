"""What threads run between two waits: the ways between blocks, and where all of them come together."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Final

import pytest
from tests.kernels.programs import HEADER

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.control_flow import START, Paths, Region, flow_of
from quiesce.simulator.kernels.translation.program import Program

BLOCKS: Final = 7
PROGRAMS: Final = 60


@pytest.fixture(autouse=True)
def tuned() -> bool:
    """Nothing here is compiled."""
    return False


def parsed(body: str) -> Function:
    text = f"{HEADER}.visible .entry k()\n{{\n.reg .b32 %r<9>;\n.reg .pred %p<9>;\n{body}\n}}\n"
    return Program(Module(text)).parse("k")


class Drawn:
    """A program of a few blocks, and where each of them leads: ``(target, guard's value)``, or nothing at an end."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        self.leads: list[list[tuple[int, bool | None]]] = []
        lines = []
        for number in range(BLOCKS):
            is_last, target = number == BLOCKS - 1, draw.randrange(BLOCKS)
            kind = "ret" if is_last else draw.choice(("fall", "fall", "bra", "if", "if", "unless", "ret", "leave"))
            lines.append(f"B{number}: add.u32 %r1, %r1, {number};")
            guard = {"if": f"@%p{number} ", "unless": f"@!%p{number} ", "leave": f"@%p{number} "}.get(kind, "")
            if kind == "fall":
                self.leads.append([(number + 1, None)])
            elif kind == "ret":
                lines.append("ret;")
                self.leads.append([])
            elif kind == "leave":
                lines.append(f"{guard}ret;")
                self.leads.append([(number + 1, False)])
            else:
                lines.append(f"{guard}bra B{target};")
                is_taken = {"if": True, "unless": False}.get(kind)
                self.leads.append([(target, is_taken)])
                if kind != "bra":
                    self.leads[-1].append((number + 1, not is_taken))
        self.function = parsed("\n".join(lines))
        self.flow = flow_of(self.function)

    def region(self, **options: object) -> Region:
        return Region(self.flow, self.function, **options)  # type: ignore[arg-type]


def drawn() -> Iterator[Drawn]:
    for seed in range(PROGRAMS):
        program = Drawn(seed)
        assert len(program.flow.blocks) == BLOCKS + 1, "and an empty one after the last return"
        yield program


def reached(leads: dict[int, list[int]], start: int, without: int | None = None) -> set[int]:
    """Return what comes after a node, on ways that leave another one out."""
    found: set[int] = set()
    waiting = [start]
    while waiting:
        new = {each for each in leads[waiting.pop()] if each not in found and each != without}
        found |= new
        waiting += new
    return found


def test_the_ways_of_each_block() -> None:
    for program in drawn():
        region = program.region()
        for number, leads in enumerate(program.leads):
            assert sorted(region.ways(number), key=str) == sorted(leads, key=str)
        assert region.ways(START) == region.ways(0)


def test_where_all_ways_come_together() -> None:
    answers = {"above": 0, "after": 0, "circles": 0}
    for program in drawn():
        paths = Paths(program.region())
        leads = {number: [each for each, _ in ways] for number, ways in enumerate(program.leads)}
        leads[START] = leads[0]
        nodes = reached(leads, START) | {START}
        ends = {number for number in nodes if number != START and _may_end(program, number)}
        assert set(paths.order) == nodes
        assert paths.order[0] == START
        circles = {each for each in nodes if each in reached(leads, each)}
        answers["circles"] += len(circles)
        for node in nodes:
            sources = [
                (each, held) for each in paths.order for target, held in program.leads[max(each, 0)] if target == node
            ]
            assert paths.before(node) == (sources[0] if len(sources) == 1 else None)
            dominating = [
                each
                for each in paths.order[: paths.order.index(node)]
                if each == START or (each not in circles and node not in reached(leads, START, each))
            ]
            expected = None if node in circles or not dominating else dominating[-1]
            assert paths.above(node) == expected
            answers["above"] += expected not in (None, START)
            for other in nodes:
                between = {each for each in reached(leads, other) if node in reached(leads, each)} - {other, node}
                assert paths.between(other, node) == between
                left = reached(leads, other, node) | {other}
                is_after = not (left & ends) and not (START in left and _may_end(program, 0))
                assert paths.is_after(node, other) == is_after
                answers["after"] += is_after
    assert min(answers.values()) > 20


def _may_end(program: Drawn, number: int) -> bool:
    """Say whether a thread may end its function in a block."""
    last = program.flow.blocks[number].instructions[-1]
    return last.opcode == "ret"


LINEAR: Final = "add.u32 %r1, %r1, 1;\nadd.u32 %r1, %r1, 2;\nbar.sync 0;\nadd.u32 %r1, %r1, 3;\nB1: ret;"


def test_a_region_begins_and_ends_in_the_midst_of_a_block() -> None:
    function = parsed(LINEAR)
    flow = flow_of(function)
    waits = next(at for at, each in enumerate(flow.blocks[0].instructions) if each.opcode == "bar")

    def end(block: int, place: int) -> int | None:
        return waits + 1 if block == 0 and place <= waits else None

    before, after = Region(flow, function, end=end), Region(flow, function, 0, waits + 1, end=end)
    assert [each.opcode for _, each in before.instructions(START)] == ["add", "add", "bar"]
    assert [position for position, _ in after.instructions(START)] == [(0, waits + 1)]
    assert before.ways(START) == []
    assert after.ways(START) == [(1, None)]
    assert Paths(before).order == [START]
    assert Paths(after).order == [START, 1]


def test_threads_stop_where_they_are_told_to() -> None:
    loop = parsed("B0: add.u32 %r1, %r1, 1;\nB1: add.u32 %r1, %r1, 2;\n@%p1 bra B1;\nret;")
    flow = flow_of(loop)
    branch = (1, len(flow.blocks[1].instructions) - 1)
    whole, cut, short = (
        Region(flow, loop),
        Region(flow, loop, backs=frozenset({branch})),
        Region(flow, loop, stops=frozenset({1})),
    )
    assert whole.ways(1) == [(1, True), (2, False)]
    assert cut.ways(1) == [(2, False)], "a branch that goes back is not taken"
    assert (short.ways(1), short.instructions(1)) == ([], [])
    assert short.ways(START) == [(1, None)]
    assert not Paths(short).is_after(2, START), "threads stop before it"
    assert not Paths(cut).is_after(2, START), "threads stop at the branch"
    assert Paths(whole).is_after(2, START)

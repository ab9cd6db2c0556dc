"""One thread as a function of its index, for :mod:`quiesce.simulator.kernels.widening`, and who calls the widened one.

Widening turns the function into one for a row of threads that follow each other on the axis x: the lanes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.ptx.operands import Operand, Register, Special
from quiesce.simulator.kernels.translation.control_flow import Block, flow_of
from quiesce.simulator.kernels.translation.data_flow import effects_of, liveness_of
from quiesce.simulator.kernels.translation.function_body import (
    ATTRIBUTES,
    clear,
    prepare,
    reserve_memory,
    translate_blocks,
    write_values_before,
)
from quiesce.simulator.kernels.translation.llvm_code import BLOCK, INVARIANT, Code, LoopShape
from quiesce.simulator.kernels.translation.program import Program

LANE: Final = "quiesce_kernel_lane"
"""The function of one thread, which is replaced."""
ROW: Final = "quiesce_kernel_row"
"""The function of a row of threads, which widening writes."""
NARROW: Final = "quiesce_kernel_narrow"
"""The function of a whole block for blocks that run thread by thread."""
ROWS: Final = "quiesce_kernel_rows"
"""The function of a whole block by rows, whose accesses were judged before."""
LANES: Final = 16
LEAST_WIDTH: Final = LANES // 2
_COMPUTED: Final = frozenset({"mov", "mul", "mad", "cvt", "shl", "add"})


class LaneShape(LoopShape):
    """One thread, whose index is in the arguments of its function."""

    def finish(self, code: Code, status: int) -> None:
        """End the thread, or the block."""
        code.emit(f"ret i32 {min(status, 0)}")

    def propagate(self, code: Code, status: str) -> None:
        """End the thread after an exit, or the block."""
        failed = code.define(f"icmp slt i32 {status}, 0")
        code.emit(f"ret i32 {code.select(failed, 'i32', status, '0')}")


def is_worth_rows(function: Function, checks: bool) -> bool:
    """Say whether a kernel runs faster by rows of threads.

    Without checks each does. With checks those do that have no loop, whose accesses are judged as ranges of a block,
    and those with loops whose accesses are judged row by row. Loops over the whole grid are faster for all threads of
    a block together: they use each place once, and one range says which places a round uses.
    """
    inside = loops_of(function) if checks else []
    if not inside:
        return True
    sizes = _grid_sizes(function)
    return any(not _strides_over(sizes, each) for each in inside)


def loops_of(function: Function) -> list[Sequence[Block]]:
    """Return the blocks of each loop."""
    flow = flow_of(function)
    loops = [(at, n) for n, block in enumerate(flow.blocks) for at in block.successors if at <= n]
    return [flow.blocks[first : last + 1] for first, last in loops]


def _grid_sizes(function: Function) -> frozenset[Register]:
    """Return the registers that depend on how many blocks a grid has."""
    found: set[Register] = set()
    before = -1
    while before != len(found):
        before = len(found)
        for i in function.instructions():
            if i.opcode in _COMPUTED and any(_is_grid_size(each, found) for each in i.operands[1:]):
                found.update(effects_of(i)[1])
    return frozenset(found)


def _is_grid_size(operand: Operand, found: set[Register]) -> bool:
    return operand in found or (isinstance(operand, Special) and operand.name.startswith("%nctaid"))


def _strides_over(sizes: frozenset[Register], blocks: Iterable[Block]) -> bool:
    """Say whether a loop goes on by steps that depend on the size of the grid."""
    return any(
        i.opcode == "add" and not sizes.isdisjoint(i.operands[1:]) for block in blocks for i in block.instructions
    )


def lane_functions(program: Program, function: Function) -> list[str]:
    """Return the function of one thread, and that of a block, which calls the widened one."""
    threads = [*is_for_threads(program, "%width"), *_BY_THREADS]
    return [*lane_function(program, function), *rows_function("quiesce_kernel_block", threads)]


def lane_function(program: Program, function: Function, judged: frozenset[tuple[int, int]] = frozenset()) -> list[str]:
    """Return the function of one thread. ``judged``: accesses that were judged before, by their positions."""
    shape = LaneShape()
    e = prepare(program, function, shape)
    memory = reserve_memory(e, function, None)
    flow = flow_of(function)
    with e.section() as body, e.within(replace(e.around, judged_before=judged, calls_checks=True)):
        clear(e, liveness_of(flow).at_entry())
        e.emit("br label %B0")
        translate_blocks(e, flow)
    with e.section() as before:
        for axis in range(3):
            shape.context(e, BLOCK + 4 * axis, "i32")
        write_values_before(e, shape)
    return [
        f"define i32 @{LANE}(ptr noalias nocapture readonly %context, {_INDEX}) {ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        *before,
        *body,
        "}",
    ]


_INDEX: Final = "i32 %x, i32 %y, i32 %z, i32 %linear"


def is_for_threads(program: Program, width: str) -> list[str]:
    """Return lines that say whether a block runs thread by thread: it is narrow, or its accesses are followed.

    Some races are no mistakes if a thread does the right thing next: that is seen if threads run one after another.
    """
    narrow = f"icmp ult i32 {width}, {LEAST_WIDTH}"
    if not program.variant.checks:
        return [f"%is.for.threads = {narrow}"]
    program.declare("declare i32 @quiesce_kernel_follows(ptr) nounwind")
    return [
        f"%is.narrow = {narrow}",
        "%follows = call i32 @quiesce_kernel_follows(ptr %context)",
        "%is.followed = icmp ne i32 %follows, 0",
        "%is.for.threads = or i1 %is.narrow, %is.followed",
    ]


def rows_function(name: str, threads: Sequence[str] = ()) -> list[str]:
    """Return a function that runs a block by rows. ``threads`` are lines for one that runs thread by thread."""
    return [
        f"declare i32 @{ROW}(ptr, i32, i32, i32, i32, i32)",
        f"define i32 @{name}(ptr noalias nocapture readonly %context) {ATTRIBUTES} {{",
        *_SIZES,
        *(threads or ["br label %begin"]),
        *_ROWS,
    ]


_BY_THREADS: Final = f"""br i1 %is.for.threads, label %threads, label %begin
threads:
%others = call i32 @{NARROW}(ptr %context)
ret i32 %others""".split("\n")
_SIZES: Final = f"""entry:
%width.place = getelementptr i8, ptr %context, i64 {BLOCK}
%width = load i32, ptr %width.place, {INVARIANT}, !range !1
%height.place = getelementptr i8, ptr %context, i64 {BLOCK + 4}
%height = load i32, ptr %height.place, {INVARIANT}, !range !1
%depth.place = getelementptr i8, ptr %context, i64 {BLOCK + 8}
%depth = load i32, ptr %depth.place, {INVARIANT}, !range !1
%rows = mul nuw nsw i32 %height, %depth""".split("\n")
_ROWS: Final = f"""begin:
br label %head
head:
%row = phi i32 [0, %begin], [%row.next, %next]
%y = phi i32 [0, %begin], [%y.turned, %next]
%z = phi i32 [0, %begin], [%z.next, %next]
%first = mul nuw nsw i32 %row, %width
br label %lanes
lanes:
%x = phi i32 [0, %head], [%x.next, %more]
%linear = add nuw nsw i32 %first, %x
%left = sub nuw nsw i32 %width, %x
%end = call i32 @{ROW}(ptr %context, i32 %x, i32 %y, i32 %z, i32 %linear, i32 %left)
%has.failed = icmp slt i32 %end, 0
br i1 %has.failed, label %failed, label %more, !prof !7
failed:
ret i32 %end
more:
%x.next = add nuw nsw i32 %x, {LANES}
%is.last = icmp uge i32 %x.next, %width
br i1 %is.last, label %next, label %lanes
next:
%row.next = add nuw nsw i32 %row, 1
%y.next = add nuw nsw i32 %y, 1
%is.bottom = icmp eq i32 %y.next, %height
%y.turned = select i1 %is.bottom, i32 0, i32 %y.next
%z.more = zext i1 %is.bottom to i32
%z.next = add nuw nsw i32 %z, %z.more
%is.all = icmp eq i32 %row.next, %rows
br i1 %is.all, label %all, label %head
all:
ret i32 0
}}""".split("\n")

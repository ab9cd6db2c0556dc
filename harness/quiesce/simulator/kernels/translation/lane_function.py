"""One thread as a function of its index, for :mod:`quiesce.simulator.kernels.widening`, and who calls the widened one.

Widening turns the function into one for a row of threads that follow each other on the axis x: the lanes.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.translation.control_flow import flow_of
from quiesce.simulator.kernels.translation.data_flow import liveness_of
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
"""The function of a whole block for blocks that are too narrow for rows."""
LANES: Final = 16
_LEAST_WIDTH: Final = LANES // 2


class LaneShape(LoopShape):
    """One thread, whose index is in the arguments of its function."""

    def finish(self, code: Code, status: int) -> None:
        """End the thread, or the block."""
        code.emit(f"ret i32 {min(status, 0)}")

    def propagate(self, code: Code, status: str) -> None:
        """End the thread after an exit, or the block."""
        failed = code.define(f"icmp slt i32 {status}, 0")
        code.emit(f"ret i32 {code.select(failed, 'i32', status, '0')}")


def has_loop(function: Function) -> bool:
    """Say whether some branch of a function goes back."""
    flow = flow_of(function)
    return any(target <= number for number, block in enumerate(flow.blocks) for target in block.successors)


def lane_functions(program: Program, function: Function) -> list[str]:
    """Return the function of one thread, and that of a block, which calls the widened one."""
    shape = LaneShape()
    e = prepare(program, function, shape)
    memory = reserve_memory(e, function, None)
    flow = flow_of(function)
    with e.section() as body:
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
        *_BLOCK,
    ]


_INDEX: Final = "i32 %x, i32 %y, i32 %z, i32 %linear"
_BLOCK: Final = f"""declare i32 @{ROW}(ptr, i32, i32, i32, i32, i32)
define i32 @quiesce_kernel_block(ptr noalias nocapture readonly %context) {ATTRIBUTES} {{
entry:
%width.place = getelementptr i8, ptr %context, i64 {BLOCK}
%width = load i32, ptr %width.place, {INVARIANT}, !range !1
%height.place = getelementptr i8, ptr %context, i64 {BLOCK + 4}
%height = load i32, ptr %height.place, {INVARIANT}, !range !1
%depth.place = getelementptr i8, ptr %context, i64 {BLOCK + 8}
%depth = load i32, ptr %depth.place, {INVARIANT}, !range !1
%rows = mul nuw nsw i32 %height, %depth
%is.narrow = icmp ult i32 %width, {_LEAST_WIDTH}
br i1 %is.narrow, label %narrow, label %head
narrow:
%others = call i32 @{NARROW}(ptr %context)
ret i32 %others
head:
%row = phi i32 [0, %entry], [%row.next, %next]
%y = phi i32 [0, %entry], [%y.turned, %next]
%z = phi i32 [0, %entry], [%z.next, %next]
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

"""Work-item loops: all threads of a block, run by three loops round the body of a kernel, one for each axis.

Without waits in the body this is the whole kernel. Where threads wait, each part between two waits has such loops
(:mod:`~quiesce.simulator.kernels.translation.work_group_vectorisation`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.translation.control_flow import Region, flow_of
from quiesce.simulator.kernels.translation.data_flow import liveness_of
from quiesce.simulator.kernels.translation.emitter import Emitter
from quiesce.simulator.kernels.translation.function_body import (
    ATTRIBUTES,
    clear,
    count_memory,
    prepare,
    reserve_memory,
    translate_blocks,
    write_values_before,
)
from quiesce.simulator.kernels.translation.hoisted_checks import Ranges
from quiesce.simulator.kernels.translation.lane_function import ROWS, is_for_threads, lane_function, rows_function
from quiesce.simulator.kernels.translation.llvm_code import BLOCK, LoopShape
from quiesce.simulator.kernels.translation.program import Program

_OUTWARDS = ("x", "y", "z")


def _size(axis: str) -> str:
    return f"%c{BLOCK + 4 * 'xyz'.index(axis)}.i32"


@dataclass(frozen=True, slots=True)
class LoopNest:
    """The lines of three loops. ``prefix`` begins their names, ``entry`` is the block before them.

    ``backwards``: the numbers of threads fall. ``state``: they are the loops of a state, which LLVM vectorises.
    """

    entry: str
    prefix: str = ""
    backwards: bool = False
    state: bool = False

    def head(self) -> list[str]:
        """Return what begins the loops, up to the body, whose label is ``thread``."""
        p = self.prefix
        exact = "nuw nsw " if self.state else ""
        return [
            f"br label %{p}head.z",
            *self._count("z", self.entry),
            f"%{p}z.rows = mul i32 %{p}z, {_size('y')}",
            f"br label %{p}head.y",
            *self._count("y", f"{p}head.z"),
            f"%{p}row = add i32 %{p}z.rows, %{p}y",
            f"%{p}row.first = mul i32 %{p}row, {_size('x')}",
            f"br label %{p}head.x",
            *self._count("x", f"{p}head.y"),
            f"%{p}linear = add {exact}i32 %{p}row.first, %{p}x",
            *([f"%{p}linear.wide = zext i32 %{p}linear to i64"] if self.state else []),
            f"br label %{p}thread",
        ]

    def _count(self, axis: str, before: str) -> list[str]:
        """Return the beginning of a loop; backwards, its counter has a name of its own."""
        p, index = self.prefix, f"%{self.prefix}{axis}"
        counter = f"{index}.count" if self.backwards else index
        turned = [f"{index}.beyond = sub i32 {_size(axis)}, {counter}", f"{index} = sub i32 {index}.beyond, 1"]
        return [
            f"{p}head.{axis}:",
            f"{counter} = phi i32 [0, %{before}], [{index}.next, %{p}next.{axis}]",
            *(turned if self.backwards else []),
        ]

    def tail(self) -> list[str]:
        """Return what follows the body, whose end goes to ``next.x``; ``done`` is where all threads have run."""
        p = self.prefix
        lines = []
        for axis, following in zip(_OUTWARDS, ("next.y", "next.z", "done"), strict=True):
            index = f"%{p}{axis}"
            counter = f"{index}.count" if self.backwards else index
            lines += [
                f"{index}.next = add nuw nsw i32 {counter}, 1",
                f"{index}.done = icmp eq i32 {index}.next, {_size(axis)}",
                f"br i1 {index}.done, label %{p}{following}, label %{p}head.{axis}"
                + (", !llvm.loop !5" if self.state and axis == "x" else ""),
                f"{p}{following}:",
            ]
        return lines


@dataclass(frozen=True, slots=True)
class _Loop:
    """A function that runs all threads of a block, and the accesses that it judges as ranges before."""

    lines: list[str]
    judged: frozenset[tuple[int, int]]


def loop_functions(
    program: Program, function: Function, name: str = "quiesce_kernel_block", *, backwards: bool = False
) -> list[str]:
    """Return a function that runs all threads of a block; with checks, also one that judges ranges if it can."""
    ranged = _ranged_loop(program, function, name) if program.variant.checks and not backwards else None
    own = f"{name}_one_by_one" if ranged else name
    others = _loop(program, function, own, backwards=backwards, calls_checks=ranged is not None)
    count_memory(program, function)
    return [*others.lines, *(ranged.lines if ranged else ())]


def ranged_row_functions(program: Program, function: Function) -> list[str]:
    """Return functions for a block whose threads run as rows after their accesses were judged as ranges.

    If a range is wrong, its threads run one by one. Empty: no access is in a range.
    """
    name = "quiesce_kernel_block"
    ranged = _ranged_loop(program, function, name, by_rows=True)
    if ranged is None:
        return []
    others = _loop(program, function, f"{name}_one_by_one", calls_checks=True)
    return [*others.lines, *ranged.lines, *lane_function(program, function, ranged.judged), *rows_function(ROWS)]


def _ranged_loop(program: Program, function: Function, name: str, *, by_rows: bool = False) -> _Loop | None:
    """Return a function that judges ranges first; None if there are none."""
    shape = LoopShape()
    e = prepare(program, function, shape)
    memory = reserve_memory(e, function, None)
    with e.section() as question:
        ranges = Ranges(e, Region(flow_of(function), function), shape, {})
        if not ranges.covered:
            return None
        memory += ranges.write("right", "one.by.one")
        e.place("one.by.one")
        e.emit(f"%others = call i32 @{name}_one_by_one(ptr %context)")
        e.emit("ret i32 %others")
        e.place("right")
        if by_rows:
            e.lines += is_for_threads(program, _size("x"))
            e.emit("br i1 %is.for.threads, label %begin, label %by.rows")
            e.place("by.rows")
            e.emit(f"%whole = call i32 @{ROWS}(ptr %context)")
            e.emit("ret i32 %whole")
        else:
            e.emit("br label %begin")
    return _write_loop(e, name, memory, question, ranges.covered)


def _loop(
    program: Program, function: Function, name: str, *, backwards: bool = False, calls_checks: bool = False
) -> _Loop:
    """Return a function that runs all threads of a block one after another."""
    e = prepare(program, function, LoopShape())
    memory = reserve_memory(e, function, None)
    with e.within(replace(e.around, calls_checks=calls_checks)):
        return _write_loop(e, name, memory, ["br label %begin"], frozenset(), backwards=backwards)


def _write_loop(
    e: Emitter,
    name: str,
    memory: list[str],
    question: list[str],
    judged: frozenset[tuple[int, int]] = frozenset(),
    *,
    backwards: bool = False,
) -> _Loop:
    """Write the loops after the lines of a question, which go on to ``begin``."""
    function, shape = e.function, e.shape
    assert isinstance(shape, LoopShape)
    flow = flow_of(function)
    with e.section() as body, e.within(replace(e.around, judged_before=judged)):
        e.place("thread")
        clear(e, liveness_of(flow).at_entry())
        e.emit("br label %B0")
        translate_blocks(e, flow)
    with e.section() as before:
        for axis in range(3):
            shape.context(e, BLOCK + 4 * axis, "i32")
        write_values_before(e, shape)
    nest = LoopNest("begin", backwards=backwards)
    lines = [
        f"define i32 @{name}(ptr noalias nocapture readonly %context) {ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        *before,
        *question,
        "begin:",
        *nest.head(),
        *body,
        "next.x:",
        *nest.tail(),
        "ret i32 0",
        "}",
    ]
    return _Loop(lines, judged)

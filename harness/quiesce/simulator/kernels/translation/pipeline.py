"""The compiler's passes, in order: from a kernel's PTX to its text in LLVM's language.

The first ones change the function or find something out about it. Those that follow write functions of LLVM, and the
last ones what all of them need. ``docs/explanation/kernel_compiler.md`` explains the words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.footprints.table import footprints
from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.access_recording import noting_functions
from quiesce.simulator.kernels.translation.barrier_splitting import (
    Loops,
    entered_before_waits,
    not_entered,
    shared_loops,
    thread_function,
)
from quiesce.simulator.kernels.translation.checks import called_checks, is_copy_by_groups, orders_by_other_means
from quiesce.simulator.kernels.translation.control_flow import flow_of
from quiesce.simulator.kernels.translation.coroutine_frames import Frames
from quiesce.simulator.kernels.translation.function_body import called_functions
from quiesce.simulator.kernels.translation.inlining import inline_waiting_functions, reached, waits
from quiesce.simulator.kernels.translation.lane_function import NARROW, is_worth_rows, lane_functions, loops_of
from quiesce.simulator.kernels.translation.llvm_code import Late
from quiesce.simulator.kernels.translation.object_tables import metadata, tables
from quiesce.simulator.kernels.translation.program import PLAIN, Program, SharedUse, Variant
from quiesce.simulator.kernels.translation.row_checks import row_checks
from quiesce.simulator.kernels.translation.spin_loops import waits_for_some
from quiesce.simulator.kernels.translation.stride_specialisation import USUAL, Strides, block_function, guess_strides
from quiesce.simulator.kernels.translation.warp_rows import may_be_rows_of_warps, parting_blocks, warp_functions
from quiesce.simulator.kernels.translation.warp_synchronous import with_steps
from quiesce.simulator.kernels.translation.work_group_vectorisation import together_function
from quiesce.simulator.kernels.translation.work_item_loops import loop_functions, ranged_row_functions

_INSTRUCTIONS_MAX: Final = 1_000
"""A longer kernel is not compiled for all threads together: this one takes two seconds."""
_LONG_INSTRUCTIONS: Final = 300
"""A longer kernel with operations of warps takes up to six times as long to compile for rows of threads."""
_WORTH_THREADS: Final = 1 << 20
"""So many threads of it, one by one, take about as long as that."""
_LOOP_ROUNDS: Final = 16
"""As many threads as this a thread counts where there are loops: how often they are gone through is not known."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel on its way through the passes: each returns another one, in which more is known or written."""

    program: Program
    function: Function
    tuned: bool
    """Whether all threads of a block may run together, from one wait to the next."""
    wide: bool = False
    """Whether a thread is written as a function that is widened to one for a row of threads."""
    rows_after: int = 0
    """From how many threads on the form for rows is worth its compilation, where this is not it; 0: there is none."""
    waits: bool = False
    """Whether its threads wait for each other, so that each is left and entered again."""
    kept: frozenset[str] = frozenset()
    """Memory of parameters that outlasts a wait."""
    loops: Loops = field(default_factory=dict)
    """The loops in which threads stop at each round."""
    strides: Strides = field(default_factory=dict)
    """The parameters that are taken to be strides, with the values that they are taken to have."""
    frames: Frames | None = None
    """Where threads wait or stop, and where their registers are meanwhile; None for threads that do neither."""
    frame_bytes: int = 0
    """How much memory each thread has to itself while it waits."""
    footprints: tuple[int, ...] = ()
    """What its blocks use of memory, as the runtime reads it."""
    lines: tuple[str, ...] = ()
    """The text so far."""

    @property
    def is_grouped(self) -> bool:
        """Say whether all threads of a block are to run together."""
        has_local_memory = any(variable.space == "local" for variable in self.function.variables.values())
        return self.tuned and not self.kept and not has_local_memory and (self.waits or bool(self.loops))

    @property
    def has_memory(self) -> bool:
        """Say whether threads have memory of their own."""
        return bool(self.kept) or any(each.space in ("local", "param") for each in self.function.variables.values())

    def with_lines(self, lines: list[str]) -> Kernel:
        """Return the kernel with more text."""
        return replace(self, lines=(*self.lines, *lines)) if lines else self


def parse(module: Module, entry: str, variant: Variant) -> Kernel:
    """Return a kernel whose text was read. Raises RefusedKernel where it is none."""
    program = Program(module, variant)
    function = program.parse(entry)
    if not function.is_entry:
        raise RefusedKernel(f"'{entry}' is no kernel")
    if function.returned:
        raise RefusedKernel(f"the kernel '{entry}' has a result")
    return Kernel(program, function, variant.tuned)


# -- what changes the function, or finds something out about it


def _find_shared_use(kernel: Kernel) -> Kernel:
    """With checks: say whether races in shared memory can be judged."""
    if not kernel.program.variant.checks:
        return kernel
    functions = list(reached(kernel.program, kernel.function))
    use = SharedUse(
        is_judged=not any(map(orders_by_other_means, functions)),
        has_copies=any(is_copy_by_groups(i) for each in functions for i in each.instructions()),
    )
    return replace(kernel, program=replace(kernel.program, shared_use=use))


def _keep_warps_in_step(kernel: Kernel) -> Kernel:
    """Let the threads of a warp wait for each other where the kernel takes them to be in step."""
    function = with_steps(kernel.function)
    return kernel if function is kernel.function else replace(kernel, function=function, tuned=False)


def _find_waits(kernel: Kernel) -> Kernel:
    """Say whether threads wait for each other: at barriers, in warp operations, in loops that look at memory again."""
    return replace(kernel, waits=True) if waits(kernel.program, kernel.function) else kernel


def _inline(kernel: Kernel) -> Kernel:
    """Make functions in which threads wait part of the kernel: only a kernel can be left and entered again."""
    if not kernel.waits:
        return kernel
    function, kept = inline_waiting_functions(kernel.program, kernel.function)
    return replace(kernel, function=function, kept=kept)


def _find_rows(kernel: Kernel) -> Kernel:
    """Say whether functions for rows of threads are made: of kernels that never wait, and of some that do."""
    variant, function = kernel.program.variant, kernel.function
    if not variant.wide or kernel.has_memory or any(map(_is_for_threads, function.instructions())):
        return kernel
    if kernel.waits:
        is_wide = kernel.tuned and may_be_rows_of_warps(function)
        if is_wide and variant.quick and len(function.items) > _LONG_INSTRUCTIONS:
            return replace(kernel, rows_after=_WORTH_THREADS // (_LOOP_ROUNDS if loops_of(function) else 1))
        return replace(kernel, wide=is_wide)
    is_wide = is_worth_rows(function, variant.checks)
    return replace(kernel, wide=is_wide, tuned=kernel.tuned and not is_wide)


def _is_for_threads(i: Instruction) -> bool:
    """Say whether an instruction is for one thread after another: a call, or a count in a barrier in shared memory."""
    return i.opcode in ("call", "mbarrier") or any(each.startswith("mbarrier") for each in i.modifiers)


def _find_shared_loops(kernel: Kernel) -> Kernel:
    """Find loops whose rounds all threads of a block do together, so that memory is read in order."""
    if kernel.wide:
        return kernel
    if not kernel.tuned or len(kernel.function.items) > _INSTRUCTIONS_MAX:
        return replace(kernel, tuned=False) if kernel.tuned else kernel
    with_loops = replace(kernel, loops=shared_loops(kernel.function, flow_of(kernel.function, waits_for_some)))
    return with_loops if with_loops.is_grouped else kernel


def _specialise_strides(kernel: Kernel) -> Kernel:
    """Take parameters that are strides for the sizes of elements; the block's function compares."""
    if kernel.waits or not kernel.is_grouped:
        return kernel
    return replace(kernel, strides=guess_strides(kernel.function))


# -- what writes functions of LLVM


def _split_at_barriers(kernel: Kernel) -> Kernel:
    """Write one thread as a coroutine that is left where it waits; its registers are then in frames."""
    if not (kernel.waits or kernel.is_grouped):
        return kernel
    program, function = kernel.program, kernel.function
    entered = entered_before_waits if kernel.tuned else not_entered
    if kernel.wide:
        entered = partial(parting_blocks, program, function)
    thread = thread_function(program, function, kernel.loops, kernel.kept, entered)
    kernel = replace(kernel, loops=thread.loops, frames=thread.frames, frame_bytes=thread.frame_bytes)
    return kernel.with_lines(thread.lines)


def _vectorise_work_groups(kernel: Kernel) -> Kernel:
    """Write all threads of a block as a loop for each part between two waits, which LLVM can vectorise."""
    program, function, frames = kernel.program, kernel.function, kernel.frames
    if frames is None or (kernel.waits and not (kernel.is_grouped and frames.is_plain)):
        return kernel
    if kernel.wide:
        return kernel.with_lines(warp_functions(program, function, frames))
    together = together_function(program, function, frames, kernel.loops, kernel.strides)
    if kernel.waits:
        return kernel.with_lines(together)
    if not together:
        return replace(kernel, frames=None, frame_bytes=0, lines=())
    usual = loop_functions(program, function, USUAL) if kernel.strides else []
    return kernel.with_lines([*together, *usual, *block_function(kernel.strides)])


def _write_work_item_loops(kernel: Kernel) -> Kernel:
    """Write the kernel with three loops over the threads of a block round it, if they never wait."""
    if kernel.waits or kernel.frames is not None:
        return kernel
    if kernel.wide and kernel.program.variant.checks and not loops_of(kernel.function):
        ranged = ranged_row_functions(kernel.program, kernel.function)
        kernel = kernel.with_lines(ranged) if ranged else replace(kernel, wide=False)
        if ranged:
            return kernel
    if kernel.wide:
        narrow = loop_functions(kernel.program, kernel.function, NARROW)
        return kernel.with_lines([*narrow, *lane_functions(kernel.program, kernel.function)])
    backwards = kernel.program.variant.backwards
    return kernel.with_lines(loop_functions(kernel.program, kernel.function, backwards=backwards))


def _write_called_functions(kernel: Kernel) -> Kernel:
    """Write the functions that are called, or whose address is taken."""
    return kernel.with_lines(called_functions(kernel.program))


def _write_called_checks(kernel: Kernel) -> Kernel:
    """Write the checks of accesses that are functions of their own, since there are many."""
    of_rows = row_checks(kernel.program, kernel.function) if kernel.wide else []
    return kernel.with_lines([*called_checks(kernel.program, kernel.function), *of_rows])


def _write_recorders(kernel: Kernel) -> Kernel:
    """Write the functions that note accesses to words of shared memory."""
    return kernel.with_lines(noting_functions(kernel.program))


def _find_footprints(kernel: Kernel) -> Kernel:
    """Find out which memory each block may use. What can't be translated was refused before."""
    return replace(kernel, footprints=tuple(footprints(kernel.program, kernel.function)))


def _write_tables(kernel: Kernel) -> Kernel:
    """Write what the runtime reads from the object: sizes, parameters, places in the text, states."""
    parts = (kernel.waits, kernel.frames, kernel.frame_bytes, kernel.footprints, kernel.rows_after)
    by_warps = kernel.wide and kernel.waits
    return kernel.with_lines(tables(kernel.program, kernel.function, *parts, by_warps))


def _declare(kernel: Kernel) -> Kernel:
    """Declare the functions of the runtime and of LLVM that are called, and the metadata of lines."""
    return kernel.with_lines([*sorted(kernel.program.declarations), *metadata(kernel.function)])


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of the compiler; its function says what it does. What it needs and gives are fields of a kernel."""

    name: str
    run: Callable[[Kernel], Kernel]
    needs: str
    gives: str


PASSES: Final = (
    Pass("shared memory analysis", _find_shared_use, needs="function", gives="program.shared_use"),
    Pass("warp-synchronous code", _keep_warps_in_step, needs="function", gives="function, tuned"),
    Pass("wait analysis", _find_waits, needs="function", gives="waits"),
    Pass("inlining", _inline, needs="function, waits", gives="function, kept"),
    Pass("row analysis", _find_rows, needs="function, waits", gives="wide, tuned, rows_after"),
    Pass("loop interchange", _find_shared_loops, needs="function, tuned, kept", gives="loops, tuned"),
    Pass("stride specialisation", _specialise_strides, needs="function, waits, loops", gives="strides"),
    Pass("barrier splitting", _split_at_barriers, needs="function, waits, loops, kept", gives="frames, loops, lines"),
    Pass("work-group vectorisation", _vectorise_work_groups, needs="function, frames, loops, strides", gives="lines"),
    Pass("work-item loops", _write_work_item_loops, needs="function, waits, wide, frames", gives="lines"),
    Pass("called functions", _write_called_functions, needs="program.numbers", gives="lines"),
    Pass("out-of-line checks", _write_called_checks, needs="program.checks_called, wide", gives="lines"),
    Pass("access recording", _write_recorders, needs="program.noted_words", gives="lines"),
    Pass("footprints", _find_footprints, needs="function", gives="footprints"),
    Pass("tables", _write_tables, needs="program, waits, frames, footprints", gives="lines"),
    Pass("declarations", _declare, needs="program.declarations", gives="lines"),
)


def translate_kernel(module: Module, entry: str, variant: Variant = PLAIN) -> str:
    """Return a kernel of a module as text for LLVM. Raises RefusedKernel for what is not executed."""
    kernel = parse(module, entry, variant)
    for each in PASSES:
        kernel = each.run(kernel)
    return "\n".join([*(line.write() if isinstance(line, Late) else line for line in kernel.lines), ""])

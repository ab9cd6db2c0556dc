"""The compiler's passes, in order: from a kernel's PTX to its text in LLVM's language.

The first ones change the function or find something out about it. Those that follow write functions of LLVM, and the
last ones what all of them need. ``docs/explanation/kernel_compiler.md`` explains the words.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.access_recording import noting_functions
from quiesce.simulator.kernels.translation.barrier_splitting import Loops, shared_loops, thread_function
from quiesce.simulator.kernels.translation.checks import called_checks, is_copy_by_groups, orders_by_other_means
from quiesce.simulator.kernels.translation.control_flow import flow_of
from quiesce.simulator.kernels.translation.coroutine_frames import Frames
from quiesce.simulator.kernels.translation.function_body import called_functions
from quiesce.simulator.kernels.translation.inlining import inline_waiting_functions, reached, waits
from quiesce.simulator.kernels.translation.llvm_code import Late
from quiesce.simulator.kernels.translation.object_tables import metadata, tables
from quiesce.simulator.kernels.translation.program import PLAIN, Program, SharedUse, Variant
from quiesce.simulator.kernels.translation.spin_loops import waits_for_some
from quiesce.simulator.kernels.translation.stride_specialisation import Strides, guess_strides
from quiesce.simulator.kernels.translation.warp_synchronous import with_steps
from quiesce.simulator.kernels.translation.work_group_vectorisation import USUAL, block_function, together_function
from quiesce.simulator.kernels.translation.work_item_loops import loop_functions

_INSTRUCTIONS_MAX: Final = 2_000
"""A longer kernel is not compiled for all threads together: that would take seconds."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel on its way through the passes: each returns another one, in which more is known or written."""

    program: Program
    function: Function
    tuned: bool
    """Whether all threads of a block may run together, from one wait to the next."""
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
    lines: tuple[str, ...] = ()
    """The text so far."""

    @property
    def is_grouped(self) -> bool:
        """Say whether all threads of a block are to run together."""
        has_memory = self.kept or any(variable.space == "local" for variable in self.function.variables.values())
        return self.tuned and not has_memory and (self.waits or bool(self.loops))

    def with_lines(self, lines: list[str]) -> Kernel:
        """Return the kernel with more text."""
        return replace(self, lines=(*self.lines, *lines))


def parse(module: Module, entry: str, variant: Variant) -> Kernel:
    """Return a kernel whose text was read. Raises RefusedKernel where it is none."""
    program = Program(module, variant)
    function = program.parse(entry)
    if not function.is_entry:
        raise RefusedKernel(f"'{entry}' is no kernel")
    if function.returned:
        raise RefusedKernel(f"the kernel '{entry}' has a result")
    return Kernel(program, function, variant.tuned)


# -- from function to function


def _find_shared_use(kernel: Kernel) -> Kernel:
    if not kernel.program.variant.checks:
        return kernel
    functions = list(reached(kernel.program, kernel.function))
    use = SharedUse(
        is_judged=not any(map(orders_by_other_means, functions)),
        has_copies=any(is_copy_by_groups(i) for each in functions for i in each.instructions()),
    )
    return replace(kernel, program=replace(kernel.program, shared_use=use))


def _keep_warps_in_step(kernel: Kernel) -> Kernel:
    function = with_steps(kernel.function)
    return kernel if function is kernel.function else replace(kernel, function=function, tuned=False)


def _find_waits(kernel: Kernel) -> Kernel:
    return replace(kernel, waits=waits(kernel.program, kernel.function))


def _inline(kernel: Kernel) -> Kernel:
    if not kernel.waits:
        return kernel
    function, kept = inline_waiting_functions(kernel.program, kernel.function)
    return replace(kernel, function=function, kept=kept)


def _find_shared_loops(kernel: Kernel) -> Kernel:
    kernel = replace(kernel, tuned=kernel.tuned and len(kernel.function.items) <= _INSTRUCTIONS_MAX)
    with_loops = replace(kernel, loops=shared_loops(kernel.function, flow_of(kernel.function, waits_for_some)))
    return with_loops if with_loops.is_grouped else kernel


def _specialise_strides(kernel: Kernel) -> Kernel:
    if kernel.waits or not kernel.is_grouped:
        return kernel
    return replace(kernel, strides=guess_strides(kernel.function))


# -- from functions to text


def _split_at_barriers(kernel: Kernel) -> Kernel:
    if not (kernel.waits or kernel.is_grouped):
        return kernel
    thread = thread_function(kernel.program, kernel.function, kernel.loops, kernel.kept, kernel.tuned)
    kernel = replace(kernel, loops=thread.loops, frames=thread.frames, frame_bytes=thread.frame_bytes)
    return kernel.with_lines(thread.lines)


def _vectorise_work_groups(kernel: Kernel) -> Kernel:
    program, function, frames = kernel.program, kernel.function, kernel.frames
    if frames is None or (kernel.waits and not (kernel.is_grouped and frames.is_plain)):
        return kernel
    together = together_function(program, function, frames, kernel.loops, kernel.strides)
    if kernel.waits:
        return kernel.with_lines(together)
    if not together:
        return replace(kernel, frames=None, frame_bytes=0, lines=())
    usual = loop_functions(program, function, USUAL) if kernel.strides else []
    return kernel.with_lines([*together, *usual, *block_function(kernel.strides)])


def _write_work_item_loops(kernel: Kernel) -> Kernel:
    if kernel.waits or kernel.frames is not None:
        return kernel
    backwards = kernel.program.variant.backwards
    return kernel.with_lines(loop_functions(kernel.program, kernel.function, backwards=backwards))


def _write_tables(kernel: Kernel) -> Kernel:
    return kernel.with_lines(tables(kernel.program, kernel.function, kernel.waits, kernel.frames, kernel.frame_bytes))


def _declare(kernel: Kernel) -> Kernel:
    return kernel.with_lines([*sorted(kernel.program.declarations), *metadata(kernel.function)])


@dataclass(frozen=True, slots=True)
class Pass:
    """One step of the compiler: a name, what it does, what it looks at, and what it gives to the next ones."""

    name: str
    does: str
    takes: str
    gives: str
    run: Callable[[Kernel], Kernel]


PASSES: Final = (
    Pass(
        "shared memory use",
        "With checks: say whether races in shared memory can be judged.",
        "the kernel and what it calls",
        "program.shared_use",
        _find_shared_use,
    ),
    Pass(
        "warp-synchronous code",
        "Let the threads of a warp wait for each other where the kernel takes them to be in step.",
        "function",
        "function, with steps between instructions",
        _keep_warps_in_step,
    ),
    Pass(
        "wait analysis",
        "Say whether threads wait for each other: at barriers, in warp operations, in loops that look at memory again.",
        "the kernel and what it calls",
        "waits",
        _find_waits,
    ),
    Pass(
        "inlining",
        "Make functions in which threads wait part of the kernel: only a kernel can be left and entered again.",
        "function, waits",
        "function, kept",
        _inline,
    ),
    Pass(
        "loop interchange",
        "If tuned: find loops whose rounds all threads of a block do together, so that memory is read in order.",
        "function, tuned, waits, kept",
        "loops, tuned",
        _find_shared_loops,
    ),
    Pass(
        "stride specialisation",
        "Take parameters that are strides for the sizes of elements; the launch compares.",
        "function, loops",
        "strides",
        _specialise_strides,
    ),
    Pass(
        "barrier splitting",
        "Write one thread as a coroutine, which is left where it waits; its registers are then in a frame.",
        "function, waits, loops, kept",
        "a function in lines, frames, frame_bytes",
        _split_at_barriers,
    ),
    Pass(
        "work-group vectorisation",
        "Write all threads of a block as a loop for each part between two waits, which LLVM can vectorise.",
        "function, frames, loops, strides",
        "functions in lines",
        _vectorise_work_groups,
    ),
    Pass(
        "work-item loops",
        "Write the kernel with three loops over the threads of a block around it, if they never wait.",
        "function, waits, frames",
        "functions in lines",
        _write_work_item_loops,
    ),
    Pass(
        "called functions",
        "Write the functions that are called, or whose address is taken.",
        "program.numbers",
        "functions in lines",
        lambda kernel: kernel.with_lines(called_functions(kernel.program)),
    ),
    Pass(
        "out-of-line checks",
        "Write the checks of accesses that are functions of their own, since there are many.",
        "program.checks_called",
        "functions in lines",
        lambda kernel: kernel.with_lines(called_checks(kernel.program, kernel.function)),
    ),
    Pass(
        "access recording",
        "Write the functions that note accesses to words of shared memory.",
        "program.noted_words",
        "functions in lines",
        lambda kernel: kernel.with_lines(noting_functions(kernel.program)),
    ),
    Pass(
        "tables",
        "Write what the runtime reads from the object: sizes, parameters, places in the text, states.",
        "program, frames, frame_bytes",
        "constants in lines",
        _write_tables,
    ),
    Pass(
        "declarations",
        "Declare the functions of the runtime and of LLVM that are called.",
        "program.declarations",
        "declarations and metadata in lines",
        _declare,
    ),
)


def translate_kernel(module: Module, entry: str, variant: Variant = PLAIN) -> str:
    """Return a kernel of a module as text for LLVM. Raises RefusedKernel for what is not executed."""
    kernel = parse(module, entry, variant)
    for each in PASSES:
        kernel = each.run(kernel)
    return "\n".join([*(line.write() if isinstance(line, Late) else line for line in kernel.lines), ""])

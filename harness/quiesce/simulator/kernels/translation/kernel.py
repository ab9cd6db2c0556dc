"""A whole kernel in LLVM's language: its functions, its loop over threads or its states, and what the runtime reads."""

from __future__ import annotations

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import Function, total_bytes
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.access_recording import noting_functions
from quiesce.simulator.kernels.translation.barrier_splitting import (
    USUAL,
    Translated,
    translate_rounds,
    translate_waiting,
)
from quiesce.simulator.kernels.translation.checks import (
    called_checks,
    is_copy_by_groups,
    orders_by_other_means,
    site_texts,
)
from quiesce.simulator.kernels.translation.control_flow import Region, flow_of
from quiesce.simulator.kernels.translation.data_flow import liveness_of
from quiesce.simulator.kernels.translation.function_body import (
    ATTRIBUTES,
    clear,
    load_register_parameters,
    prepare,
    reserve_memory,
    translate_blocks,
    write_values_before,
)
from quiesce.simulator.kernels.translation.hoisted_checks import Ranges
from quiesce.simulator.kernels.translation.inlining import may_call_itself, reached, waits
from quiesce.simulator.kernels.translation.llvm_code import (
    BLOCK,
    BLOCK_THREADS_MAX,
    CalledShape,
    LoopShape,
    constant_text,
)
from quiesce.simulator.kernels.translation.program import MEMORY_BASE, Program
from quiesce.simulator.kernels.translation.warp_synchronous import with_steps

ABI_VERSION = 11
"""What the runtime and the objects agree on: ``quiesce_kernel_info`` begins with it."""


def translate_kernel(
    module: Module,
    entry: str,
    tuned: bool = False,
    checks: bool = False,
    backwards: bool = False,
    memory_base: int = MEMORY_BASE,
    traced: bool = False,
) -> str:
    """Return a kernel of a module as text for LLVM. Raises RefusedKernel for what is not executed.

    ``tuned``: with loops over all threads of a block as well, which take longer to compile and less to run.
    ``checks``: accesses are judged, where memory of devices begins at ``memory_base``. ``backwards``: the threads of a
    block run from the last to the first, unless they wait for each other. ``traced``: the runtime is told of each
    round of a loop.
    """
    program = Program(module, checks, memory_base, traced)
    function = program.parse(entry)
    if checks:
        _look_at_shared_memory(program, function)
    if not function.is_entry:
        raise RefusedKernel(f"'{entry}' is no kernel")
    if function.returned:
        raise RefusedKernel(f"the kernel '{entry}' has a result")
    stepping = with_steps(function)
    if stepping is not function:
        function, tuned = stepping, False
    suspends = waits(program, function)
    translated = _translated(program, function, suspends, tuned, backwards)
    lines = translated.lines
    done = 0
    while done < len(program.numbers):
        called = list(program.numbers)[done]
        lines += _called(program, program.function_of(called), done)
        done += 1
    lines += called_checks(program, function)
    lines += noting_functions(program)
    lines += _tables(program, function, suspends, translated)
    lines += sorted(program.declarations)
    text = "\n".join([*lines, *_metadata(function), ""])
    text = text.replace("$RESERVED$", str(program.reserved_offset))
    return text.replace("$DYNAMIC$", str(program.dynamic_offset))


def _metadata(function: Function) -> list[str]:
    return [
        "!0 = !{}",
        f"!1 = !{{i32 1, i32 {BLOCK_THREADS_MAX + 1}}}",
        f"!2 = !{{i64 {max(1, total_bytes(function.parameters))}}}",
        f"!3 = !{{i64 {_PARAMETER_ALIGNMENT}}}",
        "!4 = distinct !{}",
        "!5 = distinct !{!5, !6}",
        '!6 = !{!"llvm.loop.parallel_accesses", !4}',
        '!7 = !{!"branch_weights", i32 1, i32 1000000}',
    ]


_PARAMETER_ALIGNMENT = 8


def _translated(program: Program, function: Function, suspends: bool, tuned: bool, backwards: bool) -> Translated:
    """Return the kernel's own function: with states if its threads wait for each other, else with a loop over them."""
    translated = None
    if suspends:
        translated = translate_waiting(program, function, tuned)
    elif tuned:
        translated = translate_rounds(program, function, lambda: _with_loop(program, function, USUAL))
    return translated or Translated(_with_loop(program, function, backwards=backwards))


def _look_at_shared_memory(program: Program, function: Function) -> None:
    """Note how the threads of a block use shared memory together."""
    functions = list(reached(program, function))
    program.judges_shared = not any(map(orders_by_other_means, functions))
    program.copies_to_shared = any(is_copy_by_groups(i) for each in functions for i in each.instructions())


def _with_loop(
    program: Program, function: Function, name: str = "quiesce_kernel_block", *, backwards: bool = False
) -> list[str]:
    """Return a function that runs all threads of a block; with checks, one that judges ranges if it can.

    ``backwards``: they run from the last to the first.
    """
    local_bytes = program.local_bytes
    by_ranges = program.checks and not backwards
    whole = _loop(program, function, name, by_ranges=True) if by_ranges else None
    if whole is not None:
        program.local_bytes = local_bytes
        name = f"{name}_one_by_one"
    others = _loop(program, function, name, by_ranges=False, backwards=backwards)
    assert others is not None
    return [*others, *(whole or ())]


def _loop(
    program: Program, function: Function, name: str, *, by_ranges: bool, backwards: bool = False
) -> list[str] | None:
    """Return a function that runs all threads of a block; None if it is to judge ranges, and there are none."""
    shape = LoopShape(total_bytes(function.parameters))
    e = prepare(program, function, shape)
    memory = reserve_memory(e, function, None)
    flow = flow_of(function)
    question = ["br label %begin"]
    if by_ranges:
        ranges = Ranges(e, Region(flow, function), shape, {})
        if not ranges.covered:
            return None
        e.judged_before = ranges.covered
        memory += ranges.write("begin", "one.by.one")
        question, e.lines = (
            [*e.lines, "one.by.one:", f"%others = call i32 @{name}_one_by_one(ptr %context)", "ret i32 %others"],
            [],
        )
    e.place("thread")
    clear(e, liveness_of(flow))
    e.emit("br label %B0")
    translate_blocks(e, flow)
    body = e.lines
    e.lines = []
    for axis in range(3):
        shape.context(e, BLOCK + 4 * axis, "i32")
    write_values_before(e, shape)
    return [
        f"define i32 @{name}(ptr noalias nocapture readonly %context) {ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        *e.lines,
        *question,
        *(_from_last_to_first(_LOOP_HEAD) if backwards else _LOOP_HEAD),
        *body,
        *(_from_last_to_first(_LOOP_TAIL) if backwards else _LOOP_TAIL),
        "}",
    ]


_LOOP_HEAD = f"""begin:
br label %head.z
head.z:
%z = phi i32 [0, %begin], [%z.next, %next.z]
%z.rows = mul i32 %z, %c{BLOCK + 4}.i32
br label %head.y
head.y:
%y = phi i32 [0, %head.z], [%y.next, %next.y]
%row = add i32 %z.rows, %y
%row.first = mul i32 %row, %c{BLOCK}.i32
br label %head.x
head.x:
%x = phi i32 [0, %head.y], [%x.next, %next.x]
%linear = add i32 %row.first, %x
br label %thread""".split("\n")
_LOOP_TAIL = f"""next.x:
%x.next = add nuw nsw i32 %x, 1
%x.done = icmp eq i32 %x.next, %c{BLOCK}.i32
br i1 %x.done, label %next.y, label %head.x
next.y:
%y.next = add nuw nsw i32 %y, 1
%y.done = icmp eq i32 %y.next, %c{BLOCK + 4}.i32
br i1 %y.done, label %next.z, label %head.y
next.z:
%z.next = add nuw nsw i32 %z, 1
%z.done = icmp eq i32 %z.next, %c{BLOCK + 8}.i32
br i1 %z.done, label %done, label %head.z
done:
ret i32 0""".split("\n")


def _from_last_to_first(lines: list[str]) -> list[str]:
    """Return a part of the loop in which the numbers of threads fall: counters have names of their own."""
    turned = []
    for line in lines:
        axis = line[1:2]
        if line.startswith(f"%{axis} = phi"):
            turned += [
                line.replace(f"%{axis} =", f"%{axis}.count ="),
                f"%{axis}.beyond = sub i32 %c{BLOCK + 4 * 'xyz'.index(axis)}.i32, %{axis}.count",
                f"%{axis} = sub i32 %{axis}.beyond, 1",
            ]
        else:
            turned.append(line.replace(f" %{axis}, 1", f" %{axis}.count, 1") if ".next = add" in line else line)
    return turned


def _called(program: Program, function: Function, number: int) -> list[str]:
    stack_bytes = _stack_bytes(function) if may_call_itself(program, function) else 0
    e = prepare(program, function, CalledShape(stack_bytes))
    memory = reserve_memory(e, function, None)
    flow = flow_of(function)
    e.place("start")
    if stack_bytes:
        numbers = (f"i32 {stack_bytes}", f"i32 {program.add_site(next(iter(function.instructions())))}", "i32 %linear")
        e.call("void", "quiesce_kernel_enter", "ptr %context", *numbers)
    clear(e, liveness_of(flow))
    load_register_parameters(e, function)
    e.emit("br label %B0")
    translate_blocks(e, flow)
    body = e.lines
    arguments = [
        f"ptr {name}" for name in (*_names("%returned", function.returned), *_names("%argument", function.parameters))
    ]
    thread = ["ptr %context", *(f"i32 %{axis}" for axis in "xyz"), "i32 %linear"]
    return [
        f"define internal i32 @f{number}({', '.join([*thread, *arguments])}) {ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        "br label %start",
        *body,
        "}",
    ]


_RETURN_BYTES = 8


def _stack_bytes(function: Function) -> int:
    """Return how much stack a call needs on any device at least: compilers keep some registers there as well."""
    local = [each.bytes for each in function.variables.values() if each.space == "local"]
    return _RETURN_BYTES + sum(-(-bytes_ // 8) * 8 for bytes_ in local)


def _names(prefix: str, parameters: tuple[object, ...]) -> list[str]:
    return [f"{prefix}{number}" for number in range(len(parameters))]


def _tables(program: Program, function: Function, suspends: bool, translated: Translated) -> list[str]:
    """Return the constants that the runtime finds by name."""
    parameters = function.parameters
    info = (
        *(ABI_VERSION, int(suspends), translated.frame_bytes, total_bytes(parameters), len(parameters)),
        *(program.dynamic_offset, program.local_bytes, len(program.sites), len(program.variables)),
        *(translated.array_bytes, len(translated.states), program.module.threads_max(function.name)),
        *(program.shared_bytes, program.constant_bytes),
    )
    slots = [f"@slot{number} = global i64 0, align 8" for number in range(len(program.variables))]
    names = [constant_text(f"name{number}", name) for number, name in enumerate(program.variables)]
    pairs = [word for number in range(len(program.variables)) for word in (f"ptr @name{number}", f"ptr @slot{number}")]
    return [
        *slots,
        *names,
        _numbers("quiesce_kernel_info", info),
        _numbers("quiesce_kernel_parameters", [n for each in parameters for n in (each.offset, each.bytes)]),
        _numbers("quiesce_kernel_sites", [number for each in program.sites for number in each.numbers()]),
        _numbers(
            "quiesce_kernel_states",
            [n for each in translated.states for n in (each.operation, -1 if each.barrier is None else each.barrier)],
        ),
        _numbers("quiesce_kernel_state_sites", [each.site for each in translated.states]),
        *(site_texts(program) if program.checks else ()),
        f"@quiesce_kernel_variables = constant [{len(pairs) + 1} x ptr] [{', '.join([*pairs, 'ptr null'])}], align 8",
    ]


def _numbers(name: str, numbers: tuple[int, ...] | list[int]) -> str:
    values = ", ".join(f"i32 {number}" for number in (*numbers, 0))
    return f"@{name} = constant [{len(numbers) + 1} x i32] [{values}], align 4"

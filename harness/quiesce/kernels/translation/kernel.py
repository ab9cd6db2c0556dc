"""A whole kernel in LLVM's language: its functions, its loop over threads or its states, and what the runtime reads."""

from __future__ import annotations

from quiesce.errors import RefusedKernel
from quiesce.kernels.ptx.declarations import total_bytes
from quiesce.kernels.ptx.function import Function
from quiesce.kernels.ptx.module import Module
from quiesce.kernels.translation.body import load_register_parameters, translate_blocks
from quiesce.kernels.translation.code import INVARIANT
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.flow import flow_of
from quiesce.kernels.translation.inlining import inline_waiting_functions, waits
from quiesce.kernels.translation.liveness import Liveness, liveness_of
from quiesce.kernels.translation.pointers import find_pointers
from quiesce.kernels.translation.program import Program
from quiesce.kernels.translation.shapes import (
    BLOCK,
    BLOCK_THREADS_MAX,
    PARAMETERS,
    CalledShape,
    LoopShape,
    Shape,
    StateShape,
)
from quiesce.kernels.translation.suspension import Frames

ABI_VERSION = 2
"""What the runtime and the objects agree on: ``quiesce_kernel_info`` begins with it."""
_ATTRIBUTES = "nounwind null_pointer_is_valid"


def translate_kernel(module: Module, entry: str) -> str:
    """Return a kernel of a module as text for LLVM. Raises RefusedKernel for what is not executed."""
    program = Program(module)
    function = program.parse(entry)
    if not function.is_entry:
        raise RefusedKernel(f"'{entry}' is no kernel")
    suspends = waits(program, function)
    frame_bytes = 0
    if suspends:
        lines, frame_bytes = _with_states(program, *inline_waiting_functions(program, function))
    else:
        lines = _with_loop(program, function)
    done = 0
    while done < len(program.numbers):
        name = list(program.numbers)[done]
        lines += _called(program, program.parse(name), done)
        done += 1
    lines += _tables(program, function, suspends, frame_bytes)
    lines += sorted(program.declarations)
    ranges = [
        "!0 = !{}",
        f"!1 = !{{i32 1, i32 {BLOCK_THREADS_MAX + 1}}}",
        f"!2 = !{{i64 {max(1, total_bytes(function.parameters))}}}",
        f"!3 = !{{i64 {_PARAMETER_ALIGNMENT}}}",
    ]
    text = "\n".join([*lines, *ranges, ""])
    return text.replace("$DYNAMIC$", str(program.dynamic_offset))


_PARAMETER_ALIGNMENT = 8


def _prepare(program: Program, function: Function, shape: Shape) -> Emitter:
    e = Emitter(program, function, shape)
    e.kept_pointers = find_pointers(function)
    return e


def _reserve_memory(
    e: Emitter, function: Function, frames: Frames | None, kept: frozenset[str] = frozenset()
) -> list[str]:
    """Return the lines that make the local and the parameter memory of a function; ``kept`` outlasts a wait."""
    lines = []
    for number, variable in enumerate(function.variables.values()):
        if variable.space not in ("local", "param"):
            continue
        name = e.memory[variable.name] = f"%m{number}"
        e.program.add_local(variable)
        if frames is not None and (variable.space == "local" or variable.name in kept):
            lines.append(f"{name} = getelementptr i8, ptr %thread, i64 {frames.reserve(variable)}")
        else:
            alignment = min(max(variable.alignment, 8), 128)
            lines.append(f"{name} = alloca [{max(1, variable.bytes)} x i8], align {alignment}")
    return lines


def _clear(e: Emitter, liveness: Liveness) -> None:
    """Give registers that may be read before they are written a value that is the same in every run."""
    for register in liveness.at_entry():
        e.write(register, "0", register.type)
        if e.has_pointer(register):
            e.emit(f"store ptr null, ptr {e.pointer_slot(register)}")


def _with_loop(program: Program, function: Function) -> list[str]:
    shape = LoopShape(total_bytes(function.parameters))
    e = _prepare(program, function, shape)
    memory = _reserve_memory(e, function, None)
    flow = flow_of(function)
    e.place("thread")
    _clear(e, liveness_of(flow))
    e.emit("br label %B0")
    translate_blocks(e, flow)
    body = e.lines
    e.lines = []
    for axis in range(3):
        shape.context(e, BLOCK + 4 * axis, "i32")
    _load_before(e, shape)
    return [
        f"define i32 @quiesce_kernel_block(ptr noalias nocapture readonly %context) {_ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        *e.lines,
        *_LOOP_HEAD,
        *body,
        *_LOOP_TAIL,
        "}",
    ]


def _load_before(e: Emitter, shape: LoopShape) -> None:
    """Write the values that are the same for every thread."""
    if shape.parameters:
        shape.context(e, PARAMETERS, "ptr")
    for (offset, type_), name in shape.before.items():
        extra = ", !range !1" if BLOCK <= offset < BLOCK + 12 else ""
        if type_ == "ptr" and offset == PARAMETERS:
            extra = ", !dereferenceable !2, !align !3"
        e.emit(f"{name} = load {type_}, ptr {e.byte_offset('%context', offset)}, {INVARIANT}{extra}")
    for (offset, bits), name in shape.parameters.items():
        pointer = e.byte_offset(f"%c{PARAMETERS}.ptr", offset)
        e.emit(f"{name} = load i{bits}, ptr {pointer}, align 1, {INVARIANT}")


_LOOP_HEAD = f"""br label %head.z
head.z:
%z = phi i32 [0, %entry], [%z.next, %next.z]
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


def _with_states(program: Program, function: Function, kept: frozenset[str]) -> tuple[list[str], int]:
    e = _prepare(program, function, StateShape())
    flow = flow_of(function)
    liveness = liveness_of(flow)
    e.suspension = frames = Frames(liveness)
    memory = _reserve_memory(e, function, frames, kept)
    e.place("start")
    _clear(e, liveness)
    e.emit("br label %B0")
    translate_blocks(e, flow)
    body = e.lines
    cases = " ".join(f"i32 {number}, label %{label}" for number, label in enumerate(frames.resume_labels, start=1))
    lines = [
        f"define i32 @quiesce_kernel_thread(ptr noalias nocapture readonly %context, ptr %thread) {_ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        "%state = load i32, ptr %thread",
        f"switch i32 %state, label %start [{cases}]",
        *body,
        "}",
    ]
    return lines, frames.frame_bytes


def _called(program: Program, function: Function, number: int) -> list[str]:
    e = _prepare(program, function, CalledShape())
    memory = _reserve_memory(e, function, None)
    flow = flow_of(function)
    e.place("start")
    _clear(e, liveness_of(flow))
    load_register_parameters(e, function)
    e.emit("br label %B0")
    translate_blocks(e, flow)
    body = e.lines
    arguments = [
        f"ptr {name}" for name in (*_names("%returned", function.returned), *_names("%argument", function.parameters))
    ]
    thread = ["ptr %context", *(f"i32 %{axis}" for axis in "xyz"), "i32 %linear"]
    return [
        f"define internal i32 @f{number}({', '.join([*thread, *arguments])}) {_ATTRIBUTES} {{",
        "entry:",
        *memory,
        *e.stack_lines(),
        "br label %start",
        *body,
        "}",
    ]


def _names(prefix: str, parameters: tuple[object, ...]) -> list[str]:
    return [f"{prefix}{number}" for number in range(len(parameters))]


def _tables(program: Program, function: Function, suspends: bool, frame_bytes: int) -> list[str]:
    """Return the constants that the runtime finds by name."""
    parameters = function.parameters
    info = (
        *(ABI_VERSION, int(suspends), frame_bytes, total_bytes(parameters), len(parameters)),
        *(program.dynamic_offset, program.local_bytes, len(program.sites), len(program.variables)),
    )
    slots = [f"@slot{number} = global i64 0, align 8" for number in range(len(program.variables))]
    names = [_text(f"name{number}", name) for number, name in enumerate(program.variables)]
    pairs = [word for number in range(len(program.variables)) for word in (f"ptr @name{number}", f"ptr @slot{number}")]
    return [
        *slots,
        *names,
        _numbers("quiesce_kernel_info", info),
        _numbers("quiesce_kernel_parameters", [n for each in parameters for n in (each.offset, each.bytes)]),
        _numbers(
            "quiesce_kernel_sites", [n for each in program.sites for n in (each.line, each.file, each.source_line)]
        ),
        f"@quiesce_kernel_variables = constant [{len(pairs) + 1} x ptr] [{', '.join([*pairs, 'ptr null'])}], align 8",
    ]


def _numbers(name: str, numbers: tuple[int, ...] | list[int]) -> str:
    values = ", ".join(f"i32 {number}" for number in (*numbers, 0))
    return f"@{name} = constant [{len(numbers) + 1} x i32] [{values}], align 4"


def _text(name: str, text: str) -> str:
    escaped = "".join(chr(byte) if chr(byte).isalnum() else f"\\{byte:02x}" for byte in text.encode())
    return f'@{name} = private constant [{len(text.encode()) + 1} x i8] c"{escaped}\\00"'

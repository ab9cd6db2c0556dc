"""What the object of a kernel tells the runtime, as constants that it finds by name."""

from __future__ import annotations

from collections.abc import Sequence

from quiesce.simulator.kernels.ptx.function import Function, total_bytes
from quiesce.simulator.kernels.translation.coroutine_frames import Frames
from quiesce.simulator.kernels.translation.llvm_code import BLOCK_THREADS_MAX, constant_text
from quiesce.simulator.kernels.translation.program import Program

ABI_VERSION = 14
"""What the runtime and the objects agree on: ``quiesce_kernel_info`` begins with it."""
_PARAMETER_ALIGNMENT = 8


def tables(
    program: Program,
    function: Function,
    suspends: bool,
    frames: Frames | None,
    frame_bytes: int,
    footprints: Sequence[int],
    rows_after: int,
    by_warps: bool,
) -> list[str]:
    """Return the constants that the runtime finds by name."""
    parameters = function.parameters
    states = frames.states if frames else []
    info = (
        *(ABI_VERSION, int(suspends), frame_bytes, total_bytes(parameters), len(parameters)),
        *(program.dynamic_offset, program.local_bytes, len(program.sites), len(program.variables)),
        *(frames.bytes if frames else 0, len(states), program.module.threads_max(function.name)),
        *(program.shared_bytes, program.constant_bytes, rows_after, int(by_warps)),
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
            [n for each in states for n in (each.operation, -1 if each.barrier is None else each.barrier)],
        ),
        _numbers("quiesce_kernel_state_sites", [each.site for each in states]),
        _words("quiesce_kernel_footprints", footprints),
        *(_site_texts(program) if program.variant.checks else ()),
        f"@quiesce_kernel_variables = constant [{len(pairs) + 1} x ptr] [{', '.join([*pairs, 'ptr null'])}], align 8",
    ]


def _numbers(name: str, numbers: Sequence[int]) -> str:
    values = ", ".join(f"i32 {number}" for number in (*numbers, 0))
    return f"@{name} = constant [{len(numbers) + 1} x i32] [{values}], align 4"


def _words(name: str, numbers: Sequence[int]) -> str:
    values = ", ".join(f"i64 {number}" for number in numbers)
    return f"@{name} = constant [{len(numbers)} x i64] [{values}], align 8"


def metadata(function: Function) -> list[str]:
    """Return the metadata that lines refer to by number."""
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


def _site_texts(program: Program) -> list[str]:
    """Return the tables that say which instruction an access is, and which file of the source it came from."""
    texts, lines = [], []
    for number, site in enumerate(program.sites):
        lines.append(constant_text(f"site{number}", site.text))
        texts.append(f"ptr @site{number}")
    files = {number for site in program.sites for number in (site.file, site.caller[0])}
    named = {number: name for number, name in program.module.files.items() if number in files}
    for number, name in named.items():
        lines.append(constant_text(f"file{number}", name))
    pairs = [word for number in named for word in (f"ptr inttoptr (i64 {number} to ptr)", f"ptr @file{number}")]
    pairs += ["ptr null"] * 2
    arrays = []
    for number, ((offset, bytes_), name) in enumerate(program.arrays.items()):
        lines.append(constant_text(f"array{number}", name))
        arrays += [f"ptr @array{number}", f"ptr inttoptr (i64 {offset | bytes_ << 32} to ptr)"]
    arrays += ["ptr null"] * 2
    return [
        *lines,
        f"@quiesce_kernel_arrays = constant [{len(arrays)} x ptr] [{', '.join(arrays)}], align 8",
        f"@quiesce_kernel_site_texts = constant [{len(texts) + 1} x ptr] [{', '.join([*texts, 'ptr null'])}], align 8",
        f"@quiesce_kernel_files = constant [{len(pairs)} x ptr] [{', '.join(pairs)}], align 8",
    ]

"""A kernel's text to machine code: a relocatable object for this processor, which the runtime loads by itself."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Any, Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.lane_function import LANE, LANES, ROW
from quiesce.simulator.kernels.translation.pipeline import translate_kernel
from quiesce.simulator.kernels.translation.program import PLAIN, Variant
from quiesce.simulator.kernels.translation.unlocked_atomics import unlock
from quiesce.simulator.kernels.translation.warp_rows import WARP_LANE, WARP_LANES, WARP_ROW
from quiesce.simulator.kernels.widening.text import NotUnderstood
from quiesce.simulator.kernels.widening.widened import Form, widen_in

_ROWS: Final = (
    (LANE, ROW, Form(LANES, {"%x": 1, "%linear": 1})),
    (WARP_LANE, WARP_ROW, Form(WARP_LANES, {"%x": 1, "%linear": 1, "%linear.wide": 1}, is_warp=True)),
)
"""Names of functions for one thread and for a row, and what becomes of the first; numbers of states may follow."""
_OPTIMISATION = 1
"""More takes twice the time of a kernel that runs for less; this vectorises loops as well."""
_READ_VERSION = 22
"""The version of LLVM whose text is read. Others write attributes in another way; their kernels are not widened."""
_LARGE_BLOCKS = 50
"""From so many blocks on, LLVM's CodeGenPrepare looks again only at what it has changed, and not at the whole function.

Its own limit is 10,000. A kernel with checks at 120 barriers takes 1.4 s in place of 9.0 s, and gives the same object.
"""


def compile_kernel(module: Module, entry: str, variant: Variant = PLAIN) -> bytes:
    """Return the object of a kernel. Raises RefusedKernel for a kernel that is not executed."""
    if variant.wide and not can_widen():
        variant = replace(variant, wide=False)
    text = translate_kernel(module, entry, variant)
    if variant.wide:
        try:
            text = _with_rows(text)
        except NotUnderstood:
            text = translate_kernel(module, entry, replace(variant, wide=False))
    return compile_text(unlock(text))


def _with_rows(text: str) -> str:
    """Return a text in which functions of one thread are replaced by functions of rows. Raises NotUnderstood."""
    for lane, row, form in _ROWS:
        numbers = re.findall(rf"^define i32 @{lane}(\d*)\(", text, re.MULTILINE)
        if numbers:
            text = widen_in(text, {f"{lane}{each}": f"{row}{each}" for each in numbers}, _optimised, form)
    return text


def can_widen() -> bool:
    """Say whether functions are widened, which reads and writes the text of one version of LLVM."""
    import llvmlite.binding as llvm

    return bool(llvm.llvm_version_info[0] == _READ_VERSION)


def compile_text(text: str) -> bytes:
    """Return the object of a text in LLVM's language, optimised without changing any result."""
    return bytes(_machine().emit_object(_optimise(text, vectorise=True)))


def _optimised(text: str, name: str) -> str:
    """Return a function of a text, optimised, as LLVM prints it."""
    return str(_optimise(text, vectorise=False).get_function(name))


def _optimise(text: str, vectorise: bool) -> Any:
    import llvmlite.binding as llvm

    machine = _machine()
    try:
        parsed = llvm.parse_assembly(text)
        parsed.verify()
    except RuntimeError as error:  # the translation was wrong: that is no reason to run something else
        raise RefusedKernel(f"it was not translated to anything valid ({str(error)[:300]})") from None
    tuning = llvm.create_pipeline_tuning_options(speed_level=_OPTIMISATION)
    tuning.loop_vectorization = vectorise
    tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(parsed, builder)
    return parsed


@functools.cache
def _machine() -> Any:
    import llvmlite.binding as llvm

    llvm.set_option("", f"-cgpp-huge-func={_LARGE_BLOCKS}")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=features, opt=_OPTIMISATION, reloc="pic", codemodel="small"
    )

"""A kernel's text to machine code: a relocatable object for this processor, which the runtime loads by itself."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation.lane_function import LANE, LANES, ROW
from quiesce.simulator.kernels.translation.pipeline import translate_kernel
from quiesce.simulator.kernels.translation.program import PLAIN, Variant
from quiesce.simulator.kernels.translation.unlocked_atomics import unlock
from quiesce.simulator.kernels.widening.text import NotUnderstood
from quiesce.simulator.kernels.widening.widened import widen_in

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
    if variant.wide and f"@{LANE}(" in text:
        try:
            text = widen_in(text, LANE, ROW, _optimised, LANES, {"%x": 1, "%linear": 1})
        except NotUnderstood:
            text = translate_kernel(module, entry, replace(variant, wide=False))
    return compile_text(unlock(text))


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

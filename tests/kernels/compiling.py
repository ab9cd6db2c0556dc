"""Kernels compiled in one of the ways, each said by an argument."""

from __future__ import annotations

from quiesce.simulator.kernels import compiler
from quiesce.simulator.kernels.ptx.module import Module
from quiesce.simulator.kernels.translation import pipeline
from quiesce.simulator.kernels.translation.program import MEMORY_BASE, Variant


def translate_kernel(module: Module, entry: str, tuned: bool = False, checks: bool = False) -> str:
    return pipeline.translate_kernel(module, entry, Variant(tuned, checks=checks))


def compile_kernel(
    module: Module,
    entry: str,
    tuned: bool = False,
    checks: bool = False,
    memory_base: int = MEMORY_BASE,
    wide: bool = False,
) -> bytes:
    return compiler.compile_kernel(module, entry, Variant(tuned, wide, checks, memory_base=memory_base))

"""NaNs that threads of a block store to shared memory: all have the same bits, as on a device.

In single precision, arithmetic that gives a NaN gives the bits 0x7fffffff on a device (PTX ISA, "Floating Point
Instructions"). A processor passes on the bits of a source, so that a + b and b + a differ: two lanes that store
one sum would race.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.ptx.operands import Register
from quiesce.simulator.kernels.translation.data_flow import definitions_of
from quiesce.simulator.kernels.translation.llvm_code import Code

_CANONICAL: Final = 0x7FFFFFFF
_ARITHMETIC: Final = frozenset(
    ["add", "sub", "mul", "div", "fma", "mad", "min", "max", "rcp", "sqrt", "rsqrt", "sin", "cos", "ex2", "lg2", "tanh"]
)


def float_results(function: Function) -> frozenset[Register]:
    """Return the registers that only arithmetic of single precision writes, whatever their own type is."""
    definitions = definitions_of(function)
    return frozenset(register for register, made in definitions.items() if all(map(_is_arithmetic, made)))


def _is_arithmetic(i: Instruction) -> bool:
    return i.opcode in _ARITHMETIC and [each.name for each in i.types] == ["f32"]


def with_canonical_nan(code: Code, bits: str) -> str:
    """Return the bits of a float of single precision; of a NaN they are the canonical ones."""
    value = code.define(f"bitcast i32 {bits} to float")
    return code.select(code.define(f"fcmp uno float {value}, {value}"), "i32", str(_CANONICAL), bits)

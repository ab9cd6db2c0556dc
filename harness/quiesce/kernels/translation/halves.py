"""Numbers with 16 bits, half precision and bfloat, as values: read as floats, rounded back once."""

from __future__ import annotations

from quiesce.kernels.ptx.types import TYPES, Type
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.rounding import MODES, NEAREST

_F32 = TYPES["f32"]


def widen(e: Emitter, bits: str, type_: Type) -> str:
    """Return the float that the 16 bits of a half or a bfloat stand for."""
    if type_.name == "f16":
        return e.define(f"fpext half {e.as_float(bits, type_)} to float")
    return e.as_float(e.define(f"shl i32 {e.cast(bits, 16, 32)}, 16"), _F32)


def narrow(e: Emitter, value: str, type_: Type, rounding: str = NEAREST) -> str:
    """Return the 16 bits of a half or a bfloat for a float."""
    if rounding != NEAREST:
        return narrow_double(e, e.define(f"fpext float {value} to double"), type_, rounding)
    if type_.name == "f16":
        half = e.define(f"fptrunc float {value} to half")
        return e.define(f"bitcast half {half} to i16")
    bits = e.define(f"bitcast float {value} to i32")
    odd = e.define(f"and i32 {e.define(f'lshr i32 {bits}, 16')}, 1")
    raised = e.define(f"add i32 {e.define(f'add i32 {bits}, {odd}')}, 32767")
    rounded = e.define(f"lshr i32 {raised}, 16")
    is_nan = e.define(f"fcmp uno float {value}, {value}")
    return e.cast(e.select(is_nan, "i32", "32767", rounded), 32, 16)


def narrow_double(e: Emitter, value: str, type_: Type, rounding: str = NEAREST) -> str:
    """Return the 16 bits of a half or a bfloat for a double, rounded once."""
    return e.pure("i16", f"quiesce_kernel_narrow_{type_.name}", f"double {value}", f"i32 {MODES[rounding]}")

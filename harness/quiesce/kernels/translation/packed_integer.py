"""Two integers of 16 bits side by side in a register."""

from __future__ import annotations

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.forms import require, require_type


def arithmetic(e: Emitter, i: Instruction) -> None:
    """Translate ``add``, ``min`` and ``max`` of both halves."""
    require(i, ("relu",) if i.opcode != "add" else ())
    type_ = require_type(i, ("u16x2", "s16x2"))
    first, second = (e.define(f"bitcast i32 {value} to <2 x i16>") for value in e.read_all(i.operands[1:], type_))
    if i.opcode == "add":
        value = e.define(f"add <2 x i16> {first}, {second}")
    else:
        sign = "s" if type_.is_signed else "u"
        value = _call(e, f"llvm.{sign}{i.opcode}.v2i16", first, second)
    if "relu" in i.modifiers:
        require_type(i, ("s16x2",))
        value = _call(e, "llvm.smax.v2i16", value, "zeroinitializer")
    e.write(i.operands[0], e.define(f"bitcast <2 x i16> {value} to i32"), type_)


def _call(e: Emitter, name: str, first: str, second: str) -> str:
    e.program.declare(f"declare <2 x i16> @{name}(<2 x i16>, <2 x i16>)")
    return e.define(f"call <2 x i16> @{name}(<2 x i16> {first}, <2 x i16> {second})")


HANDLERS = {"add": arithmetic, "min": arithmetic, "max": arithmetic}

"""Moving values and addresses: ``mov``, and addresses between their state spaces and the generic one."""

from __future__ import annotations

from quiesce.kernels.ptx.function import Instruction
from quiesce.kernels.ptx.operands import Symbol
from quiesce.kernels.ptx.types import PREDICATE, TYPES, Type
from quiesce.kernels.translation.emitter import Emitter
from quiesce.kernels.translation.forms import choose, require, require_type
from quiesce.kernels.translation.memory import SPACES
from quiesce.kernels.translation.shapes import PARAMETERS, SHARED_BASE, SHARED_BYTES

_U64 = TYPES["u64"]
_TYPES = tuple(name for name, type_ in TYPES.items() if type_.lanes == 1 and type_.bits != 8)


def move(e: Emitter, i: Instruction) -> None:
    """Translate ``mov``, also of a vector to a register and back."""
    require(i, operands=2)
    type_ = require_type(i, _TYPES)
    e.write(i.operands[0], e.read(i.operands[1], type_), type_)


def _shared_base(e: Emitter) -> str:
    return e.shape.context(e, SHARED_BASE, "i64")


def convert_address(e: Emitter, i: Instruction) -> None:
    """Translate ``cvta``: only shared memory has addresses of its own."""
    require(i, ("to", *SPACES), operands=2)
    type_ = require_type(i, ("u64", "u32"))
    space = choose(i, SPACES)
    value = _as_u64(e, e.read(i.operands[1], type_), type_)
    if space.startswith("shared"):
        value = e.define(f"{'sub' if 'to' in i.modifiers else 'add'} i64 {value}, {_shared_base(e)}")
    e.write(i.operands[0], e.cast(value, 64, type_.bits), type_)


def _as_u64(e: Emitter, value: str, type_: Type) -> str:
    return e.cast(value, type_.bits, 64)


def ask_space(e: Emitter, i: Instruction) -> None:
    """Translate ``isspacep``."""
    require(i, SPACES, operands=2, types=0)
    space = choose(i, SPACES)
    address = e.read(i.operands[1], _U64)
    name = space.partition("::")[0]
    if name == "shared":
        result = _is_shared(e, address)
    elif name == "local":
        result = _is_local(e, address)
    elif name == "const":
        result = _is_const(e, i, address)
    elif name == "param":
        result = _is_inside(e, address, e.shape.context(e, PARAMETERS, "i64"), str(_parameter_bytes(e)))
    else:
        elsewhere = e.define(f"or i1 {_is_shared(e, address)}, {_is_local(e, address)}")
        elsewhere = e.define(f"or i1 {elsewhere}, {_is_const(e, i, address)}")
        result = e.define(f"xor i1 {elsewhere}, true")
    e.write(i.operands[0], result, PREDICATE)


def _is_inside(e: Emitter, address: str, start: str, bytes_: str) -> str:
    return e.define(f"icmp ult i64 {e.define(f'sub i64 {address}, {start}')}, {bytes_}")


def _is_shared(e: Emitter, address: str) -> str:
    bytes_ = e.cast(e.shape.context(e, SHARED_BYTES, "i32"), 32, 64)
    return _is_inside(e, address, _shared_base(e), bytes_)


def _is_local(e: Emitter, address: str) -> str:
    result = "false"
    for name, pointer in e.memory.items():
        start = e.define(f"ptrtoint ptr {pointer} to i64")
        inside = _is_inside(e, address, start, str(e.function.variables[name].bytes))
        result = e.define(f"or i1 {result}, {inside}")
    return result


def _is_const(e: Emitter, i: Instruction, address: str) -> str:
    result = "false"
    for variable in e.program.module.variables.values():
        if variable.space == "const":
            start = e.address_of(Symbol(variable.name))
            result = e.define(f"or i1 {result}, {_is_inside(e, address, start, str(variable.bytes))}")
    return result


def _parameter_bytes(e: Emitter) -> int:
    return max((each.offset + each.bytes for each in e.function.parameters), default=0)


HANDLERS = {"mov": move, "cvta": convert_address, "isspacep": ask_space}

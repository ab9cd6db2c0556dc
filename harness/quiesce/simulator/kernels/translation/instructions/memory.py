"""Loads, stores and moves: in every state space, and of addresses between their spaces and the generic one.

Each access is written by :func:`access`, so that checks have one place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from quiesce.simulator.kernels.ptx.function import Instruction, total_bytes
from quiesce.simulator.kernels.ptx.operands import PREDICATE, TYPES, Address, Operand, Register, Symbol, Type, Vector
from quiesce.simulator.kernels.translation.accesses import Access, AccessKind
from quiesce.simulator.kernels.translation.canonical_nans import with_canonical_nan
from quiesce.simulator.kernels.translation.checks import checked
from quiesce.simulator.kernels.translation.emitter import Chapter, Emitter
from quiesce.simulator.kernels.translation.instructions.forms import choose, refuse, require, require_type
from quiesce.simulator.kernels.translation.llvm_code import PARAMETERS, SHARED_BASE, SHARED_BYTES

MEMORY: Final = Chapter(
    "https://docs.nvidia.com/cuda/parallel-thread-execution/#data-movement-and-conversion-instructions"
)

_SPACES: Final = {
    **{name: name for name in ("global", "shared", "local", "param", "const")},
    "shared::cta": "shared",
}
_CACHES: Final = frozenset(["ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc", "unified"])
_PRIORITIES: Final = (
    *("L1::evict_normal", "L1::evict_unchanged", "L1::evict_first", "L1::evict_last", "L1::no_allocate"),
    *("L2::evict_normal", "L2::evict_first", "L2::evict_last", "L2::cache_hint", "L2::64B", "L2::128B", "L2::256B"),
)
SCOPES: Final = ("cta", "cluster", "gpu", "sys")
VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_ORDERS: Final = ("weak", "relaxed", "acquire", "release", "volatile", "mmio")
_KNOWN: Final = frozenset({*_SPACES, *_CACHES, *_PRIORITIES, *SCOPES, *VECTORS, *_ORDERS})
SPACES: Final = frozenset(_SPACES)
HINT: Final = "L2::cache_hint"


def space_of(i: Instruction) -> str:
    """Return the state space of an access; ``generic`` where the instruction names none."""
    return _SPACES.get(choose(i, _SPACES, "generic"), "generic")


def access(
    e: Emitter,
    i: Instruction,
    address: Address,
    space: str,
    bytes_: int,
    kind: AccessKind,
    stored: Sequence[tuple[str, str]] = (),
) -> str:
    """Return a pointer for an access to memory, and note where it is in the text."""
    if e.program.variant.checks and space != "param":
        return checked(e, i, lambda: place_of(e, i, address, space), Access(space, bytes_, kind), stored)
    if space not in ("param", "local"):
        e.program.add_site(i)
    return place_of(e, i, address, space)


def element_access(e: Emitter, i: Instruction, pointer: str, space: str, bytes_: int, kind: AccessKind) -> str:
    """Return a pointer for an access to a place that was computed from an address."""
    return checked(e, i, lambda: pointer, Access(space, bytes_, kind)) if e.program.variant.checks else pointer


def place_of(e: Emitter, i: Instruction, address: Address, space: str) -> str:
    """Return a pointer to a place that is not accessed itself."""
    base = address.base
    if space == "shared":
        shared = e.shape.context(e, SHARED_BASE, "ptr")
        pointer = e.byte_offset(shared, _number(e, base))
    elif isinstance(base, Register):
        pointer = _pointer_of(e, base)
    elif isinstance(base, Symbol):
        found = e.pointer_to(base)
        if found is None:
            raise refuse(i, f"'{base.name.partition('@')[0]}' is not in .{space} memory")
        pointer = found
    else:
        pointer = e.define(f"inttoptr i64 {base.value & (1 << 64) - 1} to ptr")
    return e.byte_offset(pointer, address.offset)


def _number(e: Emitter, base: Operand) -> str:
    if isinstance(base, Register) and base.type.bits == 32:
        return e.cast(e.read(base, TYPES["u32"]), 32, 64)
    return e.read(base, TYPES["u64"])


def _pointer_of(e: Emitter, register: Register) -> str:
    if e.has_pointer(register):
        return e.load("ptr", e.pointer_slot(register))
    return e.define(f"inttoptr i64 {_number(e, register)} to ptr")


def _elements(i: Instruction, operand: Operand) -> tuple[Operand, ...]:
    count = VECTORS.get(choose(i, VECTORS, "one"), 1)
    elements = operand.elements if isinstance(operand, Vector) else (operand,)
    if len(elements) != count:
        raise refuse(i, f"'{i.name}' names {len(elements)} registers")
    return elements


def _memory_type(i: Instruction) -> Type:
    if len(i.types) != 1 or i.types[0].kind == "predicate" or i.types[0].lanes != 1:
        raise refuse(i, f"'{i.name}' has a type that is not in memory")
    return i.types[0]


def _require(i: Instruction, operands: int) -> None:
    require(i, _KNOWN, operands=operands + (HINT in i.modifiers))


def _order(i: Instruction, type_: Type, kind: AccessKind, alone: bool) -> tuple[str, str]:
    """Return what LLVM writes for the order of an access: before its type, and after its pointer."""
    order = choose(i, _ORDERS, "weak")
    if order == "weak":
        return "", ""
    if order == "volatile" or not alone or type_.bits > 64:
        return "volatile ", ""
    if order in ("relaxed", "mmio"):
        return "atomic ", " monotonic"
    if order != ("acquire" if kind == "load" else "release"):
        raise refuse(i, f"'.{order}' does not go with '{i.opcode}'")
    return "atomic ", f" {order}"


def tell_of_fence(e: Emitter, i: Instruction) -> None:
    """Tell the runtime that a thread orders what it did before, and whether it does so for other blocks too."""
    is_for_all = int("cta" not in i.modifiers)
    e.call("void", "quiesce_kernel_fence", "ptr %context", f"i32 {is_for_all}", attributes="nounwind")


@MEMORY.translates("ld", "ldu")
def load(e: Emitter, i: Instruction) -> None:
    """Translate ``ld`` and ``ldu``."""
    _require(i, 2)
    type_ = _memory_type(i)
    space = space_of(i)
    address = i.operands[1]
    if not isinstance(address, Address):
        raise refuse(i, "there is no address")
    targets = _elements(i, i.operands[0])
    if space == "param" and isinstance(address.base, Symbol) and _load_parameters(e, address, type_, targets):
        return
    pointer = access(e, i, address, space, type_.bytes * len(targets), "load")
    before, after = _order(i, type_, "load", len(targets) == 1)
    for number, target in enumerate(targets):
        place = e.byte_offset(pointer, type_.bytes * number)
        value = e.load(f"{before}{type_.integer}", f"{place}{after}", f"align {min(type_.bytes, 8)}")
        e.write(target, value, type_, wider=True)


def _load_parameters(e: Emitter, address: Address, type_: Type, targets: tuple[Operand, ...]) -> bool:
    """Take a kernel's parameters from before the loop over its threads; say whether that can be."""
    assert isinstance(address.base, Symbol)
    offsets = [address.offset + type_.bytes * number for number in range(len(targets))]
    values = [e.entry_parameter(address.base, offset, type_.bits) for offset in offsets]
    for target, value in zip(targets, values, strict=True):
        if value is None:
            return False
        e.write(target, value, type_, wider=True)
    return True


@MEMORY.translates("st")
def store(e: Emitter, i: Instruction) -> None:
    """Translate ``st``."""
    _require(i, 2)
    type_ = _memory_type(i)
    space = space_of(i)
    address = i.operands[0]
    if not isinstance(address, Address) or space == "const":
        raise refuse(i, "there is no address that can be written to")
    sources = _elements(i, i.operands[1])
    values = [e.read(source, type_, wider=True) for source in sources]
    if space == "shared" and type_.bits == 32:
        values = [_as_stored(e, source, value) for source, value in zip(sources, values, strict=True)]
    if e.program.variant.checks and "release" in i.modifiers:
        tell_of_fence(e, i)
    stored = [(type_.integer, value) for value in values]
    pointer = access(e, i, address, space, type_.bytes * len(sources), "store", stored)
    before, after = _order(i, type_, "store", len(sources) == 1)
    for number, value in enumerate(values):
        place = e.byte_offset(pointer, type_.bytes * number)
        e.store(f"{before}{type_.integer}", value, f"{place}{after}", f"align {min(type_.bytes, 8)}")


def _as_stored(e: Emitter, source: Operand, value: str) -> str:
    return with_canonical_nan(e, value) if source in e.floats else value


@MEMORY.translates("prefetch", "prefetchu", "applypriority")
def ignore_hint(e: Emitter, i: Instruction) -> None:
    """Translate what only makes accesses faster on a device: nothing is done."""
    allowed = {*_SPACES, *_PRIORITIES, "L1", "L2", "tensormap"}
    if any(each not in allowed for each in i.modifiers) or "tensormap" in i.modifiers:
        raise refuse(i, f"'{i.name}' is not executed")


@MEMORY.translates("createpolicy")
def create_policy(e: Emitter, i: Instruction) -> None:
    """Translate ``createpolicy``: a number that nothing here looks at."""
    if not 2 <= len(i.operands) <= 4:
        raise refuse(i, f"'{i.opcode}' has {len(i.operands)} operands")
    e.write(i.operands[0], "0", TYPES["b64"])


_U64 = TYPES["u64"]
_TYPES = tuple(word for word, type_ in TYPES.items() if type_.lanes == 1 and type_.bits != 8)


@MEMORY.translates("mov")
def move(e: Emitter, i: Instruction) -> None:
    """Translate ``mov``, also of a vector to a register and back."""
    require(i, operands=2)
    type_ = require_type(i, _TYPES)
    e.write(i.operands[0], e.read(i.operands[1], type_), type_)


def _shared_base(e: Emitter) -> str:
    return e.shape.context(e, SHARED_BASE, "i64")


@MEMORY.translates("cvta")
def convert_address(e: Emitter, i: Instruction) -> None:
    """Translate ``cvta``: only shared memory has addresses of its own."""
    require(i, ("to", *SPACES), operands=2)
    type_ = require_type(i, ("u64", "u32"))
    space = choose(i, SPACES)
    value = e.cast(e.read(i.operands[1], type_), type_.bits, 64)
    if space.startswith("shared"):
        value = e.define(f"{'sub' if 'to' in i.modifiers else 'add'} i64 {value}, {_shared_base(e)}")
    e.write(i.operands[0], e.cast(value, 64, type_.bits), type_)


@MEMORY.translates("isspacep")
def ask_space(e: Emitter, i: Instruction) -> None:
    """Translate ``isspacep``."""
    require(i, SPACES, operands=2, types=0)
    space = choose(i, SPACES)
    address = e.read(i.operands[1], _U64)
    word = space.partition("::")[0]
    if word == "shared":
        result = _is_shared(e, address)
    elif word == "local":
        result = _is_local(e, address)
    elif word == "const":
        result = _is_const(e, i, address)
    elif word == "param":
        result = _is_inside(e, address, e.shape.context(e, PARAMETERS, "i64"), str(total_bytes(e.function.parameters)))
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
    for word, pointer in e.memory.items():
        start = e.define(f"ptrtoint ptr {pointer} to i64")
        inside = _is_inside(e, address, start, str(e.function.variables[word].bytes))
        result = e.define(f"or i1 {result}, {inside}")
    return result


def _is_const(e: Emitter, i: Instruction, address: str) -> str:
    result = "false"
    for variable in e.program.module.variables.values():
        if variable.space == "const":
            start = e.address_of(Symbol(variable.name))
            result = e.define(f"or i1 {result}, {_is_inside(e, address, start, str(variable.bytes))}")
    return result

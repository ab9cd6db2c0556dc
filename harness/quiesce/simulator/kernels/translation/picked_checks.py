"""The check of one instruction for a row of threads that use any places, such as those that an index picks.

The bits of all lanes are gathered at once. Whether all are set is one test; only the bits that note the accesses are
written one by one, since several lanes may have theirs in one byte.
"""

from __future__ import annotations

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.translation.access_recording import CELL_SHIFT, KINDS, STRIDE, TOUCHED
from quiesce.simulator.kernels.translation.accesses import Judged
from quiesce.simulator.kernels.translation.checks import CHECKS, CONSTANTS_BYTES, CONSTANTS_OFFSET, MEMORY_BYTES, asked
from quiesce.simulator.kernels.translation.emitter import Around, Emitter
from quiesce.simulator.kernels.translation.lane_function import LANES
from quiesce.simulator.kernels.translation.llvm_code import CalledShape
from quiesce.simulator.kernels.translation.program import Program


def _wide(type_: str) -> str:
    return f"<{LANES} x {type_}>"


_LANES, _WORDS, _PLACES, _POINTERS = map(_wide, ("i1", "i32", "i64", "ptr"))


def check_of_any(program: Program, function: Function, judged: Judged, number: int) -> list[str]:
    """Return the function for accesses to any places."""
    e = Emitter(program, function, Around(CalledShape()))
    address = e.define(f"ptrtoint {_POINTERS} %pointer to {_PLACES}")
    offset = e.define(f"sub {_PLACES} {address}, {_splat('i64', program.variant.memory_base)}")
    within = _place_of_bits(e, offset)
    low = _of_lanes(e, e.define(f"trunc {_PLACES} {address} to {_WORDS}"))
    shift = e.define(f"and {_WORDS} {low}, {_splat('i32', 7)}")
    wanted = _of_lanes(e, e.define(f"shl {_WORDS} {_splat('i32', (1 << judged.access.bytes) - 1)}, {shift}"))
    odd = e.define(f"and {_WORDS} {low}, {_splat('i32', judged.access.bytes - 1)}")
    missing = _missing(e, e.shape.context(e, CHECKS, "ptr"), within, wanted)
    _leave_if(e, _any(e, e.define(f"or {_WORDS} {missing}, {odd}")))
    if judged.access.kind != "load":
        _leave_if(e, _is_any_constant(e, offset))
    _note(e, judged, address, within, wanted)
    arguments = f"ptr %context, {_POINTERS} %pointer, i32 %site, i32 %linear, ptr %frame, {_LANES} %lanes"
    return [
        f"define internal i1 @check{number}.any({arguments}) noinline nounwind null_pointer_is_valid {{",
        "entry:",
        *e.lines,
        *("ret i1 true", "wrong:", "ret i1 false", "}"),
    ]


def _place_of_bits(e: Emitter, offset: str) -> str:
    """Return in which bytes the first bits of accesses are; that of nobody's bits for others."""
    within = e.define(f"lshr {_PLACES} {offset}, {_splat('i64', 3)}")
    known = e.define(f"icmp ult {_PLACES} {within}, {_splat('i64', MEMORY_BYTES // 8)}")
    used = e.define(f"and {_LANES} %lanes, {known}")
    return e.define(f"select {_LANES} {used}, {_PLACES} {within}, {_PLACES} zeroinitializer")


def _is_any_constant(e: Emitter, offset: str) -> str:
    within = e.define(f"sub {_PLACES} {offset}, {_splat('i64', CONSTANTS_OFFSET)}")
    constant = e.define(f"icmp ult {_PLACES} {within}, {_splat('i64', CONSTANTS_BYTES)}")
    return _any_lane(e, e.define(f"and {_LANES} %lanes, {constant}"))


def _tell_of_cells(e: Emitter, judged: Judged, table: str, address: str, within: str) -> None:
    """Tell the runtime of the first lane that uses a cell, as long as there is a cell that was not used before."""
    again, tell, known = (e.new_label() for _ in range(3))
    cells = e.define(f"lshr {_PLACES} {within}, {_splat('i64', CELL_SHIFT)}")
    wanted = _of_lanes(e, _splat("i32", judged.kinds))
    e.emit(f"br label %{again}")
    e.place(again)
    bits = _bits(e, e.define(f"icmp ne {_WORDS} {_missing(e, table, cells, wanted)}, zeroinitializer"))
    e.emit(f"br i1 {e.define(f'icmp eq i{LANES} {bits}, 0')}, label %{known}, label %{tell}")
    e.place(tell)
    lane = e.cast(e.pure(f"i{LANES}", f"llvm.cttz.i{LANES}", f"i{LANES} {bits}", "i1 true"), LANES, 32)
    place, thread = e.define(f"extractelement {_PLACES} {address}, i32 {lane}"), e.define(f"add i32 %linear, {lane}")
    numbers = (f"i32 {judged.access.number(judged.kinds)}", "i32 %site", f"i32 {thread}", "ptr %frame")
    e.call("ptr", asked(judged), "ptr %context", f"i64 {place}", *numbers, attributes="cold nounwind")
    e.emit(f"br label %{again}")
    e.place(known)


def _note(e: Emitter, judged: Judged, address: str, within: str, wanted: str) -> None:
    """Set the bits that note the accesses, unless all are set: then their cells are known as well."""
    touched, note, noted = e.shape.context(e, TOUCHED, "ptr"), e.new_label(), e.new_label()
    tables = [e.byte_offset(touched, kind * STRIDE) for kind in range(KINDS) if judged.kinds >> kind & 1]
    missing = "zeroinitializer"
    for table in tables:
        missing = e.define(f"or {_WORDS} {_missing(e, table, within, wanted)}, {missing}")
    e.emit(f"br i1 {_any(e, missing)}, label %{note}, label %{noted}")
    e.place(note)
    _tell_of_cells(e, judged, e.byte_offset(touched, KINDS * STRIDE), address, within)
    type_ = "i8" if judged.access.bytes <= 8 else "i16"
    bits = e.define(f"trunc {_WORDS} {wanted} to {_wide(type_)}")
    for lane in range(LANES):
        offset = e.define(f"extractelement {_PLACES} {within}, i32 {lane}")
        own = e.define(f"extractelement {_wide(type_)} {bits}, i32 {lane}")
        for place in (e.byte_offset(table, offset) for table in tables):
            e.store(type_, e.define(f"or {type_} {e.load(type_, place, 'align 1')}, {own}"), place, "align 1")
    e.emit(f"br label %{noted}")
    e.place(noted)


def _missing(e: Emitter, table: str, within: str, wanted: str) -> str:
    """Return the wanted bits that are not set from some bytes of a table on. There are bytes after each table."""
    places = e.define(f"getelementptr i8, ptr {table}, {_PLACES} {within}")
    name = f"llvm.masked.gather.v{LANES}i32.v{LANES}p0"
    e.program.declare(f"declare {_WORDS} @{name}({_POINTERS}, {_LANES}, {_WORDS})")
    arguments = f"{_POINTERS} align 1 {places}, {_LANES} %lanes, {_WORDS} {_splat('i32', -1)}"
    found = e.define(f"call {_WORDS} @{name}({arguments})")
    unset = e.define(f"xor {_WORDS} {found}, {_splat('i32', -1)}")
    return e.define(f"and {_WORDS} {unset}, {wanted}")


def _leave_if(e: Emitter, wrong: str) -> None:
    right = e.new_label()
    e.emit(f"br i1 {wrong}, label %wrong, label %{right}, !prof !7")
    e.place(right)


def _of_lanes(e: Emitter, words: str) -> str:
    """Return words that are 0 for lanes that do not run."""
    return e.define(f"select {_LANES} %lanes, {_WORDS} {words}, {_WORDS} zeroinitializer")


def _any(e: Emitter, words: str) -> str:
    return _any_lane(e, e.define(f"icmp ne {_WORDS} {words}, zeroinitializer"))


def _any_lane(e: Emitter, lanes: str) -> str:
    return e.define(f"icmp ne i{LANES} {_bits(e, lanes)}, 0")


def _bits(e: Emitter, lanes: str) -> str:
    return e.define(f"bitcast {_LANES} {lanes} to i{LANES}")


def _splat(type_: str, value: int) -> str:
    return f"splat ({type_} {value})"

"""Checks of one instruction for a row of threads at once, of which :mod:`quiesce.simulator.kernels.widening` asks.

Each check that is a function has three more: of an access to one place, of those of the lanes of a row, whose places
follow each other, and of those of any places. Loads from shared memory have those of one place and of any. They note
accesses that are right, and tell the runtime of the first use of a cell of memory. If one is not right they do neither,
and each lane asks for itself.
"""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Function
from quiesce.simulator.kernels.translation.access_recording import (
    can_be_noted,
    is_row_unnoted,
    is_unnoted,
    note_row,
    note_use,
)
from quiesce.simulator.kernels.translation.accesses import Judged
from quiesce.simulator.kernels.translation.checks import (
    CHECKS,
    asked,
    is_constant,
    is_unknown,
    place_in_shared,
    place_of_bits,
)
from quiesce.simulator.kernels.translation.emitter import Around, Emitter
from quiesce.simulator.kernels.translation.lane_function import LANES
from quiesce.simulator.kernels.translation.llvm_code import CalledShape
from quiesce.simulator.kernels.translation.picked_checks import check_of_any
from quiesce.simulator.kernels.translation.program import Program

_ROW_BYTES_MAX: Final = 16
_CELL_SHIFT: Final = 9
"""As many bytes of memory have one cell (``native/kernels/touched.h``)."""
_LINES: Final = "nounwind null_pointer_is_valid"


def row_checks(program: Program, function: Function) -> list[str]:
    """Return the functions for rows, for each check that is a function."""
    lines = []
    for judged, number in program.checks_called.items():
        is_noted = can_be_noted(judged.access) or not judged.may_race
        if judged.access.space == "shared" and judged.access.kind == "load" and is_noted:
            lines += _of_one_shared(program, function, judged, number)
            lines += _of_any_shared(program, function, judged, number)
        if judged.access.space in ("shared", "local") or judged.access.kind == "atomic":
            continue
        if judged.access.bytes <= _ROW_BYTES_MAX:
            for form in (_of_one, _of_row, check_of_any):
                lines += form(program, function, judged, number)
    return lines


def _of_one(program: Program, function: Function, judged: Judged, number: int) -> list[str]:
    """Return the function for accesses of all lanes to one place."""
    access = judged.access
    e = Emitter(program, function, Around(CalledShape()))
    address = e.define("ptrtoint ptr %pointer to i64")
    within = place_of_bits(e, address)
    wrong = is_unknown(e, within, address, access.bytes)
    if access.kind != "load":
        wrong = e.define(f"or i1 {wrong}, {is_constant(e, address)}")
    _leave_if(e, wrong)
    _leave_unless(e, note_use(e, within, address, access.bytes, judged.kinds))
    _tell(e, judged, address, _first_lane(e))
    return _function(f"check{number}.one", access.bytes, e)


def _of_one_shared(program: Program, function: Function, judged: Judged, number: int) -> list[str]:
    """Return the function for loads of all lanes from one place in shared memory."""
    e = Emitter(program, function, Around(CalledShape()))
    offset, wrong = place_in_shared(e, judged, e.define("ptrtoint ptr %pointer to i64"))
    if judged.may_race:
        lanes = e.cast(e.define(f"bitcast <{LANES} x i1> %lanes to i{LANES}"), LANES, 32)
        wrong = is_row_unnoted(e, judged.access, wrong, offset, lanes)
    _leave_if(e, wrong)
    return _function(f"check{number}.one", 0, e)


def _of_any_shared(program: Program, function: Function, judged: Judged, number: int) -> list[str]:
    """Return the function for loads from any places in shared memory: a loop over the lanes."""
    e = Emitter(program, function, Around(CalledShape()))
    places = e.define(f"alloca <{LANES} x ptr>")
    e.store(f"<{LANES} x ptr>", "%pointer", places)
    bits = e.define(f"bitcast <{LANES} x i1> %lanes to i{LANES}")
    e.emit("br label %lane")
    e.place("lane")
    e.emit(f"%left = phi i{LANES} [{bits}, %entry], [%rest, %noted]")
    lane = e.cast(e.pure(f"i{LANES}", f"llvm.cttz.i{LANES}", f"i{LANES} %left", "i1 true"), LANES, 32)
    pointer = e.load("ptr", e.define(f"getelementptr ptr, ptr {places}, i32 {lane}"))
    offset, wrong = place_in_shared(e, judged, e.define(f"ptrtoint ptr {pointer} to i64"))
    if judged.may_race:
        wrong = is_unnoted(e, judged.access, wrong, offset, "%site", e.define(f"add i32 %linear, {lane}"))
    e.emit(f"br i1 {wrong}, label %wrong, label %noted, !prof !7")
    e.place("noted")
    e.emit(f"%rest = and i{LANES} %left, {e.define(f'sub i{LANES} %left, 1')}")
    more = e.define(f"icmp ne i{LANES} %rest, 0")
    done = e.new_label()
    e.emit(f"br i1 {more}, label %lane, label %{done}")
    e.place(done)
    return _function(f"check{number}.any", 0, e, f"<{LANES} x ptr>")


def _of_row(program: Program, function: Function, judged: Judged, number: int) -> list[str]:
    """Return the function for accesses to places that follow each other, from that of the first lane on."""
    access = judged.access
    e = Emitter(program, function, Around(CalledShape()))
    bits = LANES * access.bytes
    width = bits if access.bytes >= 8 else bits + 8  # the first bit may be any of its byte
    address = e.define("ptrtoint ptr %pointer to i64")
    within = place_of_bits(e, address)
    low = wanted = _wanted(e, access.bytes)
    high = "0"
    if width > bits:
        shift = e.define(f"and i64 {address}, 7")
        wanted = e.define(f"zext i{bits} {wanted} to i{width}")
        wanted = e.define(f"shl i{width} {wanted}, {_resized(e, shift, width)}")
        low = e.define(f"trunc i{width} {wanted} to i{bits}")
        high = e.define(f"trunc i{width} {e.define(f'lshr i{width} {wanted}, {bits}')} to i8")
    found = e.load(f"i{width}", e.byte_offset(e.shape.context(e, CHECKS, "ptr"), within), "align 1")
    missing = e.define(f"and i{width} {e.define(f'xor i{width} {found}, -1')}, {wanted}")
    odd = e.define(f"icmp ne i64 {e.define(f'and i64 {address}, {access.bytes - 1}')}, 0")
    wrong = e.define(f"or i1 {e.define(f'icmp ne i{width} {missing}, 0')}, {odd}")
    if access.kind != "load":
        wrong = e.define(f"or i1 {wrong}, {is_constant(e, address)}")
    _leave_if(e, wrong)
    end = e.define(f"add i64 {e.define(f'and i64 {address}, 7')}, {bits - 1}")
    last = e.define(f"add i64 {within}, {e.define(f'lshr i64 {end}, 3')}")
    _leave_unless(e, note_row(e, within, (low, bits, high), last, judged.kinds))
    first = _first_lane(e)
    place = _place(e, address, first, access.bytes)
    _tell(e, judged, place, first)
    final = e.define(f"sub i32 {LANES - 1}, {_counted(e, 'ctlz')}")
    other = _place(e, address, final, access.bytes)
    cells = [e.define(f"lshr i64 {each}, {_CELL_SHIFT}") for each in (place, other)]
    _leave_unless(e, e.define(f"icmp ne i64 {cells[0]}, {cells[1]}"))
    _tell(e, judged, other, final)
    return _function(f"check{number}.row", access.bytes, e)


def _function(name: str, bytes_: int, e: Emitter, places: str = "ptr") -> list[str]:
    arguments = f"ptr %context, {places} %pointer, i32 %site, i32 %linear, ptr %frame, <{LANES} x i1> %lanes"
    head = f'define internal i1 @{name}({arguments}) {_LINES} "row-bytes"="{bytes_}" {{'
    return [head, "entry:", *e.lines, "ret i1 true", "wrong:", "ret i1 false", "}"]


def _leave_if(e: Emitter, wrong: str) -> None:
    right = e.new_label()
    e.emit(f"br i1 {wrong}, label %wrong, label %{right}, !prof !7")
    e.place(right)


def _leave_unless(e: Emitter, is_first: str) -> None:
    """Return, unless the runtime has to be told of an access."""
    told, known = e.new_label(), e.new_label()
    e.emit(f"br i1 {is_first}, label %{told}, label %{known}")
    e.place(known)
    e.emit("ret i1 true")
    e.place(told)


def _tell(e: Emitter, judged: Judged, address: str, lane: str) -> None:
    """Tell the runtime of the access of a lane, which is right."""
    thread = e.define(f"add i32 %linear, {lane}")
    numbers = (f"i32 {judged.access.number(judged.kinds)}", "i32 %site", f"i32 {thread}", "ptr %frame")
    e.call("ptr", asked(judged), "ptr %context", f"i64 {address}", *numbers, attributes="cold nounwind")


def _first_lane(e: Emitter) -> str:
    return _counted(e, "cttz")


def _counted(e: Emitter, how: str) -> str:
    """Return the number of lanes that do not run, from the first on or from the last on."""
    bits = e.define(f"bitcast <{LANES} x i1> %lanes to i{LANES}")
    return e.cast(e.pure(f"i{LANES}", f"llvm.{how}.i{LANES}", f"i{LANES} {bits}", "i1 true"), LANES, 32)


def _place(e: Emitter, address: str, lane: str, bytes_: int) -> str:
    way = e.define(f"mul i64 {e.cast(lane, 32, 64)}, {bytes_}")
    return e.define(f"add i64 {address}, {way}")


def _wanted(e: Emitter, bytes_: int) -> str:
    """Return the bits of the bytes that the lanes use: each lane has as many as it uses bytes."""
    whole = LANES * bytes_
    each = e.define(f"sext <{LANES} x i1> %lanes to <{LANES} x i{8 * bytes_}>")
    bytes_of_ones = e.define(f"bitcast <{LANES} x i{8 * bytes_}> {each} to <{whole} x i8>")
    ones = e.define(f"icmp slt <{whole} x i8> {bytes_of_ones}, zeroinitializer")
    return e.define(f"bitcast <{whole} x i1> {ones} to i{whole}")


def _resized(e: Emitter, shift: str, width: int) -> str:
    return e.define(f"{'trunc' if width < 64 else 'zext'} i64 {shift} to i{width}")

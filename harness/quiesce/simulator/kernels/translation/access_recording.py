"""What a kernel notes of its accesses while it runs: words of shared memory, and bytes read and written by a launch."""

from __future__ import annotations

from typing import Final

from quiesce.simulator.kernels.ptx.function import Function, Instruction
from quiesce.simulator.kernels.translation.accesses import Access, AccessKind
from quiesce.simulator.kernels.translation.data_flow import effects_of
from quiesce.simulator.kernels.translation.emitter import Emitter
from quiesce.simulator.kernels.translation.llvm_code import Code
from quiesce.simulator.kernels.translation.program import SHARED_BYTES_MAX, Program

WORDS, BLOCK_TURN = 104, 60
"""Where the context has the address of the words, and the number of the block."""
_MOMENT, _CHANGING, _LANES_MOMENTS, _ALL = 8, 16, 24, 280
_CELL_BYTES, _TOUCH_BYTES, _WORD_BYTES, _CHANGE_BYTES = 48, 16, 4, 24
_CHANGES: Final = _ALL + _CELL_BYTES * (SHARED_BYTES_MAX // _WORD_BYTES)
_WARPS: Final = 32
_WRITTEN, _SHARED_READ, _READ_TOO = range(3)
_OF_WRITES, _OF_READS = range(2)
_SIZES: Final = (4, 8, 16)
_OTHERS: Final = 0xFFFFFFFFF800001F
"""The moment, the warp and the lane of a touch, without the moment of the warp."""


def can_be_noted(access: Access) -> bool:
    """Say whether an access is one to whole words, and no copy."""
    return access.bytes in _SIZES and access.kind != "copy"


def is_unnoted(e: Emitter, access: Access, wrong: str, offset: str, site: str, thread: str = "") -> str:
    """Note an access; say whether that could not be, and the runtime is to be told of it.

    ``thread``: one of a row, for each of which this is written inline.
    """
    kind = (access.bytes, access.kind)
    e.program.noted_words.add(kind)
    words = e.shape.context(e, WORDS, "ptr")
    turn = e.cast(e.shape.context(e, BLOCK_TURN, "i32"), 32, 64)
    arguments = [f"ptr {words}", f"i64 {turn}", f"i1 {wrong}", f"i64 {offset}", f"i32 {site}"]
    how = " alwaysinline" if thread else ""
    return e.define(f"call i1 @{_name(*kind)}({', '.join(arguments)}, i32 {thread or e.shape.linear(e)}){how}")


def is_row_unnoted(e: Emitter, access: Access, wrong: str, offset: str, lanes: str) -> str:
    """Note that lanes of a row (a mask of ``i32``) load from one place; say whether that could not be."""
    e.program.noted_rows.add(access.bytes)
    words = e.shape.context(e, WORDS, "ptr")
    turn = e.cast(e.shape.context(e, BLOCK_TURN, "i32"), 32, 64)
    arguments = [f"ptr {words}", f"i64 {turn}", f"i1 {wrong}", f"i64 {offset}", "i32 %site", f"i32 {e.shape.linear(e)}"]
    return e.define(f"call i1 @{_name(access.bytes, 'load')}.row({', '.join(arguments)}, i32 {lanes})")


def noting_functions(program: Program) -> list[str]:
    """Return the functions that note accesses."""
    of_threads = [line for kind in sorted(program.noted_words) for line in _noting(program, *kind)]
    return [*of_threads, *(line for bytes_ in sorted(program.noted_rows) for line in _noting_row(program, bytes_))]


def _name(bytes_: int, kind: AccessKind) -> str:
    return f"{kind}.of.{bytes_}"


def _noting(program: Program, bytes_: int, kind: AccessKind) -> list[str]:
    code = Code(program)
    turn = code.load("i64", code.byte_offset("%words", _CHANGING if kind == "atomic" else 0))
    elsewhere = code.define(f"or i1 %wrong, {code.define(f'icmp ne i64 {turn}, %turn')}")
    code.emit(f"br i1 {elsewhere}, label %unnoted, label %look, !prof !7")
    code.place("look")
    (_note_changes if kind == "atomic" else _note_uses)(code, bytes_ // _WORD_BYTES, kind == "store")
    arguments = "ptr %words, i64 %turn, i1 %wrong, i64 %offset, i32 %site, i32 %linear"
    return [
        f"define internal i1 @{_name(bytes_, kind)}({arguments}) noinline nounwind {{",
        *code.lines,
        *("ret i1 false", "unnoted:", "ret i1 true", "}"),
    ]


def _noting_row(program: Program, bytes_: int) -> list[str]:
    """Return the function that notes what one thread after another would note that loads from the same place."""
    code = Code(program)
    first_lane = code.define("and i32 %linear, 31")
    shifted = code.define(f"shl i64 {code.cast('%lanes', 32, 64)}, {code.cast(first_lane, 32, 64)}")
    lanes = code.cast(shifted, 64, 32)
    is_of_two_warps = code.define(f"icmp ugt i64 {shifted}, {(1 << 32) - 1}")
    turn = code.load("i64", "%words")
    elsewhere = code.define(f"or i1 %wrong, {code.define(f'icmp ne i64 {turn}, %turn')}")
    code.emit(f"br i1 {code.define(f'or i1 {elsewhere}, {is_of_two_warps}')}, label %unnoted, label %look, !prof !7")
    code.place("look")
    ends = code.pure("i32", "llvm.cttz.i32", f"i32 {lanes}", "i1 true"), _last(code, lanes)
    warp = code.define("and i32 %linear, -32")
    now = [[_now(code, clock, code.define(f"or i32 {warp}, {lane}")) for lane in ends] for clock in (0, 1)]
    cells = _records(code, _ALL, _CELL_BYTES, bytes_ // _WORD_BYTES)
    met = "false"
    for cell in cells:
        for each in now[_OF_WRITES]:  # a thread that wrote is another one than the first or than the last one
            met = code.define(f"or i1 {met}, {_meets(code, cell, _WRITTEN, each)}")
    code.emit(f"br i1 {met}, label %unnoted, label %note, !prof !7")
    code.place("note")
    for cell in cells:
        _note_reads(code, cell, lanes, ends[0], code.define(f"and i64 {now[_OF_READS][0]}, -32"))
    arguments = "ptr %words, i64 %turn, i1 %wrong, i64 %offset, i32 %site, i32 %linear, i32 %lanes"
    return [
        f"define internal i1 @{_name(bytes_, 'load')}.row({arguments}) noinline nounwind {{",
        *code.lines,
        *("ret i1 false", "unnoted:", "ret i1 true", "}"),
    ]


def _note_reads(code: Code, cell: str, lanes: str, first: str, now: str) -> None:
    """Note the reads of lanes: a thread that is noted stays, and the last other one is next to it."""
    noted = [code.byte_offset(cell, _TOUCH_BYTES * which) for which in (_SHARED_READ, _READ_TOO)]
    before = code.load("i64", noted[0])
    differs = code.define(f"xor i64 {before}, {now}")
    lane = code.define(f"and i32 {code.cast(before, 64, 32)}, 31")
    is_of_warp = code.define(f"icmp eq i64 {code.define(f'and i64 {differs}, {_OTHERS & ~31}')}, 0")
    is_there = code.define(f"trunc i32 {code.define(f'lshr i32 {lanes}, {lane}')} to i1")
    is_again = code.define(f"and i1 {is_of_warp}, {is_there}")
    is_of_moment = code.define(f"icmp ult i64 {differs}, {1 << 32}")
    stays = code.define(f"and i1 {is_of_moment}, {code.define(f'xor i1 {is_again}, true')}")
    one = code.select(is_again, "i32", lane, first)
    own = code.define(f"xor i32 {code.define(f'shl i32 1, {one}')}, -1")
    others = code.define(f"and i32 {lanes}, {code.select(stays, 'i32', '-1', own)}")
    is_alone = code.define(f"icmp eq i32 {others}, 0")
    place = code.define("zext i32 %site to i64")
    kept = (stays, one), (is_alone, _last(code, others))
    for touch, (is_kept, reader) in zip(noted, kept, strict=True):
        for at, value in ((0, code.define(f"or i64 {now}, {code.cast(reader, 32, 64)}")), (8, place)):
            pointer = code.byte_offset(touch, at)
            code.store("i64", code.select(is_kept, "i64", code.load("i64", pointer), value), pointer)


def _last(code: Code, lanes: str) -> str:
    """Return the number of the last lane; a number below 32 for none."""
    leading = code.pure("i32", "llvm.ctlz.i32", f"i32 {lanes}", "i1 false")
    return code.define(f"and i32 {code.define(f'sub i32 31, {leading}')}, 31")


def _records(code: Code, start: int, bytes_: int, count: int) -> list[str]:
    """Return where words of an access have their records, of so many bytes each."""
    way = code.define(f"mul i64 {code.define('lshr i64 %offset, 2')}, {bytes_}")
    first = code.byte_offset(code.byte_offset("%words", start), way)
    return [code.byte_offset(first, bytes_ * number) for number in range(count)]


def _note_changes(code: Code, count: int, _: bool) -> None:
    """Note a change by an atomic operation, unless its words are used in another way since the last barrier."""
    moment = code.load("i32", code.byte_offset("%words", _MOMENT))
    met = "false"
    for cell in _records(code, _ALL, _CELL_BYTES, count):
        for which in (_WRITTEN, _SHARED_READ, _READ_TOO):
            latest = code.load("i32", code.byte_offset(cell, _TOUCH_BYTES * which + 4))
            met = code.define(f"or i1 {met}, {code.define(f'icmp eq i32 {latest}, {moment}')}")
    code.emit(f"br i1 {met}, label %unnoted, label %note, !prof !7")
    code.place("note")
    now, place = _now(code, _OF_WRITES, "%linear"), code.define("zext i32 %site to i64")
    for changes in _records(code, _CHANGES, 2 * _CHANGE_BYTES, count):
        way = code.select(_is_others(code, changes, now), "i64", str(_CHANGE_BYTES), "0")
        change = code.byte_offset(changes, way)
        code.store("i64", now, change)
        code.store("i64", place, code.byte_offset(change, 8))
        code.store("i32", str((1 << _WORD_BYTES) - 1), code.byte_offset(change, 16))


def _note_uses(code: Code, count: int, writes: bool) -> None:
    """Note a plain access, unless it meets that of another thread."""
    now = [_now(code, clock, "%linear") for clock in (_OF_WRITES, _OF_READS)]
    cells = _records(code, _ALL, _CELL_BYTES, count)
    met = "false"
    for cell in cells:
        for which in (_WRITTEN, _SHARED_READ, _READ_TOO) if writes else (_WRITTEN,):
            met = code.define(f"or i1 {met}, {_meets(code, cell, which, now[which != _WRITTEN])}")
    code.emit(f"br i1 {met}, label %unnoted, label %note, !prof !7")
    code.place("note")
    place = code.define("zext i32 %site to i64")
    for cell in cells:
        noted = code.byte_offset(cell, _WRITTEN) if writes else _place_of_read(code, cell, now[_OF_READS])
        code.store("i64", now[_OF_WRITES if writes else _OF_READS], noted)
        code.store("i64", place, code.byte_offset(noted, 8))


def _now(code: Code, clock: int, thread: str) -> str:
    """Return what a touch by a thread is now."""
    warp = code.define(f"lshr i32 {thread}, 5")
    place = code.define(f"getelementptr i32, ptr %words, i32 {warp}")
    met = code.load("i32", code.byte_offset(place, _LANES_MOMENTS + 4 * _WARPS * clock))
    own = code.define(f"or i32 {code.define(f'shl i32 {warp}, 27')}, {code.define(f'and i32 {thread}, 31')}")
    low = code.define(f"or i32 {own}, {code.define(f'shl i32 {met}, 5')}")
    moment = code.cast(code.load("i32", code.byte_offset("%words", _MOMENT)), 32, 64)
    return code.define(f"or i64 {code.define(f'shl i64 {moment}, 32')}, {code.cast(low, 32, 64)}")


def _meets(code: Code, cell: str, which: int, now: str) -> str:
    """Say whether a touch is another thread's since the last barrier of both.

    That is what differs: only the lane; or also the warp, and maybe more of the lower half.
    """
    when = code.load("i64", code.byte_offset(cell, _TOUCH_BYTES * which))
    differs = code.define(f"xor i64 {when}, {now}")
    only_lane = code.define(f"icmp ult i64 {code.define(f'sub i64 {differs}, 1')}, 31")
    beyond = code.define(f"sub i64 {differs}, {1 << 27}")
    also_warp = code.define(f"icmp ult i64 {beyond}, {(1 << 32) - (1 << 27)}")
    return code.define(f"or i1 {only_lane}, {also_warp}")


def _place_of_read(code: Code, cell: str, now: str) -> str:
    """Return where a read is noted: next to that of another thread in the same moment."""
    is_others = _is_others(code, code.byte_offset(cell, _TOUCH_BYTES * _SHARED_READ), now)
    way = code.select(is_others, "i64", str(_TOUCH_BYTES * _READ_TOO), str(_TOUCH_BYTES * _SHARED_READ))
    return code.byte_offset(cell, way)


def _is_others(code: Code, touch: str, now: str) -> str:
    """Say whether a touch is another thread's since the last barrier."""
    when = code.load("i64", touch)
    differs = code.define(f"and i64 {code.define(f'xor i64 {when}, {now}')}, {_OTHERS}")
    return code.define(f"icmp ult i64 {code.define(f'sub i64 {differs}, 1')}, {(1 << 32) - 1}")


ORDERS: Final = frozenset({"volatile", "relaxed", "acquire", "release", "mmio"})
"""Words of accesses that take part in an order of their own."""
TOUCHED: Final = 96
"""Where the context has the address of the bits."""
_READ, _WRITE, _STRONG_READ, _STRONG_WRITE, _ATOMIC = (1 << kind for kind in range(5))
KINDS: Final = 5
STRIDE: Final = 1 << 41
CELL_SHIFT: Final = 6
"""As many bytes of bits have one cell (``native/kernels/touched.h``)."""


def is_ordered(i: Instruction) -> bool:
    """Say whether an access takes part in an order of its own."""
    return i.opcode in ("ld", "st") and not ORDERS.isdisjoint(i.modifiers)


def kinds_of_use(function: Function, i: Instruction, kind: AccessKind) -> int:
    """Return the kinds of use that an access is, a bit for each.

    An atomic operation whose old value is looked at may learn from it what another kernel has done.
    """
    if kind == "atomic":
        return _ATOMIC | (_STRONG_READ if i.opcode == "atom" and _is_looked_at(function, i) else 0)
    if is_ordered(i):
        return _STRONG_READ if kind == "load" else _STRONG_WRITE
    return _READ if kind == "load" else _WRITE


def _is_looked_at(function: Function, i: Instruction) -> bool:
    _, written = effects_of(i)
    others = (each for each in function.instructions() if each is not i)
    return any(register in effects_of(each)[0] for each in others for register in written)


def note_use(e: Emitter, within: str, address: str, bytes_: int, kinds: int) -> str:
    """Set the bits of an access, and say whether it is the first of a kind in its cell.

    ``within`` is the byte that has its first bit.
    """
    touched = e.shape.context(e, TOUCHED, "ptr")
    for number in range(KINDS):
        if kinds >> number & 1:
            _set_bits(e, e.byte_offset(touched, within), number * STRIDE, address, bytes_)
    cell = e.byte_offset(e.byte_offset(touched, KINDS * STRIDE), e.define(f"lshr i64 {within}, {CELL_SHIFT}"))
    known = e.load("i8", cell, "align 1", contended=True)
    return e.define(f"icmp ne i8 {e.define(f'and i8 {known}, {kinds}')}, {kinds}")


def note_row(e: Emitter, within: str, bits: tuple[str, int, str], last: str, kinds: int) -> str:
    """Set the bits of a row of accesses, and say whether it is the first of a kind in one of its cells.

    ``bits`` are those from the byte ``within`` on, how many there are, and those of one more byte, or ``0``. That byte
    is written only if it has some: the next row begins there, and would wait for it. ``last`` has the last bit.
    """
    touched = e.shape.context(e, TOUCHED, "ptr")
    places = [e.byte_offset(touched, within)]
    places = [e.byte_offset(places[0], number * STRIDE) for number in range(KINDS) if kinds >> number & 1]
    for place in places:
        _add_bits(e, place, bits[0], bits[1])
    if bits[2] != "0":
        more, after = e.new_label(), e.new_label()
        e.emit(f"br i1 {e.define(f'icmp eq i8 {bits[2]}, 0')}, label %{after}, label %{more}")
        e.place(more)
        for place in places:
            _add_bits(e, e.byte_offset(place, bits[1] // 8), bits[2], 8)
        e.emit(f"br label %{after}")
        e.place(after)
    cells = e.byte_offset(touched, KINDS * STRIDE)
    known = str(kinds)
    for byte in (within, last):
        cell = e.load("i8", e.byte_offset(cells, e.define(f"lshr i64 {byte}, {CELL_SHIFT}")), "align 1")
        known = e.define(f"and i8 {cell}, {known}")
    return e.define(f"icmp ne i8 {known}, {kinds}")


def _add_bits(e: Emitter, place: str, bits: str, width: int) -> None:
    before = e.load(f"i{width}", place, "align 1")
    e.store(f"i{width}", e.define(f"or i{width} {before}, {bits}"), place, "align 1")


def was_noted(e: Emitter, within: str, address: str, bytes_: int, kinds: int) -> str:
    """Say whether all bits of an access are set."""
    touched, noted = e.shape.context(e, TOUCHED, "ptr"), "true"
    bits = max(8, bytes_)
    for number in range(KINDS):
        if not kinds >> number & 1:
            continue
        place = e.byte_offset(e.byte_offset(touched, within), number * STRIDE)
        found = e.load(f"i{bits}", place, "align 1", contended=True)
        if bytes_ < 8:
            shift = e.cast(e.define(f"and i64 {address}, 7"), 64, 8)
            found = e.define(f"or i8 {e.define(f'lshr i8 {found}, {shift}')}, {0xFF ^ (1 << bytes_) - 1}")
        noted = e.define(f"and i1 {noted}, {e.define(f'icmp eq i{bits} {found}, -1')}")
    return noted


def _set_bits(e: Emitter, place: str, offset: int, address: str, bytes_: int) -> None:
    bits = e.byte_offset(place, offset)
    if bytes_ >= 8:
        e.store(f"i{bytes_}", "-1", bits, "align 1", contended=True)
        return
    shift = e.cast(e.define(f"and i64 {address}, 7"), 64, 8)
    mask = e.define(f"shl i8 {(1 << bytes_) - 1}, {shift}")
    before = e.load("i8", bits, "align 1", contended=True)
    e.store("i8", e.define(f"or i8 {before}, {mask}"), bits, "align 1", contended=True)

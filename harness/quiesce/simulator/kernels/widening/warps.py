"""What the lanes of a row do together: a row of 32 lanes is a warp. The text calls functions whose names say what.

``warp.meets`` says whether an operation can be done: each lane that runs is in its own mask, no lane of a mask is
anywhere else but at its end, and lanes of one mask have the same mask. After that all lanes of the masks are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from quiesce.simulator.kernels.widening.lines import Lines
from quiesce.simulator.kernels.widening.shapes import UNIFORM
from quiesce.simulator.kernels.widening.text import Instruction, Operand

ALIVE: Final = "alive"
"""The kind of memory that has the lanes which have not ended."""
_UP, _DOWN, _BUTTERFLY = 10, 11, 12


def widen_warp_operation(lines: Lines, i: Instruction) -> None:
    """Write what the lanes that run do together."""
    name = i.detail.removeprefix("warp.")
    if name.startswith("reduce."):
        _reduce(lines, i, name.removeprefix("reduce."))
    else:
        _OPERATIONS[name](lines, i)


def alive_slot(lines: Lines) -> str:
    """Return the memory that has the lanes which have not ended."""
    return lines.slot(ALIVE, "", lines.wide("i1"))


def _bits(lines: Lines, mask: str) -> str:
    return lines.define(f"bitcast {lines.wide('i1')} {mask} to i{lines.lanes}")


def _ends(lines: Lines, _: Instruction) -> None:
    wide, slot = lines.wide("i1"), alive_slot(lines)
    before = lines.define(f"load {wide}, ptr {slot}")
    others = lines.define(f"xor {wide} {lines.mask}, splat (i1 true)")
    lines.emit(f"store {wide} {lines.define(f'and {wide} {before}, {others}')}, ptr {slot}")


def _meets(lines: Lines, i: Instruction) -> None:
    (mask,) = i.operands
    alive = lines.define(f"load {lines.wide('i1')}, ptr {alive_slot(lines)}")
    here = _bits(lines, lines.mask)
    away = lines.define(f"and i32 {_bits(lines, alive)}, {lines.define(f'xor i32 {here}, -1')}")
    if lines.shape(mask) == UNIFORM:
        lines.give(i, _is_whole(lines, lines.scalar(mask), here, away))
        return
    wide, all_ = lines.wide("i32"), lines.vector(mask)
    first = lines.call("i32", "llvm.cttz.i32", ("i32", here), ("i1", "true"))
    one = lines.define(f"extractelement {wide} {all_}, i32 {first}")
    differs = lines.define(f"icmp ne {wide} {all_}, {lines.splat('i32', one)}")
    several = lines.any(lines.both(lines.mask, differs))
    groups, same, after = (lines.new_label() for _ in range(3))
    lines.emit(f"br i1 {several}, label %{groups}, label %{same}")
    lines.emit(f"{groups}:")
    lines.functions["warp.groups"] = _GROUPS
    arguments = f"{wide} {all_}, {lines.wide('i1')} {lines.mask}, i32 {away}"
    for_groups = lines.define(f"call i1 @warp.groups({arguments})")
    lines.emit(f"br label %{after}")
    lines.emit(f"{same}:")
    for_one = _is_whole(lines, one, here, away)
    lines.emit(f"br label %{after}")
    lines.emit(f"{after}:")
    lines.give(i, lines.define(f"phi i1 [{for_groups}, %{groups}], [{for_one}, %{same}]"))


def _is_whole(lines: Lines, mask: str, here: str, away: str) -> str:
    """Say whether the lanes that run are those of a mask, apart from lanes that have ended."""
    missing = lines.define(f"and i32 {away}, {mask}")
    outside = lines.define(f"and i32 {here}, {lines.define(f'xor i32 {mask}, -1')}")
    return lines.define(f"icmp eq i32 {lines.define(f'or i32 {missing}, {outside}')}, 0")


def _met(lines: Lines, i: Instruction) -> None:
    """Tell the runtime that lanes have met: those of each mask by themselves, from that of the first lane on."""
    context, warp, mask, is_barrier = i.operands
    lines.functions["warp.meet"] = _MEET
    lines.declarations["quiesce_kernel_lanes"] = (
        "declare void @quiesce_kernel_lanes(ptr, i32, i32, i1 zeroext, i1 zeroext) nounwind"
    )
    lanes = lines.wide("i1")
    first = lines.define(f"extractelement {lines.wide('i32')} {lines.vector(warp)}, i64 0")
    arguments = (
        f"ptr {lines.scalar(context)}",
        f"i32 {first}",
        f"{lines.wide('i32')} {lines.vector(mask)}",
        f"{lanes} {lines.mask}",
        f"{lanes} %there",
        f"i1 {lines.scalar(is_barrier)}",
    )
    lines.emit(f"call void @warp.meet({', '.join(arguments)})")


def _lacks(lines: Lines, i: Instruction) -> None:
    """Say whether the source of a lane takes no part."""
    *how, mask = i.operands
    source, _ = _sources(lines, how)
    wide, here = lines.wide("i32"), lines.splat("i32", _bits(lines, lines.mask))
    takes_part = lines.define(f"and {wide} {lines.vector(mask)}, {here}")
    bit = lines.define(f"and {wide} {lines.define(f'lshr {wide} {takes_part}, {source}')}, splat (i32 1)")
    absent = lines.define(f"icmp eq {wide} {bit}, zeroinitializer")
    lines.give(i, lines.any(lines.both(lines.mask, absent)))


def _active(lines: Lines, i: Instruction) -> None:
    lines.give(i, _bits(lines, lines.mask))


def _ballot(lines: Lines, i: Instruction) -> None:
    lines.give(i, _bits(lines, lines.both(lines.mask, lines.vector(i.operands[0]))))


def _matches(lines: Lines, i: Instruction) -> None:
    lines.functions["warp.equals"] = _EQUALS
    arguments = f"{lines.wide('i64')} {lines.vector(i.operands[0])}, {lines.wide('i1')} {lines.mask}"
    lines.give(i, vector=lines.define(f"call {lines.wide('i32')} @warp.equals({arguments})"))


def _reduce(lines: Lines, i: Instruction, name: str) -> None:
    value, mask = i.operands
    wide, lanes = lines.wide("i32"), lines.wide("i1")
    if lines.shape(mask) == UNIFORM:
        neutral = f"{wide} splat (i32 {_NEUTRAL[name]})"
        taken = lines.define(f"select {lanes} {lines.mask}, {wide} {lines.vector(value)}, {neutral}")
        lines.give(i, lines.call("i32", f"llvm.vector.reduce.{name}.v{lines.lanes}i32", (wide, taken)))
        return
    lines.functions[f"warp.reduce.{name}"] = _reduce_groups(name)
    reduces = f"llvm.vector.reduce.{name}.v32i32"
    lines.declarations[reduces] = f"declare i32 @{reduces}({wide})"
    arguments = f"{wide} {lines.vector(value)}, {wide} {lines.vector(mask)}, {lanes} {lines.mask}"
    lines.give(i, vector=lines.define(f"call {wide} @warp.reduce.groups.{name}({arguments})"))


def _shuffle(lines: Lines, i: Instruction) -> None:
    """Take values from other lanes. Where those take no part the ISA leaves the value undefined; devices give 0."""
    value, *how, mask = i.operands
    wide = lines.wide("i32")
    there = lines.define(
        f"select {lines.wide('i1')} {lines.mask}, {wide} {lines.vector(value)}, {wide} zeroinitializer"
    )
    known = _known(how)
    if known is not None:
        sources, _ = known
        places = ", ".join(f"i32 {each}" for each in sources)
        taken = lines.define(f"shufflevector {wide} {there}, {wide} poison, <{lines.lanes} x i32> <{places}>")
        source = f"<{places}>"
    else:
        source, _ = _sources(lines, how)
        taken = _taken(lines, there, source)
    if lines.shape(mask) != UNIFORM:
        bit = lines.define(f"and {wide} {lines.define(f'lshr {wide} {lines.vector(mask)}, {source}')}, splat (i32 1)")
        is_there = lines.define(f"icmp ne {wide} {bit}, zeroinitializer")
        taken = lines.define(f"select {lines.wide('i1')} {is_there}, {wide} {taken}, {wide} zeroinitializer")
    lines.give(i, vector=taken)


def _taken(lines: Lines, values: str, source: str) -> str:
    """Return values of other lanes, by way of memory."""
    wide, pointers = lines.wide("i32"), lines.wide("ptr")
    slot = lines.slot("shuffled", "", wide)
    lines.emit(f"store {wide} {values}, ptr {slot}")
    places = lines.define(f"getelementptr i32, ptr {slot}, {wide} {source}")
    name = f"llvm.masked.gather.v{lines.lanes}i32.v{lines.lanes}p0"
    mask = (lines.wide("i1"), lines.mask)
    return lines.call(wide, name, (f"{pointers} align 4", places), mask, (wide, "zeroinitializer"))


def _within(lines: Lines, i: Instruction) -> None:
    known = _known(list(i.operands))
    if known is not None:
        lines.give(i, vector=f"<{', '.join(f'i1 {str(each).lower()}' for each in known[1])}>")
    else:
        lines.give(i, vector=_sources(lines, list(i.operands))[1])


def _known(how: list[Operand]) -> tuple[list[int], list[bool]] | None:
    """Return the source of each lane, and whether it is in its segment; None where that is not in the text."""
    if not all(each.value.lstrip("-").isdigit() for each in how):
        return None
    operation, by, bounds = (int(each.value) for each in how)
    by, clamp, segment = by & 31, bounds & 31, bounds >> 8 & 31
    sources, within = [], []
    for own in range(32):
        least = own & segment
        most = least | (clamp & ~segment)
        source = {_UP: own - by, _DOWN: own + by, _BUTTERFLY: own ^ by}.get(operation, least | (by & ~segment))
        within.append(source >= most if operation == _UP else source <= most)
        sources.append(source if within[-1] else own)
    return sources, within


def _sources(lines: Lines, how: list[Operand]) -> tuple[str, str]:
    """Return the source of each lane, and whether it is in its segment, in the words of the ISA."""
    wide, own = lines.wide("i32"), lines.numbers("i32", 1)
    operation = how[0].value

    def done(name: str, first: str, second: str) -> str:
        return lines.define(f"{name} {wide} {first}, {second}")

    thirty_one = "splat (i32 31)"
    by, bounds = (lines.vector(each) for each in how[1:])
    by, clamp = done("and", by, thirty_one), done("and", bounds, thirty_one)
    segment = done("and", done("lshr", bounds, "splat (i32 8)"), thirty_one)
    free = done("xor", segment, thirty_one)
    least = done("and", own, segment)
    most = done("or", least, done("and", clamp, free))
    if operation in (str(_UP), str(_DOWN), str(_BUTTERFLY)):
        source = done({str(_UP): "sub", str(_DOWN): "add"}.get(operation, "xor"), own, by)
    else:
        source = done("or", least, done("and", by, free))
    within = done("icmp sge" if operation == str(_UP) else "icmp sle", source, most)
    return lines.define(f"select {lines.wide('i1')} {within}, {wide} {source}, {wide} {own}"), within


_OPERATIONS: Final[dict[str, Callable[[Lines, Instruction], None]]] = {
    **{"ends": _ends, "meets": _meets, "active": _active, "ballot": _ballot, "matches": _matches},
    **{"shuffle": _shuffle, "within": _within, "met": _met, "lacks": _lacks},
}
_NEUTRAL: Final = {
    **{"add": 0, "or": 0, "xor": 0, "and": -1, "umin": -1, "umax": 0},
    **{"smin": (1 << 31) - 1, "smax": -(1 << 31)},
}


# -- functions in which lanes have several masks


def _over_lanes(head: str, body: str, state: str, end: str) -> list[str]:
    """Return a function that does something for each lane of ``%lanes``, from the first on."""
    type_, first = state.split("=")
    return f"""define internal {head} noinline nounwind {{
entry:
%here = bitcast <32 x i1> %lanes to i32
br label %next
next:
%left = phi i32 [%here, %entry], [%left.next, %one]
%so.far = phi {type_} [{first}, %entry], [%so.far.next, %one]
%is.done = icmp eq i32 %left, 0
br i1 %is.done, label %done, label %one
one:
%lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
%less = sub i32 %left, 1
%left.next = and i32 %left, %less
{body}
br label %next
done:
{end}
}}""".split("\n")


_SAME_MASK: Final = """%mask = extractelement <32 x i32> %masks, i32 %lane
%mask.first = insertelement <32 x i32> poison, i32 %mask, i64 0
%mask.all = shufflevector <32 x i32> %mask.first, <32 x i32> poison, <32 x i32> zeroinitializer
%same.lanes = icmp eq <32 x i32> %masks, %mask.all
%same = bitcast <32 x i1> %same.lanes to i32
%others = xor i32 %same, -1
%of.others = and i32 %others, %here
%not.here = or i32 %of.others, %away
%missing = and i32 %mask, %not.here
%is.missing = icmp ne i32 %missing, 0
%own = shl i32 1, %lane
%own.in = and i32 %mask, %own
%is.out = icmp eq i32 %own.in, 0
%is.wrong = or i1 %is.missing, %is.out
%so.far.next = or i1 %so.far, %is.wrong"""
_GROUPS: Final = _over_lanes(
    "i1 @warp.groups(<32 x i32> %masks, <32 x i1> %lanes, i32 %away)",
    _SAME_MASK,
    "i1=false",
    "%right = xor i1 %so.far, true\nret i1 %right",
)
_MEET: Final = """define internal void @warp.meet(ptr %context, i32 %warp, <32 x i32> %masks, <32 x i1> %lanes, \
<32 x i1> %there, i1 %is.barrier) noinline nounwind {
entry:
%here = bitcast <32 x i1> %lanes to i32
%all = bitcast <32 x i1> %there to i32
br label %next
next:
%left = phi i32 [%here, %entry], [%left.next, %next]
%lane = call i32 @llvm.cttz.i32(i32 %left, i1 true)
%mask = extractelement <32 x i32> %masks, i32 %lane
%part = and i32 %mask, %here
%others = xor i32 %mask, -1
%missing = and i32 %others, %all
%are.all = icmp eq i32 %missing, 0
call void @quiesce_kernel_lanes(ptr %context, i32 %warp, i32 %part, i1 zeroext %are.all, i1 zeroext %is.barrier)
%less = and i32 %left, %others
%own = shl i32 1, %lane
%not.own = xor i32 %own, -1
%left.next = and i32 %less, %not.own
%is.done = icmp eq i32 %left.next, 0
br i1 %is.done, label %done, label %next
done:
ret void
}""".splitlines()
_EQUALS: Final = _over_lanes(
    "<32 x i32> @warp.equals(<32 x i64> %values, <32 x i1> %lanes)",
    """%value = extractelement <32 x i64> %values, i32 %lane
%value.first = insertelement <32 x i64> poison, i64 %value, i64 0
%value.all = shufflevector <32 x i64> %value.first, <32 x i64> poison, <32 x i32> zeroinitializer
%same.lanes = icmp eq <32 x i64> %values, %value.all
%same = bitcast <32 x i1> %same.lanes to i32
%same.here = and i32 %same, %here
%so.far.next = insertelement <32 x i32> %so.far, i32 %same.here, i32 %lane""",
    "<32 x i32>=zeroinitializer",
    "ret <32 x i32> %so.far",
)


def _reduce_groups(name: str) -> list[str]:
    return _over_lanes(
        f"<32 x i32> @warp.reduce.groups.{name}(<32 x i32> %values, <32 x i32> %masks, <32 x i1> %lanes)",
        f"""%mask = extractelement <32 x i32> %masks, i32 %lane
%part = and i32 %mask, %here
%part.lanes = bitcast i32 %part to <32 x i1>
%taken = select <32 x i1> %part.lanes, <32 x i32> %values, <32 x i32> splat (i32 {_NEUTRAL[name]})
%sum = call i32 @llvm.vector.reduce.{name}.v32i32(<32 x i32> %taken)
%so.far.next = insertelement <32 x i32> %so.far, i32 %sum, i32 %lane""",
        "<32 x i32>=zeroinitializer",
        "ret <32 x i32> %so.far",
    )


# -- where the lanes are in their block

INDEX: Final = ("%x", "%y", "%z")


def place_warp(lines: Lines) -> None:
    """Write what finds out where each lane is. A warp that goes on in the next line of its block *turns* there."""
    wide = lines.wide("i32")
    lines.emit(f"store {lines.wide('i1')} %there, ptr {alive_slot(lines)}")
    used = lines.call("i32", "llvm.umin.i32", ("i32", "%left"), ("i32", str(lines.lanes)))
    turns = lines.define(f"icmp ugt i32 {lines.define(f'add i32 %x, {used}')}, %width")
    lines.emit(f"store i1 {turns}, ptr {lines.slot('wraps', INDEX[0], 'i1')}")
    named = {operand.value for i in lines.function.instructions() for operand in i.operands}
    used_axes = [axis for axis in INDEX if axis in named]
    if not used_axes:
        return
    rare, usual, after = (lines.new_label() for _ in range(3))
    straight = [lines.vector(Operand("i32", axis)) for axis in used_axes]
    slot = lines.slot("index", "", f"[3 x {wide}]")
    lines.emit(f"br i1 {turns}, label %{rare}, label %{usual}, !prof !7")
    lines.emit(f"{rare}:")
    lines.functions["warp.index"] = _INDEX_LINES
    lines.emit(f"call void @warp.index(ptr {slot}, i32 %linear, i32 %width, i32 %height)")
    turned = [
        lines.define(f"load {wide}, ptr {lines.define(f'getelementptr {wide}, ptr {slot}, i32 {INDEX.index(axis)}')}")
        for axis in used_axes
    ]
    lines.emit(f"br label %{after}")
    lines.emit(f"{usual}:")
    lines.emit(f"br label %{after}")
    lines.emit(f"{after}:")
    for axis, one, other in zip(used_axes, turned, straight, strict=True):
        lines.indices[axis] = lines.define(f"phi {wide} [{one}, %{rare}], [{other}, %{usual}]")


_INDEX_LINES: Final = [
    "define internal void @warp.index(ptr %to, i32 %linear, i32 %width, i32 %height) noinline nounwind {",
    *"""entry:
br label %next
next:
%lane = phi i32 [0, %entry], [%lane.next, %next]
%own = add i32 %linear, %lane
%x = urem i32 %own, %width
%line = udiv i32 %own, %width
%y = urem i32 %line, %height
%z = udiv i32 %line, %height
%x.place = getelementptr i32, ptr %to, i32 %lane
store i32 %x, ptr %x.place
%y.place = getelementptr i8, ptr %x.place, i32 128
store i32 %y, ptr %y.place
%z.place = getelementptr i8, ptr %x.place, i32 256
store i32 %z, ptr %z.place
%lane.next = add nuw nsw i32 %lane, 1
%is.last = icmp eq i32 %lane.next, 32
br i1 %is.last, label %done, label %next
done:
ret void
}""".splitlines(),
]

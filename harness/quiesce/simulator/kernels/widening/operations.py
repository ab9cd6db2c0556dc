"""Each instruction of one lane as instructions of all lanes, by its opcode."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from quiesce.simulator.kernels.widening.lines import Lines
from quiesce.simulator.kernels.widening.shapes import PLACE, UNIFORM, Row
from quiesce.simulator.kernels.widening.text import ARITHMETIC, CASTS, SCALARS, Instruction, NotUnderstood, Operand
from quiesce.simulator.kernels.widening.warps import widen_warp_operation

_DIVISIONS: Final = frozenset({"udiv", "sdiv", "urem", "srem"})
_FUNCTIONS: Final = frozenset(
    [
        *(
            "fma",
            "fabs",
            "sqrt",
            "copysign",
            "minnum",
            "maxnum",
            "minimum",
            "maximum",
            "minimumnum",
            "maximumnum",
            "floor",
            "ceil",
            "trunc",
            "rint",
        ),
        *("roundeven", "smin", "smax", "umin", "umax", "abs", "fshl", "fshr", "ctpop", "ctlz", "cttz", "bswap"),
        *("bitreverse", "fptosi.sat", "fptoui.sat", "usub.sat", "uadd.sat", "ssub.sat", "sadd.sat", "is.fpclass"),
    ]
)
"""LLVM's functions that exist for vectors as well: https://llvm.org/docs/LangRef.html#intrinsic-functions"""
ANY: Final = "any"
"""How the name ends of a function that judges any places."""
JUDGED_LANES: Final = 16
"""For so many lanes there are functions that judge the places of a row (``translation/row_checks.py``)."""
_IMMEDIATE: Final = {"abs": 1, "ctlz": 1, "cttz": 1, "is.fpclass": 1}
"""Which of their arguments is a constant for all lanes."""
_TYPE: Final = re.compile(r"\.(i\d+|f16|f32|f64)(?=\.|$)")
_MEMORY_NAMES: Final = {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}
_LEFT_OUT: Final = ("llvm.assume", "llvm.lifetime.", "llvm.experimental.noalias.scope.decl")


def widen_instruction(lines: Lines, i: Instruction) -> None:
    """Write an instruction for all lanes."""
    _WIDENED[i.opcode](lines, i)


def _elementwise(lines: Lines, i: Instruction) -> None:
    """Write an instruction that works on vectors as on scalars: for a row, as a scalar for its first lane too."""
    shape = lines.shapes.values[i.result]
    scalar = vector = ""
    if shape is not None:
        scalar = lines.define(_expression(i, [lines.scalar(each) for each in i.operands], str))
    if shape is None or not shape.is_uniform:
        values = [lines.vector(each) for each in i.operands]
        if i.opcode in _DIVISIONS:
            values[1] = _divisor(lines, i.type, values[1])
        vector = lines.define(_expression(i, values, lines.wide))
    lines.give(i, scalar, vector)


def _divisor(lines: Lines, type_: str, value: str) -> str:
    """Return a divisor that is 1 in lanes that do not divide: a processor stops at 0."""
    wide = lines.wide(type_)
    return lines.define(f"select {lines.wide('i1')} {lines.mask}, {wide} {value}, {wide} splat ({type_} 1)")


def _expression(i: Instruction, values: list[str], typed: Callable[[str], str]) -> str:
    """Return an instruction on other values, of other types."""
    types = [typed(each.type) for each in i.operands]
    if i.opcode in ("icmp", "fcmp"):
        return f"{i.opcode} {i.detail} {types[0]} {values[0]}, {values[1]}"
    if i.opcode in CASTS:
        return f"{i.opcode} {types[0]} {values[0]} to {typed(i.type)}"
    if i.opcode == "getelementptr":
        return f"getelementptr {i.detail}, {', '.join(map(' '.join, zip(types, values, strict=True)))}"
    return f"{i.opcode} {typed(i.type)} {', '.join(values)}"


def _widened(lines: Lines, i: Instruction) -> None:
    """Write a number that becomes wider, and test whether its row does not wrap."""
    shape, (source,) = lines.shapes.values[i.result], i.operands
    if shape is not None and i.result in shape.tests:
        name = f"llvm.{'sadd' if i.opcode == 'sext' else 'uadd'}.with.overflow.{source.type}"
        last = (lines.lanes - 1) * shape.step
        pair = f"{{ {source.type}, i1 }}"
        sum_ = lines.call(pair, name, (source.type, lines.scalar(source)), (source.type, str(last)))
        wraps = lines.define(f"extractvalue {pair} {sum_}, 1")
        lines.emit(f"store i1 {wraps}, ptr {lines.slot('wraps', i.result, 'i1')}")
    _elementwise(lines, i)


def _select(lines: Lines, i: Instruction) -> None:
    condition, first, second = i.operands
    if lines.shapes.values[i.result] == UNIFORM:
        sources = (f"{each.type} {lines.scalar(each)}" for each in i.operands)
        lines.give(i, lines.define(f"select {', '.join(sources)}"))
        return
    if lines.shape(condition) == UNIFORM:
        holds = f"i1 {lines.scalar(condition)}"
    else:
        holds = f"{lines.wide('i1')} {lines.vector(condition)}"
    wide = lines.wide(i.type)
    lines.give(i, vector=lines.define(f"select {holds}, {wide} {lines.vector(first)}, {wide} {lines.vector(second)}"))


# -- memory


_IN_TURN: Final = 'call void asm sideeffect "", "~{memory}"()'
"""What no access is moved over, and no value is kept over that was read before."""


def _ordered(access: Callable[[Lines, Instruction], None]) -> Callable[[Lines, Instruction], None]:
    """Make an access in its turn, if it has one: the lanes' accesses follow each other."""

    def write(lines: Lines, i: Instruction) -> None:
        if i.is_ordered:
            lines.emit(_IN_TURN)
        access(lines, i)
        if i.is_ordered:
            lines.emit(_IN_TURN)

    return write


@_ordered
def _load(lines: Lines, i: Instruction) -> None:
    (pointer,) = i.operands
    if lines.shape(pointer) == UNIFORM:
        invariant = ", !invariant.load !0" if i.is_invariant else ""
        lines.give(i, lines.define(f"load {i.type}, ptr {lines.scalar(pointer)}, {i.ending}{invariant}"))
        return
    wide = lines.wide(i.type)

    def follow() -> str:
        name = f"llvm.masked.load.{_name(lines, i.type)}.p0"
        place = (f"ptr {i.ending}", lines.scalar(pointer))
        return lines.call(wide, name, place, (lines.wide("i1"), lines.mask), (wide, "poison"))

    def gather() -> str:
        name = f"llvm.masked.gather.{_name(lines, i.type)}.v{lines.lanes}p0"
        places = (f"{lines.wide('ptr')} {i.ending}", lines.vector(pointer))
        return lines.call(wide, name, places, (lines.wide("i1"), lines.mask), (wide, "poison"))

    def one() -> str:
        return lines.splat(i.type, lines.define(f"load {i.type}, ptr {lines.scalar(pointer)}, {i.ending}"))

    shape = lines.shape(pointer)
    is_one = shape is not None and not shape.step
    ways = (one, gather, 0) if is_one else (follow, gather)
    lines.give(i, vector=_by_place(lines, pointer, i.type, *ways))


@_ordered
def _store(lines: Lines, i: Instruction) -> None:
    value, pointer = i.operands
    if lines.shape(pointer) == UNIFORM and lines.shape(value) == UNIFORM:
        lines.emit(f"store {value.type} {lines.scalar(value)}, ptr {lines.scalar(pointer)}, {i.ending}")
        return
    wide, stored = lines.wide(value.type), lines.vector(value)

    def follow() -> str:
        name = f"llvm.masked.store.{_name(lines, value.type)}.p0"
        place = (f"ptr {i.ending}", lines.scalar(pointer))
        return lines.call("void", name, (wide, stored), place, (lines.wide("i1"), lines.mask))

    def scatter() -> str:
        name = f"llvm.masked.scatter.{_name(lines, value.type)}.v{lines.lanes}p0"
        places = (f"{lines.wide('ptr')} {i.ending}", lines.vector(pointer))
        return lines.call("void", name, (wide, stored), places, (lines.wide("i1"), lines.mask))

    _by_place(lines, pointer, value.type, follow, scatter)


def _by_place(
    lines: Lines,
    pointer: Operand,
    type_: str,
    follow: Callable[[], str],
    scattered: Callable[[], str],
    step: int | None = None,
) -> str:
    """Write an access to places that follow each other, or to any places; if tests decide, both."""
    shape = lines.shape(pointer)
    if shape is None or shape.step != (SCALARS[type_] if step is None else step):
        return scattered()
    if not shape.tests:
        return follow()
    wraps = _wraps(lines, shape)
    lines.scalar(pointer), lines.vector(pointer)  # both ways have them
    rare, usual, after = lines.new_label(), lines.new_label(), lines.new_label()
    lines.emit(f"br i1 {wraps}, label %{rare}, label %{usual}, !prof !7")
    lines.emit(f"{rare}:")
    others = scattered()
    lines.emit(f"br label %{after}")
    lines.emit(f"{usual}:")
    found = follow()
    lines.emit(f"br label %{after}")
    lines.emit(f"{after}:")
    return lines.define(f"phi {lines.wide(type_)} [{others}, %{rare}], [{found}, %{usual}]") if found else ""


def _name(lines: Lines, type_: str) -> str:
    return f"v{lines.lanes}{_MEMORY_NAMES.get(type_, type_)}"


# -- calls, and what runs for one lane after another


def _call(lines: Lines, i: Instruction) -> None:
    if i.detail.startswith(_LEFT_OUT):
        return
    if i.detail.startswith("warp."):
        widen_warp_operation(lines, i)
        return
    if i.detail in lines.shapes.judged:
        if lines.shapes.values[i.result] is None:
            _judge_any(lines, i)
        else:
            _judge(lines, i)
        return
    if not i.detail.startswith("llvm."):
        lines.give(i, vector=_one_by_one(lines, i)) if i.result else _one_by_one(lines, i)
        return
    base = _TYPE.sub("", i.detail.removeprefix("llvm."))
    if base not in _FUNCTIONS:
        raise NotUnderstood(i.detail)
    if lines.shapes.values[i.result] == UNIFORM:
        arguments = ((each.type, lines.scalar(each)) for each in i.operands)
        lines.give(i, lines.call(i.type, i.detail, *arguments))
        return
    immediate = _IMMEDIATE.get(base)
    given = [
        (each.type, each.value) if place == immediate else (lines.wide(each.type), lines.vector(each))
        for place, each in enumerate(i.operands)
    ]
    name = _TYPE.sub(rf".v{lines.lanes}\1", i.detail)
    lines.give(i, vector=lines.call(lines.wide(i.type), name, *given))


def _atomic(lines: Lines, i: Instruction) -> None:
    lines.give(i, vector=_one_by_one(lines, i))


def _fence(lines: Lines, i: Instruction) -> None:
    lines.emit(f"fence {i.ending}")


def _judge(lines: Lines, i: Instruction) -> None:
    """Judge the places of a row at once, and if that finds something, those of each lane."""
    pointer = i.operands[PLACE]
    shape = lines.shape(pointer)
    assert shape is not None
    first, all_ = lines.scalar(pointer), lines.vector(pointer)
    places, ways = _judge_lanes(lines, i, all_, _wraps(lines, shape), ("row" if shape.step else "one", ANY))
    wraps = lines.define(f"phi i1 [false, %{ways[0]}], {', '.join(f'[true, %{each}]' for each in ways[1:])}")
    lines.emit(f"store i1 {wraps}, ptr {lines.slot('wraps', i.result, 'i1')}")
    lines.give(i, first, places)


def _judge_any(lines: Lines, i: Instruction) -> None:
    """Judge any places at once, and if that finds something, those of each lane."""
    pointer = i.operands[PLACE]
    if any(lines.shape(each) is None for each in i.operands if each != pointer):
        lines.give(i, vector=_in_turn(lines, i))
        return
    places, _ = _judge_lanes(lines, i, lines.vector(pointer), "false", (ANY,))
    lines.give(i, vector=places)


def _judge_lanes(lines: Lines, i: Instruction, all_: str, wraps: str, forms: tuple[str, ...]) -> tuple[str, list[str]]:
    """Ask a function about all lanes, and if it says no, another one about each; return the answers, and all ways.

    A warp may go on in the next line of its block. Where its places are no row therefore, a second form is asked.
    """
    ask, each, after = (lines.new_label() for _ in range(3))
    asks_again = wraps != "false" and lines.lanes > JUDGED_LANES
    others = lines.new_label() if asks_again else each
    for number, operand in enumerate(i.operands):  # all ways have them
        lines.vector(operand)
        if number != PLACE or len(forms) > 1:
            lines.scalar(operand)
    lines.emit(f"br i1 {wraps}, label %{others}, label %{ask}, !prof !7")
    ways = []
    for label, form in zip((ask, others) if asks_again else (ask,), forms, strict=False):
        lines.emit(f"{label}:")
        ways.append(_judge_parts(lines, i, form, each))
        lines.emit(f"br label %{after}")
    lines.emit(f"{each}:")
    found = _in_turn(lines, i)
    lines.emit(f"br label %{after}")
    lines.emit(f"{after}:")
    known = (f"[{all_}, %{way}]" for way in ways)
    return lines.define(f"phi {lines.wide('ptr')} {', '.join(known)}, [{found}, %{each}]"), [*ways, each]


def _judge_parts(lines: Lines, i: Instruction, form: str, otherwise: str) -> str:
    """Ask for each 16 lanes whether the places are right, and go elsewhere if not; return the block that follows."""
    for first in range(0, lines.lanes, JUDGED_LANES):
        ask, following = lines.new_label(), lines.new_label()
        mask = _part(lines, "i1", lines.mask, first)
        if lines.lanes > JUDGED_LANES:
            bits = lines.define(f"bitcast <{JUDGED_LANES} x i1> {mask} to i{JUDGED_LANES}")
            any_ = lines.define(f"icmp ne i{JUDGED_LANES} {bits}, 0")
            lines.emit(f"br i1 {any_}, label %{ask}, label %{following}")
        else:
            lines.emit(f"br label %{ask}")
        lines.emit(f"{ask}:")
        arguments = [
            (f"<{JUDGED_LANES} x ptr>", _part(lines, "ptr", lines.vector(each), first))
            if form == ANY and number == PLACE
            else (each.type, _moved(lines, each, first))
            for number, each in enumerate(i.operands)
        ]
        right = lines.call("i1", f"{i.detail}.{form}", *arguments, (f"<{JUDGED_LANES} x i1>", mask))
        lines.emit(f"br i1 {right}, label %{following}, label %{otherwise}")
        lines.emit(f"{following}:")
    return following


def _part(lines: Lines, type_: str, vector: str, first: int) -> str:
    """Return so many lanes as are judged at once, from one on."""
    if lines.lanes == JUDGED_LANES:
        return vector
    places = ", ".join(f"i32 {lane}" for lane in range(first, first + JUDGED_LANES))
    wide = lines.wide(type_)
    return lines.define(f"shufflevector {wide} {vector}, {wide} poison, <{JUDGED_LANES} x i32> <{places}>")


def _moved(lines: Lines, operand: Operand, lane: int) -> str:
    """Return an argument as it is for the row that begins with a lane."""
    shape, value = lines.shape(operand), lines.scalar(operand)
    if not lane or shape is None or not shape.step:
        return value
    if operand.type == "ptr":
        return lines.define(f"getelementptr i8, ptr {value}, i64 {lane * shape.step}")
    return lines.define(f"add {operand.type} {value}, {lane * shape.step}")


def _in_turn(lines: Lines, i: Instruction) -> str:
    """Judge the place of each lane by a function of its own, in which the lanes are a loop, and return the answers."""
    name = f"{i.detail}.each"
    types = [lines.wide(each.type) for each in i.operands]
    lanes = lines.wide("i1")
    lines.functions[name] = _loop_over_lanes(lines, i, name)
    arguments = [*zip(types, map(lines.vector, i.operands), strict=True), (lanes, lines.mask)]
    return lines.define(f"call {lines.wide(i.type)} @{name}({', '.join(map(' '.join, arguments))})")


def _loop_over_lanes(lines: Lines, i: Instruction, name: str) -> list[str]:
    wide, last = lines.wide(i.type), lines.lanes - 1
    taken = [f"{lines.wide(each.type)} %all{place}" for place, each in enumerate(i.operands)]
    own = [
        f"%own{place} = extractelement {lines.wide(each.type)} %all{place}, i32 %lane"
        for place, each in enumerate(i.operands)
    ]
    arguments = ", ".join(f"{each.type} %own{place}" for place, each in enumerate(i.operands))
    return [
        f"define internal {wide} @{name}({', '.join(taken)}, {lines.wide('i1')} %lanes) noinline nounwind {{",
        "entry:",
        "br label %next",
        "next:",
        "%lane = phi i32 [0, %entry], [%lane.next, %more]",
        f"%answers = phi {wide} [%all{PLACE}, %entry], [%answers.next, %more]",
        f"%is.there = extractelement {lines.wide('i1')} %lanes, i32 %lane",
        "br i1 %is.there, label %one, label %more",
        "one:",
        *own,
        f"%answer = call {i.type} @{i.detail}({arguments})",
        f"%changed = insertelement {wide} %answers, {i.type} %answer, i32 %lane",
        "br label %more",
        "more:",
        f"%answers.next = phi {wide} [%answers, %next], [%changed, %one]",
        "%lane.next = add nuw nsw i32 %lane, 1",
        f"%is.last = icmp eq i32 %lane, {last}",
        "br i1 %is.last, label %done, label %next",
        "done:",
        f"ret {wide} %answers.next",
        "}",
    ]


def _wraps(lines: Lines, shape: Row) -> str:
    """Say whether a row does not hold, by its tests."""
    wraps = "false"
    for test in sorted(shape.tests):
        found = lines.define(f"load i1, ptr {lines.slot('wraps', test, 'i1')}")
        wraps = lines.define(f"or i1 {wraps}, {found}")
    return wraps


def _one_by_one(lines: Lines, i: Instruction) -> str:
    """Run an instruction for each lane of the mask, from the first on, and return the results."""
    bits, wide = f"i{lines.lanes}", lines.wide(i.type)
    places = [_laid_out(lines, number, each) for number, each in enumerate(i.operands)]
    type_ = _in_memory(i.type)
    results = lines.slot("results", type_, lines.wide(type_)) if i.result else ""
    before, one, after = (lines.new_label() for _ in range(3))
    left, rest = f"%{one}.left", f"%{one}.rest"
    lanes = lines.define(f"bitcast {lines.wide('i1')} {lines.mask} to {bits}")
    lines.emit(f"br label %{before}")
    lines.emit(f"{before}:")
    lines.emit(f"br label %{one}")
    lines.emit(f"{one}:")
    lines.emit(f"{left} = phi {bits} [{lanes}, %{before}], [{rest}, %{one}]")
    lane = lines.call(bits, f"llvm.cttz.{bits}", (bits, left), ("i1", "true"))
    lane = lines.define(f"zext {bits} {lane} to i64")
    values = [(each.type, _of_lane(lines, each, place, lane)) for each, place in zip(i.operands, places, strict=True)]
    found = _of_one(lines, i, values)
    if i.result:
        kept = lines.define(f"zext i1 {found} to i8") if i.type == "i1" else found
        lines.emit(f"store {type_} {kept}, ptr {lines.define(f'getelementptr {type_}, ptr {results}, i64 {lane}')}")
    lines.emit(f"{rest} = and {bits} {left}, {lines.define(f'sub {bits} {left}, 1')}")
    is_last = lines.define(f"icmp eq {bits} {rest}, 0")
    lines.emit(f"br i1 {is_last}, label %{after}, label %{one}")
    lines.emit(f"{after}:")
    if not i.result:
        return ""
    loaded = lines.define(f"load {lines.wide(type_)}, ptr {results}")
    return lines.define(f"trunc {lines.wide(type_)} {loaded} to {wide}") if i.type == "i1" else loaded


def _in_memory(type_: str) -> str:
    """Return the type of which a vector has its elements in places of their own."""
    return "i8" if type_ == "i1" else type_


def _laid_out(lines: Lines, number: int, operand: Operand) -> str:
    """Return memory with an operand of each lane; nothing for one that is the same in all lanes."""
    if lines.shape(operand) == UNIFORM:
        lines.scalar(operand)  # it is read before the loop
        return ""
    type_ = _in_memory(operand.type)
    wide, vector = lines.wide(type_), lines.vector(operand)
    if type_ != operand.type:
        vector = lines.define(f"zext {lines.wide(operand.type)} {vector} to {wide}")
    slot = lines.slot("operands", f"{number} {type_}", wide)
    lines.emit(f"store {wide} {vector}, ptr {slot}")
    return slot


def _of_lane(lines: Lines, operand: Operand, place: str, lane: str) -> str:
    if not place:
        return lines.scalar(operand)
    type_ = _in_memory(operand.type)
    found = lines.define(f"load {type_}, ptr {lines.define(f'getelementptr {type_}, ptr {place}, i64 {lane}')}")
    return found if type_ == operand.type else lines.define(f"trunc {type_} {found} to {operand.type}")


def _of_one(lines: Lines, i: Instruction, values: list[tuple[str, str]]) -> str:
    if i.opcode == "atomicrmw":
        place, value = map(" ".join, values)
        return lines.define(f"atomicrmw {i.detail} {place}, {value} {i.ending}")
    if i.opcode == "cmpxchg":
        both = lines.define(f"cmpxchg {', '.join(map(' '.join, values))} {i.ending}")
        return lines.define(f"extractvalue {{ {i.type}, i1 }} {both}, 0")
    return lines.call(i.type, i.detail, *values)


_WIDENED: Final[dict[str, Callable[[Lines, Instruction], None]]] = {
    **dict.fromkeys((*ARITHMETIC, *CASTS, "fneg", "freeze", "icmp", "fcmp", "getelementptr"), _elementwise),
    **dict.fromkeys(("sext", "zext"), _widened),
    **{"select": _select, "load": _load, "store": _store, "call": _call, "atomicrmw": _atomic},
    **{"cmpxchg": _atomic, "fence": _fence},
}

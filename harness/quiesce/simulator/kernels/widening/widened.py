"""The widened function: all passes, one after another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from quiesce.simulator.kernels.widening.flow import flow_of
from quiesce.simulator.kernels.widening.lines import Lines
from quiesce.simulator.kernels.widening.masks import Masks
from quiesce.simulator.kernels.widening.shapes import Row, Shape, find_shapes
from quiesce.simulator.kernels.widening.text import read_function


def widen(
    text: str, name: str, lanes: int, steps: dict[str, int], judged: Mapping[str, int]
) -> tuple[list[str], dict[str, str]]:
    """Return a function of LLVM for so many lanes, and declarations of what it calls, by name.

    It has the arguments of the function, of which ``steps`` says how they grow from lane to lane, and after them how
    many lanes there are at least; one lane there is. ``judged`` are functions that judge a place and return it, by how
    many bytes each uses there. Raises NotUnderstood.
    """
    function = read_function(text)
    flow = flow_of(function)
    arguments: dict[str, Shape] = {each.value: Row(steps.get(each.value, 0)) for each in function.arguments}
    lines = Lines(function, find_shapes(function, flow, arguments, judged), lanes, steps)
    first = Masks(lines, flow).write("%there")
    listed = [f"{each.type} {each.value}" for each in function.arguments]
    wide = lines.wide("i32")
    return [
        f"define internal i32 @{name}({', '.join([*listed, 'i32 %left'])}) alwaysinline nounwind null_pointer_is_valid "
        f'"prefer-vector-width"="512" {{',
        "begin:",
        *lines.slot_lines(),
        f"%left.first = insertelement {wide} poison, i32 %left, i64 0",
        f"%left.all = shufflevector {wide} %left.first, {wide} poison, <{lanes} x i32> zeroinitializer",
        f"%there = icmp ult {wide} {lines.numbers('i32', 1)}, %left.all",
        *first,
        *lines.lines,
        "ret i32 0",
        "}",
        *(line for each in lines.functions.values() for line in each),
    ], lines.declarations


_DEFINED: Final = re.compile(r"define (?:internal )?(\w+ @([\w.]+)\(.*\).*) \{")

_OF_ROWS: Final = re.compile(r"^define internal i1 @(\w+)\.row\(.*\"row-bytes\"=\"(\d+)\"", re.MULTILINE)
_NAMED: Final = re.compile(r"(?:declare|define) [^@]*@([\w.]+)\(")


def widen_in(
    text: str, one: str, row: str, optimise: Callable[[str, str], str], lanes: int, steps: dict[str, int]
) -> str:
    """Return a text of LLVM in which the function for one lane is replaced by that for a row of lanes.

    ``optimise`` optimises a text and returns one function of it. Raises NotUnderstood.
    """
    alone, rest = _separate(text, one, row)
    lines, wanted = widen(optimise(alone, one), row, lanes, steps, _judged(text))
    declared = {each[1] for each in map(_NAMED.match, rest.splitlines()) if each}
    others = [line for name, line in sorted(wanted.items()) if name not in declared]
    return "\n".join([rest, *lines, *others, ""])


def _judged(text: str) -> dict[str, int]:
    """Return the functions that judge places for rows as well, and how many bytes an access uses there."""
    return {found[1]: int(found[2]) for found in _OF_ROWS.finditer(text)}


def _separate(text: str, one: str, row: str) -> tuple[str, str]:
    """Return a text with the function of one lane, and declarations in place of others; and one without it."""
    alone, rest = [], []
    name = ""
    for line in text.splitlines():
        begins = _DEFINED.fullmatch(line)
        if begins:
            name = begins[2]
        if not name or name == one:
            alone.append(line)
        elif begins:
            alone.append(f"declare {begins[1]}")
        if name != one and not line.startswith(f"declare i32 @{row}("):
            rest.append(line)
        if line == "}":
            name = ""
    return "\n".join(alone), "\n".join(rest)

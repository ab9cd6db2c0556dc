"""The widened function: all passes, one after another."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from quiesce.simulator.kernels.widening.flow import Flow, flow_of
from quiesce.simulator.kernels.widening.lines import Lines
from quiesce.simulator.kernels.widening.masks import Masks
from quiesce.simulator.kernels.widening.shapes import Row, Shape, find_shapes
from quiesce.simulator.kernels.widening.text import Function, NotUnderstood, read_function
from quiesce.simulator.kernels.widening.warps import INDEX, place_warp


@dataclass(frozen=True, slots=True)
class Form:
    """How a function becomes that of a row: how many lanes there are, and how its arguments grow from lane to lane."""

    lanes: int
    steps: Mapping[str, int]
    is_warp: bool = False
    """Whether the row is a warp: it may go on in the next line of its block, and lanes do something together."""


def widen(
    text: str, name: str, form: Form, judged: Mapping[str, int]
) -> tuple[list[str], dict[str, list[str]], dict[str, str]]:
    """Return a function of LLVM for a row of threads, functions that it calls, and declarations of others, by name.

    It has the arguments of the function, and after them how many lanes there are at least; one lane there is.
    ``judged`` are functions that judge a place and return it, by how many bytes each uses there. Raises NotUnderstood.
    """
    function = read_function(text)
    flow = flow_of(function)
    if not form.is_warp:
        _refuse_locks(function, flow)
    arguments: dict[str, Shape] = {each.value: Row(form.steps.get(each.value, 0)) for each in function.arguments}
    if form.is_warp:
        arguments |= {axis: Row(form.steps.get(axis, 0), frozenset({INDEX[0]})) for axis in INDEX}
    lines = Lines(function, find_shapes(function, flow, arguments, judged), form.lanes, form.steps)
    if form.is_warp:
        with lines.section() as before:
            place_warp(lines)
    first = Masks(lines, flow).write("%there")
    listed = [f"{each.type} {each.value}" for each in function.arguments]
    wide, lanes = lines.wide("i32"), form.lanes
    return (
        [
            f"define internal i32 @{name}({', '.join([*listed, 'i32 %left'])}) alwaysinline nounwind "
            'null_pointer_is_valid "prefer-vector-width"="512" {',
            "begin:",
            *lines.slot_lines(),
            f"%left.first = insertelement {wide} poison, i32 %left, i64 0",
            f"%left.all = shufflevector {wide} %left.first, {wide} poison, <{lanes} x i32> zeroinitializer",
            f"%there = icmp ult {wide} {lines.numbers('i32', 1)}, %left.all",
            *(before if form.is_warp else ()),
            *first,
            *lines.lines,
            "ret i32 0",
            "}",
        ],
        lines.functions,
        lines.declarations,
    )


def _refuse_locks(function: Function, flow: Flow) -> None:
    """Refuse loops that compare with the same value in each round: a lane may take a lock, and wait for the others."""
    made = {each.result: each.block for each in function.instructions() if each.result}
    for i in function.instructions():
        if i.opcode == "cmpxchg" and any(
            made.get(i.operands[1].value) not in flow.loops[header] for header in flow.around(i.block)
        ):
            raise NotUnderstood("a loop that waits for a value")


_DEFINED: Final = re.compile(r"define (?:internal )?(\w+ @([\w.]+)\(.*\).*) \{")

_OF_ROWS: Final = re.compile(r"^define internal i1 @(\w+)\.one\(.*\"row-bytes\"=\"(\d+)\"", re.MULTILINE)
_NAMED: Final = re.compile(r"(?:declare|define) [^@]*@([\w.]+)\(")


def widen_in(text: str, rows: Mapping[str, str], optimise: Callable[[str, str], str], form: Form) -> str:
    """Return a text of LLVM in which each function for one lane is replaced by one for a row of lanes.

    ``rows`` are the names of the new functions, by those of the old ones. ``optimise`` optimises a text and returns one
    function of it. Raises NotUnderstood.
    """
    rest = _without(text, rows)
    judged = _judged(text)
    made: list[str] = []
    functions: dict[str, list[str]] = {}
    wanted: dict[str, str] = {}
    for one, row in rows.items():
        lines, called, declared = widen(optimise(_alone(text, one), one), row, form, judged)
        made += lines
        functions |= called
        wanted |= declared
    made += [line for each in functions.values() for line in each]
    known = {each[1] for each in map(_NAMED.match, [*rest, *made]) if each}
    return "\n".join([*rest, *made, *(line for name, line in sorted(wanted.items()) if name not in known), ""])


def _judged(text: str) -> dict[str, int]:
    """Return the functions that judge places for rows as well, and how many bytes an access uses there.

    No bytes: it does not judge places that follow each other.
    """
    return {found[1]: int(found[2]) for found in _OF_ROWS.finditer(text)}


def _alone(text: str, one: str) -> str:
    """Return a text with one function, and declarations in place of others."""
    lines = []
    name = ""
    for line in text.splitlines():
        begins = _DEFINED.fullmatch(line)
        if begins:
            name = begins[2]
        if not name or name == one:
            lines.append(line)
        elif begins:
            lines.append(f"declare {begins[1]}")
        if line == "}":
            name = ""
    return "\n".join(lines)


def _without(text: str, rows: Mapping[str, str]) -> list[str]:
    """Return a text without the functions of one lane, and without declarations of those of rows."""
    declared = tuple(f"declare i32 @{row}(" for row in rows.values())
    lines = []
    name = ""
    for line in text.splitlines():
        begins = _DEFINED.fullmatch(line)
        if begins:
            name = begins[2]
        if name not in rows and not line.startswith(declared):
            lines.append(line)
        if line == "}":
            name = ""
    return lines

"""Reads the text of a function, as LLVM prints it, into instructions. A line that is not known is refused.

The text is that of the LLVM that llvmlite brings along: https://llvm.org/docs/LangRef.html
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final


class NotUnderstood(Exception):
    """The text has something that is not widened. The function then stays as it is."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A value with its type: a name that begins with ``%`` or ``@``, or a constant."""

    type: str
    value: str

    @property
    def is_local(self) -> bool:
        """Say whether it is a value of the function, and no constant."""
        return self.value.startswith("%")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. ``type`` is that of its result; ``void``: it has none."""

    opcode: str
    type: str
    operands: tuple[Operand, ...]
    block: str
    result: str = ""
    detail: str = ""
    """A predicate, a function that is called, the type that a pointer moves by, or what an atomic instruction does."""
    labels: tuple[str, ...] = ()
    """Where a branch goes to, or where the values of a phi come from."""
    ending: str = ""
    """The alignment of an access, or the order of an atomic one."""
    is_invariant: bool = False
    """Whether a load reads what nobody changes."""
    is_ordered: bool = False
    """Whether an access is volatile or atomic, so that it is made when its turn is, and as often as the text says."""


@dataclass(frozen=True, slots=True)
class Function:
    """A function: its blocks in the order of the text. The last instruction of each says what follows."""

    arguments: tuple[Operand, ...]
    blocks: dict[str, tuple[Instruction, ...]] = field(default_factory=dict)

    def instructions(self) -> Iterator[Instruction]:
        """Yield all instructions."""
        for block in self.blocks.values():
            yield from block


SCALARS: Final = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "i128": 16,
    "half": 2,
    "float": 4,
    "double": 8,
    "ptr": 8,
}
"""The types of values that are widened, and how many bytes of memory each takes."""
ARITHMETIC: Final = frozenset(
    [
        *("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "sdiv", "urem", "srem"),
        *("fadd", "fsub", "fmul", "fdiv", "frem"),
    ]
)
CASTS: Final = frozenset(
    [
        *("trunc", "zext", "sext", "fptrunc", "fpext", "sitofp", "uitofp", "fptosi", "fptoui"),
        *("bitcast", "inttoptr", "ptrtoint"),
    ]
)
_NAME: Final = r"%(?:[-a-zA-Z$._0-9]+|\"[^\"]*\")"
_FLAGS: Final = re.compile(r"(?:(?:nuw|nsw|nusw|exact|disjoint|nneg|inbounds|samesign) )*")
_METADATA: Final = re.compile(r", ![a-z.A-Z]+ ![0-9]+")
_LABEL: Final = re.compile(r"([-a-zA-Z$._0-9]+):")
_RESULT: Final = re.compile(rf"({_NAME}) = (.*)")
_CALL: Final = re.compile(r"(?:(?:noundef|nonnull|range\([^)]*\)|align \d+) )*(\S+) @([-\w.$]+)\((.*)\)(?: #\d+)?")
_CAST: Final = re.compile(r"(\S+) (\S+) to (\S+)")
_PHI: Final = re.compile(rf"\[ (\S+), ({_NAME}) \]")
_BRANCH: Final = re.compile(rf"i1 (\S+), label ({_NAME}), label ({_NAME})")
_ORDERED: Final = re.compile(r"(?:atomic |volatile )+")
_CASE: Final = re.compile(r"i\d+ (-?\d+), label (%\S+)")
_SWITCH: Final = re.compile(rf"(i\d+) (\S+), label ({_NAME}) \[(.*)\]")
_EXCHANGE: Final = re.compile(r"ptr (\S+), (i\d+) (\S+), i\d+ (\S+) ([\w() \"-]+, align \d+)")
_PART: Final = re.compile(r"\{ i\d+, i1 \} (%\S+), ([01])")
_ATOMIC: Final = re.compile(r"(\w+) ptr (\S+), (\w+) (\S+) ([\w() \"-]+, align \d+)")


def read_function(text: str) -> Function:
    """Return a function; its text begins with comments, and ends with a closing brace."""
    head, _, body = text[text.index("define ") :].partition("{\n")
    blocks: dict[str, list[Instruction]] = {}
    current = ""
    exchanges: dict[str, Instruction] = {}
    for line in re.sub(r"\[\n\s*(i\d+ [^]]*?)\n\s*\]", _in_one_line, body.rpartition("}")[0]).splitlines():
        stripped = line.partition(" ;")[0].strip() if not line.startswith(";") else ""
        label = _LABEL.fullmatch(stripped.partition(" ")[0]) if not line.startswith(" ") else None
        if label:
            current = f"%{label[1]}"
            blocks[current] = []
        elif stripped:
            read = _read(stripped, current)
            if read.opcode == "cmpxchg":
                exchanges[read.result] = read
            blocks[current].append(_part(read, exchanges) if read.opcode == "extractvalue" else read)
    return Function(_arguments(head), {name: tuple(lines) for name, lines in blocks.items()})


def _in_one_line(cases: re.Match[str]) -> str:
    """Return the cases of a switch, which has a line for each."""
    return f"[{' '.join(cases[1].split())}]"


def _part(i: Instruction, exchanges: Mapping[str, Instruction]) -> Instruction:
    """Return one of the two results of an exchange: what was there, or whether that is what was compared with."""
    made = exchanges.get(i.operands[0].value)
    if made is None:
        raise NotUnderstood(i.opcode)
    old = Operand(made.type, made.result)
    if i.detail == "0":
        return Instruction("freeze", made.type, (old,), i.block, i.result)
    return Instruction("icmp", "i1", (old, made.operands[1]), i.block, i.result, "eq")


def _arguments(head: str) -> tuple[Operand, ...]:
    inside = head[head.index("(") + 1 : head.rindex(")", 0, head.rindex("local_unnamed_addr"))]
    return tuple(_operand(each) for each in split(inside))


def split(listed: str) -> list[str]:
    """Return what commas separate that stand in no parentheses."""
    parts, depth, start = [], 0, 0
    for place, letter in enumerate(listed):
        depth += (letter in "([{<") - (letter in ")]}>")
        if letter == "," and not depth:
            parts.append(listed[start:place].strip())
            start = place + 1
    return [*parts, listed[start:].strip()] if listed.strip() else parts


def _operand(text: str) -> Operand:
    """Return an operand from its type, attributes of a parameter, and its value."""
    type_, _, rest = text.partition(" ")
    value = rest.rpartition(" ")[2]
    if type_ not in SCALARS or not value or ")" in value:
        raise NotUnderstood(text)
    return Operand(type_, value)


def _read(line: str, block: str) -> Instruction:
    is_invariant = "!invariant.load" in line
    line = _METADATA.sub("", line)
    named = _RESULT.fullmatch(line)
    result, rest = (named[1], named[2]) if named else ("", line)
    rest = re.sub(r"^(?:tail|musttail|notail) call", "call", rest)
    opcode, _, rest = rest.partition(" ")
    flags = _FLAGS.match(rest)
    assert flags is not None
    rest = rest[flags.end() :]
    if opcode == "or" and "disjoint" in flags[0]:
        opcode = "add"  # which is the same where no bit is set in both
    reader = _READERS.get(opcode)
    if reader is None:
        raise NotUnderstood(line)
    read = reader(opcode, rest, block)
    if (read.type != "void" and read.type not in SCALARS) or (read.type == "void") == bool(result):
        raise NotUnderstood(line)
    return Instruction(
        *(read.opcode, read.type, read.operands, block, result, read.detail, read.labels, read.ending, is_invariant),
        read.is_ordered,
    )


def _match(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text)
    if found is None:
        raise NotUnderstood(text)
    return found


def _same_types(opcode: str, rest: str, block: str) -> Instruction:
    type_, _, values = rest.partition(" ")
    return Instruction(opcode, type_, tuple(Operand(type_, each) for each in split(values)), block)


def _comparison(opcode: str, rest: str, block: str) -> Instruction:
    predicate, type_, values = rest.split(" ", 2)
    if type_ not in SCALARS:
        raise NotUnderstood(rest)
    operands = tuple(Operand(type_, each) for each in split(values))
    return Instruction(opcode, "i1", operands, block, detail=predicate)


def _cast(opcode: str, rest: str, block: str) -> Instruction:
    found = _match(_CAST, rest)
    return Instruction(opcode, found[3], (_operand(f"{found[1]} {found[2]}"),), block)


def _select(opcode: str, rest: str, block: str) -> Instruction:
    operands = tuple(map(_operand, split(rest)))
    return Instruction(opcode, operands[1].type, operands, block)


def _move(opcode: str, rest: str, block: str) -> Instruction:
    moved_by, *operands = split(rest)
    if moved_by not in SCALARS or len(operands) != 2:
        raise NotUnderstood(rest)
    return Instruction(opcode, "ptr", tuple(map(_operand, operands)), block, detail=moved_by)


def _load(opcode: str, rest: str, block: str) -> Instruction:
    rest, is_ordered = _unordered(rest)
    type_, pointer, ending = split(rest)
    return Instruction(opcode, type_, (_operand(pointer),), block, ending=ending, is_ordered=is_ordered)


def _store(opcode: str, rest: str, block: str) -> Instruction:
    rest, is_ordered = _unordered(rest)
    value, pointer, ending = split(rest)
    operands = (_operand(value), _operand(pointer))
    return Instruction(opcode, "void", operands, block, ending=ending, is_ordered=is_ordered)


def _unordered(rest: str) -> tuple[str, bool]:
    """Return an access without words for its order. Aligned accesses of the processor are in order, and whole."""
    words = _ORDERED.match(rest)
    if words is None:
        return rest, False
    if "seq_cst" in rest:
        raise NotUnderstood(rest)
    access, _, ending = rest[words.end() :].rpartition(", ")
    return f"{access.partition(' monotonic')[0].partition(' acquire')[0].partition(' release')[0]}, {ending}", True


def _phi(opcode: str, rest: str, block: str) -> Instruction:
    type_, _, values = rest.partition(" ")
    found = [_match(_PHI, each) for each in split(values)]
    operands = tuple(Operand(type_, each[1]) for each in found)
    return Instruction(opcode, type_, operands, block, labels=tuple(each[2] for each in found))


def _branch(opcode: str, rest: str, block: str) -> Instruction:
    if rest.startswith("label "):
        return Instruction(opcode, "void", (), block, labels=(rest.removeprefix("label "),))
    found = _match(_BRANCH, rest)
    return Instruction(opcode, "void", (Operand("i1", found[1]),), block, labels=(found[2], found[3]))


def _switch(opcode: str, rest: str, block: str) -> Instruction:
    found = _match(_SWITCH, rest)
    cases = [(each[1], each[2]) for each in _CASE.finditer(found[4])]
    labels = (found[3], *(label for _, label in cases))
    numbers = " ".join(number for number, _ in cases)
    return Instruction(opcode, "void", (Operand(found[1], found[2]),), block, detail=numbers, labels=labels)


def _exchange(opcode: str, rest: str, block: str) -> Instruction:
    found = _match(_EXCHANGE, rest)
    operands = (Operand("ptr", found[1]), Operand(found[2], found[3]), Operand(found[2], found[4]))
    return Instruction(opcode, found[2], operands, block, ending=found[5])


def _extract(opcode: str, rest: str, block: str) -> Instruction:
    found = _match(_PART, rest)
    return Instruction(opcode, "i1", (Operand("i1", found[1]),), block, detail=found[2])


def _fence(opcode: str, rest: str, block: str) -> Instruction:
    return Instruction(opcode, "void", (), block, ending=rest)


def _return(opcode: str, rest: str, block: str) -> Instruction:
    return Instruction(opcode, "void", (_operand(rest),), block)


def _unreachable(opcode: str, _: str, block: str) -> Instruction:
    return Instruction(opcode, "void", (), block)


def _call(opcode: str, rest: str, block: str) -> Instruction:
    found = _match(_CALL, rest)
    return Instruction(opcode, found[1], tuple(map(_operand, split(found[3]))), block, detail=found[2])


def _atomic(opcode: str, rest: str, block: str) -> Instruction:
    found = _match(_ATOMIC, rest)
    operands = (Operand("ptr", found[2]), Operand(found[3], found[4]))
    return Instruction(opcode, found[3], operands, block, detail=found[1], ending=found[5])


_READERS: Final[dict[str, Callable[[str, str, str], Instruction]]] = {
    **dict.fromkeys((*ARITHMETIC, "fneg", "freeze"), _same_types),
    **dict.fromkeys(("icmp", "fcmp"), _comparison),
    **dict.fromkeys(CASTS, _cast),
    **{"select": _select, "getelementptr": _move, "load": _load, "store": _store, "phi": _phi, "br": _branch},
    **{"ret": _return, "unreachable": _unreachable, "call": _call, "atomicrmw": _atomic},
    **{"switch": _switch, "cmpxchg": _exchange, "extractvalue": _extract, "fence": _fence},
}
"""What reads the rest of a line by its opcode."""

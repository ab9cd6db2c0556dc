"""The parser of a function's body: text to :class:`Function`, with names that blocks in braces declare made unique."""

from __future__ import annotations

import functools
import re
from dataclasses import replace
from typing import Final

from quiesce.model.errors import RefusedKernel
from quiesce.simulator.kernels.ptx.function import (
    Function,
    Guard,
    Instruction,
    Label,
    Prototype,
    Variable,
    parse_parameters,
    parse_variables,
)
from quiesce.simulator.kernels.ptx.module import FunctionText, Module
from quiesce.simulator.kernels.ptx.operands import (
    SPECIAL_REGISTERS,
    TYPES,
    Address,
    Group,
    Integer,
    Negated,
    Operand,
    Pair,
    Register,
    Sink,
    Special,
    Symbol,
    Texel,
    Type,
    Vector,
    negative,
    parse_literal,
)
from quiesce.simulator.kernels.ptx.tokens import END, Tokens

_NUMBER: Final = re.compile(r"(?:0|[1-9][0-9]{,9})\Z")


class Scopes:
    """The open blocks, innermost last, and what the whole function declared."""

    def __init__(self) -> None:
        self.variables: dict[str, Variable] = {}
        self.current = 0
        self._parents: list[int] = [-1]
        self._registers: list[dict[str, Register]] = [{}]
        self._ranges: list[dict[str, tuple[int, Type]]] = [{}]
        self._variable_names: list[dict[str, str]] = [{}]
        self._labels: list[dict[str, str]] = [{}]

    def open(self) -> None:
        """Enter a block."""
        self._parents.append(self.current)
        self.current = len(self._parents) - 1
        for each in (self._registers, self._ranges, self._variable_names, self._labels):
            each.append({})

    def close(self) -> bool:
        """Leave a block; say whether one was open."""
        if not self.current:
            return False
        self.current = self._parents[self.current]
        return True

    def _unique(self, name: str) -> str:
        return f"{name}@{self.current}" if self.current else name

    def declare_register(self, name: str, declared: Type) -> None:
        """Declare one register."""
        self._registers[self.current][name] = Register(self._unique(name), declared)

    def declare_range(self, prefix: str, count: int, declared: Type) -> None:
        """Declare registers that are numbered from zero. They are made when they are met."""
        self._ranges[self.current][prefix] = (count, declared)

    def declare_variable(self, variable: Variable) -> None:
        """Declare memory of the function."""
        unique = self._unique(variable.name)
        self._variable_names[self.current][variable.name] = unique
        self.variables[unique] = replace(variable, name=unique)

    def declare_label(self, name: str) -> str | None:
        """Declare a label, and return its unique name; None where the block has one of that name."""
        labels = self._labels[self.current]
        return None if name in labels else labels.setdefault(name, self._unique(name))

    def find_register(self, name: str) -> Register | None:
        """Return the register that a name means here; None where it means something else."""
        scope = self.current
        while scope >= 0:
            found = self._registers[scope].get(name) or self._find_in_range(name, scope)
            if found is not None:
                return found
            scope = self._parents[scope]
        return None

    def _find_in_range(self, name: str, scope: int) -> Register | None:
        ranges = self._ranges[scope]
        if not ranges or not name[-1:].isdigit():
            return None
        for prefix, (count, declared) in ranges.items():
            digits = name[len(prefix) :]
            if name.startswith(prefix) and _NUMBER.match(digits) and int(digits) < count:
                register = Register(f"{name}@{scope}" if scope else name, declared)
                self._registers[scope][name] = register
                return register
        return None

    def find_variable(self, name: str) -> str:
        """Return the unique name of the function's variable that a name means here, or else the name itself."""
        scope = self.current
        while scope >= 0:
            if name in self._variable_names[scope]:
                return self._variable_names[scope][name]
            scope = self._parents[scope]
        return name

    def find_label(self, name: str, scope: int) -> str | None:
        """Return the unique name of the label that a name means in a scope."""
        while scope >= 0:
            if name in self._labels[scope]:
                return self._labels[scope][name]
            scope = self._parents[scope]
        return None


_BRANCHES = frozenset({"bra", "brx"})
_LINE = re.compile(r"[0-9]{1,9}\Z")


def parse_function(module: Module, text: FunctionText) -> Function:
    """Parse a function of a module. Raises RefusedKernel for anything that is no PTX."""
    signature = module.signature(text)
    parser = _Parser(module.body_tokens(text), module.toolkit_files)
    if not text.is_entry:
        for each in (*signature.returned, *signature.parameters):
            if each.is_register:
                parser.scopes.declare_register(each.name, TYPES[f"b{max(8, each.bits)}"])
    parser.parse()
    return Function(
        name=text.name,
        is_entry=text.is_entry,
        returned=signature.returned,
        parameters=signature.parameters,
        items=tuple(parser.resolved_items()),
        variables=parser.scopes.variables,
        branch_targets=parser.resolved_targets(),
        prototypes=parser.prototypes,
    )


@functools.lru_cache(4096)
def _parse_opcode(text: str) -> tuple[str, tuple[str, ...], tuple[Type, ...]]:
    """Split ``ld.shared::cta.u32`` into its opcode, its modifiers and its types.

    Whose parameters ``param::entry`` and ``param::func`` are, is known without these words.
    """
    opcode, *words = (
        text.replace("param::entry", "param").replace("param::func", "param").replace("::", "\0").split(".")
    )
    modifiers = tuple(word.replace("\0", "::") for word in words if word not in TYPES)
    return opcode, modifiers, tuple(TYPES[word] for word in words if word in TYPES)


class _Parser:
    """Reads statements one after another. What they declare goes to the scopes."""

    def __init__(self, tokens: Tokens, toolkit: frozenset[int]) -> None:
        self.tokens = tokens
        self.scopes = Scopes()
        self.items: list[Instruction | Label] = []
        self.prototypes: dict[str, Prototype] = {}
        self._item_scopes: dict[int, int] = {}
        self._targets: dict[str, tuple[int, tuple[str, ...]]] = {}
        self._location = self._caller = (0, 0)
        self._toolkit = toolkit
        self._chains: dict[tuple[str, ...], tuple[tuple[int, int], ...]] = {}
        """Of a file, line and column: its own line, and those that code from there was inlined at, outermost last."""
        self._name = ""
        self._words: dict[str, Operand] = {}
        """What single words mean here, until another block or declaration changes it."""

    def parse(self) -> None:
        """Read the whole body."""
        tokens = self.tokens
        while (word := tokens.peek()) != END:
            if word == "{":
                tokens.next()
                self._words = {}
                self.scopes.open()
            elif word == "}":
                tokens.next()
                self._words = {}
                if not self.scopes.close():
                    raise tokens.refuse("a brace closes nothing")
            elif word == ";":
                tokens.next()
            elif word[0] == ".":
                self._parse_directive()
            elif tokens.words[min(tokens.at + 1, len(tokens.words) - 1)] == ":":
                self._parse_label()
            else:
                self._parse_instruction()

    def _parse_directive(self) -> None:
        tokens = self.tokens
        word = tokens.peek()
        fields = word.split()
        if fields[0] == ".loc":
            tokens.next()
            self._note_location([field.rstrip(",") for field in fields])
        elif fields[0] == ".file":
            tokens.next()
        elif word == ".pragma":
            while tokens.next() not in (";", END):
                pass
        elif word == ".reg":
            self._words = {}
            self._parse_registers()
        elif word in (".local", ".shared", ".param"):
            self._words = {}
            for each in parse_variables(tokens, is_external=False):
                self.scopes.declare_variable(each)
        else:
            raise tokens.refuse(f"directive '{word[:40]}' is not executed")

    def _note_location(self, words: list[str]) -> None:
        if not all(map(_LINE.match, words[1:4])) or len(words) < 4:
            return
        at = tuple(words[-3:]) if words[-4] == "inlined_at" and all(map(_LINE.match, words[-3:])) else None
        callers = self._chains.get(at, ((int(at[0]), int(at[1])),)) if at else ()
        chain = self._chains[tuple(words[1:4])] = ((int(words[1]), int(words[2])), *callers)
        # What a function of a toolkit's header does, its caller does for a reader.
        place = next((place for place, (file, _) in enumerate(chain) if file not in self._toolkit), 0)
        self._location = chain[place]
        self._caller = chain[-1] if place < len(chain) - 1 else (0, 0)

    def _parse_registers(self) -> None:
        tokens = self.tokens
        tokens.next()
        word = tokens.next()
        if word[1:] not in TYPES or word[0] != ".":
            raise tokens.refuse(f"registers of type '{word[:40]}' are not executed")
        declared = TYPES[word[1:]]
        while True:
            name = tokens.next()
            if tokens.skip("<"):
                count = parse_literal(tokens.next())
                if not isinstance(count, Integer):
                    raise tokens.refuse("a number of registers is missing")
                tokens.expect(">")
                self.scopes.declare_range(name, count.value, declared)
            else:
                self.scopes.declare_register(name, declared)
            if not tokens.skip(","):
                break
        tokens.expect(";")

    def _parse_label(self) -> None:
        tokens = self.tokens
        name = tokens.next()
        tokens.next()
        directive = tokens.peek()
        if directive == ".branchtargets":
            tokens.next()
            listed = []
            while tokens.peek() not in (";", END):
                listed.append(tokens.next())
                tokens.skip(",")
            self._targets[name] = (self.scopes.current, tuple(listed))
        elif directive == ".callprototype":
            tokens.next()
            returned = parse_parameters(tokens)
            tokens.next()
            self.prototypes[name] = Prototype(returned, parse_parameters(tokens))
            while tokens.peek() not in (";", END):  # .noreturn, .abi_preserve
                tokens.next()
        elif directive == ".calltargets":
            while tokens.peek() not in (";", END):
                tokens.next()
        else:
            label = self.scopes.declare_label(name)
            if label is None:
                raise tokens.refuse(f"label '{name}' is there twice")
            self.items.append(Label(label))

    def _parse_instruction(self) -> None:
        tokens = self.tokens
        start, line = tokens.places[tokens.at], tokens.line()
        guard = self._parse_guard()
        self._name = tokens.next()
        opcode, modifiers, types = _parse_opcode(self._name)
        operands: list[Operand] = []
        while tokens.peek() not in (";", END):
            operands.append(self._parse_operand())
            if not tokens.skip(",") and tokens.peek() != ";":
                if isinstance(operands[-1], Group | Symbol) and opcode == "call":
                    continue
                raise tokens.refuse("an operand is not understood")
        text = tokens.text[start : tokens.places[tokens.at]]
        tokens.expect(";")
        instruction = Instruction(
            opcode=opcode,
            modifiers=modifiers,
            types=types,
            operands=tuple(operands),
            guard=guard,
            text=text,
            line=line,
            location=self._location,
            caller=self._caller,
        )
        if opcode in _BRANCHES:
            self._item_scopes[len(self.items)] = self.scopes.current
        self.items.append(instruction)

    def _parse_guard(self) -> Guard | None:
        tokens = self.tokens
        if not tokens.skip("@"):
            return None
        negated = tokens.skip("!")
        register = self.scopes.find_register(tokens.peek())
        if register is None or register.type.kind != "predicate":
            raise tokens.refuse("a guard is no predicate")
        tokens.next()
        return Guard(register, negated)

    def _parse_operand(self) -> Operand:
        tokens = self.tokens
        word = tokens.peek()
        known = self._words.get(word)
        if known is not None and tokens.words[tokens.at + 1] in (",", ";"):
            tokens.at += 1
            return known
        if word == "[":
            return self._parse_address()
        if word == "{":
            return Vector(self._parse_elements("{", "}"))
        if word == "(":
            return Group(self._parse_elements("(", ")"))
        first = self._parse_simple()
        if tokens.words[tokens.at - 1] == word:
            self._words[word] = first
        if tokens.skip("|"):
            second = self._parse_simple()
            if not isinstance(first, Register | Sink) or not isinstance(second, Register | Sink):
                raise tokens.refuse("two destinations are no registers")
            return Pair(first, second)
        return first

    def _parse_elements(self, opening: str, closing: str) -> tuple[Operand, ...]:
        tokens = self.tokens
        tokens.expect(opening)
        elements: list[Operand] = []
        while not tokens.skip(closing):
            elements.append(self._parse_simple())
            if not tokens.skip(",") and tokens.peek() != closing:
                raise tokens.refuse(f"'{closing}' is missing")
        return tuple(elements)

    def _parse_address(self) -> Address | Texel:
        tokens = self.tokens
        tokens.expect("[")
        base = self._parse_simple()
        offset = self._parse_offset()
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), base.offset
        if not isinstance(base, Register | Symbol | Integer):
            raise tokens.refuse("an address is neither a register nor a name")
        if tokens.skip(","):
            return self._parse_texel(base, offset)
        tokens.expect("]")
        return Address(base, offset)

    def _parse_texel(self, reference: Register | Symbol | Integer, offset: int) -> Texel:
        """Read what follows the name of a texture, a surface or a tensor."""
        tokens = self.tokens
        named: list[Register | Symbol] = []
        coordinates: tuple[Operand, ...] = ()
        while not coordinates:
            if tokens.peek() == "{":
                coordinates = self._parse_elements("{", "}")
                break
            word = self._parse_simple()
            if not tokens.skip(","):
                coordinates = (word,)
            elif isinstance(word, Register | Symbol):
                named.append(word)
            else:
                break
        if not coordinates or len(named) > 1 or isinstance(reference, Integer) or offset or not tokens.skip("]"):
            raise tokens.refuse(f"'{self._name}' is not executed")
        return Texel(reference, coordinates, named[0] if named else None)

    def _parse_simple(self) -> Operand:
        tokens = self.tokens
        word = tokens.peek()
        if word == "!":
            tokens.next()
            register = self.scopes.find_register(tokens.next())
            if register is None or register.type.kind != "predicate":
                raise tokens.refuse("'!' stands before something that is no predicate")
            return Negated(register)
        if word in ("-", "+"):
            tokens.next()
            literal = parse_literal(tokens.next())
            if literal is None:
                raise tokens.refuse("a sign stands before something that is no number")
            return negative(literal) if word == "-" else literal
        return self._parse_word()

    def _parse_word(self) -> Operand:
        tokens = self.tokens
        word = tokens.next()
        register = self.scopes.find_register(word)
        if register is not None:
            return register
        literal = parse_literal(word)
        if literal is not None:
            return literal
        if word == "_":
            return Sink()
        if word in SPECIAL_REGISTERS:
            return Special(word)
        if not word or not (word[0].isalpha() or word[0] in "_$%"):
            tokens.at -= 1
            raise tokens.refuse("an operand is not understood")
        return Symbol(self.scopes.find_variable(word), self._parse_offset())

    def _parse_offset(self) -> int:
        tokens = self.tokens
        offset = 0
        while tokens.peek() in ("+", "-"):
            negated = tokens.next() == "-"
            negated ^= tokens.skip("-")
            literal = parse_literal(tokens.next())
            if not isinstance(literal, Integer):
                raise tokens.refuse("an offset is no number")
            offset += -literal.value if negated else literal.value
        return offset

    def resolved_items(self) -> list[Instruction | Label]:
        """Return the items, each branch with the unique name of its label."""
        items = list(self.items)
        for place, scope in self._item_scopes.items():
            branch = items[place]
            assert isinstance(branch, Instruction)
            if branch.opcode == "bra":
                (target,) = branch.operands if len(branch.operands) == 1 else (None,)
                if not isinstance(target, Symbol):
                    raise RefusedKernel("a branch has no label", branch.text, branch.line)
                label = self._label(target.name, scope, branch)
                items[place] = replace(branch, operands=(Symbol(label),))
        return items

    def resolved_targets(self) -> dict[str, tuple[str, ...]]:
        """Return the lists of labels for branches with an index."""
        return {
            name: tuple(self._label(label, scope, None) for label in listed)
            for name, (scope, listed) in self._targets.items()
        }

    def _label(self, name: str, scope: int, branch: Instruction | None) -> str:
        label = self.scopes.find_label(name, scope)
        if label is None:
            raise RefusedKernel(
                f"there is no label '{name}'", branch.text if branch else "", branch.line if branch else 0
            )
        return label

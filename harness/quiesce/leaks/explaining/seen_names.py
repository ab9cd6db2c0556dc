"""What the expressions of a function stand for, as one of its calls returns: a container, its owner, or a number."""

from __future__ import annotations

import ast
import operator
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

from quiesce.leaks.explaining.bound_names import UNKNOWN, Target, attribute
from quiesce.leaks.explaining.ran_code import RanFunction

ENTRY_OF: Final = frozenset({"get", "setdefault", "pop", "popitem", "popleft", "__getitem__"})
ENTRIES_OF: Final = frozenset({"values", "items", "copy", "list", "tuple", "iter", "enumerate", "reversed", "sorted"})
NUMBER_MAX: Final = 1 << 40
SHIFT_MAX: Final = 40
BASE_MAX: Final = 1024
NESTED_MAX: Final = 12
"""How many names are followed from one to the next."""

_OPERATORS: Final[Mapping[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
_LOOPS: Final = (ast.For, ast.AsyncFor, ast.comprehension)


def last_name(node: ast.AST) -> str:
    """Return the last name of an expression: ``c`` of ``a.b.c``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _is_of(value: Any, codes: set[int]) -> bool:
    """Whether a function, a method or a property has one of these codes."""
    if type(value) is property:
        value = value.fget
    elif type(value) in (staticmethod, classmethod):
        value = value.__func__
    return type(value) is types.FunctionType and id(value.__code__) in codes


class SeenNames:
    """Reads the expressions of one call for one container. A variable stands for what it holds when the call ends."""

    def __init__(self, function: RanFunction, frame: types.FrameType, target: Target) -> None:
        self.function = function
        self.parts = function.parts
        self.target = target
        self.caller = frame.f_back.f_code if frame.f_back is not None else None
        self._locals = frame.f_locals
        self._globals = frame.f_globals
        self._assigned: dict[str, list[ast.expr | None]] = {}
        self._entries: set[str] = set()
        for each in self.parts:
            self._note(each)

    def _note(self, node: ast.AST) -> None:
        """Put down what is assigned to names; None for each of many values."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._note_value(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            self._note_value(node.target, node.value)
        elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
            targets = [each for each in ast.walk(node.target) if isinstance(each, ast.Name)]
            names = [each.id for each in targets if isinstance(each.ctx, ast.Store)]
            for name in names:
                self._assigned.setdefault(name, []).extend([None, None])
            if isinstance(node, _LOOPS) and self._are_entries(node.iter):
                self._entries.update(names)

    def _note_value(self, target: ast.AST, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self._assigned.setdefault(target.id, []).append(value)

    def _are_entries(self, node: ast.expr) -> bool:
        """Whether a loop goes through what has the container among its entries."""
        while isinstance(node, ast.Call) and last_name(node.func) in ENTRIES_OF:
            if not node.args and not isinstance(node.func, ast.Attribute):
                return False
            node = node.args[0] if node.args else node.func.value  # type: ignore[attr-defined]
        return self.target.is_outer(self.value(node))

    def is_mentioned(self) -> bool:
        """Whether the function names the container, what has it, or a function that tells of it."""
        named = [each for each in self.parts if isinstance(each, ast.Name | ast.Attribute)]
        return any(self._is_near(self.value(each)) for each in named)

    def _is_near(self, value: Any) -> bool:
        target = self.target
        return value is target.container or id(value) in target.owners or target.is_outer(value)

    def is_container(self, node: ast.AST) -> bool:
        """Whether an expression is the container."""
        return self.value(node) is self.target.container

    def is_within(self, node: ast.AST) -> bool:
        """Whether an expression is the container, or has it among its entries."""
        value = self.value(node)
        return value is self.target.container or self.target.is_outer(value)

    def method(self, node: ast.AST) -> str:
        """Return which method of the container an expression is: ``append`` of ``x.append``, or of a name for it."""
        if not isinstance(node, ast.Attribute):
            return ""
        if self.is_within(node.value):
            return node.attr
        value = self.value(node)
        is_kept = type(value) is types.BuiltinMethodType and value.__self__ is self.target.container
        return value.__name__ if is_kept else ""

    def is_new(self, node: ast.AST) -> bool:
        """Whether an expression is a variable of this call only."""
        code = self.function.code
        return isinstance(node, ast.Name) and node.id in (*code.co_varnames, *code.co_cellvars)

    def assigned(self, node: ast.AST) -> ast.AST:
        """Return the only expression that was assigned to a name, or what is given."""
        values = self._assigned.get(node.id, []) if isinstance(node, ast.Name) else []
        return values[0] if len(values) == 1 and values[0] is not None else node

    def is_one_of(self, node: ast.AST, functions: Mapping[str, set[int]]) -> bool:
        """Whether an expression is one of these functions, methods or properties."""
        codes = functions.get(last_name(node))
        if not codes:
            return False
        if isinstance(node, ast.Attribute):
            owner = self.value(node.value)
            return owner is not UNKNOWN and _is_of(attribute(owner, self.function.mangled(node.attr)), codes)
        return _is_of(self.value(node), codes)

    def is_sized(self, node: ast.AST) -> bool:
        """Whether an expression is something whose length is that of the container."""
        codes = self.target.measuring.get("__len__", set())
        return self.is_container(node) or (bool(codes) and _is_of(attribute(type(self.value(node)), "__len__"), codes))

    def value(self, node: ast.AST | None, nested: int = 0) -> Any:
        """Return what an expression stands for, or ``UNKNOWN``; no code of the program runs."""
        read = _READERS.get(type(node))
        return UNKNOWN if read is None or nested > NESTED_MAX else read(self, node, nested + 1)

    def _constant(self, node: ast.Constant, _: int) -> Any:
        return node.value

    def _inner(self, node: Any, nested: int) -> Any:
        return self.value(node.value, nested)

    def _variable(self, node: ast.Name, nested: int) -> Any:
        name = node.id
        if name in self._entries:
            return self.target.container
        if name in self._locals:
            return self._locals[name]
        code = self.function.code
        if name in code.co_varnames or name in code.co_cellvars:
            values = self._assigned.get(name, [])
            return self.value(values[0], nested) if len(values) == 1 else UNKNOWN
        return self._globals.get(name, vars(sys.modules["builtins"]).get(name, UNKNOWN))

    def _attribute(self, node: ast.Attribute, nested: int) -> Any:
        owner = self.value(node.value, nested)
        if owner is UNKNOWN:
            return UNKNOWN
        found = attribute(owner, self.function.mangled(node.attr))
        if found is self.target.container:
            self.target.owners[id(owner)] = owner
        elif type(found) is property and self.is_one_of(node, self.target.returning):
            return self.target.container
        return found

    def _entry(self, node: ast.Subscript, nested: int) -> Any:
        is_entry = not isinstance(node.slice, ast.Slice) and self.target.is_outer(self.value(node.value, nested))
        return self.target.container if is_entry else UNKNOWN

    def _call(self, node: ast.Call, nested: int) -> Any:
        name, code = last_name(node.func), self.function.code
        if name == "super" and not node.args:
            return self._locals.get(code.co_varnames[0], UNKNOWN) if code.co_argcount else UNKNOWN
        if self.is_one_of(node.func, self.target.returning):
            return self.target.container
        if isinstance(node.func, ast.Attribute):
            is_entry = name in ENTRY_OF and self.target.is_outer(self.value(node.func.value, nested))
            return self.target.container if is_entry else UNKNOWN
        numbers = [self.value(each, nested) for each in node.args]
        if not all(type(each) in (int, float) for each in numbers):
            return UNKNOWN
        if name == "int" and len(numbers) == 1 and abs(numbers[0]) < NUMBER_MAX:
            return int(numbers[0])
        return {"min": min, "max": max}[name](numbers) if name in ("min", "max") and len(numbers) > 1 else UNKNOWN

    def _choice(self, node: ast.IfExp | ast.BoolOp, nested: int) -> Any:
        choices = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        values = [self.value(each, nested) for each in choices]
        return self.target.container if any(each is self.target.container for each in values) else UNKNOWN

    def _negative(self, node: ast.UnaryOp, nested: int) -> Any:
        found = self.value(node.operand, nested)
        return -found if isinstance(node.op, ast.USub) and type(found) in (int, float) else UNKNOWN

    def _combined(self, node: ast.BinOp, nested: int) -> Any:
        left, right = self.value(node.left, nested), self.value(node.right, nested)
        combine = _OPERATORS.get(type(node.op))
        if combine is None or not all(type(each) in (int, float) and abs(each) < NUMBER_MAX for each in (left, right)):
            return UNKNOWN
        is_power = combine in (operator.pow, operator.lshift)
        if is_power and not (type(left) is type(right) is int and 0 <= right <= SHIFT_MAX and abs(left) <= BASE_MAX):
            return UNKNOWN
        return UNKNOWN if not right and combine in (operator.truediv, operator.floordiv) else combine(left, right)

    def number(self, node: ast.AST | None) -> int | None:
        """Return the number that an expression is, without its fraction, if it has one value in this call."""
        names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name)] if node is not None else []
        if any(len(self._assigned.get(name, ())) > (name not in self.function.arguments) for name in names):
            return None
        found = self.value(node)
        return int(found) if type(found) in (int, float) and abs(found) < NUMBER_MAX else None


_READERS: Final[Mapping[type[ast.AST] | type[None], Callable[[Any, Any, int], Any]]] = {
    ast.Constant: SeenNames._constant,
    ast.Name: SeenNames._variable,
    ast.Attribute: SeenNames._attribute,
    ast.Subscript: SeenNames._entry,
    ast.Call: SeenNames._call,
    ast.IfExp: SeenNames._choice,
    ast.BoolOp: SeenNames._choice,
    ast.UnaryOp: SeenNames._negative,
    ast.BinOp: SeenNames._combined,
    ast.NamedExpr: SeenNames._inner,
    ast.Starred: SeenNames._inner,
    ast.Await: SeenNames._inner,
}

"""Which expressions of one function stand for a container, and which values its other names have."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Mapping, Sequence
from typing import Any, Final

from quiesce.leaks.explaining.bound_names import UNKNOWN, Names, attribute
from quiesce.leaks.explaining.ran_code import FunctionNode, RanFunction, body_of, mro_of, parts

RUNNERS: Final = frozenset({"_pytest", "pytest", "pluggy", "quiesce", "coverage", "hypothesis"})
"""Packages that run tests. Like the standard library, they know nothing of what a test keeps under a name of theirs."""

ENTRY_OF: Final = frozenset({"get", "setdefault", "pop", "popitem", "popleft", "__getitem__"})
ENTRIES_OF: Final = frozenset({"values", "items", "copy", "list", "tuple", "iter", "enumerate", "reversed", "sorted"})
CHOICES: Final = {"min": min, "max": max}
NUMBER_MAX: Final = 1 << 40
SHIFT_MAX: Final = 40
BASE_MAX: Final = 1024
NESTED_MAX: Final = 12
"""How many names are followed from one to the next."""

_ASSIGNING: Final = (
    ast.Assign,
    ast.AugAssign,
    ast.AnnAssign,
    ast.NamedExpr,
    ast.For,
    ast.AsyncFor,
    ast.comprehension,
    ast.With,
    ast.AsyncWith,
)


def last_name(node: ast.AST) -> str:
    """Return the last name of an expression: ``c`` of ``a.b.c``."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


class SeenNames:
    """What one function calls a container.

    ``passed`` are the arguments in which other code hands it on, ``returning`` the functions that return it.
    """

    def __init__(
        self,
        function: RanFunction,
        node: FunctionNode,
        names: Names,
        passed: Mapping[str, int],
        returning: Mapping[str, Sequence[RanFunction]],
        known_parts: Sequence[ast.AST] | None = None,
    ) -> None:
        self.function = function
        self._returning = returning
        self._names = names
        self.statements = body_of(node)
        arguments = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
        self._annotations = {each.arg: each.annotation for each in arguments}
        self._assigned: dict[str, list[ast.expr]] = {}
        self._owners: dict[str, Any] = {}
        self.roots = self._find_roots() | dict(passed)
        self._depths = dict(self.roots)
        self.parts = list(parts(*self.statements)) if known_parts is None else known_parts
        assigning = [each for each in self.parts if isinstance(each, _ASSIGNING)]
        for each in assigning:
            self._note(each)
        for _ in range(2):  # a name may stand for another that is assigned below it, in a loop
            for each in assigning:
                self._follow(each)

    def _find_roots(self) -> dict[str, int]:
        function, names = self.function, self._names
        found = {name: depth for name, depth in names.arguments if name in function.arguments}
        for namespace, name, depth in names.variables:
            if namespace is function.namespace and name not in function.locals:
                found[name] = depth
        for cell, depth in names.cells:
            for name in function.code.co_freevars:
                if any(each is cell for each in function.cells(name)):
                    found[name] = depth
        for owner, name, depth in names.defaults:
            if any(each is owner for each in function.functions):
                found[name] = depth
        for container, depth in names.own_class:
            if function.self_name and function.is_method_of(type(container)):
                found[function.self_name] = depth
        return found

    def _note(self, node: ast.AST) -> None:
        """Put down what is assigned to names."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    self._assigned.setdefault(target.id, []).append(node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and isinstance(node.target, ast.Name) and node.value:
            self._assigned.setdefault(node.target.id, []).append(node.value)
        elif isinstance(node, ast.AugAssign | ast.For | ast.AsyncFor | ast.comprehension):
            for name in ast.walk(node.target):  # it has many values: none is the one
                if isinstance(name, ast.Name):
                    self._assigned.setdefault(name.id, []).extend([name, name])

    def _follow(self, node: ast.AST) -> None:
        """Let names stand for the container that were assigned from another name for it."""
        pairs: list[tuple[ast.AST, int | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, self.depth(node.value)) for target in node.targets]
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            pairs = [(node.target, self.depth(node.value))]
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            depth = self._depth_of_entries(node.iter)
            targets = node.target.elts if isinstance(node.target, ast.Tuple | ast.List) else [node.target]
            pairs = [(target, depth) for target in targets]
        elif isinstance(node, ast.With | ast.AsyncWith):
            pairs = [(item.optional_vars, self.depth(item.context_expr)) for item in node.items if item.optional_vars]
        for target, depth in pairs:
            if isinstance(target, ast.Name) and depth is not None and target.id in self.function.code.co_varnames:
                self._depths.setdefault(target.id, depth)

    def _depth_of_entries(self, node: ast.expr) -> int | None:
        while isinstance(node, ast.Call) and last_name(node.func) in ENTRIES_OF:
            if node.args:
                node = node.args[0]
            elif isinstance(node.func, ast.Attribute):
                node = node.func.value
            else:
                return None
        depth = self.depth(node)
        return depth - 1 if depth else None

    def is_mentioned(self) -> bool:
        """Whether the function names the container, or what has it among its entries."""
        named = (each for each in self.parts if isinstance(each, ast.Name | ast.Attribute | ast.Call))
        return any(self.depth(each) is not None or self.method(each) for each in named)

    def is_container(self, node: ast.AST) -> bool:
        """Whether an expression is the container."""
        return self.depth(node) == 0

    def depth(self, node: ast.AST) -> int | None:
        """Return how many entries deep the container is in what an expression stands for; None: not at all."""
        if isinstance(node, ast.Name):
            return self._depths.get(node.id)
        if isinstance(node, ast.Attribute):
            return self._depth_of_attribute(node)
        if isinstance(node, ast.Subscript):
            outer = None if isinstance(node.slice, ast.Slice) else self.depth(node.value)
            return outer - 1 if outer else None
        if isinstance(node, ast.NamedExpr | ast.Starred | ast.Await):
            return self.depth(node.value)
        if isinstance(node, ast.IfExp | ast.BoolOp):
            choices = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
            return next((depth for each in choices if (depth := self.depth(each)) is not None), None)
        return self._depth_of_call(node) if isinstance(node, ast.Call) else None

    def _depth_of_call(self, node: ast.Call) -> int | None:
        name = last_name(node.func)
        if name == "super" and not node.args:
            return self._depths.get(self.function.self_name)
        if self.is_one_of(node.func, self._returning):
            return 0
        if isinstance(node.func, ast.Attribute) and name in ENTRY_OF:
            outer = self.depth(node.func.value)
            return outer - 1 if outer else None
        return None

    def _depth_of_attribute(self, node: ast.Attribute) -> int | None:
        if self.is_one_of(node, self._returning):
            return 0
        name = self.function.mangled(node.attr)
        for owner, attr, depth in self._names.attributes:
            if attr == name and self._is_owner(node.value, owner):
                if isinstance(node.value, ast.Name):
                    self._owners.setdefault(node.value.id, owner)
                return depth
        return None

    def is_new(self, node: ast.AST) -> bool:
        """Whether an expression is a variable of this call only."""
        return isinstance(node, ast.Name) and node.id in (
            *self.function.code.co_varnames,
            *self.function.code.co_cellvars,
        )

    def assigned(self, node: ast.AST) -> ast.AST:
        """Return the only expression that was assigned to a name, or what is given."""
        values = self._assigned.get(node.id, []) if isinstance(node, ast.Name) else []
        return values[0] if len(values) == 1 else node

    def method(self, node: ast.AST) -> str:
        """Return which method of the container an expression is: ``append`` of ``x.append``, or of a name for it."""
        if not isinstance(node, ast.Attribute):
            return ""
        if self.depth(node.value) is not None:
            return node.attr
        name = self.function.mangled(node.attr)
        kept = (each for each in self._names.methods if each[1] == name and self._is_owner(node.value, each[0]))
        return next((method for _, _, method in kept), "")

    def is_one_of(self, node: ast.AST, functions: Mapping[str, Sequence[RanFunction]]) -> bool:
        """Whether an expression is one of these functions, methods or properties of what has the container."""
        found = functions.get(last_name(node), ())
        if not found:
            return False
        if isinstance(node, ast.Attribute):
            return self.is_holder(node.value)
        value = self.value(node)
        return type(value) is types.FunctionType and any(each.code is value.__code__ for each in found)

    def is_holder(self, node: ast.expr) -> bool:
        """Whether an expression can be what has the container as its attribute."""
        return any(self._is_owner(node, owner) for owner, _, depth in self._names.attributes if depth == 0)

    def _is_owner(self, node: ast.expr, owner: Any) -> bool:
        """Whether an expression can be what has the container as its attribute: False where it is known not to be."""
        function, is_class = self.function, issubclass(type(owner), type)
        if issubclass(type(owner), types.ModuleType):
            return self.value(node) is owner
        kind = owner if is_class else type(owner)
        if isinstance(node, ast.Name) and node.id == function.self_name:
            return function.is_method_of(kind) or (is_class and self._is_method_below(kind))
        is_argument = isinstance(node, ast.Name) and node.id in function.arguments
        value: Any = UNKNOWN if is_argument else self.value(node)
        if value is not UNKNOWN:
            its_kind = value if issubclass(type(value), type) else type(value)
            return kind in mro_of(its_kind) if is_class else value is owner or value in mro_of(kind)
        guessed = self._class_of(node)
        if guessed is not None:
            return guessed in mro_of(kind) or kind in mro_of(guessed)
        return self._may_know(kind)

    def _is_method_below(self, kind: type) -> bool:
        """Whether the method's class inherits from another."""
        method = self.function.method
        if method is None:
            return False
        found: Any = self.function.namespace.get(method.class_name.partition(".")[0], UNKNOWN)
        for name in method.class_name.split(".")[1:]:
            found = UNKNOWN if found is UNKNOWN else attribute(found, name)
        return issubclass(type(found), type) and kind in mro_of(found)

    def _may_know(self, kind: type) -> bool:
        package = str(self.function.module).partition(".")[0]
        if package not in RUNNERS and package not in sys.stdlib_module_names:
            return True
        return str(attribute(kind, "__module__")).partition(".")[0] == package

    def _class_of(self, node: ast.expr) -> type | None:
        """Return the class of a local name that is made by calling it, or of an argument that is annotated with it."""
        if not isinstance(node, ast.Name):
            return None
        if node.id in self.function.arguments:
            annotation = self._annotations.get(node.id)
            named: Any = self.value(annotation) if annotation is not None else UNKNOWN
            found: Any = self.function.namespace.get(named, UNKNOWN) if type(named) is str else named
        else:
            values = self._assigned.get(node.id, [])
            found = self.value(values[0].func) if len(values) == 1 and isinstance(values[0], ast.Call) else UNKNOWN
        return found if issubclass(type(found), type) and found not in (super, object) else None

    def value(self, node: ast.AST, nested: int = 0) -> Any:
        """Return what an expression of names stands for, or ``UNKNOWN``. What a variable holds is what it holds now."""
        if nested > NESTED_MAX:
            return UNKNOWN
        if isinstance(node, ast.Attribute):
            return self._value_of_attribute(node, nested)
        if not isinstance(node, ast.Name):
            return node.value if isinstance(node, ast.Constant) else UNKNOWN
        function, name = self.function, node.id
        if name == function.self_name:
            return self._self_value()
        if name in function.code.co_freevars:
            return next((_content(cell) for cell in function.cells(name)), UNKNOWN)
        if name not in function.locals:
            builtin = vars(sys.modules["builtins"]).get(name, UNKNOWN)
            return function.namespace.get(name, builtin)
        if name in self._owners:
            return self._owners[name]
        if name in function.arguments:
            return self._default(name)
        values = self._assigned.get(name, [])
        return self.value(values[0], nested + 1) if len(values) == 1 else UNKNOWN

    def _value_of_attribute(self, node: ast.Attribute, nested: int) -> Any:
        owner, name = self.value(node.value, nested + 1), self.function.mangled(node.attr)
        if owner is not UNKNOWN:
            return attribute(owner, name)
        if isinstance(node.value, ast.Name) and node.value.id == self.function.self_name:
            kinds = (each for each, _, _ in self._names.attributes if issubclass(type(each), type))
            return next((value for kind in kinds if (value := attribute(kind, name)) is not UNKNOWN), UNKNOWN)
        return UNKNOWN

    def _self_value(self) -> Any:
        known = [owner for owner, _, _ in self._names.attributes if not issubclass(type(owner), type)]
        known += [container for container, _ in self._names.own_class]
        return next((each for each in known if self.function.is_method_of(type(each))), UNKNOWN)

    def _default(self, name: str) -> Any:
        for function in self.function.functions:
            code, values = function.__code__, function.__defaults__ or ()
            plain = code.co_varnames[: code.co_argcount]
            given = dict(zip(plain[len(plain) - len(values) :], values, strict=False)) | (function.__kwdefaults__ or {})
            return given.get(name, UNKNOWN)
        return UNKNOWN

    def number(self, node: ast.AST | None) -> int | None:
        """Return the number that an expression of numbers and names is, without its fraction, if it can be read."""
        found = self._figure(node, 0)
        return None if found is None or not abs(found) < NUMBER_MAX else int(found)

    def _figure(self, node: ast.AST | None, nested: int) -> float | None:
        if node is None or nested > NESTED_MAX:
            return None
        if isinstance(node, ast.BinOp):
            return _combined(node.op, self._figure(node.left, nested + 1), self._figure(node.right, nested + 1))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            found = self._figure(node.operand, nested + 1)
            return None if found is None else -found
        if isinstance(node, ast.Call):
            name, asked = last_name(node.func), [self._figure(each, nested + 1) for each in node.args]
            numbers = [each for each in asked if each is not None]
            if name == "int" and len(numbers) == 1:
                return numbers[0] if abs(numbers[0]) < NUMBER_MAX else None
            return CHOICES[name](numbers) if name in CHOICES and len(numbers) == len(node.args) > 1 else None
        if isinstance(node, ast.Name) and node.id in self.function.code.co_varnames:
            values = self._assigned.get(node.id, [])
            if len(values) == 1 and node.id not in self.function.arguments:
                return self._figure(values[0], nested + 1)
        value = self.value(node)
        return value if type(value) in (int, float) else None


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing was assigned yet
        return UNKNOWN


def _combined(operator: ast.operator, left: float | None, right: float | None) -> float | None:
    if left is None or right is None or not max(abs(left), abs(right)) < NUMBER_MAX:
        return None
    are_whole = isinstance(left, int) and isinstance(right, int) and 0 <= right <= SHIFT_MAX
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    if isinstance(operator, ast.LShift):
        return int(left) << int(right) if are_whole else None
    if isinstance(operator, ast.Pow):
        return int(left) ** int(right) if are_whole and 0 <= left <= BASE_MAX else None
    if not right:
        return None
    return (
        left / right if isinstance(operator, ast.Div) else left // right if isinstance(operator, ast.FloorDiv) else None
    )

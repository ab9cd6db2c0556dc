"""What one function does about the size of a container: it compares a length, takes entries out, asks for entries."""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from quiesce.leaks.explaining.bound_names import UNKNOWN
from quiesce.leaks.explaining.ran_code import parts
from quiesce.leaks.explaining.seen_names import SeenNames, last_name
from quiesce.leaks.explaining.shapes import (
    asks_whether_there,
    compares,
    does_something,
    is_length,
    is_next,
    leaves,
    names_of_errors,
)


class BoundKind(enum.Enum):
    """What bounds a container, the weakest first."""

    NONE = enum.auto()
    MEMO = enum.auto()
    """Code asks whether it has an entry already."""
    REMOVES = enum.auto()
    """Code takes entries out."""
    EXPIRES = enum.auto()
    """Code takes entries out and reads a clock, or is told the time."""
    GUARDED = enum.auto()
    """Code compares its length."""
    DECLARED = enum.auto()
    """It was made with a ``maxlen`` or a ``maxsize``."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A bound. ``most`` is how many entries it allows, if that can be read; ``place`` is ``file:line``."""

    kind: BoundKind = BoundKind.NONE
    most: int | None = None
    place: str = ""


REMOVALS: Final = frozenset(
    [
        "pop",
        "popitem",
        "popleft",
        "clear",
        "remove",
        "discard",
        "__delitem__",
        "difference_update",
        "intersection_update",
        "truncate",
        "expunge",
        "purge",
        "evict",
        "expire",
        "prune",
        "trim",
        "shrink",
        "cache_clear",
    ]
)
INSERTIONS: Final = frozenset(
    [
        "append",
        "appendleft",
        "add",
        "insert",
        "extend",
        "extendleft",
        "update",
        "setdefault",
        "__setitem__",
    ]
)
INSERTED_BY: Final = frozenset(["heappush", "insort", "insort_left", "insort_right"])
REMOVED_BY: Final = frozenset(["heappop", "heappushpop", "heapreplace"])
EQUAL_REMOVALS: Final = frozenset(["remove", "discard", "pop"])
"""What takes out an entry by its value or key: nothing, if just that is put in again."""

ASKED: Final = frozenset(["get", "setdefault", "__contains__"])
LOOKUP_ERRORS: Final = frozenset({"KeyError", "LookupError", "IndexError", "ValueError", "AttributeError", ""})

_Condition: TypeAlias = tuple[ast.expr, bool]
"""A test, and whether it is true where something stands."""

_FLIPPED: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.Gt,
    ast.Gt: ast.Lt,
    ast.LtE: ast.GtE,
    ast.GtE: ast.LtE,
}
_SIZES: Final = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)


@dataclass(frozen=True, slots=True)
class _Insertion:
    """Something is put into a container, on conditions."""

    line: int
    conditions: tuple[_Condition, ...]


class Guards:
    """Reads one function: the bounds ``found``, and those ``counted`` that hold if nothing resets their counter."""

    def __init__(self, names: SeenNames) -> None:
        self.found: list[Bound] = []
        self.counted: list[tuple[str, Bound]] = []
        self._names = names
        self._length_names: set[str] = set()
        self._length_names = {
            target.id
            for node in names.parts
            if isinstance(node, ast.Assign) and self._is_length(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        self._insertions: list[_Insertion] = []
        self._moved: set[int] = set()
        self._equal: dict[int, ast.AST] = {}
        self._put: list[tuple[int, ast.AST]] = []
        self._taken: list[tuple[ast.AST, ast.AST | None, tuple[_Condition, ...]]] = []
        self._compared: list[tuple[type[ast.cmpop], int | None, int, bool]] = []
        self._block(names.function.statements, ())
        self._add_lengths()
        for insertion in self._insertions:
            self._add_conditions(insertion)
        put = {ast.unparse(value): line for line, value in sorted(self._put, key=lambda each: each[0])}
        for node, taken, conditions in self._taken:
            self._add_conditions_of_removal(conditions)
            is_put_again = taken is not None and put.get(ast.unparse(taken), 0) > getattr(node, "lineno", 0)
            self._add(BoundKind.MEMO if is_put_again else BoundKind.REMOVES, node)

    def _add(self, kind: BoundKind, node: ast.AST | int, most: int | None = None) -> None:
        line = node if isinstance(node, int) else getattr(node, "lineno", self._names.function.code.co_firstlineno)
        self.found.append(Bound(kind, most, f"{self._names.function.code.co_filename}:{line}"))

    def _block(self, statements: Sequence[ast.stmt], conditions: tuple[_Condition, ...]) -> None:
        for statement in statements:
            self._statement(statement, conditions)
            if isinstance(statement, ast.If):
                if leaves(statement.body):
                    conditions = (*conditions, (statement.test, False))
                if leaves(statement.orelse):
                    conditions = (*conditions, (statement.test, True))

    def _statement(self, node: ast.stmt, conditions: tuple[_Condition, ...]) -> None:
        if isinstance(node, ast.If | ast.While):
            is_loop = isinstance(node, ast.While)
            if is_loop or does_something(node.body) or does_something(node.orelse):
                guarded = (*node.body, *node.orelse)
                is_early = leaves(node.body) or leaves(node.orelse)
                self._expression(node.test, conditions, is_loop=is_loop, guarded=None if is_early else guarded)
            self._block(node.body, (*conditions, (node.test, True)))
            self._block(node.orelse, conditions if is_loop else (*conditions, (node.test, False)))
        elif isinstance(node, ast.Try | ast.TryStar):
            if any(names_of_errors(handler) & LOOKUP_ERRORS for handler in node.handlers):
                for each in parts(*node.body):
                    if isinstance(each, ast.Subscript) and isinstance(each.ctx, ast.Load):
                        self._note_asked(each.value, each)
            for block in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
                self._block(block, conditions)
        elif isinstance(node, ast.For | ast.AsyncFor):
            self._expression(node.iter, conditions)
            self._block([*node.body, *node.orelse], conditions)
        elif isinstance(node, ast.With | ast.AsyncWith):
            for item in node.items:
                self._expression(item.context_expr, conditions)
            self._block(node.body, conditions)
        elif isinstance(node, ast.Match):
            self._expression(node.subject, conditions)
            for case in node.cases:
                self._block(case.body, conditions)
        else:
            self._expression(node, conditions)

    def _expression(
        self,
        whole: ast.AST,
        conditions: tuple[_Condition, ...],
        *,
        is_loop: bool = False,
        guarded: Sequence[ast.AST] | None = (),
    ) -> None:
        """Read an expression. ``guarded`` is done if it is true; None: what comes after it."""
        for node in parts(whole):
            if isinstance(node, ast.Compare):
                self._compare(node, is_loop=is_loop, guarded=None if guarded is None else (*guarded, whole))
            elif isinstance(node, ast.BinOp):
                number = self._names.number(node.right) if isinstance(node.op, ast.Sub) else None
                if number is not None and self._is_length(node.left):
                    self._add_guard(ast.Eq, number, node.lineno, is_loop=False)
            elif isinstance(node, ast.Attribute):
                if self._names.method(node) in REMOVALS and id(node) not in self._moved:
                    self._taken.append((node, self._equal.get(id(node)), conditions))
            elif isinstance(node, ast.Call):
                self._call(node, conditions)
            elif isinstance(node, ast.Delete):
                for target in node.targets:
                    self._delete(target, conditions)
            elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self._assign(target, node.value, conditions)
            elif isinstance(node, ast.AugAssign):
                self._augment(node, conditions)

    def _compare(self, node: ast.Compare, *, is_loop: bool, guarded: Sequence[ast.AST] | None) -> None:
        left = node.left
        for operator, right in zip(node.ops, node.comparators, strict=True):
            kind = type(operator)
            if kind in (ast.In, ast.NotIn):
                self._note_asked(right, node)
            elif kind in _SIZES and not (self._is_some_length(left) and self._is_some_length(right)):
                is_left = self._is_length(left)
                limit = right if is_left else left
                number = self._names.number(limit)
                if (is_left or self._is_length(right)) and (number is not None or self._is_changed(guarded)):
                    kind = kind if is_left else _FLIPPED.get(kind, kind)
                    self._add_guard(kind, number, node.lineno, is_loop=is_loop)
            left = right

    def _is_some_length(self, node: ast.AST) -> bool:
        """Whether an expression is a length of whatever it is, now or before."""
        return is_length(node) or is_length(self._names.assigned(node)) or self._is_length(node)

    def _is_changed(self, guarded: Sequence[ast.AST] | None) -> bool:
        """Whether the container is filled or emptied there: a length that is compared with an index bounds nothing."""
        names = self._names
        for node in names.parts if guarded is None else parts(*guarded):
            if isinstance(node, ast.Call):
                if names.method(node.func) in REMOVALS | INSERTIONS:
                    return True
            elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
                if names.is_container(node.value):
                    return True
            elif isinstance(node, ast.AugAssign) and names.is_container(node.target):
                return True
        return False

    def _add_guard(self, kind: type[ast.cmpop], number: int | None, line: int, *, is_loop: bool) -> None:
        if number is None or number > 1:  # others ask whether it is empty
            self._compared.append((kind, number, line, is_loop))

    def _is_length(self, node: ast.AST) -> bool:
        """Whether an expression is the length of the container, or that and a number."""
        names = self._names
        if isinstance(node, ast.NamedExpr):
            return self._is_length(node.value)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            return self._is_length(node.left) or self._is_length(node.right)
        if isinstance(node, ast.Name):
            return node.id in self._length_names
        if not isinstance(node, ast.Call):
            return names.is_one_of(node, names.target.measuring)
        if is_length(node):
            return names.is_sized(node.args[0])
        if isinstance(node.func, ast.Attribute) and node.func.attr == "__len__":
            return names.is_container(node.func.value)
        return names.is_one_of(node.func, names.target.measuring)

    def _note_asked(self, container: ast.AST, node: ast.AST) -> None:
        if self._names.is_container(container):
            self._add(BoundKind.MEMO, node)

    def _call(self, node: ast.Call, conditions: tuple[_Condition, ...]) -> None:
        name, method = last_name(node.func), self._names.method(node.func)
        first = node.args[0] if node.args else None
        if method:
            if method in EQUAL_REMOVALS and first is not None:
                self._equal[id(node.func)] = first
            if method in ASKED and isinstance(node.func, ast.Attribute) and self._names.is_container(node.func.value):
                self._add(BoundKind.MEMO, node)
            if method in INSERTIONS:
                self._insert(node, node.args, conditions)
        elif first is not None and self._names.is_container(first):
            if name in REMOVED_BY or (name in REMOVALS and self._is_class(node.func)):
                self._add(BoundKind.REMOVES, node)
            elif name in INSERTED_BY or (name in INSERTIONS and self._is_class(node.func)):
                self._insert(node, node.args, conditions)

    def _insert(self, node: ast.expr, values: Iterable[ast.AST], conditions: tuple[_Condition, ...]) -> None:
        """Note that something is put in. What is taken out for that is only moved: ``x[a] = x.pop(b)``."""
        values = [*values]
        self._insertions.append(_Insertion(node.lineno, conditions))
        put = [*values, node.slice] if isinstance(node, ast.Subscript) else values
        self._put.extend((node.lineno, each) for each in put)
        self._moved.update(id(each.func) for value in values for each in ast.walk(value) if isinstance(each, ast.Call))

    def _is_class(self, node: ast.AST) -> bool:
        """Whether a method is called by its class, as in ``dict.pop(self, key)``."""
        value = self._names.value(node.value) if isinstance(node, ast.Attribute) else UNKNOWN
        return issubclass(type(value), type)

    def _delete(self, target: ast.expr, conditions: tuple[_Condition, ...]) -> None:
        if not isinstance(target, ast.Subscript) or not self._names.is_within(target.value):
            return
        if isinstance(target.slice, ast.Slice) and (number := self._left_by(target.slice)) is not None:
            self._add(BoundKind.GUARDED, target, number)
        else:
            self._taken.append((target, target.slice, conditions))

    def _left_by(self, part: ast.Slice) -> int | None:
        """Return how many entries are left without a slice: ``[n:]`` or ``[:-n]``."""
        return self._length_of(ast.Slice(part.upper, None) if part.lower is None else ast.Slice(None, part.lower))

    def _length_of(self, part: ast.Slice) -> int | None:
        """Return how many entries a slice has: ``[-n:]`` or ``[:n]``."""
        if part.lower is None or part.upper is None:
            start, end = self._names.number(part.lower), self._names.number(part.upper)
            if part.upper is None and start is not None and start < 0:
                return -start
            if part.lower is None and end is not None and end > 0:
                return end
        return None

    def _assign(self, target: ast.expr, value: ast.expr, conditions: tuple[_Condition, ...]) -> None:
        names = self._names
        if isinstance(target, ast.Tuple | ast.List):
            values = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for each, its_value in zip(target.elts, values, strict=False):
                self._assign(each, its_value, conditions)
        elif isinstance(target, ast.Subscript) and names.is_container(target.value):
            if not isinstance(target.slice, ast.Slice):
                self._insert(target, [value], conditions)
            elif isinstance(value, ast.List) and not value.elts:
                self._delete(target, conditions)
            else:
                self._replace(target, value, conditions)
        elif names.is_container(target) and not names.is_new(target):
            self._replace(target, value, conditions)

    def _replace(self, target: ast.expr, value: ast.expr, conditions: tuple[_Condition, ...]) -> None:
        """Note what is put in the place of the container, or of all of its entries."""
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            number = self._length_of(value.slice) if self._names.is_container(value.value) else None
            if number is not None:
                self._add(BoundKind.GUARDED, target, number)
                return
        is_chosen = any(isinstance(each, ast.comprehension) and each.ifs for each in ast.walk(value))
        has_it = any(self._names.is_container(each) for each in ast.walk(value))
        is_first = any(asks_whether_there(test) for test, _ in conditions)
        is_sliced = isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice)
        if is_chosen or is_sliced or not (has_it or is_first):
            self._add(BoundKind.REMOVES, target)

    def _augment(self, node: ast.AugAssign, conditions: tuple[_Condition, ...]) -> None:
        if isinstance(node.target, ast.Subscript):
            self._note_asked(node.target.value, node)
            if self._names.is_container(node.target.value):
                self._insertions.append(_Insertion(node.lineno, conditions))
        elif self._names.is_container(node.target):
            if isinstance(node.op, ast.Sub | ast.BitAnd | ast.BitXor):
                self._add(BoundKind.REMOVES, node)
            else:
                self._insertions.append(_Insertion(node.lineno, conditions))

    def _add_lengths(self) -> None:
        """Add the guards. ``if len(x) > n`` in front of an insertion lets one more in than ``n``."""
        first = min((each.line for each in self._insertions), default=0)
        for kind, number, line, is_loop in self._compared:
            is_later = first and first < line
            lets_more = kind is ast.LtE or (kind is ast.Gt and not is_loop and not is_later and first)
            self._add(BoundKind.GUARDED, line, number + 1 if lets_more and number is not None else number)

    def _add_conditions(self, insertion: _Insertion) -> None:
        """Note bounds of something else on which the container is filled: a counter, or another container."""
        for test, is_true in insertion.conditions:
            for left, kind, right in compares(test, is_true=is_true):
                if kind is ast.NotIn and self._is_filled(right):
                    self._add(BoundKind.MEMO, test)
                for counted, operator, limit in ((left, kind, right), (right, _FLIPPED.get(kind, kind), left)):
                    other = counted.args[0] if isinstance(counted, ast.Call) and is_length(counted) else None
                    rises = self._is_filled(other) if other is not None else self._step_of(counted) > 0
                    found = len(self.found)
                    if operator in (ast.Lt, ast.LtE, ast.Eq) and rises:
                        number = self._names.number(limit)
                        more = 1 if operator is ast.LtE and number is not None else 0
                        self._add(BoundKind.GUARDED, test, None if number is None else number + more)
                    elif operator in (ast.Gt, ast.GtE) and self._step_of(counted) < 0:
                        self._add(BoundKind.GUARDED, test)
                    if other is None:
                        self.counted += [(last_name(counted), bound) for bound in self.found[found:]]
                        del self.found[found:]

    def _add_conditions_of_removal(self, conditions: tuple[_Condition, ...]) -> None:
        """Note the bound of another container, with which this one is emptied."""
        for test, is_true in conditions:
            for left, kind, right in compares(test, is_true=is_true):
                for counted, operator, limit in ((left, kind, right), (right, _FLIPPED.get(kind, kind), left)):
                    is_full = operator in (ast.Gt, ast.GtE, ast.Eq) and is_length(counted)
                    number = self._names.number(limit) if is_full else None
                    if is_length(counted) and number is not None and number > 1 and self._is_filled(counted.args[0]):
                        self._add(BoundKind.GUARDED, test, number)

    def _is_filled(self, other: ast.AST) -> bool:
        """Whether this function puts something into another container too, which outlives the call."""
        if self._names.is_new(other):
            return False
        text = ast.unparse(other)
        for node in self._names.parts:
            filled: ast.AST | None = None
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in INSERTIONS:
                filled = node.func.value
            elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
                filled = node.value
            if filled is not None and not self._names.is_container(filled) and ast.unparse(filled) == text:
                return True
        return False

    def _step_of(self, counter: ast.AST) -> int:
        """Return 1 for what only rises in this function, -1 for what only falls, and 0 for everything else."""
        if isinstance(counter, ast.Constant):
            return 0
        if is_next(self._names.assigned(counter)):
            return 1
        text, steps = ast.unparse(counter), set()
        for node in self._names.parts:
            if isinstance(node, ast.AugAssign) and ast.unparse(node.target) == text:
                steps.add(1 if isinstance(node.op, ast.Add) else -1)
            elif isinstance(node, ast.Assign) and any(ast.unparse(each) == text for each in node.targets):
                steps.add(0)
        return steps.pop() if len(steps) == 1 and not self._names.is_new(counter) else 0

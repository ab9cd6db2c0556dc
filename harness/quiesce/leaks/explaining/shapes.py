"""Shapes of code that matter for a bound: what compares, leaves a block, calls a clock."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator, Sequence
from typing import Final, TypeGuard

from quiesce.leaks.explaining.bound_names import UNKNOWN
from quiesce.leaks.explaining.ran_code import FunctionNode, body_of, parts
from quiesce.leaks.explaining.seen_names import SeenNames, last_name

SAID: Final = frozenset(["print", "warn", "warning", "debug", "info", "error", "exception", "critical", "log", "write"])
"""Functions that only say something: a length that is compared for their sake bounds nothing."""

CLOCKS: Final = frozenset(
    [
        "time",
        "monotonic",
        "perf_counter",
        "process_time",
        "thread_time",
        "now",
        "utcnow",
        "timer",
        "clock",
    ]
)
"""Functions that read a clock, by their last name without underscores and without ``_ns``."""

CLOCK_VALUES: Final = tuple(
    getattr(time, name) for name in dir(time) if name.removesuffix("_ns") in CLOCKS and callable(getattr(time, name))
)
_OPPOSITE: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_JUMPS: Final = (ast.Return, ast.Raise, ast.Break, ast.Continue)


def is_next(node: ast.AST) -> bool:
    """Whether an expression asks an iterator for one more."""
    return isinstance(node, ast.Call) and last_name(node.func) == "next"


def is_length(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether an expression asks for the length of something."""
    return isinstance(node, ast.Call) and last_name(node.func) == "len" and len(node.args) == 1


def leaves(block: Sequence[ast.stmt]) -> bool:
    """Whether a block ends by leaving what is around it."""
    return bool(block) and isinstance(block[-1], _JUMPS)


def does_something(block: Sequence[ast.stmt]) -> bool:
    """Whether statements can change anything, and do not only say something."""
    for statement in block:
        is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        is_said = is_call and last_name(statement.value.func) in SAID  # type: ignore[attr-defined]
        if not is_said and not isinstance(statement, ast.Pass | ast.Assert):
            return True
    return False


def names_of_errors(handler: ast.ExceptHandler) -> frozenset[str]:
    """Return the names of the errors that are caught; of a bare ``except`` an empty one."""
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return frozenset("" if kind is None else last_name(kind) for kind in kinds)


def asks_whether_there(test: ast.expr) -> bool:
    """Whether a test asks if there is a container at all."""
    return any(
        isinstance(node, ast.Is | ast.NotIn | ast.Not)
        or (isinstance(node, ast.Call) and last_name(node.func) == "hasattr")
        for node in ast.walk(test)
    )


def compares(test: ast.expr, *, is_true: bool) -> Iterator[tuple[ast.expr, type[ast.cmpop], ast.expr]]:
    """Yield what holds where a test is true, or is not."""
    if isinstance(test, ast.BoolOp):
        for each in test.values:
            yield from compares(each, is_true=is_true)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from compares(test.operand, is_true=not is_true)
    elif isinstance(test, ast.Compare):
        left = test.left
        for operator, right in zip(test.ops, test.comparators, strict=True):
            kind = type(operator)
            yield left, kind if is_true else _OPPOSITE.get(kind, kind), right
            left = right


def is_clock(node: ast.AST, names: SeenNames | None = None) -> bool:
    """Whether an expression calls a clock."""
    if not isinstance(node, ast.Call):
        return False
    value = names.value(node.func) if names is not None else UNKNOWN
    return (
        any(value is clock for clock in CLOCK_VALUES) or last_name(node.func).strip("_").removesuffix("_ns") in CLOCKS
    )


def told_the_time(node: FunctionNode) -> frozenset[str]:
    """Return what a function calls with the time as an argument, or because of the time."""
    whole = list(parts(*body_of(node)))
    timed: set[str] = set()
    for each in whole:
        if isinstance(each, ast.Assign) and any(map(is_clock, ast.walk(each.value))):
            timed.update(name.id for target in each.targets for name in ast.walk(target) if isinstance(name, ast.Name))

    def is_timed(part: ast.AST) -> bool:
        return any(is_clock(inner) or (isinstance(inner, ast.Name) and inner.id in timed) for inner in ast.walk(part))

    found: set[str] = set()
    for each in whole:
        if isinstance(each, ast.Call) and any(map(is_timed, (*each.args, *(word.value for word in each.keywords)))):
            found.add(last_name(each.func))
        elif isinstance(each, ast.If | ast.While) and is_timed(each.test):
            found.update(last_name(inner.func) for inner in parts(*each.body) if isinstance(inner, ast.Call))
    return frozenset(found)

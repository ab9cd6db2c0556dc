"""The code that ran: which functions, and the syntax trees of their sources."""

from __future__ import annotations

import ast
import gc
import linecache
import sys
import threading
import types
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda

TOOLS: Final = (3, 4)
"""Numbers of tools that :mod:`sys.monitoring` keeps for nobody."""

LOCALS: Final = "<locals>"
_SKIPPED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Assert)

UNNAMED: Final = ("<module>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
"""Code that is read as part of the function around it, or that only defines things."""


def codes_that_run(run_round: Callable[[], None]) -> frozenset[types.CodeType] | None:
    """Run one round; return the code that ran in it, or None where that cannot be told.

    From CPython 3.12 on :mod:`sys.monitoring` tells it, of all threads and next to any profiler. Before that a profile
    function does: it sees this thread and those that start in the round, and a profiler that is there stays alone.
    """
    found: dict[int, types.CodeType] = {}
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is not None:
        is_seen = _run_monitored(run_round, monitoring, found)
    else:
        is_seen = _run_profiled(run_round, found)
    return frozenset(found.values()) if is_seen else None


def _run_monitored(run_round: Callable[[], None], monitoring: Any, found: dict[int, types.CodeType]) -> bool:
    tool = next((number for number in TOOLS if monitoring.get_tool(number) is None), None)
    if tool is None:
        run_round()
        return False

    def note(code: types.CodeType, _: int) -> None:
        found[id(code)] = code

    events = (monitoring.events.PY_START, monitoring.events.PY_RESUME)
    monitoring.use_tool_id(tool, "quiesce")
    try:
        for event in events:
            monitoring.register_callback(tool, event, note)
        monitoring.set_events(tool, events[0] | events[1])
        run_round()
    finally:
        monitoring.set_events(tool, 0)
        for event in events:
            monitoring.register_callback(tool, event, None)
        monitoring.free_tool_id(tool)
    return True


def _run_profiled(run_round: Callable[[], None], found: dict[int, types.CodeType]) -> bool:
    if sys.getprofile() is not None or threading.getprofile() is not None:
        run_round()
        return False

    def note(frame: types.FrameType, event: str, _: object) -> None:
        if event == "call":
            found[id(frame.f_code)] = frame.f_code

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run_round()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return True


class RanFunction:
    """Code with the names that it sees. ``functions`` has the objects made of it that live; ``parent`` made them."""

    def __init__(self, code: types.CodeType, namespace: Mapping[str, Any], parent: RanFunction | None) -> None:
        self.code = code
        self.namespace = namespace
        self.parent = parent
        self.functions: list[types.FunctionType] = []
        self.arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.locals = frozenset((*code.co_varnames, *code.co_cellvars, *code.co_freevars))
        self.class_name = _class_name(code.co_qualname)
        self.module = namespace.get("__name__")

    @property
    def method(self) -> RanFunction | None:
        """The method that it is, or is in."""
        if self.class_name:
            return self
        return self.parent.method if self.parent is not None else None

    @property
    def self_name(self) -> str:
        """What the method calls its instance or class; empty where it is not seen."""
        method = self.method
        name = method.code.co_varnames[0] if method is not None and method.code.co_argcount else ""
        return name if method is self or name in self.code.co_freevars else ""

    def around(self) -> Iterator[RanFunction]:
        """Yield the functions that it is defined in."""
        parent = self.parent
        while parent is not None:
            yield parent
            parent = parent.parent

    def is_method_of(self, kind: type) -> bool:
        """Whether it is a method of a class or of one that it inherits from, or is defined in one."""
        method = self.method
        name = "" if method is None else method.class_name
        return name != "" and any(_name_of(base) == (self.module, name) for base in mro_of(kind))

    def mangled(self, name: str) -> str:
        """Return the name under which an attribute is found that is private to its class."""
        method = self.method
        if method is None or not name.startswith("__") or name.endswith("__"):
            return name
        return f"_{method.class_name.rpartition('.')[2].lstrip('_')}{name}"

    def cells(self, name: str) -> Iterator[types.CellType]:
        """Yield the cells that a variable of the functions around it has."""
        if name in self.code.co_freevars:
            at = self.code.co_freevars.index(name)
            for function in self.functions:
                yield (function.__closure__ or ())[at]
            if not self.functions and self.parent is not None:
                yield from self.parent.cells(name)


class RanCode:
    """Finds the functions that ``ran`` by the names that they mention; all functions if it is None.

    Functions that are frozen (:func:`gc.freeze`) are found by their module, if their file is the module's.
    """

    def __init__(self, ran: Collection[types.CodeType] | None) -> None:
        self._functions: dict[int, RanFunction] = {}
        self._by_name: dict[str, list[RanFunction]] = {}
        self._by_function: dict[str, list[RanFunction]] = {}
        self._by_class: dict[tuple[Any, str], list[RanFunction]] = {}
        self._by_cell: dict[int, list[RanFunction]] = {}
        self._trees: dict[str, ast.Module | None] = {}
        self._parts: dict[int, Sequence[ast.AST]] = {}
        self._nodes: dict[int, FunctionNode | None] = {}
        found = [each for each in gc.get_objects() if type(each) is types.FunctionType]
        wanted = None if ran is None else {id(code): code for code in ran}
        for function in found:
            if wanted is None or id(function.__code__) in wanted:
                added = self._add(function.__code__, function.__globals__, None, wanted)
                added.functions.append(function)
                for cell in function.__closure__ or ():
                    self._by_cell.setdefault(id(cell), []).append(added)
        for code in () if wanted is None else sorted(wanted.values(), key=lambda code: len(code.co_qualname)):
            if id(code) not in self._functions and (namespace := _namespace_of(code)) is not None:
                self._add(code, namespace, None, wanted)
        for each in self._functions.values():
            if (method := each.method) is not None:
                self._by_class.setdefault((each.module, method.class_name), []).append(each)

    def mentioning(self, name: str) -> Sequence[RanFunction]:
        """Return the functions in which a name stands for a variable or an attribute."""
        return self._by_name.get(name, ())

    def called(self, name: str) -> Sequence[RanFunction]:
        """Return the functions of a name."""
        return self._by_function.get(name, ())

    def with_cell(self, cell: types.CellType) -> Iterator[RanFunction]:
        """Yield the functions that see a variable of a closure, and those in them."""
        for function in self._by_cell.get(id(cell), ()):
            for name in function.code.co_freevars:
                if any(each is cell for each in function.cells(name)):
                    yield from (each for each in self.mentioning(name) if each is function or function in each.around())

    def of(self, function: types.FunctionType) -> Iterator[RanFunction]:
        """Yield what is known of a function, if it ran."""
        found = self._functions.get(id(function.__code__))
        if found is not None:
            yield found

    def methods_of(self, kind: type) -> Iterator[RanFunction]:
        """Yield the methods of a class and of those that it inherits from, with the functions in them."""
        for base in mro_of(kind):
            yield from self._by_class.get(_name_of(base), ())

    def _add(
        self,
        code: types.CodeType,
        namespace: Mapping[str, Any],
        parent: RanFunction | None,
        wanted: Mapping[int, types.CodeType] | None,
    ) -> RanFunction:
        known = self._functions.get(id(code))
        if known is not None:
            known.parent = known.parent or parent
            return known
        added = self._functions[id(code)] = RanFunction(code, namespace, parent)
        for name in {*code.co_names, *code.co_freevars, *added.arguments}:
            self._by_name.setdefault(name, []).append(added)
        self._by_function.setdefault(code.co_name, []).append(added)
        for inner in code.co_consts:
            if type(inner) is types.CodeType and (wanted is None or id(inner) in wanted):
                self._add(inner, namespace, added, wanted)
        return added

    def node(self, code: types.CodeType) -> FunctionNode | None:
        """Return the syntax tree of a function, or None where there is no source."""
        if id(code) not in self._nodes:
            try:
                self._nodes[id(code)] = None if code.co_name in UNNAMED else self._find_node(code)
            except (SyntaxError, ValueError, RecursionError, MemoryError, OSError):  # no source, or none that is Python
                self._nodes[id(code)] = None
        return self._nodes[id(code)]

    def parts(self, code: types.CodeType, node: FunctionNode) -> Sequence[ast.AST]:
        """Return what is in a function, but not in others that it defines."""
        if id(code) not in self._parts:
            self._parts[id(code)] = list(parts(*body_of(node)))
        return self._parts[id(code)]

    def _find_node(self, code: types.CodeType) -> FunctionNode | None:
        lines = linecache.getlines(code.co_filename)
        first = code.co_firstlineno
        ends = [end for _, end, _, _ in code.co_positions() if end is not None]
        if code.co_name != "<lambda>" and ends:
            part = lines[first - 1 : max(ends)]
            head = "if True:\n" if part and part[0][:1].isspace() else ""
            try:
                tree = ast.parse(head + "".join(part))
            except SyntaxError:  # it ends in a line without code, or its source has changed
                pass
            else:
                return _node_in(ast.increment_lineno(tree, first - 1 - bool(head)), code)
        if code.co_filename not in self._trees:
            self._trees[code.co_filename] = None
            self._trees[code.co_filename] = ast.parse("".join(lines))
        whole = self._trees[code.co_filename]
        return None if whole is None else _node_in(whole, code)


def parts(*nodes: ast.AST) -> Iterator[ast.AST]:
    """Yield these nodes and what is in them, but no function in them, and nothing that an assert asks."""
    left = list(nodes)
    while left:
        node = left.pop()
        if not isinstance(node, _SKIPPED):
            yield node
            left.extend(ast.iter_child_nodes(node))


def body_of(node: FunctionNode) -> list[ast.stmt]:
    """Return the statements of a function; of a lambda its expression as one."""
    return [ast.copy_location(ast.Expr(node.body), node.body)] if isinstance(node, ast.Lambda) else node.body


def mro_of(kind: type) -> tuple[type, ...]:
    """Return the classes of which a class has methods, without asking its metaclass."""
    return type.__dict__["__mro__"].__get__(kind) or ()


def _name_of(kind: type) -> tuple[Any, str]:
    return type.__dict__["__dict__"].__get__(kind).get("__module__"), type.__dict__["__qualname__"].__get__(kind)


def _class_name(qualified: str) -> str:
    around = qualified.rpartition(".")[0]
    return "" if around.endswith(LOCALS) else around


def _namespace_of(code: types.CodeType) -> Mapping[str, Any] | None:
    for module in list(sys.modules.values()):
        if issubclass(type(module), types.ModuleType):
            names: dict[str, Any] = object.__getattribute__(module, "__dict__")
            if names.get("__file__") == code.co_filename:
                return names
    return None


def _node_in(tree: ast.AST, code: types.CodeType) -> FunctionNode | None:
    """Find a function by its name and by its line, which is that of its first decorator."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.lineno, *(each.lineno for each in node.decorator_list))
            if node.name == code.co_name and min(lines) == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            names = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            if tuple(each.arg for each in names) == code.co_varnames[: len(names)]:
                return node
    return None

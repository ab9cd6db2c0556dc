"""The calls of a round: each is shown when its function returns, and the syntax tree of a function is found."""

from __future__ import annotations

import ast
import dis
import inspect
import linecache
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import decode_source
from tokenize import TokenError
from typing import Any, Final, TypeAlias

from quiesce.leaks.system_calls import SystemCalls

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Show: TypeAlias = Callable[[types.FrameType], None]

TOOLS: Final = (3, 4)
"""Numbers of tools that :mod:`sys.monitoring` keeps for nobody."""

YIELDS: Final = dis.opmap["YIELD_VALUE"]
_SKIPPED: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.Assert)

UNNAMED: Final = ("<module>", "<genexpr>", "<listcomp>", "<setcomp>", "<dictcomp>")
"""Code that is read as part of the function around it, or that only defines things."""


class CallWatch:
    """Runs a round and shows the frame of each Python function that returns or fails in it.

    From CPython 3.12 on :mod:`sys.monitoring` tells it, of all threads and next to any profiler. Before that a profile
    function does: it sees this thread and those that start in the round, and a profiler that is there stays alone.
    What yields is not shown: to read its variables would keep them until it goes on.
    """

    def __init__(self, show: Show) -> None:
        self._show = show
        self._lock = threading.Lock()
        self._error: Exception | None = None

    def run(self, run_round: Callable[[], None]) -> bool:
        """Run the round; return whether its calls were seen. Raises what ``show`` raised, after the round."""
        monitoring: Any = getattr(sys, "monitoring", None)
        watched = self._monitored(monitoring) if monitoring is not None else self._profiled()
        with watched as is_seen:
            run_round()
        if self._error is not None:
            raise self._error
        return is_seen

    def _see(self, frame: types.FrameType) -> None:
        """Show a frame. What another thread or a finalizer does meanwhile is left out: to wait for it may never end."""
        if self._error is not None or not self._lock.acquire(blocking=False):
            return
        try:
            self._show(frame)
        except RecursionError:  # the tested code is as deep as it can be
            pass
        except Exception as error:
            self._error = error
        finally:
            self._lock.release()

    @contextmanager
    def _monitored(self, monitoring: Any) -> Iterator[bool]:
        tool = next((number for number in TOOLS if monitoring.get_tool(number) is None), None)
        if tool is None:
            yield False
            return
        events = (monitoring.events.PY_RETURN, monitoring.events.PY_UNWIND)
        monitoring.use_tool_id(tool, "quiesce")
        try:
            for event in events:
                monitoring.register_callback(tool, event, lambda *_: self._see(sys._getframe(1)))
            monitoring.set_events(tool, events[0] | events[1])
            yield True
        finally:
            monitoring.set_events(tool, 0)
            for event in events:
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)

    @contextmanager
    def _profiled(self) -> Iterator[bool]:
        if sys.getprofile() is not None or threading.getprofile() is not None:
            yield False
            return

        def note(frame: types.FrameType, event: str, _: object) -> None:
            if event == "return" and frame.f_code.co_code[frame.f_lasti] != YIELDS:
                self._see(frame)

        threading.setprofile(note)
        sys.setprofile(note)
        try:
            yield True
        finally:
            sys.setprofile(None)
            threading.setprofile(None)


class Functions:
    """What ran. Sources are read past what tests replace, and nothing is kept of them elsewhere."""

    def __init__(self) -> None:
        self._known: dict[int, RanFunction] = {}
        self._lines: dict[str, Sequence[str]] = {}

    def of(self, code: types.CodeType) -> RanFunction:
        """Return the function of this code."""
        found = self._known.get(id(code))
        if found is None:
            name = code.co_filename
            if name not in self._lines:
                self._lines[name] = _lines_of(name)
            found = self._known[id(code)] = RanFunction(code, self._lines[name])
        return found


class RanFunction:
    """Code that ran, with its source. ``node`` is None where there is none, or none that is Python."""

    def __init__(self, code: types.CodeType, lines: Sequence[str]) -> None:
        self.code = code
        self.arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        self.node: FunctionNode | None = None
        with suppress(SyntaxError, ValueError, TokenError):
            self.node = None if code.co_name in UNNAMED else self._find_node(lines)
        self.statements = [] if self.node is None else body_of(self.node)
        self.parts = list(parts(*self.statements))

    def mangled(self, name: str) -> str:
        """Return the name under which an attribute is found that may be private to its class."""
        is_private = name.startswith("__") and not name.endswith("__")
        mangled = (each for each in self.code.co_names if is_private and each.startswith("_") and each.endswith(name))
        return next(mangled, name)

    def _find_node(self, lines: Sequence[str]) -> FunctionNode | None:
        name, first = self.code.co_name, self.code.co_firstlineno
        if name == "<lambda>":
            lambdas = (each for each in ast.walk(ast.parse("".join(lines))) if isinstance(each, ast.Lambda))
            return next((each for each in lambdas if each.lineno == first and _names(each) == self.arguments), None)
        block = inspect.getblock(lines[first - 1 :])
        head = "if True:\n" if block and block[0][:1].isspace() else ""
        tree = ast.increment_lineno(ast.parse(head + "".join(block)), first - 1 - bool(head))
        defined = (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))
        node = next(defined, None)
        return node if node is not None and node.name == name else None


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


def _lines_of(name: str) -> Sequence[str]:
    """Return the lines of a file, or of what a shell or a notebook has put down for :mod:`linecache`."""
    known = linecache.cache.get(name, ())
    if len(known) > 1:
        return known[2]
    opened: Any = SystemCalls.open_file  # overloaded, which mypy does not follow there
    try:
        with opened(name, "rb") as file:
            return decode_source(file.read()).splitlines(keepends=True)
    except (OSError, SyntaxError, ValueError):
        return ()


def _names(node: ast.Lambda) -> tuple[str, ...]:
    return tuple(each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))

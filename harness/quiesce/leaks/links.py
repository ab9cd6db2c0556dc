"""How one object refers to another, in words: ``.attribute``, ``['key']``, a variable of a closure or of a thread."""

from __future__ import annotations

import contextvars
import functools
import sys
import threading
import types
from collections import deque
from collections.abc import Iterator
from typing import Any, Final

KEY_LENGTH_MAX: Final = 40

_PLAIN: Final = (str, bytes, int, float, bool, type(None))
"""Types of keys that are shown: the text of others is what tested code says, which may be anything."""

_TRANSPARENT: Final = (types.CellType, types.FunctionType, types.MethodType, type, types.ModuleType)
"""What adds nothing to the name of what it refers to."""

_SUSPENDED: Final[dict[type, str]] = {
    types.GeneratorType: "gi_frame",
    types.CoroutineType: "cr_frame",
    types.AsyncGeneratorType: "ag_frame",
}

_ERROR_LINKS: Final = ("__traceback__", "__context__", "__cause__")


def with_link(text: str, holder: Any, held: Any, owner: Any) -> str:
    """Return the name of what ``holder`` refers to. ``text`` names the holder, and ``owner`` refers to the holder."""
    kind = type(holder)
    if kind is tuple and type(owner) is types.FunctionType:
        return f"{_variable_of(owner, holder, held)} of {text}"
    if kind in _TRANSPARENT or issubclass(kind, _TRANSPARENT):
        return text
    if issubclass(type(owner), threading.local) or (issubclass(kind, threading.local) and type(held) is dict):
        return text if type(held) is dict else f"{text}{_key_of(holder, held, is_namespace=True)}"
    if issubclass(kind, dict):
        return text + _key_of(holder, held, is_namespace=is_namespace_of(holder, owner))
    if issubclass(kind, list | tuple | deque):
        return f"{text}[…]"
    if issubclass(kind, functools.partial):
        return f"an argument of {text}"
    if kind in _SUSPENDED:
        return f"{_local_of(getattr(holder, _SUSPENDED[kind]), held)} of {text}"
    if kind is types.FrameType:
        return f"{_local_of(holder, held)} of {holder.f_code.co_qualname} in {text}"
    return text + _attribute_of(holder, held)


def is_namespace_of(namespace: Any, owner: Any) -> bool:
    """Whether a dictionary holds the attributes of a module, a class or an instance."""
    if type(namespace) is not dict or owner is None or type(owner) is dict:
        return False
    return issubclass(type(owner), type) or attributes_of(owner) is namespace


def attributes_of(owner: Any) -> Any:
    """Return the dictionary of an instance's attributes, if it has one. No code of its class runs."""
    try:
        return object.__getattribute__(owner, "__dict__")
    except (AttributeError, TypeError):
        return None


def _variable_of(function: types.FunctionType, values: Any, held: Any) -> str:
    """Return which variable of a function's closure, or which default of an argument, one of these values is."""
    code = function.__code__
    if values is function.__closure__:
        names, role = code.co_freevars, "closure variable"
    else:
        arguments = code.co_varnames[: code.co_argcount]
        names, role = arguments[len(arguments) - len(values) :], "default of argument"
    name = next((name for name, value in zip(names, values, strict=False) if value is held), "…")
    return f"{role} '{name}'"


def _key_of(holder: dict[Any, Any], held: Any, *, is_namespace: bool) -> str:
    for key, value in list(dict.items(holder)):
        if value is held:
            return f".{key}" if is_namespace and type(key) is str else f"[{_key_text(key)}]"
    return "[…]"


def _key_text(key: Any) -> str:
    text = repr(key) if type(key) in _PLAIN else "…"
    return text if len(text) <= KEY_LENGTH_MAX else "…"


def _attribute_of(holder: Any, held: Any) -> str:
    attributes = attributes_of(holder)
    if attributes is held:
        return ""
    if isinstance(attributes, dict):
        for name, value in list(attributes.items()):
            if value is held:
                return f".{name}"
    return next((f".{name}" for name, value in _slots_of(holder) if value is held), "")


def _slots_of(holder: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(holder, BaseException):
        yield from ((name, getattr(holder, name)) for name in _ERROR_LINKS)
    for base in type(holder).__mro__:
        for name, slot in list(vars(base).items()):
            if type(slot) is types.MemberDescriptorType:
                try:
                    yield name, slot.__get__(holder)
                except AttributeError:
                    continue  # an empty slot


def _local_of(frame: Any, held: Any) -> str:
    variables = {} if frame is None else frame.f_locals
    name = next((name for name, value in variables.items() if value is held), "")
    return f"local variable '{name}'" if name else "a value"


def variables_of_threads() -> Iterator[tuple[str, Any]]:
    """Yield the local variables of the other threads' functions, each with words that say whose it is."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    for ident, top in sys._current_frames().items():
        frame: types.FrameType | None = None if ident == threading.get_ident() else top
        thread = names.get(ident, str(ident))
        while frame is not None:
            for name, value in frame.f_locals.items():
                yield f"local variable '{name}' of {frame.f_code.co_qualname} in running thread '{thread}'", value
            frame = frame.f_back


def signal_handlers() -> Iterator[tuple[str, Any]]:
    """Yield the functions that handle signals, which the garbage collector does not lead back to."""
    module: Any = sys.modules.get("signal")
    for number in () if module is None else module.valid_signals():
        handler = module.getsignal(number)
        if callable(handler):
            yield f"handler of {getattr(number, 'name', f'signal {number}')}", handler


def context_variables() -> Iterator[tuple[str, Any]]:
    """Yield the values of this thread's context variables, which the garbage collector does not lead back to."""
    for variable, value in contextvars.copy_context().items():
        yield f"context variable '{variable.name}'", value

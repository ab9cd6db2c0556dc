"""Requests: the operation that a line of a case file means, and the line that says it to a driver and in a report.

A line is ``[slots =] verb [words] [on STREAM] [key=value …]``. Sizes are sums of products of integers with an
optional unit and of loop variables, written without spaces (``2MiB+40B*i``); on the wire they are plain bytes.
:func:`format_request` is the inverse of :func:`parse_request` on concrete operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from quiesce.model import operations as ops
from quiesce.model.operations import CaptureMode, FailurePoint, InjectedError, MemoryKind, Operation, Slot

UNITS: Final[Mapping[str, int]] = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
SIZE_BYTES_MAX: Final = (1 << 64) - 1
"""The largest size that a request can name (``SIZE_MAX`` of a 64-bit C library)."""

_SLOT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[A-Za-z0-9_+*-]+\])?\Z")
_CONCRETE_SLOT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[0-9]+\])?\Z")
_TARGETS = re.compile(r"((?:[^\s=,]+\s*,\s*)*[^\s=,]+)\s+=\s+(\S.*)\Z")
_OPERATOR = re.compile(r"([+-])")
_FACTOR = re.compile(r"([0-9]{1,20})([A-Za-z]*)\Z")


class RequestError(ValueError):
    """A request line is wrong: ``what`` is wrong, and what to write ``instead``."""

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what}; {instead}")
        self.what = what
        self.instead = instead


def evaluate_size(text: str, variables: Mapping[str, int]) -> int:
    """Return the value in bytes of a size such as ``64MiB`` or ``2MiB+40B*i``.

    Raises :class:`RequestError` for an unknown unit or name, a negative value, or one beyond ``SIZE_MAX``.
    """
    if not text:
        raise RequestError("a size is missing", "write one such as 64MiB")
    first, *rest = _OPERATOR.split(text)
    total = _evaluate_term(first, text, variables)
    for operator, term in zip(rest[::2], rest[1::2], strict=True):
        value = _evaluate_term(term, text, variables)
        total += value if operator == "+" else -value
    if total < 0:
        raise RequestError(f"size '{text}' is negative", "write a size of at least 0")
    if total > SIZE_BYTES_MAX:
        raise RequestError(f"size '{text}' is beyond {SIZE_BYTES_MAX} bytes", "write a size that fits 64 bits")
    return total


def _evaluate_term(term: str, text: str, variables: Mapping[str, int]) -> int:
    if not term:
        raise RequestError(f"an operator in '{text}' has nothing beside it", "write a number on both sides of it")
    return math.prod(_evaluate_factor(factor, text, variables) for factor in term.split("*"))


def _evaluate_factor(factor: str, text: str, variables: Mapping[str, int]) -> int:
    if factor == "SIZE_MAX":
        return SIZE_BYTES_MAX
    if factor in variables:
        return variables[factor]
    match = _FACTOR.match(factor)
    if match is None:
        known = ", ".join(variables) or "none here"
        raise RequestError(
            f"'{factor}' in '{text}' is neither a number nor a loop variable",
            f"write a number with a unit such as 64MiB (loop variables: {known})",
        )
    if match[2] not in UNITS:
        raise RequestError(f"unknown unit '{match[2]}' in '{text}'", "write B, KiB, MiB, GiB or TiB")
    return int(match[1]) * UNITS[match[2]]


def resolve_slot(text: str, variables: Mapping[str, int]) -> Slot:
    """Return the concrete slot for ``text``: the index of ``block[i+1]`` is evaluated."""
    if not _SLOT.match(text):
        raise RequestError(
            f"'{text}' is not a slot name", "write a letter, then letters, digits or '_', and an optional [index]"
        )
    if "[" not in text:
        return text
    name, index = text[:-1].split("[", 1)
    return f"{name}[{evaluate_size(index, variables)}]"


def is_slot(text: str) -> bool:
    """Whether ``text`` can name a slot of a concrete request."""
    return _CONCRETE_SLOT.match(text) is not None


class _Line:
    """The words of one request, taken one by one; what is left over at the end is an error."""

    def __init__(self, text: str, variables: Mapping[str, int]) -> None:
        self.text = text
        self.variables = variables
        self.targets: list[str] = []
        if match := _TARGETS.match(text):
            self.targets = [part.strip() for part in match[1].split(",")]
            text = match[2]
        self.options: dict[str, str] = {}
        self.words: list[str] = []
        for word in text.split():
            key, equals, value = word.partition("=")
            if not equals:
                self.words.append(word)
            elif key in self.options:
                raise RequestError(f"option '{key}' appears twice", f"write {key}=… once")
            else:
                self.options[key] = value

    def word(self, meaning: str) -> str:
        if not self.words:
            raise RequestError(f"{meaning} is missing in '{self.text}'", f"write {meaning} after the verb")
        return self.words.pop(0)

    def accept(self, *words: str) -> bool:
        if self.words[: len(words)] == list(words):
            del self.words[: len(words)]
            return True
        return False

    def slot(self, meaning: str = "a slot") -> Slot:
        return resolve_slot(self.word(meaning), self.variables)

    def slots(self, text: str | None) -> tuple[Slot, ...]:
        return tuple(resolve_slot(part, self.variables) for part in text.split(",")) if text else ()

    def size(self) -> int:
        return evaluate_size(self.word("a size"), self.variables)

    def on(self) -> Slot | None:
        return self.slot("a stream") if self.accept("on") else None

    def option_size(self, key: str) -> int | None:
        text = self.options.pop(key, None)
        return None if text is None else evaluate_size(text, self.variables)

    def option_slot(self, key: str) -> Slot | None:
        text = self.options.pop(key, None)
        return None if text is None else resolve_slot(text, self.variables)

    def target(self) -> Slot:
        if len(self.targets) != 1:
            raise RequestError(f"'{self.text}' makes one thing", "write one slot before it, such as: a = …")
        return resolve_slot(self.targets.pop(), self.variables)

    def finish(self) -> None:
        if self.targets:
            raise RequestError(f"'{self.text}' makes nothing to name", "leave out the slot and '='")
        if self.words:
            raise RequestError(f"'{' '.join(self.words)}' is left over in '{self.text}'", "leave it out")
        if self.options:
            key = next(iter(self.options))
            instead = "leave it out, or see docs/reference/case_files.md"
            raise RequestError(f"unknown option '{key}=' in '{self.text}'", instead)


_Member = TypeVar("_Member", CaptureMode, FailurePoint, InjectedError, MemoryKind)


def _choose(kind: type[_Member], text: str, meaning: str) -> _Member:
    try:
        return kind(text)
    except ValueError:
        raise RequestError(f"unknown {meaning} '{text}'", f"write one of {', '.join(kind)}") from None


def _allocate(line: _Line) -> Operation:
    size = line.size()
    kind = MemoryKind.DEVICE
    if line.words and line.words[0] in set(MemoryKind):
        kind = MemoryKind(line.word("a kind"))
    stream = line.on()
    alignment = line.option_size("align")
    if alignment is not None and (alignment == 0 or alignment & (alignment - 1)):
        raise RequestError(f"alignment {alignment} is not a power of two", "write one such as align=256")
    return ops.Allocate(line.target(), size, kind, alignment, stream, line.option_slot("pool"))


def _trim(line: _Line) -> Operation:
    kind = _choose(MemoryKind, line.word("a kind"), "memory kind") if line.words else MemoryKind.DEVICE
    return ops.Trim(kind, line.option_slot("pool"))


def _copy(line: _Line) -> Operation:
    source = line.slot("the source")
    if not line.accept("to"):
        raise RequestError(f"'to' is missing in '{line.text}'", "write: copy SOURCE to DESTINATION")
    destination = line.slot("the destination")
    size = line.option_size("size")
    return ops.Copy(source, destination, size, line.on())


def _stage(line: _Line) -> Operation:
    return ops.Stage(line.target(), line.slot("the source"), line.on())


def _fill(line: _Line) -> Operation:
    slot = line.slot("a block")
    value = line.size()
    if value > 255:
        raise RequestError(f"fill value {value} is no byte", "write 0 to 255")
    return ops.Fill(slot, value, line.on())


def _launch(line: _Line) -> Operation:
    if line.accept("graph"):
        return ops.LaunchGraph(line.slot("a graph"), line.on())
    reads = line.slots(line.options.pop("reads", None))
    writes = line.slots(line.options.pop("writes", None))
    return ops.Launch(reads, writes, line.option_size("arguments") or 0, line.on(), line.option_slot("instance"))


def _create(line: _Line) -> Operation:
    what = line.word("what to create")
    match what:
        case "stream":
            nonblocking = line.accept("nonblocking")
            return ops.CreateStream(line.target(), nonblocking)
        case "event":
            return ops.CreateEvent(line.target())
        case "pool":
            return ops.CreatePool(line.target(), line.option_size("limit"))
        case "instance":
            return ops.CreateInstance(line.target(), line.on())
        case "policy":
            return ops.CreatePolicy(line.option_slot("instance"))
    raise RequestError(f"cannot create '{what}'", "write stream, event, pool, instance or policy")


_DESTROYED: Final[Mapping[str, Callable[[Slot], Operation]]] = {
    "stream": ops.DestroyStream,
    "event": ops.DestroyEvent,
    "pool": ops.DestroyPool,
    "graph": ops.DestroyGraph,
    "instance": ops.DestroyInstance,
}


def _destroy(line: _Line) -> Operation:
    what = line.word("what to destroy")
    if what not in _DESTROYED:
        raise RequestError(f"cannot destroy '{what}'", f"write one of {', '.join(_DESTROYED)}")
    return _DESTROYED[what](line.slot())


def _synchronize(line: _Line) -> Operation:
    match what := line.word("what to synchronize"):
        case "device":
            return ops.SynchronizeDevice()
        case "stream":
            return ops.SynchronizeStream(line.slot() if line.words else None)
        case "event":
            return ops.SynchronizeEvent(line.slot("an event"))
    raise RequestError(f"cannot synchronize '{what}'", "write device, stream or event")


def _query(line: _Line) -> Operation:
    match what := line.word("what to query"):
        case "stream":
            return ops.QueryStream(line.slot() if line.words else None)
        case "event":
            return ops.QueryEvent(line.slot("an event"))
    raise RequestError(f"cannot query '{what}'", "write stream or event")


def _event(line: _Line, verb: str) -> Slot:
    if not line.accept("event"):
        raise RequestError(f"'event' is missing in '{line.text}'", f"write: {verb} event E on S")
    return line.slot("an event")


def _record(line: _Line) -> Operation:
    return ops.RecordEvent(_event(line, "record"), line.on())


def _wait(line: _Line) -> Operation:
    return ops.WaitEvent(_event(line, "wait"), line.on())


def _capture(line: _Line, verb: str) -> Slot:
    stream = line.on() if line.accept("capture") else None
    if stream is None:
        raise RequestError(f"'{line.text}' names no stream", f"write: {verb} capture on S")
    return stream


def _begin(line: _Line) -> Operation:
    stream = _capture(line, "begin")
    mode = line.options.pop("mode", None)
    return ops.BeginCapture(stream, _choose(CaptureMode, mode, "capture mode") if mode else CaptureMode.GLOBAL)


def _end(line: _Line) -> Operation:
    return ops.EndCapture(line.target(), _capture(line, "g = end"))


def _use(line: _Line) -> Operation:
    if not line.accept("device"):
        raise RequestError(f"'device' is missing in '{line.text}'", "write: use device 0")
    return ops.SelectDevice(line.size())


def _partition(line: _Line) -> Operation:
    if not line.targets:
        raise RequestError(f"'{line.text}' makes instances", "write their slots before it, such as: x, y = partition")
    slots = tuple(resolve_slot(target, line.variables) for target in line.targets)
    line.targets.clear()
    return ops.Partition(slots, line.option_slot("instance"))


def _node(line: _Line) -> Operation:
    target = line.target()
    parents: tuple[Slot, ...] = ()
    if line.accept("of"):
        parents = line.slots(line.word("its parents"))
    return ops.Node(target, parents)


def _fail(line: _Line) -> Operation:
    point = _choose(FailurePoint, line.word("backing or bookkeeper"), "failure point")
    nth = line.size() if line.words and line.words[0] != "with" else 1
    if nth < 1:
        raise RequestError("the call to fail is counted from 1", "write fail backing 1 for the next call")
    error = InjectedError.OUT_OF_MEMORY
    if line.accept("with"):
        error = _choose(InjectedError, line.word("an error"), "injected error")
    return ops.InjectFailure(point, nth, error)


def _mark(line: _Line) -> Operation:
    return ops.Mark(line.slot("a name"))


_VERBS: Final[Mapping[str, Callable[[_Line], Operation]]] = {
    "allocate": _allocate,
    "free": lambda line: ops.Free(line.slot("a block"), line.on()),
    "trim": _trim,
    "copy": _copy,
    "stage": _stage,
    "fill": _fill,
    "launch": _launch,
    "create": _create,
    "destroy": _destroy,
    "synchronize": _synchronize,
    "query": _query,
    "record": _record,
    "wait": _wait,
    "stall": lambda line: ops.Stall(line.slot("a stream")),
    "release": lambda line: ops.Release(line.slot("a stream")),
    "begin": _begin,
    "end": _end,
    "use": _use,
    "initialize": lambda _: ops.Initialize(),
    "finalize": lambda _: ops.Finalize(),
    "partition": _partition,
    "node": _node,
    "hold": lambda line: ops.Hold(line.slot("a node")),
    "drop": lambda line: ops.Drop(line.slot("a node")),
    "backward": lambda line: ops.Backward(line.slot("a node")),
    "collect": lambda _: ops.Collect(),
    "fail": _fail,
    "mark": _mark,
}


def parse_request(text: str, variables: Mapping[str, int] | None = None) -> Operation:
    """Return the operation that a request line means; loop ``variables`` are put in.

    Raises :class:`RequestError`, which says what is wrong and what to write instead.
    """
    line = _Line(text.strip(), variables or {})
    verb = line.word("a verb")
    if verb not in _VERBS:
        raise RequestError(f"unknown verb '{verb}'", f"write one of {', '.join(_VERBS)}")
    operation = _VERBS[verb](line)
    line.finish()
    return operation


def _on(stream: Slot | None) -> str:
    return "" if stream is None else f" on {stream}"


def _option(key: str, value: object) -> str:
    return "" if value is None or value == "" else f" {key}={value}"


def format_request(operation: Operation) -> str:
    """Return the line for an operation, sizes in bytes: what :func:`parse_request` reads back."""
    match operation:
        case ops.Allocate(slot, size, kind, alignment, stream, pool):
            shown = "" if kind is MemoryKind.DEVICE else f" {kind}"
            return f"{slot} = allocate {size}{shown}{_on(stream)}{_option('align', alignment)}{_option('pool', pool)}"
        case ops.Free(slot, stream):
            return f"free {slot}{_on(stream)}"
        case ops.Trim(kind, pool):
            return f"trim{'' if kind is MemoryKind.DEVICE else f' {kind}'}{_option('pool', pool)}"
        case ops.Copy(source, destination, size_bytes, stream):
            return f"copy {source} to {destination}{_on(stream)}{_option('size', size_bytes)}"
        case ops.Stage(slot, source, stream):
            return f"{slot} = stage {source}{_on(stream)}"
        case ops.Fill(slot, value, stream):
            return f"fill {slot} {value}{_on(stream)}"
        case ops.Launch(reads, writes, argument_bytes, stream, instance):
            blocks = _option("reads", ",".join(reads)) + _option("writes", ",".join(writes))
            return f"launch{_on(stream)}{blocks}{_option('arguments', argument_bytes or None)}" + _option(
                "instance", instance
            )
        case ops.CreatePool(slot, limit):
            return f"{slot} = create pool{_option('limit', limit)}"
        case ops.CreateStream(slot, nonblocking):
            return f"{slot} = create stream{' nonblocking' if nonblocking else ''}"
        case ops.CreateEvent(slot):
            return f"{slot} = create event"
        case ops.CreateInstance(slot, stream):
            return f"{slot} = create instance{_on(stream)}"
        case ops.CreatePolicy(instance):
            return f"create policy{_option('instance', instance)}"
        case ops.DestroyPool(slot):
            return f"destroy pool {slot}"
        case ops.DestroyStream(slot):
            return f"destroy stream {slot}"
        case ops.DestroyEvent(slot):
            return f"destroy event {slot}"
        case ops.DestroyGraph(slot):
            return f"destroy graph {slot}"
        case ops.DestroyInstance(slot):
            return f"destroy instance {slot}"
        case ops.SynchronizeStream(stream):
            return "synchronize stream" + (f" {stream}" if stream else "")
        case ops.QueryStream(stream):
            return "query stream" + (f" {stream}" if stream else "")
        case ops.SynchronizeEvent(slot):
            return f"synchronize event {slot}"
        case ops.QueryEvent(slot):
            return f"query event {slot}"
        case ops.SynchronizeDevice():
            return "synchronize device"
        case ops.RecordEvent(slot, stream):
            return f"record event {slot}{_on(stream)}"
        case ops.WaitEvent(slot, stream):
            return f"wait event {slot}{_on(stream)}"
        case ops.Stall(slot):
            return f"stall {slot}"
        case ops.Release(slot):
            return f"release {slot}"
        case ops.BeginCapture(stream, mode):
            return f"begin capture on {stream}" + ("" if mode is CaptureMode.GLOBAL else f" mode={mode}")
        case ops.EndCapture(slot, stream):
            return f"{slot} = end capture on {stream}"
        case ops.LaunchGraph(slot, stream):
            return f"launch graph {slot}{_on(stream)}"
        case ops.SelectDevice(ordinal):
            return f"use device {ordinal}"
        case ops.Initialize():
            return "initialize"
        case ops.Finalize():
            return "finalize"
        case ops.Partition(slots, instance):
            return f"{', '.join(slots)} = partition{_option('instance', instance)}"
        case ops.Node(slot, parents):
            return f"{slot} = node" + (f" of {','.join(parents)}" if parents else "")
        case ops.Hold(slot):
            return f"hold {slot}"
        case ops.Drop(slot):
            return f"drop {slot}"
        case ops.Backward(slot):
            return f"backward {slot}"
        case ops.Collect():
            return "collect"
        case ops.InjectFailure(point, nth, error):
            return f"fail {point} {nth}" + (f" with {error}" if error is InjectedError.FOREIGN else "")
        case ops.Mark(name):
            return f"mark {name}"

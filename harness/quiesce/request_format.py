"""Requests written: the line that a driver program receives and a report shows, sizes in plain bytes."""

from __future__ import annotations

from quiesce import operations as ops
from quiesce.operations import CaptureMode, InjectedError, MemoryKind, Operation, Slot


def _on(stream: Slot | None) -> str:
    return "" if stream is None else f" on {stream}"


def _option(key: str, value: object) -> str:
    return "" if value is None or value == "" else f" {key}={value}"


def format_request(operation: Operation) -> str:
    """Return the line for an operation, sizes in bytes: what :func:`quiesce.requests.parse_request` reads back."""
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

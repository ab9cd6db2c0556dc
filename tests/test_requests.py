"""Request lines: reading and writing are inverse, sizes are computed, and every error says what to write instead."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, get_args, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce.model import operations as ops
from quiesce.model.operations import CaptureMode, FailurePoint, InjectedError, MemoryKind, Operation
from quiesce.model.requests import (
    SIZE_BYTES_MAX,
    RequestError,
    evaluate_size,
    format_request,
    is_slot,
    parse_request,
    resolve_slot,
)

_slots = st.builds("{}{}".format, st.sampled_from("aZ_"), st.sampled_from(["", "_1", "on", "[0]", "[999]"]))
_sizes = st.one_of(st.integers(0, 4096), st.integers(0, SIZE_BYTES_MAX))
_SPECIAL: Final[Mapping[tuple[type, str], st.SearchStrategy[Any]]] = {
    (ops.Allocate, "alignment_bytes"): st.one_of(st.none(), st.integers(0, 63).map(lambda exponent: 1 << exponent)),
    (ops.Fill, "value"): st.integers(0, 255),
    (ops.InjectFailure, "nth"): st.integers(1, 10**9),
    (ops.Partition, "slots"): st.lists(_slots, min_size=1, max_size=4).map(tuple),
}
_BY_TYPE: Final[Mapping[object, st.SearchStrategy[Any]]] = {
    str: _slots,
    int: _sizes,
    bool: st.booleans(),
    str | None: st.one_of(st.none(), _slots),
    int | None: st.one_of(st.none(), _sizes),
    tuple[str, ...]: st.lists(_slots, max_size=3).map(tuple),
    MemoryKind: st.sampled_from(MemoryKind),
    CaptureMode: st.sampled_from(CaptureMode),
    FailurePoint: st.sampled_from(FailurePoint),
    InjectedError: st.sampled_from(InjectedError),
}


def _strategy(kind: type[Operation]) -> st.SearchStrategy[Operation]:
    hints = get_type_hints(kind)
    fields = {
        field.name: _SPECIAL.get((kind, field.name), _BY_TYPE[hints[field.name]]) for field in dataclasses.fields(kind)
    }
    return st.builds(kind, **fields)


@pytest.mark.parametrize("kind", get_args(Operation), ids=lambda kind: kind.__name__)
def test_every_operation_is_read_back_as_it_was_written(kind: type[Operation]) -> None:
    @settings(max_examples=30)
    @given(_strategy(kind))
    def check(operation: Operation) -> None:
        line = format_request(operation)
        assert "\n" not in line
        assert parse_request(line) == operation

    check()


@pytest.mark.parametrize(
    ("line", "operation"),
    [
        ("a = allocate 64MiB", ops.Allocate("a", 64 << 20)),
        (
            "  a[i+1] =  allocate 2MiB+40B*i pinned on s align=4KiB pool=p",
            ops.Allocate("a[4]", (2 << 20) + 120, MemoryKind.PINNED, 4096, "s", "p"),
        ),
        ("free a on s", ops.Free("a", "s")),
        ("trim pinned", ops.Trim(MemoryKind.PINNED)),
        ("copy a to b size=1KiB on s", ops.Copy("a", "b", 1024, "s")),
        ("x,y ,  z = partition", ops.Partition(("x", "y", "z"))),
        ("fail backing with foreign-error", ops.InjectFailure(FailurePoint.BACKING, 1, InjectedError.FOREIGN)),
        ("launch reads=a,b writes=c", ops.Launch(("a", "b"), ("c",))),
        ("begin capture on s mode=relaxed", ops.BeginCapture("s", CaptureMode.RELAXED)),
        ("synchronize stream", ops.SynchronizeStream()),
    ],
)
def test_lines_are_read(line: str, operation: Operation) -> None:
    assert parse_request(line, {"i": 3}) == operation


@pytest.mark.parametrize(
    ("line", "what", "instead"),
    [
        ("a=b", "a verb is missing", "write a verb"),
        ("", "a verb is missing in ''", "write a verb"),
        ("alocate 1", "unknown verb 'alocate'", "write one of allocate, free"),
        ("allocate 1", "'allocate 1' makes one thing", "write one slot before it"),
        ("a, b = allocate 1", "makes one thing", "a = …"),
        ("a = free b", "makes nothing to name", "leave out the slot"),
        ("a = allocate", "a size is missing", "write a size after the verb"),
        ("a = allocate 1 huge", "'huge' is left over", "leave it out"),
        ("a = allocate 1 align=3", "alignment 3 is not a power of two", "align=256"),
        ("a = allocate 1 align=0", "alignment 0 is not a power of two", "align=256"),
        ("a = allocate 1 algin=8", "unknown option 'algin='", "docs/reference/case_files.md"),
        ("a = allocate 1 align=8 align=8", "option 'align' appears twice", "align=… once"),
        ("1a = allocate 1", "'1a' is not a slot name", "write a letter"),
        ("free a[x]", "'x' in 'x' is neither", "write a number"),
        ("trim pined", "unknown memory kind 'pined'", "device, pinned"),
        ("copy a b", "'to' is missing", "copy SOURCE to DESTINATION"),
        ("fill a 256", "fill value 256 is no byte", "0 to 255"),
        ("create window", "cannot create 'window'", "stream, event, pool"),
        ("destroy policy", "cannot destroy 'policy'", "stream, event, pool, graph, instance"),
        ("synchronize pool p", "cannot synchronize 'pool'", "device, stream or event"),
        ("query device", "cannot query 'device'", "stream or event"),
        ("record e on s", "'event' is missing", "record event E on S"),
        ("wait e", "'event' is missing", "wait event E on S"),
        ("begin capture", "names no stream", "begin capture on S"),
        ("g = end capture", "names no stream", "g = end capture on S"),
        ("begin capture on s mode=loose", "unknown capture mode 'loose'", "global, thread-local, relaxed"),
        ("use 0", "'device' is missing", "use device 0"),
        ("partition", "makes instances", "x, y = partition"),
        ("fail downstream", "unknown failure point 'downstream'", "backing, bookkeeper"),
        ("fail backing 0", "counted from 1", "fail backing 1"),
        ("fail backing 1 with flair", "unknown injected error 'flair'", "out-of-memory, foreign-error"),
        ("mark", "a name is missing", "write a name"),
    ],
)
def test_errors_say_what_is_wrong_and_what_to_write(line: str, what: str, instead: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request(line)
    assert what in caught.value.what
    assert instead in caught.value.instead
    assert str(caught.value) == f"{caught.value.what}; {caught.value.instead}"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("1KiB", 1024),
        ("2MiB+40B*i", (2 << 20) + 400),
        ("SIZE_MAX", SIZE_BYTES_MAX),
        ("3*i*i-1", 299),
        ("i", 10),
    ],
)
def test_sizes_are_computed(text: str, value: int) -> None:
    assert evaluate_size(text, {"i": 10}) == value


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "a size is missing"),
        ("1-2", "is negative"),
        ("SIZE_MAX+1", "is beyond"),
        ("1+", "has nothing beside it"),
        ("*2", ""),
        ("1GB", "unknown unit 'GB'"),
        ("1e3", "is neither a number nor a loop variable"),
        ("0x10", "is neither a number nor a loop variable"),
        ("j", "'j'"),
        ("\u0661", ""),
    ],
)
def test_sizes_that_mean_nothing_are_errors(text: str, what: str) -> None:
    with pytest.raises(RequestError) as caught:
        evaluate_size(text, {"i": 10})
    assert what in caught.value.what


def test_slots_are_names_with_an_optional_index() -> None:
    assert resolve_slot("block[i*2+1]", {"i": 4}) == "block[9]"
    assert [text for text in ("a", "_a1", "a[0]", "a[12]") if not is_slot(text)] == []
    assert [text for text in ("", "1", "a[]", "a[i]", "a[-1]", "internal:7", "a b", "a\n", "ä") if is_slot(text)] == []


@given(st.text(max_size=60))
def test_no_text_does_anything_but_mean_a_request_or_be_refused(text: str) -> None:
    try:
        operation = parse_request(text)
    except RequestError:
        return
    assert parse_request(format_request(operation)) == operation

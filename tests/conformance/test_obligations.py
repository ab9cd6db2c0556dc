"""What a claim obliges a backend to serve; every operation has its place."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

import pytest

from quiesce.allocators.conformance.obligations import obliging
from quiesce.model import operations as ops
from quiesce.model.backend import Capability
from quiesce.model.operations import CaptureMode, FailurePoint, InjectedError, MemoryKind, Operation

C = Capability


@pytest.mark.parametrize(
    ("operation", "capabilities"),
    [
        (ops.Allocate("a", 1), {C.MEMORY}),
        (ops.Allocate("a", 1, stream="s"), {C.MEMORY, C.STREAMS}),
        (ops.Allocate("a", 1, pool="p"), {C.MEMORY, C.POOLS}),
        (ops.Allocate("a", 1, alignment_bytes=512), {C.MEMORY, C.ALIGNMENT}),
        (ops.Allocate("a", 1, MemoryKind.PINNED), {C.PINNED}),
        (ops.Free("a", "s"), {C.MEMORY, C.STREAMS}),
        (ops.Trim(), {C.POOL}),
        (ops.Trim(MemoryKind.PINNED), {C.POOL, C.PINNED}),
        (ops.Trim(pool="p"), {C.POOL, C.POOLS}),
        (ops.SynchronizeDevice(), {C.STREAMS}),
        (ops.QueryEvent("e"), {C.EVENTS}),
        (ops.RecordEvent("e", "s"), {C.EVENTS, C.STREAMS}),
        (ops.Launch(instance="x"), {C.LAUNCH, C.INSTANCES}),
        (ops.InjectFailure(FailurePoint.BACKING), {C.INJECTION}),
        (ops.Mark("m"), set()),
    ],
)
def test_a_request_is_about_capabilities(operation: Operation, capabilities: set[Capability]) -> None:
    assert obliging(operation) == frozenset(capabilities)


@pytest.mark.parametrize(
    "operation",
    [
        ops.Allocate("a", 1, MemoryKind.PINNED, 512),
        ops.Allocate("a", 1, MemoryKind.MANAGED, stream="s"),
        ops.Trim(MemoryKind.PAGEABLE),
        ops.InjectFailure(FailurePoint.BOOKKEEPER),
    ],
)
def test_nobody_is_obliged_to_what_no_capability_is_about(operation: Operation) -> None:
    assert obliging(operation) is None


def _some(operation: type[Operation]) -> Operation:
    values: dict[str, Any] = {
        "slots": ("a",),
        "size_bytes": 1,
        "value": 1,
        "ordinal": 1,
        "point": FailurePoint.BACKING,
        "error": InjectedError.FOREIGN,
        "mode": CaptureMode.GLOBAL,
    }
    required = [field for field in dataclasses.fields(operation) if field.default is dataclasses.MISSING]
    return operation(**{field.name: values.get(field.name, "a") for field in required})


@pytest.mark.parametrize("operation", get_args(Operation), ids=lambda operation: operation.__name__)
def test_every_operation_is_about_something(operation: type[Operation]) -> None:
    """All but a mark, which is served whatever is claimed."""
    assert bool(obliging(_some(operation))) is (operation is not ops.Mark)

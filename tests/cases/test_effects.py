from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import get_args

import pytest

from quiesce.allocators.cases.slots import SlotKind, ends_of, makes_of, uses_of
from quiesce.model import operations as ops
from quiesce.model.operations import Operation

_SLOT_FIELDS = {"slot", "slots", "source", "destination", "reads", "writes", "stream", "pool", "instance", "parents"}


def _filled(kind: Callable[..., Operation]) -> Operation:
    """An operation whose every slot field has a name of its own."""
    values: dict[str, object] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if field.name in _SLOT_FIELDS:
            values[field.name] = (field.name,) if field.name in {"slots", "reads", "writes", "parents"} else field.name
        elif field.default is dataclasses.MISSING:
            values[field.name] = "name" if field.name == "name" else 1
    if kind is ops.InjectFailure:
        values = {"point": ops.FailurePoint.BACKING}
    return kind(**values)


@pytest.mark.parametrize("kind", get_args(Operation))
def test_every_slot_of_every_operation_is_used_or_made(kind: type[Operation]) -> None:
    operation = _filled(kind)
    seen = {use.slot for use in uses_of(operation)} | {making.slot for making in makes_of(operation)}
    assert seen == {field.name for field in dataclasses.fields(kind)} & _SLOT_FIELDS


@pytest.mark.parametrize("kind", get_args(Operation))
def test_only_destroying_and_freeing_end_a_slot(kind: type[Operation]) -> None:
    ends = kind.__name__.startswith("Destroy") or kind is ops.Free
    assert ends_of(_filled(kind)) == (("slot",) if ends else ())


@pytest.mark.parametrize("kind", SlotKind)
def test_every_kind_says_how_it_is_made_and_ended(kind: SlotKind) -> None:
    assert kind.made_by.format(slot="x").startswith("'x = ")
    assert kind.ended_by.format(slot="x").endswith(" x")

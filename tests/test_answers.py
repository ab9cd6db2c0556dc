"""What an author reads where an answer has the wrong shape: which part of it, what it is, what it should be."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from quiesce.allocators.answers import describe_backend, open_context
from quiesce.model.backend import BackendFault, Capability, Closing, Description, DeviceProfile, Reply
from quiesce.model.outcomes import Done

SOUND = Description("mine", "1.0", frozenset({Capability.MEMORY}))


class Context:
    def perform(self, _: object) -> Reply:
        return Reply(Done())

    def readings(self) -> Any:
        return None

    def close(self) -> Closing:
        return Closing()


class Mute:
    def perform(self, _: object) -> Reply:
        return Reply(Done())


@dataclass(frozen=True)
class Backend:
    description: Any = SOUND
    context: Any = None

    def describe(self) -> Any:
        return self.description

    def open(self, _: DeviceProfile) -> Any:
        return self.context


FIELDS: tuple[tuple[str, Any, str], ...] = (
    ("name", 7, "name is 7, not text"),
    ("capabilities", ["memory"], "capabilities is ['memory'], not a frozenset of Capability"),
    ("promises", frozenset({"trims-to-zero"}), "not a frozenset of Promise"),
    ("gauges", {"live": frozenset()}, "not a mapping of Gauge to a frozenset of Source"),
    ("chunk_bytes", "2 MiB", "chunk_bytes is '2 MiB', not a whole number"),
)


@pytest.mark.parametrize(("field", "value", "said"), FIELDS, ids=[field for field, _, _ in FIELDS])
def test_the_field_of_a_description_is_named(field: str, value: Any, said: str) -> None:
    with pytest.raises(BackendFault) as caught:
        describe_backend(Backend(replace(SOUND, **{field: value})))
    assert said in caught.value.observed


def test_the_methods_that_a_context_lacks_are_named() -> None:
    with pytest.raises(BackendFault) as caught:
        open_context(Backend(context=Mute()), DeviceProfile())
    assert caught.value.observed == "open() returned Mute, not a context: it lacks readings and close"


def test_readings_that_are_none_are_no_mapping() -> None:
    context = open_context(Backend(context=Context()), DeviceProfile())
    with pytest.raises(BackendFault) as caught:
        context.readings()
    assert caught.value.observed == "readings() returned NoneType, not a mapping"

"""What a test counts itself."""

from __future__ import annotations

from typing import Any

import pytest

from quiesce.leaks.meters.own import OwnMeter
from quiesce.leaks.quantities import Unreadable


@pytest.mark.parametrize(
    ("name", "read", "unit", "says"),
    [
        ("rows", 5, "bytes", "gauge 'rows': 5 cannot be called; give a function"),
        ("", int, "bytes", "a gauge's name is ''; write a text, such as 'rows'"),
        ("rows", int, None, "a gauge's unit is None; write a text, such as 'bytes'"),
    ],
)
def test_what_can_be_no_gauge_is_refused(name: str, read: Any, unit: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        OwnMeter().add(name, read, unit)


@pytest.mark.parametrize("value", [None, 1.5, "3"])
def test_what_is_no_whole_number_is_not_taken_for_one(value: Any) -> None:
    meter = OwnMeter()
    meter.add("rows", lambda: value, "rows")
    with pytest.raises(Unreadable, match=r"^'rows': TypeError: .*; have its function return a whole number each time$"):
        meter.read()

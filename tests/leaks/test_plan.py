"""What the user asked for."""

from __future__ import annotations

import pytest

from quiesce.leaks.plan import Plan, adjusted
from quiesce.model.errors import ConfigurationError


def test_values_come_as_text_and_as_what_they_are() -> None:
    from_text = adjusted(Plan(), {"rounds": "12", "limit_bytes": "8", "gauges": "python, descriptors,python"}, "ini")
    assert from_text == Plan(12, 8, ("python", "descriptors"))
    assert adjusted(Plan(), {"rounds": 12, "limit_bytes": 8, "gauges": ["python", "descriptors"]}, "it") == from_text


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"rounds": 2}, "from 3 to"),
        ({"rounds": True}, "rounds is True"),
        ({"rounds": "3.5"}, "rounds is '3.5'"),
        ({"limit_bytes": -1}, "limit_bytes is -1"),
        ({"gauges": []}, "nothing would be looked at"),
        ({"gauges": "python,,threads"}, "gauges is 'python,,threads'; write a list of some of"),
        ({"gauges": "heap"}, "there is no gauge 'heap'"),
        ({"gauges": 7}, "gauges is 7"),
        (
            {"round": 3},
            "'round'; did you mean rounds=[?] options: rounds=, seconds=, limit=, limit_peak=, gauges=, skip=$",
        ),
        ({"limits": 7}, "there is no 'limits'; did you mean limit=[?] options: "),
        ({"Skipped": "x"}, "there is no 'Skipped'; did you mean skip=[?] "),
        ({"limit_byte": 7}, "there is no 'limit_byte'; did you mean limit_bytes=[?] "),
        ({"wait": 7}, "there is no 'wait'; options: rounds="),
        ({"gauges": ["thread"]}, "there is no gauge 'thread'; did you mean 'threads'[?] Write some of "),
        ({"limit": "2 KB"}, "limit is '2 KB'; write 2 KiB"),
        ({"limit": -7}, "limit is -7; write a size from 0 to 1024 TiB, such as '24 MiB'"),
        ({"limit": "2 EiB"}, "limit is '2 EiB'; write a size from 0"),
        ({"limit_peak": True}, "limit_peak is True"),
        ({"limit_peak": {"threads": 4}}, "there is no peak of 'threads'; write some of python, device"),
        ({"limit_peak": {"device": "much"}}, "limit_peak is 'much'; write a number with B, KiB, MiB"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_line(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as caught:
        adjusted(Plan(), values, "the marker")
    assert str(caught.value).startswith("the marker: ")
    assert "\n" not in str(caught.value)


def test_limits_have_units() -> None:
    plan = adjusted(Plan(), {"limit": "2 KiB", "limit_peak": "1.5MiB"}, "it")
    assert plan == Plan(limit_bytes=2048, peaks=(("python", 3 << 19), ("device", 3 << 19)))
    assert adjusted(Plan(), {"limit_peak": {"device": "4 GiB"}}, "it").peaks == (("device", 4 << 30),)


def test_only_the_gauges_asked_for_are_judged() -> None:
    plan = Plan(gauges=("python",))
    assert plan.looks_at("python")
    assert not plan.looks_at("c-heap")
    assert plan.reads("c-heap")  # it shows what of Python's memory grows in place
    assert not plan.reads("descriptors")
    assert plan.looks_at("own")

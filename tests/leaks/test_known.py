"""Known leaks: what they cover, until when, for which versions, and which of them are not needed any more."""

from __future__ import annotations

from datetime import date

import pytest

from quiesce.leaks.judgement import Growth, Judgement, Outcome
from quiesce.leaks.known import Applied, KnownLeak, apply_known, merged
from quiesce.leaks.plan import Plan
from quiesce.leaks.quantities import Quantity

TEST = "tests/test_it.py::test_a"
TODAY = date(2026, 11, 26)
INSTALLED = {"python": "3.11.7", "numpy": "2.1.0"}
BYTES = Quantity("python", "Python's memory")
STREAMS = Quantity("streams", "streams", "streams")


def grown(quantity: Quantity = BYTES, per_round: float = 1000.0) -> Growth:
    return Growth(quantity, per_round, (0, 1), 1, evidence="at the same time …")


def known(up_to: int | None = 1024, **values: object) -> KnownLeak:
    given: dict[str, object] = {"test": TEST, "gauge": "python", "up_to": up_to, "reason": "issue 7", **values}
    return KnownLeak(**given)  # type: ignore[arg-type]


def applied(*entries: KnownLeak, growths: tuple[Growth, ...] = (grown(),), **values: object) -> Applied:
    judgement = Judgement(Outcome.PASSED, 9, growths, **values)  # type: ignore[arg-type]
    return apply_known(entries, TEST, judgement, Plan(), INSTALLED, TODAY)


def test_a_known_leak_is_taken_away_with_its_reason() -> None:
    found = applied(known())
    assert found.left.growths == ()
    assert found.accepted == (grown(),)
    assert (found.reasons, found.used, found.unused) == (("issue 7",), (f"{TEST} (python)",), ())


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        (known(999), "known up to 999 bytes per round: issue 7; it has grown beyond that"),
        (known(expires=date(2026, 11, 25)), "known until 2026-11-25, which is over: issue 7; fix the leak, or give *"),
        (known(versions=(("numpy", "2.0"),)), "this leak is known for numpy 2.0; this run has 2.1.0"),
        (known(versions=(("scipy", "1"),)), "this leak is known for scipy 1; this run has none"),
        (known(versions=(("python", "3.1"),)), "this leak is known for python 3.1; this run has 3.11.7"),
    ],
)
def test_one_that_does_not_cover_the_leak_says_why(entry: KnownLeak, why: str) -> None:
    found = applied(entry)
    assert found.accepted == ()
    assert found.unused == ()
    (left,) = found.left.growths
    pytest.LineMatcher(left.evidence.splitlines()).fnmatch_lines(["at the same time …", f"*{why}"])


@pytest.mark.parametrize(
    "entry",
    [
        known(1000),
        known(None, gauge="", expires=TODAY),
        known(test="tests/test_it.py::test_*"),
        known(test="*::test_a"),
        known(versions=(("numpy", "2.1"), ("python", "3.11"))),
    ],
)
def test_what_covers_the_leak(entry: KnownLeak) -> None:
    assert applied(entry).left.growths == ()


@pytest.mark.parametrize("entry", [known(test="tests/test_it.py::test_b"), known(gauge="c-heap"), known(test="test_a")])
def test_what_is_about_something_else(entry: KnownLeak) -> None:
    found = applied(entry)
    assert [growth.evidence for growth in found.left.growths] == ["at the same time …"]


def test_a_name_with_brackets_is_itself() -> None:
    assert known(test="t.py::test_a[x-1]").is_about("t.py::test_a[x-1]")
    assert not known(test="t.py::test_a[x-1]").is_about("t.py::test_ax")


def test_only_one_of_two_leaks_is_known() -> None:
    found = applied(known(), growths=(grown(STREAMS, 1.0), grown()))
    assert [growth.quantity for growth in found.left.growths] == [STREAMS]
    assert applied(known(1, gauge="streams"), growths=(grown(STREAMS, 0.5),)).left.growths == ()
    assert applied(known(1, gauge="streams"), growths=(grown(STREAMS, 1.5),)).left.growths != ()
    assert applied(known(9, gauge="streams", is_size=True), growths=(grown(STREAMS, 1.5),)).left.growths != ()


def test_an_entry_of_a_test_that_does_not_leak_is_not_needed() -> None:
    assert applied(known(), growths=()).unused == (f"{TEST} (python)",)
    assert applied(known(expires=date(2020, 1, 1)), growths=()).unused != ()


def test_whether_an_entry_is_needed_is_not_known_where_nothing_was_judged() -> None:
    assert applied(known(), growths=(), inconclusive="the time is over").unused == ()
    assert applied(known(), growths=(), absent=(("python", "not here"),)).unused == ()
    assert applied(known(versions=(("python", "3.12"),)), growths=()).unused == ()
    judgement = Judgement(Outcome.PASSED, 9)
    assert apply_known([known()], TEST, judgement, Plan(gauges=("threads",)), INSTALLED, TODAY).unused == ()
    skipped = Judgement(Outcome.OVER, 1)
    assert apply_known([known()], TEST, skipped, Plan(), INSTALLED, TODAY).unused == ()


def test_to_write_anew_keeps_what_people_wrote() -> None:
    other = known(versions=(("python", "3.12"),))
    recorded = known(5000, reason="recorded")
    new = known(7, gauge="streams", reason="recorded")
    written = merged([known(expires=TODAY), other], [new, recorded], [], [])
    assert written == [known(5000, expires=TODAY), other, new]
    assert merged([known()], [known(10, reason="recorded")], [], []) == [known()]
    assert merged([known(), other], [], [], [known().key]) == [other]
    assert merged([known()], [], [known().key], [known().key]) == [known()]

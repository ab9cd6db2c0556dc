"""Classes that are their own type, which a collection finds each time and never frees."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

import pytest

from quiesce.leaks.judgement import Outcome
from quiesce.leaks.stages.rounds import Rounds
from quiesce.leaks.stages.settling import IMMORTAL_ROUNDS as ROUNDS
from quiesce.leaks.stages.settling import ImmortalClasses, OldObjects, immortal_classes

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="it is what CPython does")


class Meta(type):
    """Lets a class be its own type, like the sentinels of h11."""


def make_immortal(count: int = 1) -> None:
    for _ in range(count):
        made = Meta("Sentinel", (Meta,), {})
        made.__class__ = made  # type: ignore[assignment]


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Leave none to other tests: what is an ordinary class again can be freed."""
    gc.collect()
    yield
    for each in gc.get_objects():
        if type(each) is each:
            vars(object)["__class__"].__set__(each, Meta)  # a collection has cleared what it inherits
    gc.collect()
    assert immortal_classes() == 0


def said_of(run: Callable[[int], object]) -> tuple[str, int]:
    """Return what is said of the rounds of some code, and how many were run."""
    rounds = Rounds(lambda: (run(rounds.runs), Outcome.PASSED)[1], lambda: False, lambda: None)
    rounds.first()
    return ImmortalClasses(rounds, OldObjects()).made(), rounds.count - 1


def test_they_are_counted() -> None:
    before = immortal_classes()
    make_immortal()
    assert immortal_classes() == before + 1


def test_nothing_is_run_where_all_garbage_is_freed() -> None:
    if gc.collect():
        pytest.skip("other tests have left such classes")
    assert said_of(lambda _: None) == ("", 0)


@pytest.mark.parametrize(
    ("each", "said"), [(1, "1 class that is its own type"), (3, "3 classes that are their own type")]
)
def test_what_each_round_makes_is_said(each: int, said: str) -> None:
    found, rounds = said_of(lambda _: make_immortal(each))
    assert found == f"each round makes {said}, which CPython never frees, so its memory is not judged"
    assert rounds == ROUNDS


@pytest.mark.parametrize("runs", [(1,), (1, 2), (1, 2, 3), (1, 3)])
def test_what_only_some_rounds_make_is_no_excuse(runs: tuple[int, ...]) -> None:
    found, rounds = said_of(lambda run: make_immortal(runs.count(run)))
    assert (found, rounds) == ("", ROUNDS)

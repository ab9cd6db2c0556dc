"""The autodiff tape against a naive model: who can be reached, computed anew each time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quiesce.allocators.reference.ledger import CallRejected, Ledger
from quiesce.allocators.reference.tape import CountingTape


class NaiveTape:
    """All nodes ever, the edges that were not consumed, and holds; who lives is found by walking from what is held."""

    def __init__(self) -> None:
        self.holds: dict[str, int] = {}
        self.parents: dict[str, tuple[str, ...]] = {}

    def reachable(self, start: list[str]) -> set[str]:
        found: set[str] = set()
        walk = list(start)
        while walk:
            node = walk.pop()
            if node not in found:
                found.add(node)
                walk.extend(self.parents[node])
        return found

    def backward(self, node: str) -> None:
        for consumed in self.reachable([node]):
            self.parents[consumed] = ()

    def count(self) -> int:
        return len(self.reachable([node for node, holds in self.holds.items() if holds]))


_steps = st.lists(
    st.tuples(
        st.sampled_from(["node", "node", "node", "hold", "drop", "drop", "backward", "collect"]),
        st.lists(st.integers(0, 8), min_size=1, max_size=3),
    ),
    max_size=60,
)


@given(_steps)
def test_a_node_is_kept_as_long_as_it_can_be_reached(steps: list[tuple[str, list[int]]]) -> None:
    tape, naive = CountingTape(Ledger()), NaiveTape()
    for number, (what, choices) in enumerate(steps):
        held = [node for node, holds in naive.holds.items() if holds]
        chosen = [held[choice % len(held)] for choice in choices] if held else []
        match what:
            case "node":
                name = f"n{number}"
                tape.node(name, tuple(chosen))
                naive.holds[name], naive.parents[name] = 1, tuple(chosen)
            case "collect":
                tape.collect()
            case _ if not chosen:
                continue
            case "hold":
                tape.hold(chosen[0])
                naive.holds[chosen[0]] += 1
            case "drop":
                tape.drop(chosen[0])
                naive.holds[chosen[0]] -= 1
            case "backward":
                tape.backward(chosen[0])
                naive.backward(chosen[0])
        assert tape.count() == naive.count()


def test_a_long_chain_is_freed_without_recursion_at_the_cost_of_its_length() -> None:
    ledger = Ledger()
    tape = CountingTape(ledger)
    tape.node("n0", ())
    for i in range(1, 20_000):
        tape.node(f"n{i}", (f"n{i - 1}",))
        tape.drop(f"n{i - 1}")
    assert tape.count() == 20_000
    before = ledger.steps
    tape.drop("n19999")
    assert tape.count() == 0
    assert ledger.steps - before <= 2 * 20_000


def test_the_cost_of_a_pass_does_not_depend_on_what_is_kept() -> None:
    costs = []
    for kept in (10, 10_000):
        ledger = Ledger()
        tape = CountingTape(ledger)
        for i in range(kept):
            tape.node(f"kept{i}", ())
        tape.node("a", ())
        tape.node("b", ("a", "a"))
        before = ledger.steps
        tape.backward("b")
        tape.drop("b")
        tape.drop("a")
        costs.append(ledger.steps - before)
    assert costs[0] == costs[1] > 0


def test_what_is_not_held_has_no_name() -> None:
    tape = CountingTape(Ledger())
    tape.node("a", ())
    tape.drop("a")
    for call in (tape.hold, tape.drop, tape.backward):
        with pytest.raises(CallRejected):
            call("a")
    with pytest.raises(CallRejected):
        tape.node("b", ("a",))
    assert tape.count() == 0

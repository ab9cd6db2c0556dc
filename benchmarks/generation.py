"""How fast operations are generated and checked: Hypothesis' state machines against decoded bytes.

All draw from the same actions, drive the same lockstep and check everything; they differ only in how a step is drawn.
There are three state machines, for it matters how one is written:

- each action stands in it as often as it weighs, so that it draws what the generator draws: a state machine draws its
  rules evenly;
- each action stands in it once: fewer are quicker to choose from, and those that write twenty operations then make half
  of all, which hides what a draw costs;
- one rule draws an opcode and looks it up as the generator does: the least that a step can cost in Hypothesis, and no
  longer a machine of rules.

Counted are the operations that were generated; what lockstep adds to give everything back takes time and counts
nowhere. Hypothesis begins each round from a seed of its own, the same in every run: what it happens to draw moves the
rate of a round by half, so a rate is that of all rounds together, in processor time. All ways take turns in one
process, after one turn that is not measured, so that the ratios hold on a busy machine too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from quiesce.allocators.cases.expansion import PerformStep, Step
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.sequence import GeneratedSequence
from quiesce.allocators.generation.strategies import allocation_sequences
from quiesce.allocators.generation.weights import LEGAL_ACTIONS, Action, ActionFunction, tables
from quiesce.allocators.generation.writer import Writer
from quiesce.allocators.lockstep import Lockstep, run_lockstep
from quiesce.backends.reference import backend as reference_backend
from quiesce.model.backend import Backend, DeviceProfile

STEPS: Final = 50
"""Steps of one run of the state machine: Hypothesis' default."""
TARGET: Final = 8.0
AS_OFTEN_AS_IT_WEIGHS: Final = "state machine, actions by weight"
EACH_ONCE: Final = "state machine, each action once"
ONE_FOR_ALL: Final = "state machine, one rule"
STRATEGY: Final = "allocation_sequences"
_SIZES: Final = (1024, 4096, 1 << 20, 3 << 20)


@dataclass(frozen=True, slots=True)
class Measurement:
    """How many operations one way of generating them got through, and in what processor time (seconds)."""

    name: str
    operations: int
    seconds: float

    def __add__(self, other: Measurement) -> Measurement:
        return Measurement(self.name, self.operations + other.operations, self.seconds + other.seconds)

    @property
    def rate(self) -> float:
        """Operations per second."""
        return self.operations / self.seconds


class _Counter:
    operations = 0


def _settings(examples: int, **more: Any) -> settings:  # Any: the keyword arguments of Hypothesis' settings
    return settings(
        max_examples=examples,
        deadline=None,
        database=InMemoryExampleDatabase(),
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        **more,
    )


class Machine(RuleBasedStateMachine):
    """What all state machines share: a writer, a lockstep, and no rules."""

    backend: ClassVar[Backend]
    counter: ClassVar[_Counter]

    def __init__(self) -> None:
        super().__init__()
        device = DeviceProfile(capacity_bytes=128 << 20)
        self.writer = Writer(self.backend.describe(), device, _SIZES)
        self.lockstep = Lockstep(self.backend, device, timeline=False)

    def perform(self, function: ActionFunction, drawn: int) -> None:
        """Let an action of the generator write, with three bytes of what was drawn, and perform that."""
        function(self.writer, drawn & 255, drawn >> 8 & 255, drawn >> 16 & 255)
        for operation in self.writer.written:
            assert self.lockstep.step(PerformStep(operation, None, 0))
        self.counter.operations += len(self.writer.written)
        self.writer.written.clear()

    def teardown(self) -> None:
        """Give everything back, and judge that as well."""
        trial = self.lockstep.finish()
        assert not trial.findings


def make_state_machine(way: str, backend_: Backend, counter_: _Counter) -> type[Machine]:
    """Return a state machine of one of the three kinds."""

    class Made(Machine):
        backend = backend_
        counter = counter_

    if way == ONE_FOR_ALL:
        outside, inside = tables(LEGAL_ACTIONS, "", 0)

        def decode(self: Machine, drawn: int) -> None:
            table = inside if self.writer.state.captures else outside
            if opcode := drawn & 255:  # the lowest bits are those that Hypothesis spreads most evenly
                self.perform(table[opcode - 1], drawn >> 8)

        Made.decode = rule(drawn=st.integers(0, (1 << 32) - 1))(decode)
        return Made
    for each in LEGAL_ACTIONS:
        if not each.weight and not each.in_capture:
            continue  # a theme draws it, and a machine has none
        bound = rule(drawn=st.integers(0, (1 << 24) - 1))(_method(each))
        if not each.in_capture:
            bound = precondition(lambda self: not self.writer.state.captures)(bound)
        elif each.weight == 0:
            bound = precondition(lambda self: bool(self.writer.state.captures))(bound)
        for copy in range(max(1, each.weight) if way == AS_OFTEN_AS_IT_WEIGHS else 1):
            setattr(Made, f"{each.function.__name__}_{copy}", bound)
    return Made


def _method(each: Action) -> Callable[[Any, int], None]:
    def method(self: Any, drawn: int) -> None:
        self.perform(each.function, drawn)

    method.__name__ = each.function.__name__
    return method


def measure_state_machine(way: str, backend: Backend, examples: int, number: int) -> Measurement:
    """Run a state machine."""
    counter = _Counter()
    machine = seed(number)(make_state_machine(way, backend, counter))
    start = time.process_time()
    run_state_machine_as_test(machine, settings=_settings(examples, stateful_step_count=STEPS))
    return Measurement(way, counter.operations, time.process_time() - start)


def measure_strategy(backend: Backend, examples: int, number: int) -> Measurement:
    """Run sequences that Hypothesis draws as bytes."""
    counter = _Counter()

    @seed(number)
    @_settings(examples)
    @given(allocation_sequences(backend.describe()))
    def run(sequence: GeneratedSequence) -> None:
        counter.operations += _run(backend, sequence)

    start = time.process_time()
    run()
    return Measurement(STRATEGY, counter.operations, time.process_time() - start)


def measure_bulk(backend: Backend, sequences: int, seed_of_round: int) -> Measurement:
    """Run seeded sequences without Hypothesis."""
    description = backend.describe()
    start = time.process_time()
    operations = sum(_run(backend, generate_one(description, seed_of_round, number)) for number in range(sequences))
    return Measurement("bulk", operations, time.process_time() - start)


def _run(backend: Backend, sequence: GeneratedSequence) -> int:
    generated = 0

    def steps() -> Iterator[Step]:
        nonlocal generated
        for step in sequence.steps():
            generated += isinstance(step, PerformStep)
            yield step

    trial = run_lockstep(backend, sequence.device, steps(), timeline=False)
    assert not trial.findings, trial.findings
    return generated


def main() -> None:
    """Measure every way in turn, round by round, and print the totals beside the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="rounds, each with a seed of its own (default: 8)")
    parser.add_argument("--examples", type=int, default=40, help="examples for each way in each round (default: 40)")
    arguments = parser.parse_args()
    backend = reference_backend()
    ways: list[Callable[[Backend, int, int], Measurement]] = [
        *(partial(measure_state_machine, way) for way in (AS_OFTEN_AS_IT_WEIGHS, EACH_ONCE, ONE_FOR_ALL)),
        measure_strategy,
        measure_bulk,
    ]
    total: dict[str, Measurement] = {}
    for number in range(-1, arguments.rounds):
        for measure in ways:
            measured = measure(backend, arguments.examples if number >= 0 else 2, max(number, 0))
            if number >= 0:
                total[measured.name] = measured + total.get(measured.name, Measurement(measured.name, 0, 0.0))
    strategy = total[STRATEGY].rate
    print(f"generated operations a second of processor time, in lockstep with the oracle, and {STRATEGY} over each\n")
    for each in total.values():
        ratio = strategy / each.rate
        print(f"{each.name:<32} {each.rate:>9,.0f}/s {ratio:>6.1f}x   {each.operations:>9,} operations")
    ratio = strategy / total[AS_OFTEN_AS_IT_WEIGHS].rate
    print(f"\n{STRATEGY} over the state machine that draws the same: {ratio:.1f}x, target {TARGET:.0f}x")


if __name__ == "__main__":
    main()

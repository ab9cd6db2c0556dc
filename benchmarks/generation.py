"""How fast operations are generated and checked: a Hypothesis state machine against decoded bytes.

Both draw from the same rules, each as often as its weight says, drive the same lockstep and check everything; they
differ only in how a step is drawn. A state machine draws its rules evenly, so a rule stands in it once for each unit of
its weight: drawn evenly, rules that write twenty operations would make half of all, and hide what a draw costs.
Hypothesis begins each round from a seed of its own, the same in every run: what it happens to draw moves the rate of a
round by half, so a rate is that of all rounds together, in processor time. All ways take turns in one process, so that
the ratios hold on a busy machine too.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from quiesce.backend import Backend, DeviceProfile
from quiesce.backends.reference import backend as reference_backend
from quiesce.cases.expansion import PerformStep
from quiesce.generation.bulk import generate_one
from quiesce.generation.sequence import GeneratedSequence
from quiesce.generation.strategies import allocation_sequences
from quiesce.generation.weights import LEGAL_RULES, Rule
from quiesce.generation.writer import Writer
from quiesce.lockstep import Lockstep, run_lockstep

STEPS: Final = 50
"""Steps of one run of the state machine: Hypothesis' default."""
TARGET: Final = 8.0
STATE_MACHINE: Final = "RuleBasedStateMachine"
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


def make_state_machine(backend: Backend, counter: _Counter) -> type[RuleBasedStateMachine]:
    """Return a state machine with a rule for each of the generator's, which performs what it writes."""
    description = backend.describe()

    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            device = DeviceProfile(capacity_bytes=128 << 20)
            self.writer = Writer(description, device, _SIZES)
            self.lockstep = Lockstep(backend, device, timeline=False)

        def perform(self) -> None:
            for operation in self.writer.written:
                assert self.lockstep.step(PerformStep(operation, None, 0))
                counter.operations += 1
            self.writer.written.clear()

        def teardown(self) -> None:
            trial = self.lockstep.finish()
            assert not trial.findings

    byte = st.integers(0, 255)
    for each in LEGAL_RULES:
        method = _method(each)
        bound = rule(a=byte, b=byte, c=byte)(method)
        if not each.in_capture:
            bound = precondition(lambda self: not self.writer.state.captures)(bound)
        elif each.weight == 0:
            bound = precondition(lambda self: bool(self.writer.state.captures))(bound)
        for copy in range(max(1, each.weight)):
            setattr(Machine, f"{each.function.__name__}_{copy}", bound)
    return Machine


def _method(each: Rule) -> Callable[[Any, int, int, int], None]:
    def method(self: Any, a: int, b: int, c: int) -> None:
        each.function(self.writer, a, b, c)
        self.perform()

    method.__name__ = each.function.__name__
    return method


def measure_state_machine(backend: Backend, examples: int, number: int) -> Measurement:
    """Run the state machine."""
    counter = _Counter()
    machine = seed(number)(make_state_machine(backend, counter))
    start = time.process_time()
    run_state_machine_as_test(machine, settings=_settings(examples, stateful_step_count=STEPS))
    return Measurement(STATE_MACHINE, counter.operations, time.process_time() - start)


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
    trial = run_lockstep(backend, sequence.device, sequence.steps(), timeline=False)
    assert not trial.findings, trial.findings
    return trial.operations


def main() -> None:
    """Measure every way in turn, round by round, and print the totals beside the target."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="rounds, each with a seed of its own (default: 8)")
    parser.add_argument("--examples", type=int, default=40, help="examples for each way in each round (default: 40)")
    arguments = parser.parse_args()
    backend = reference_backend()
    total: dict[str, Measurement] = {}
    for number in range(arguments.rounds):
        for measure in (measure_state_machine, measure_strategy, measure_bulk):
            measured = measure(backend, arguments.examples, number)
            total[measured.name] = measured + total.get(measured.name, Measurement(measured.name, 0, 0.0))
    slowest = total[STATE_MACHINE].rate
    print("operations a second of processor time, in lockstep with the oracle\n")
    for each in total.values():
        print(f"{each.name:<24} {each.rate:>9,.0f}/s {each.rate / slowest:>6.1f}x   {each.operations:>9,} operations")
    print(f"\n{STRATEGY}: {total[STRATEGY].rate / slowest:.1f}x, target {TARGET:.0f}x")


if __name__ == "__main__":
    main()

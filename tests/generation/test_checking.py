"""From a failing Hypothesis test to a case file, and from a case file to an explicit example."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings

from quiesce.allocators.cases.parser import parse_case, parse_text
from quiesce.allocators.cases.writer import write_case
from quiesce.allocators.execution import run_case
from quiesce.allocators.generation.decoder import generate_one
from quiesce.allocators.generation.saving import SequenceFailed, check_sequence, needs_of
from quiesce.allocators.generation.sequence import GeneratedSequence, Loop, sequence_of
from quiesce.allocators.generation.shrinking import shrink
from quiesce.allocators.generation.strategies import allocation_sequences
from quiesce.backends.reference import backend as reference
from quiesce.backends.reference import faulty
from quiesce.model.backend import Capability, DeviceProfile, Flavour
from quiesce.model.errors import CaseError
from quiesce.model.gauges import Gauge

DOUBLE_FREE = faulty("pool.accepts_double_free")


def test_a_failing_test_leaves_a_case_that_becomes_an_explicit_example(tmp_path: Path) -> None:
    drawn = allocation_sequences(DOUBLE_FREE.describe(), hostile=True, records_max=60)

    @settings(
        max_examples=200, deadline=None, database=None, derandomize=True, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck), report_multiple_bugs=False,
    )  # fmt: skip
    @given(drawn)
    def run(sequence: GeneratedSequence) -> None:
        check_sequence(DOUBLE_FREE, sequence, save_to=tmp_path)

    with pytest.raises(SequenceFailed) as failure:
        run()
    (path,) = tmp_path.glob("*.case")
    rule = path.stem.removesuffix("_drawn")
    assert type(failure.value).__name__ == rule
    assert f"saved as {path.as_posix()}" in str(failure.value)

    case = parse_case(path)
    assert run_case(case, DOUBLE_FREE).findings[0].rule == rule
    assert run_case(case, reference()).findings == ()
    shrunk = shrink(DOUBLE_FREE, case)
    assert shrunk is not None
    assert len(shrunk.case.body) <= 4  # a block that was staged has a source

    @settings(phases=[Phase.explicit], deadline=None)
    @example(sequence_of(shrunk.case))
    @given(drawn)
    def explicit(sequence: GeneratedSequence) -> None:
        check_sequence(DOUBLE_FREE, sequence)

    with pytest.raises(SequenceFailed, match=rule):
        explicit()


def test_a_sequence_that_breaks_nothing_gives_its_trial(tmp_path: Path) -> None:
    sequence = generate_one(reference().describe(), 1, 0)
    trial = check_sequence(reference(), sequence, save_to=tmp_path)
    assert trial.operations
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", range(12))
def test_a_sequence_survives_the_way_through_a_case_file(number: int) -> None:
    sequence = generate_one(reference().describe(), 4, number, hostile=True)
    text = write_case(sequence.case())
    read = parse_text("title: x\nkind: control\nneeds: memory\n\n" + text.partition("\n\n")[2], "x.case", "x")
    again = sequence_of(read)
    assert again.operations == sequence.operations
    assert again.loop == sequence.loop


def test_a_loop_survives_the_way_through_a_case_file() -> None:
    loop = Loop(20, ("k[i] = allocate 1024", "free k[i]"), Gauge.COST, 4)
    sequence = GeneratedSequence(DeviceProfile(), (), loop, hostile=True)
    assert sequence_of(sequence.case()) == sequence


def test_growth_in_the_middle_is_no_sequence() -> None:
    text = "title: x\nkind: control\nneeds: memory\n\n"
    text += "repeat 20:\n    launch\nexpect cost grows 0 per iteration after 4\n"
    with pytest.raises(CaseError, match=r"x\.case:\d+: a sequence has one loop, at its end"):
        sequence_of(parse_text(text + "a = allocate 1\n", "x.case", "x"))


def flavours_drawn(*lacking: Capability) -> set[Flavour]:
    description = replace(reference().describe(), capabilities=frozenset(Capability) - {*lacking})
    return {generate_one(description, 9, number).device.flavour for number in range(20)}


def test_a_flavour_is_asked_for_where_it_is_honoured_and_can_be_judged() -> None:
    assert flavours_drawn() == set(Flavour)
    assert flavours_drawn(Capability.INSTANCES) == set(Flavour)
    assert flavours_drawn(Capability.FLAVOUR) == {Flavour.CUDA}
    assert flavours_drawn(Capability.ORDER_LEDGER) == {Flavour.CUDA}


def test_a_flavour_is_needed_where_it_is_not_the_usual_one() -> None:
    assert Capability.FLAVOUR in needs_of((), DeviceProfile(flavour=Flavour.HIP))
    assert Capability.FLAVOUR not in needs_of((), DeviceProfile(flavour=Flavour.CUDA))

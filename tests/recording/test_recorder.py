"""The recorder, run for real against the reference: what it keeps, what it leaves out, and what survives a crash."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest

from quiesce.allocators.recording.__main__ import ask_probe, file_name, main
from quiesce.allocators.recording.recording import (
    COMPLETED,
    Answer,
    Program,
    corpus_programs,
    generated_programs,
    read_recording,
    record,
    write_recording,
)
from quiesce.backends.command.backend import CommandBackend
from quiesce.backends.reference import ReferenceBackend, backend
from quiesce.model.backend import BackendFault, DeviceProfile, Flavour, Reply
from quiesce.model.operations import Operation, SynchronizeDevice
from quiesce.model.requests import parse_request


def program(*lines: str, device: DeviceProfile | None = None) -> Program:
    return Program("a program", device or DeviceProfile(), tuple(parse_request(line) for line in lines))


def test_answers_are_kept_in_order_and_addresses_as_alignments() -> None:
    recorded = record(backend(), program("a = allocate 100", "free a", "free a", "b = allocate 0", "mark here"))
    assert recorded.end == COMPLETED
    outcomes = [answer.outcome for answer in recorded.answers]
    assert outcomes == ["allocated", "done", "rejected invalid-value", "allocated"]
    first, *_, empty = recorded.answers
    assert first.alignment_bytes in (256, 512)
    assert empty.alignment_bytes == 0


def test_what_uses_a_slot_that_could_not_be_made_is_left_out() -> None:
    device = DeviceProfile(capacity_bytes=1 << 20)
    recorded = record(backend(), program("a = allocate 2097152", "fill a 1", "free a", "trim", device=device))
    assert recorded.answers == (Answer("a = allocate 2097152", "out of memory"), Answer("trim", "done"))


class Dying:
    """The reference until it is asked to wait for the device: then it is gone."""

    def __init__(self) -> None:
        self._context = backend().open(DeviceProfile())
        self.readings, self.close = self._context.readings, self._context.close

    def perform(self, operation: Operation) -> Reply:
        if isinstance(operation, SynchronizeDevice):
            raise BackendFault("device_survives_every_request", "an illegal address")
        return self._context.perform(operation)


class DyingBackend(ReferenceBackend):
    def open(self, profile: DeviceProfile) -> Dying:
        return Dying()


def test_a_crash_keeps_what_was_answered_before_it() -> None:
    recorded = record(DyingBackend(), program("a = allocate 512", "synchronize device", "free a"))
    assert [answer.request for answer in recorded.answers] == ["a = allocate 512"]
    assert recorded.end == "device_survives_every_request: an illegal address"


def test_a_process_that_dies_is_an_end_and_not_an_error() -> None:
    dying = CommandBackend([sys.executable, "-c", "import os; os._exit(3)"], name="dying")
    recorded = record(dying, program("trim"))
    assert recorded.end.startswith("not opened")
    assert recorded.answers == ()


def test_programs_are_those_that_the_backend_can_run_on_a_device_of_its_flavour() -> None:
    description = backend().describe()
    programs = list(corpus_programs(description, Flavour.HIP))
    assert len(programs) > 80
    assert {each.device.flavour for each in programs} == {Flavour.HIP}
    names = [each.name for each in generated_programs(description, Flavour.CUDA, 7, 4)]
    assert names == ["generated/valid-7-0", "generated/valid-7-1", "generated/hostile-7-2", "generated/hostile-7-3"]


@pytest.mark.long
def test_the_command_records_each_sequence_in_a_process_and_the_same_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written = []
    for jobs in ("1", "3"):
        chosen = ["--generated", "4", "--only", "generated/", "--jobs", jobs]
        assert main(["--backend", "reference", "--out", str(tmp_path / jobs), *chosen]) == 0
        path = Path(capsys.readouterr().out.strip())
        written.append(path.read_text(encoding="utf-8"))
    assert written[0] == written[1]
    assert not re.search(r"0x[0-9a-f]{5}", written[0])
    recording = read_recording(written[0], path.name)
    assert [sequence.end for sequence in recording.sequences] == [COMPLETED] * 4
    assert write_recording(recording) == written[0]
    assert json.loads(written[0])["backend"]["name"] == "reference"


def test_an_unknown_backend_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--backend", "nothing", "--out", str(tmp_path)]) == 2
    assert "unknown backend 'nothing'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_probe_that_cannot_run_says_why() -> None:
    asked = ask_probe("quiesce.backends.cupy.probes", "no such probe")
    assert asked.end.startswith("exit code 2: write: python -m quiesce.backends.cupy.probes")
    assert asked.answer == {}


def test_a_file_is_named_after_what_was_recorded_where() -> None:
    machine = {"cupy": "14.2.0", "device": "NVIDIA H200"}
    assert file_name("cupy", machine, "CuPy 14.2.0 on CUDA") == "cupy-14.2.0-nvidia-h200.json"
    assert file_name("reference", {}, "reference 1") == "reference-reference-1.json"

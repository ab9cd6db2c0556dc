"""The file of a recording: what is written is read again, and what is no recording says so."""

from __future__ import annotations

import json

import pytest

from quiesce.allocators.recording.recording import (
    Answer,
    RecordedProbe,
    RecordedSequence,
    Recording,
    RecordingError,
    answer_of,
    outcome_of,
    read_recording,
    write_recording,
)
from quiesce.model.backend import Capability, DeviceProfile, Flavour, Promise
from quiesce.model.outcomes import Allocated, Done, OutOfMemory, Rejected, Unsupported

RECORDING = Recording(
    backend="cupy",
    version="CuPy 14.2.0",
    capabilities=frozenset({Capability.MEMORY, Capability.STALL}),
    promises=frozenset({Promise.TRIMS_TO_ZERO}),
    alignment_bytes=256,
    seed=1,
    machine={"device": "a GPU", "driver": 13000},
    sequences=(
        RecordedSequence(
            "sizes/one",
            DeviceProfile(capacity_bytes=1 << 20, flavour=Flavour.HIP, provenance="a recording"),
            (Answer("a = allocate 1", "allocated", 512), Answer("free a", "done")),
            "unsupported (no)",
        ),
    ),
    probes=(RecordedProbe("capture/x", {"status": 900}), RecordedProbe("y", {}, "exit code -11: no word")),
    known={"sizes/one": "cupy/cupy#1"},
)


def test_what_is_written_is_read_again() -> None:
    assert read_recording(write_recording(RECORDING), "here") == RECORDING


@pytest.mark.parametrize("outcome", [Done(), OutOfMemory(), Rejected("not-ready"), Unsupported(), Allocated(0x1300)])
def test_an_outcome_survives_its_words(outcome: Allocated | Done | OutOfMemory | Rejected | Unsupported) -> None:
    answer = answer_of("a request", outcome)
    assert outcome_of(answer, 0x1300) == outcome
    assert "0x" not in answer.outcome


@pytest.mark.parametrize(("address", "alignment"), [(0, 0), (0x1300, 256), (0x7000_0000, 512), (3, 1)])
def test_an_address_is_kept_as_what_it_is_a_multiple_of(address: int, alignment: int) -> None:
    assert answer_of("a = allocate 1", Allocated(address)).alignment_bytes == alignment


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "JSONDecodeError"),
        ("[]", "TypeError"),
        (json.dumps({**json.loads(write_recording(RECORDING)), "schema": 2}), "schema 2 is not 1"),
        (write_recording(RECORDING).replace('"stall"', '"stalls"'), "'stalls' is not a valid Capability"),
        (write_recording(RECORDING).replace('"machine"', '"machines"'), "KeyError: 'machine'"),
    ],
)
def test_what_is_no_recording_says_where_and_why(text: str, complaint: str) -> None:
    with pytest.raises(RecordingError, match="here: ") as caught:
        read_recording(text, "here")
    assert complaint in str(caught.value)

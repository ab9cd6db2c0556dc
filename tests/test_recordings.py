"""Every recording in ``fixtures/cuda/recordings/``: what a real device answered is what the oracle permits."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from quiesce.allocators.recording.recording import check, read_recording, write_recording

FOLDER: Final = Path(__file__).resolve().parent.parent / "fixtures" / "cuda" / "recordings"
RECORDINGS: Final = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_real_device_answers_as_the_oracle_permits(path: Path) -> None:
    recording = read_recording(path.read_text(encoding="utf-8"), path.name)
    assert recording.sequences
    assert recording.machine["device"], "a recording names its device"
    complaints = check(recording)
    assert not complaints, "\n".join(map(str, complaints))


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)
def test_a_recording_is_as_the_recorder_writes_it_and_holds_no_address(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert write_recording(read_recording(text, path.name)) == text
    assert not re.search(r"0x[0-9a-fA-F]{5}", text)


def test_there_are_recordings() -> None:
    assert len(RECORDINGS) >= 2

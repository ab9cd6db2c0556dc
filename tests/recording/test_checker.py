"""The checker: it lets what the reference really answered be, and refuses each recording that was altered."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace

import pytest

from quiesce.allocators.recording.recording import (
    Answer,
    RecordedProbe,
    RecordedSequence,
    Recording,
    RecordingError,
    check,
    corpus_programs,
    generated_programs,
    record,
)
from quiesce.backends.reference import backend, faulty
from quiesce.model.backend import Flavour
from quiesce.model.outcomes import ERROR_CODES


@functools.cache
def recorded(fault: str | None = None) -> Recording:
    """Record the corpus and some generated sequences on the reference, or on a faulty one."""
    subject = backend() if fault is None else faulty(fault)
    description = subject.describe()
    programs = [*corpus_programs(description, Flavour.CUDA), *generated_programs(description, Flavour.CUDA, 3, 40)]
    return Recording(
        backend=description.name,
        version=description.version,
        capabilities=description.capabilities,
        promises=description.promises,
        alignment_bytes=description.alignment_bytes,
        seed=3,
        machine={},
        sequences=tuple(record(subject, program) for program in programs),
    )


@pytest.mark.long
def test_what_the_reference_answered_is_permitted() -> None:
    assert check(recorded()) == ()
    assert sum(len(sequence.answers) for sequence in recorded().sequences) > 3000


@pytest.mark.parametrize(
    "fault",
    ["capture.wrong_code", "capture.synchronizes", "capture.accepts_unjoined", "stream.query_lies"],
)
def test_what_a_faulty_reference_answered_is_not(fault: str) -> None:
    assert check(recorded(fault))


def altered(name: str, change: Callable[[Answer], Answer | None]) -> Recording:
    """Return the recording of one sequence with the first answer changed that ``change`` changes."""
    (sequence,) = [each for each in recorded().sequences if each.name == name]
    answers = list(sequence.answers)
    for number, answer in enumerate(answers):
        if (other := change(answer)) is not None:
            answers[number] = other
            return replace(recorded(), sequences=(replace(sequence, answers=tuple(answers)),))
    raise AssertionError(f"nothing in {name} was changed")


def code_of(word: str) -> Callable[[Answer], Answer | None]:
    return lambda answer: replace(answer, outcome=word) if answer.outcome.startswith("rejected") else None


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        (
            "capture/captured_event_has_its_own_code",
            code_of("rejected invalid-value"),
            "errors_are_the_documented_ones",
        ),
        ("capture/capturing_stream_cannot_be_waited_for", code_of("done"), "invalid_requests_are_refused"),
        (
            "events/stalled_work_is_not_done",
            lambda answer: replace(answer, outcome="done") if "not-ready" in answer.outcome else None,
            "completion_is_not_reported_early",
        ),
        (
            "sizes/alignment_is_kept",
            lambda answer: replace(answer, alignment_bytes=8) if answer.outcome == "allocated" else None,
            "addresses_are_aligned",
        ),
        (
            "controls/cache_keeps_freed_blocks",
            lambda answer: replace(answer, alignment_bytes=0) if answer.outcome == "allocated" else None,
            "blocks_lie_in_the_address_space",
        ),
        (
            "controls/cache_keeps_freed_blocks",
            lambda answer: replace(answer, outcome="rejected invalid-value") if answer.outcome == "done" else None,
            "",
        ),
    ],
)
def test_an_altered_answer_is_refused(name: str, change: Callable[[Answer], Answer | None], rule: str) -> None:
    (complaint,) = check(altered(name, change))
    assert complaint.name == name
    assert rule in complaint.request


def test_a_sequence_that_died_is_complained_of_and_one_that_was_unsupported_is_not() -> None:
    sequence = recorded().sequences[0]
    for end, complained in [("device_survives: gone", True), ("unsupported (no)", False), ("not opened: small", False)]:
        assert bool(check(replace(recorded(), sequences=(replace(sequence, end=end),)))) is complained


def test_error_numbers_are_those_of_the_table() -> None:
    right = RecordedProbe("right", {"status": ERROR_CODES["captured-event"], "means": "captured-event"})
    wrong = RecordedProbe("wrong", {"status": 900, "means": "captured-event"})
    unknown = RecordedProbe("unknown", {"status": 1, "means": "frobnicated"})
    figures = RecordedProbe("figures", {"1": 512})
    dead = RecordedProbe("dead", {}, "exit code -11: no word")
    complaints = check(replace(recorded(), sequences=(), probes=(right, wrong, unknown, figures, dead)))
    assert [complaint.name for complaint in complaints] == ["wrong", "unknown", "dead"]
    assert str(complaints[0]) == "wrong: the error number of captured-event: expected 907, recorded 900"


def test_what_is_known_upstream_is_let_be_until_nothing_is_complained_of() -> None:
    spoilt = altered("capture/capturing_stream_cannot_be_waited_for", code_of("done"))
    known = {"capture/capturing_stream_cannot_be_waited_for": "ROCm/ROCm#1"}
    assert check(replace(spoilt, known=known)) == ()
    (stale,) = check(replace(recorded(), known=known))
    assert "remove the entry" in str(stale)


def test_an_outcome_that_is_none_is_no_recording() -> None:
    spoilt = RecordedSequence("spoilt", recorded().sequences[0].device, (Answer("trim", "maybe"),))
    with pytest.raises(RecordingError, match="'maybe', which is none"):
        check(replace(recorded(), sequences=(spoilt,)))

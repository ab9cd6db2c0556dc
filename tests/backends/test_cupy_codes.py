"""Error numbers in words: no CuPy is needed."""

from __future__ import annotations

import pytest

from quiesce.backends.cupy.ledger import NOT_READY, OUT_OF_MEMORY, STICKY, word_of, word_of_guard
from quiesce.model.backend import Flavour
from quiesce.model.outcomes import ERROR_CODES


@pytest.mark.parametrize("flavour", list(Flavour))
def test_every_shared_number_has_the_word_of_the_table(flavour: Flavour) -> None:
    for word, number in ERROR_CODES.items():
        if number is not None:
            assert word_of(number, flavour) == word


def test_a_destroyed_stream_is_an_invalid_handle_on_hip_alone() -> None:
    assert word_of(709, Flavour.HIP) == "invalid-handle"
    assert word_of(709, Flavour.CUDA) == "cuda-error-709"


def test_a_number_without_a_word_keeps_its_number() -> None:
    assert word_of(999, Flavour.CUDA) == "cuda-error-999"
    assert word_of(98, Flavour.HIP) == "hip-error-98"


def test_out_of_memory_and_sticky_errors_are_no_words_of_the_table() -> None:
    assert OUT_OF_MEMORY not in ERROR_CODES.values()
    assert not STICKY & set(ERROR_CODES.values())
    assert ERROR_CODES["not-ready"] == NOT_READY


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ("the stream was capturing, but an error has invalidated the capture sequence", "capture-invalidated"),
        ("the current stream is capturing, so H2D transfers are disallowed", "capture-unsupported"),
        ("cannot capture on the default (legacy) stream", "capture-unsupported"),
        ("HIP does not support memory_async", None),
    ],
)
def test_what_cupy_refuses_by_itself_is_known_by_its_text(message: str, word: str | None) -> None:
    assert word_of_guard(message) == word

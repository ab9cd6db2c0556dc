from __future__ import annotations

import pytest

from quiesce.allocators.cases.wording import did_you_mean, instead_of, instead_of_request, near_names, nearest
from quiesce.model.requests import RequestError, parse_request

KNOWN = ("pool", "pools", "tape")


@pytest.mark.parametrize(("word", "expected"), [("pol", "pool"), ("POOL", "pool"), ("pools", "pools"), ("xyz", None)])
def test_the_nearest_word_is_close_or_none(word: str, expected: str | None) -> None:
    assert nearest(word, KNOWN) == expected


def test_a_near_word_comes_first_and_the_list_is_always_given() -> None:
    assert instead_of("tpae", KNOWN) == "write 'tape', or another of pool, pools, tape"
    assert instead_of("xyz", KNOWN) == "write one of pool, pools, tape"
    assert instead_of("xyz", ()) == "leave it out: none is known here"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("pool/squeeze", ["pool/squeeze_before_oom"]),
        ("squeeze", ["pool/squeeze_before_oom", "reuse/squeeze_waits"]),
        ("pol", ["pool"]),
        ("pool/before", ["pool/squeeze_before_oom"]),
        ("xyz", []),
    ],
)
def test_near_names_are_alike_or_hold_the_text(text: str, names: list[str]) -> None:
    known = ["pool", "pool/squeeze_before_oom", "reuse/squeeze_waits", "tape/drops"]
    assert near_names(text, known) == names


def test_a_question_offers_names() -> None:
    assert did_you_mean(["a"]) == "did you mean 'a'?"
    assert did_you_mean(["a", "b", "c"]) == "did you mean 'a', 'b' or 'c'?"


@pytest.mark.parametrize(
    ("request_text", "start"),
    [
        ("fre a", "write 'free', or another of allocate, free"),
        ("destroy strem s", "write 'stream', or another of stream, event"),
        ("trim pined", "write 'pinned', or another of device, pinned"),
        ("free a b", "leave it out"),
    ],
)
def test_requests_lead_to_the_nearest_word_they_list(request_text: str, start: str) -> None:
    with pytest.raises(RequestError) as caught:
        parse_request(request_text)
    assert instead_of_request(caught.value).startswith(start)

"""Words in braces stand for places, and an unknown one is an error."""

from __future__ import annotations

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.subjects.commands import replace_in_values, replace_words


def test_words_are_replaced_wherever_they_stand() -> None:
    places = {"build": "/b", "version": "1.0"}
    assert replace_words(["{build}/x-{version}", "plain", "{}"], places) == ["/b/x-1.0", "plain", "{}"]
    assert replace_in_values({"A": "{build}"}, places) == {"A": "/b"}


def test_an_unknown_word_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"nothing stands for \{built\} here; write one of \{build\}"):
        replace_words(["{built}/x"], {"build": "/b"})

"""Small case texts, and the error that one of them gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pytest

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.parser import parse_text
from quiesce.model.errors import CaseError

CONTROL = "title:    Blocks come and go\nkind:     control\n"
"""A header of two lines: the body starts in line 4."""

ParseBody: TypeAlias = Callable[[str], Case]
ErrorOf: TypeAlias = Callable[[str], CaseError]


@pytest.fixture
def parse_body() -> ParseBody:
    """Parse a body below a control's header, so that its first line is line 4."""
    return lambda body: parse_text(f"{CONTROL}\n{body}", "topic/x.case", "topic/x")


@pytest.fixture
def body_error() -> ErrorOf:
    """Return the error of a body whose first line is line 4."""

    def error_of(body: str) -> CaseError:
        with pytest.raises(CaseError) as caught:
            parse_text(f"{CONTROL}\n{body}", "topic/x.case", "topic/x")
        return caught.value

    return error_of


@pytest.fixture
def header_error() -> ErrorOf:
    """Return the error of a header above one request."""

    def error_of(header: str) -> CaseError:
        with pytest.raises(CaseError) as caught:
            parse_text(f"{header}\n\na = allocate 1MiB\n", "topic/x.case", "topic/x")
        return caught.value

    return error_of

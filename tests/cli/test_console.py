from __future__ import annotations

import io

import pytest

from quiesce.cli.console import Console, choose_palette
from quiesce.reporting.text import COLOURED, PLAIN, Palette


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environment", "palette"),
    [
        (Terminal(), {}, COLOURED),
        (Terminal(), {"NO_COLOR": ""}, COLOURED),
        (Terminal(), {"NO_COLOR": "1"}, PLAIN),
        (Terminal(), {"TERM": "dumb"}, PLAIN),
        (io.StringIO(), {}, PLAIN),
    ],
)
def test_colour_is_for_terminals_that_want_it(
    stream: io.StringIO, environment: dict[str, str], palette: Palette
) -> None:
    assert choose_palette(stream, environment) == palette


def test_progress_rewrites_one_line_and_leaves_nothing() -> None:
    errors = Terminal()
    console = Console(io.StringIO(), errors, {})
    console.progress(1, 2, "host pool/\x1b[2Jtrim")
    console.end_progress()
    assert errors.getvalue() == "\r\x1b[K1/2 host pool/trim\r\x1b[K"


def test_what_is_made_ready_is_shown_until_the_next_line() -> None:
    output, errors = io.StringIO(), Terminal()
    console = Console(output, errors, {})
    console.preparing("subject:burn_tape/base@0.15.0")
    assert errors.getvalue() == "\r\x1b[Kpreparing subject:burn_tape/base@0.15.0"
    console.write("1 case\n")
    console.complain("it failed")
    assert errors.getvalue().endswith("@0.15.0\r\x1b[Kquiesce: it failed\n")
    unwatched = io.StringIO()
    Console(output, unwatched, {}).preparing("host")
    assert unwatched.getvalue() == ""


def test_progress_is_silent_where_nobody_watches() -> None:
    errors = io.StringIO()
    console = Console(Terminal(), errors, {})
    console.progress(1, 2, "host")
    console.end_progress()
    assert errors.getvalue() == ""


def test_a_complaint_is_one_clean_line() -> None:
    errors = io.StringIO()
    Console(io.StringIO(), errors, {}).complain("bad\nthing\x1b[0m")
    assert errors.getvalue() == "quiesce: bad thing\n"

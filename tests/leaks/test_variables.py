"""What variables hold: what grows in them without a block of Python's allocator."""

from __future__ import annotations

import array
import io
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from quiesce.leaks.meters.contents import held_by_stream
from quiesce.leaks.meters.variables import IN_VARIABLES, VariableMeter
from quiesce.leaks.owners import Owners

NUMBERS: set[int] = set()
TABLE: dict[int, None] = {}
BUFFER = bytearray()
SAMPLES = array.array("d")
DATA = io.BytesIO()
LINES = io.StringIO()


class Kept:
    text = ""
    data = b""
    pair: tuple[int, ...] = ()

    def __init__(self) -> None:
        self.numbers: set[int] = set()


KEPT = Kept()
STATE: dict[str, Any] = {"number": 1, "text": ""}


def longer(name: str) -> None:
    setattr(Kept, name, getattr(Kept, name) * 2 or {"text": "a", "data": b"a", "pair": (1,)}[name])


GROWING: dict[str, Any] = {
    "a set": lambda: NUMBERS.add(len(NUMBERS)),
    "a dictionary": lambda: TABLE.setdefault(len(TABLE)),
    "a buffer": lambda: BUFFER.extend(b"a"),
    "a stream of bytes": lambda: DATA.write(b"a"),
    "a stream of text": lambda: LINES.write("a"),
    "a text": lambda: longer("text"),
    "bytes": lambda: longer("data"),
    "a tuple": lambda: longer("pair"),
    "a number": lambda: STATE.update(number=STATE["number"] << 60),
    "a text in a dictionary": lambda: STATE.update(text=STATE["text"] + "a"),
    "an attribute": lambda: KEPT.numbers.add(len(KEPT.numbers)),
}


@pytest.mark.parametrize("grow", GROWING.values(), ids=GROWING)
def test_what_holds_more_counts(grow: Any) -> None:
    meter = VariableMeter(Owners([]))
    before = meter.read()[IN_VARIABLES]
    grow()
    assert meter.read()[IN_VARIABLES] > before


def test_an_array_counts_with_the_bytes_of_its_entries() -> None:
    meter = VariableMeter(Owners([]))
    before = meter.held_bytes()
    SAMPLES.append(0.5)
    assert meter.held_bytes() == before + SAMPLES.itemsize
    SAMPLES.pop()
    assert meter.held_bytes() == before


def test_a_stream_counts_with_all_it_holds_wherever_it_is_read() -> None:
    meter = VariableMeter(Owners([]))
    DATA.write(bytes(9))
    before = meter.held_bytes()
    DATA.seek(0)
    assert (meter.held_bytes(), DATA.tell()) == (before, 0)
    DATA.seek(0, io.SEEK_END)


def test_a_stream_that_is_closed_counts_nothing() -> None:
    stream = io.StringIO("text")
    assert held_by_stream(stream) == 4
    stream.close()
    assert held_by_stream(stream) == 0


def test_what_is_taken_out_again_does_not_count() -> None:
    meter = VariableMeter(Owners([]))
    before = meter.read()[IN_VARIABLES]
    NUMBERS.add(-1)
    NUMBERS.discard(-1)
    assert meter.read()[IN_VARIABLES] == before


def test_modules_of_what_runs_the_tests_do_not_count(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = types.ModuleType("runs_tests")
    module.__file__ = str(tmp_path / "runs_tests.py")
    vars(module)["kept"] = set()
    monkeypatch.setitem(sys.modules, "runs_tests", module)
    meter = VariableMeter(Owners([str(tmp_path)]))
    before = meter.held_bytes()
    vars(module)["kept"].add(1)
    assert meter.held_bytes() == before

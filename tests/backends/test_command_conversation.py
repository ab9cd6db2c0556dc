"""What the harness owes a driver: which lines it sends, in which order, and which it never does."""

from __future__ import annotations

import sys
from pathlib import Path

from quiesce.allocators.cases.expansion import PerformStep, expand
from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.backends.command import CommandBackend
from quiesce.model.backend import DeviceProfile, Flavour, Initialization
from quiesce.model.observations import BackingRefused
from quiesce.model.operations import Allocate, Free, Mark, MemoryKind, Trim
from quiesce.model.results import Verdict

DRIVERS = Path(__file__).parent / "drivers"
OPEN = (
    b"open capacity=1073741824 pinned-capacity=1073741824 alignment=256 granularity=512 devices=1 flavour=cuda "
    b"initialization=repeatable"
)
TOLD = (BackingRefused(1), BackingRefused(2))


def recording(path: Path, *arguments: str) -> CommandBackend:
    return CommandBackend([sys.executable, "-S", "-E", str(DRIVERS / "recording.py"), str(path), *arguments])


def lines(path: Path) -> list[bytes]:
    """Return what was sent; every line ends in a line feed and nothing else."""
    text = path.read_bytes()
    assert text.endswith(b"\n")
    assert b"\r" not in text
    return text.splitlines()


def test_a_driver_is_asked_once_what_it_is_and_may_go(tmp_path: Path) -> None:
    backend = recording(tmp_path / "record")
    backend.describe()
    backend.describe()
    assert lines(tmp_path / "record") == [b"hello 1", b"quit"]


def test_every_context_is_a_fresh_process_with_the_whole_conversation(tmp_path: Path) -> None:
    backend = recording(tmp_path / "record")
    backend.describe()
    for _ in range(2):
        context = backend.open(DeviceProfile())
        assert context.perform(Mark("m")).observations == TOLD, "what was told of the opening"
        assert context.perform(Allocate("a", 64)).observations == TOLD
        context.readings()
        assert context.perform(Free("a")).observations == TOLD
        assert context.close().observations == TOLD
    requests = [OPEN, b"more", b"a = allocate 64", b"more", b"gauges", b"free a", b"more", b"close", b"more", b"gauges"]
    conversation = [b"hello 1", *requests, b"quit"]
    assert lines(tmp_path / "record") == [b"hello 1", b"quit", *conversation, *conversation]


def test_where_there_are_no_gauges_none_are_asked_for(tmp_path: Path) -> None:
    context = recording(tmp_path / "record", "once", "{}").open(DeviceProfile())
    assert context.readings() == {}
    context.close()
    assert b"gauges" not in lines(tmp_path / "record")


def test_a_process_that_serves_again_is_told_so_in_place_of_quitting(tmp_path: Path) -> None:
    backend = recording(tmp_path / "record", "again", "{}")
    backend.open(DeviceProfile()).close()
    backend.open(DeviceProfile(devices=2)).close()
    backend._kept.pop().finish()
    other = OPEN.replace(b"devices=1", b"devices=2")
    context = [b"more", b"close", b"more", b"again"]
    assert lines(tmp_path / "record")[2:] == [b"hello 1", OPEN, *context, other, *context, b"quit"]


def test_an_open_line_has_every_field(tmp_path: Path) -> None:
    profile = DeviceProfile(1, 2, 4, 8, 3, Flavour.HIP, Initialization.ONCE)
    recording(tmp_path / "record").open(profile).close()
    opened = b"open capacity=1 pinned-capacity=2 alignment=4 granularity=8 devices=3 flavour=hip initialization=once"
    assert opened in lines(tmp_path / "record")


def test_requests_have_plain_bytes_no_loops_and_no_defaults(tmp_path: Path) -> None:
    case = """\
title: Requests are expanded
kind:  found
finds: x

repeat 2:
    a[i] = allocate 64KiB+1KiB*i device
    free a[i]
mark here
trim
"""
    context = recording(tmp_path / "record").open(DeviceProfile())
    for step in expand(parse_text(case, "x.case", "topic/x")):
        if isinstance(step, PerformStep):
            context.perform(step.operation)
    context.close()
    sent = [line for line in lines(tmp_path / "record")[4:] if line != b"more"]
    assert sent[:5] == [b"a[0] = allocate 65536", b"free a[0]", b"a[1] = allocate 66560", b"free a[1]", b"trim"]


def test_a_kind_other_than_the_default_is_said(tmp_path: Path) -> None:
    context = recording(tmp_path / "record").open(DeviceProfile())
    context.perform(Allocate("a", 64, MemoryKind.PINNED, 512, "s", "p"))
    context.perform(Trim(MemoryKind.PINNED))
    context.close()
    sent = lines(tmp_path / "record")
    assert b"a = allocate 64 pinned on s align=512 pool=p" in sent
    assert b"trim pinned" in sent


def test_a_case_that_needs_more_is_never_sent(tmp_path: Path) -> None:
    case = "title: Streams\nkind: found\nfinds: x\nneeds: streams\n\ns = create stream\n"
    result = run_case(parse_text(case, "x.case", "topic/x"), recording(tmp_path / "record"))
    assert result.verdict is Verdict.UNSUPPORTED
    assert lines(tmp_path / "record") == [b"hello 1", b"quit"]

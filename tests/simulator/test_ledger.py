"""The ledger's reader and ``native/ledger/ledger.h`` describe one layout; what is no ledger is said to be none."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.simulator.programs import compile_client

from quiesce.model.errors import QuiesceError
from quiesce.simulator.judge.conditions import AtExit
from quiesce.simulator.judge.judgement import judge
from quiesce.simulator.runtime.build import SOURCES, find_compiler
from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import MachineSettings, run_program
from quiesce.simulator.runtime.ledger import (
    CALL_KINDS,
    COUNTED,
    HEADER,
    KEPT_NUMBER,
    LAYOUT,
    LIVE,
    NAME_BYTES,
    OBSERVATION,
    Flag,
    Header,
    Record,
    Seen,
    Thing,
    open_ledger,
)

SIZES = """
#include <stdio.h>
#include "ledger/ledger.h"
int main(void) {
    printf("%zu %zu %zu %zu %d %d %d\\n", sizeof(struct ledger_header), sizeof(struct live), sizeof(struct observation),
           sizeof(struct kept), LEDGER_LAYOUT, LEDGER_NAME_BYTES, THINGS);
}
"""


def enumerators(prefix: str) -> list[str]:
    text = (SOURCES / "ledger/ledger.h").read_text(encoding="utf-8")
    found = re.findall(rf"^ +{prefix}_(\w+)(?: = \d+)?,", text, re.MULTILINE)
    return [name for name in found if name != "S"]


def test_enumerations_are_the_same() -> None:
    assert enumerators("THING") == [thing.name for thing in Thing]
    assert enumerators("SEEN") == [seen.name for seen in Seen]
    assert [flag.name for flag in Flag] == enumerators("FLAG")


def test_headers_have_the_same_fields() -> None:
    text = (SOURCES / "ledger/ledger.h").read_text(encoding="utf-8")
    header = text.partition("struct ledger_header {")[2].partition("struct {")[0]
    declared = re.findall(r"^ +uint(?:32|64)_t ([^;]+);", header, re.MULTILINE)
    assert tuple(", ".join(declared).split(", ")) == Header._fields


def test_kinds_of_calls_are_the_same() -> None:
    text = (SOURCES / "ledger/call_kinds.h").read_text(encoding="utf-8")
    found = re.findall(r"^ +CALL_(\w+),", text, re.MULTILINE)
    assert [name.lower() for name in found] == [*CALL_KINDS, "kinds"]


@pytest.mark.usefixtures("library")
def test_sizes_are_the_same(tmp_path: Path) -> None:
    source, program = tmp_path / "sizes.c", tmp_path / "sizes"
    source.write_text(SIZES, encoding="utf-8")
    subprocess.run([*find_compiler(), f"-I{SOURCES}", str(source), "-o", str(program)], check=True)
    shown = subprocess.run([str(program)], capture_output=True, text=True, check=True).stdout.split()
    header = HEADER.size + COUNTED.size * (len(Thing) + len(CALL_KINDS))
    assert list(map(int, shown)) == [
        header,
        LIVE.size,
        OBSERVATION.size,
        KEPT_NUMBER.size + OBSERVATION.size,
        LAYOUT,
        NAME_BYTES,
        len(Thing),
    ]


def test_a_ring_keeps_the_last_observations_and_counts_all(start: Any) -> None:
    client = start(ring=16)
    for size in range(1, 41):
        client.make("Malloc", size)
    ledger = client.machine.ledger
    assert (ledger.observations, ledger.lost) == (40, 24)
    assert [record.size_bytes for record in ledger.records()] == list(range(25, 41))
    assert [record.number for record in ledger.records()] == list(range(24, 40))
    assert len(list(ledger.live())) == 40, "the live table forgets nothing"


def test_what_was_done_wrong_stays_when_the_ring_has_overwritten_it(start: Any) -> None:
    client = start(ring=16)
    block = client.make("Malloc", 100)
    client.ok("Free", block)
    client.call("Free", block)
    for size in range(1, 41):
        client.make("Malloc", size)
    ledger = client.machine.ledger
    first, *rest = ledger.records()
    assert (first.number, first.seen, first.address) == (2, Seen.FREED_TWICE, block)
    assert [record.number for record in rest] == list(range(ledger.lost, ledger.observations))
    assert [record.seen for record in ledger.records(3)] == [Seen.ALLOCATED] * 16
    (finding,) = judge(ledger, AtExit.NONE).findings
    assert finding.rule == "memory_is_freed_once"


def test_no_more_is_kept_than_there_is_room_for(start: Any) -> None:
    client = start(ring=16)
    for _ in range(5000):
        client.call("Free", 12345)
    assert len(list(client.machine.ledger.records())) == 4096 + 16


SAVED = """
    void *p, *q; cudaMalloc(&q, 1000);
    for (int i = 1; i <= 200; i++) cudaMalloc(&p, i == 50 ? 4096 : 8), i % 10 ? 0 : cudaMemset(p, 0, 1), cudaFree(p);
    cudaFree(q); return 0;
"""


def _kept(tmp_path: Path, saved_bytes: int, body: str = SAVED) -> tuple[int, int, list[Record]]:
    """Return how many observations of a program were lost, how many there were, and those that were kept."""
    settings = MachineSettings(parse_flavour("cuda:12"), options={"ring": 128, "saved": saved_bytes})
    program = compile_client(tmp_path, body)
    with run_program([str(program)], settings, os.environ) as ended, open_ledger(ended.ledgers[0]) as ledger:
        return ledger.lost, ledger.observations, list(ledger.records())


@pytest.mark.usefixtures("library")
def test_what_the_ring_has_no_room_for_is_saved_but_blocks_that_nobody_used(tmp_path: Path) -> None:
    lost, made, records = _kept(tmp_path, 1 << 20)
    assert (lost, made) == (0, 442)
    numbers = [record.number for record in records]
    assert numbers == sorted(set(numbers))
    assert numbers[:1] == [0]
    assert numbers[-120:] == list(range(442 - 120, 442))
    used = [record for record in records if record.seen is Seen.WRITTEN]
    assert len(used) == 20, "no use is left out"
    live: dict[int, int] = {}
    for record in records:
        if record.seen is Seen.ALLOCATED:
            assert live.setdefault(record.address, record.number) == record.number
        elif record.seen is Seen.FREED:
            assert live.pop(record.address) < record.number
    assert not live, "a block and its free are both kept or both left out"
    assert max(record.size_bytes for record in records) == 4096, "no peak is left out"
    assert len(records) < 350


@pytest.mark.usefixtures("library")
def test_what_the_disk_has_no_room_for_is_lost(tmp_path: Path) -> None:
    lost, made, records = _kept(tmp_path, 2000)
    assert 250 < lost < made == 442
    assert [record.number for record in records] == list(range(lost, made))


@pytest.mark.usefixtures("library")
def test_pairs_that_begin_in_one_part_of_the_ring_and_end_in_the_next_are_whole(tmp_path: Path) -> None:
    """Each part ends between the two."""
    body = "void *p, *q; cudaMalloc(&q, 8); for (int i = 0; i < 500; i++) cudaMalloc(&p, 8), cudaFree(p); return 0;"
    lost, made, records = _kept(tmp_path, 1 << 20, body)
    live: set[int] = set()
    for record in records:
        assert (record.address in live) == (record.seen is Seen.FREED)
        live ^= {record.address}
    assert (len(live), lost, made) == (1, 0, 1001)
    assert len(records) < 600


def test_live_things_say_what_made_them(start: Any) -> None:
    client = start("hip:7")
    client.make("StreamCreateWithFlags", 1)
    address = client.make("HostMalloc", 10, 0)
    stream, block = client.machine.ledger.live()
    assert (stream.thing, stream.function, stream.number) == (Thing.STREAM, "hipStreamCreateWithFlags", 0)
    assert (block.thing, block.function, block.address, block.size_bytes) == (
        Thing.PINNED,
        "hipHostMalloc",
        address,
        10,
    )


def test_calls_of_each_kind_are_counted_with_those_that_were_made_to_fail(start: Any) -> None:
    client = start(fail="device:2")
    statuses = [client.call("Malloc", ctypes.byref(ctypes.c_void_p()), 8) for _ in range(3)]
    client.make("StreamCreate")
    assert statuses == [0, 2, 0]
    met = {kind: client.machine.ledger.met(kind) for kind in CALL_KINDS}
    used = {kind: counts for kind, counts in met.items() if any(counts)}
    assert used == {"device": (3, 1), "memory": (3, 0), "stream": (1, 0)}


@pytest.mark.parametrize("content", [b"", b"short", b"\0" * 4096, b"QUIESCE" * 1000])
def test_what_is_no_ledger_is_said_to_be_none(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "1.ledger"
    path.write_bytes(content)
    with pytest.raises(QuiesceError, match="no ledger"), open_ledger(path):
        pass

"""When addresses and handles are used again that were given back."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final

import pytest
from tests.simulator.programs import compile_client

from quiesce.simulator.runtime.flavours import parse_flavour
from quiesce.simulator.runtime.launch import RECYCLING, MachineSettings, run_program
from quiesce.simulator.runtime.ledger import Seen, open_ledger

KEPT: Final = 1024
GIB: Final = 1 << 30


def pairs(client: Any, size_bytes: int, count: int) -> list[int]:
    """Allocate and free one block again and again, and return where it lay."""
    seen = []
    for _ in range(count):
        seen.append(client.make("Malloc", size_bytes))
        client.ok("Free", seen[-1])
    return seen


def test_programs_get_addresses_late_unless_they_ask() -> None:
    assert RECYCLING == ("late", "eager", "never")


@pytest.mark.parametrize(
    ("size_bytes", "apart"), [(1, KEPT + 1), (256, KEPT + 1), (1 << 20, 513), (100_000, 37), (GIB, 4)]
)
def test_an_address_comes_again_after_others_were_freed(start: Any, size_bytes: int, apart: int) -> None:
    seen = pairs(start(recycle="late"), size_bytes, apart + 3)
    again = [seen.index(address, i + 1) - i for i, address in enumerate(seen) if address in seen[i + 1 :]]
    assert again
    assert set(again) == {apart}


def test_an_address_comes_again_at_once_or_never(start: Any) -> None:
    assert len(set(pairs(start(recycle="eager"), 256, 10))) == 1
    assert len(set(pairs(start(recycle="never"), 256, 3 * KEPT))) == 3 * KEPT


def test_freed_slots_are_used_before_a_request_is_refused(start: Any) -> None:
    client = start(recycle="late", capacity=900 * GIB)
    assert set(pairs(client, 800 * GIB, 3)) == set(pairs(client, 800 * GIB, 1)), "there is room for one such slot"


@pytest.mark.parametrize(("recycle", "different"), [("late", 1), ("eager", 1), ("never", 100)])
def test_a_handle_comes_again_at_once_or_never(start: Any, recycle: str, different: int) -> None:
    client = start(recycle=recycle)
    seen = []
    for _ in range(100):
        seen.append(client.make("StreamCreate"))
        client.ok("StreamDestroy", seen[-1])
    assert len(set(seen)) == different


@pytest.mark.parametrize("recycle", RECYCLING)
def test_a_handle_of_a_stream_never_becomes_one_of_an_event(start: Any, recycle: str) -> None:
    client = start(recycle=recycle)
    stream = client.make("StreamCreate")
    client.ok("StreamDestroy", stream)
    assert client.make("EventCreate") != stream


USES: Final = """
    void *old, *next;
    cudaMalloc(&old, 4096), cudaFree(old), cudaMalloc(&next, 4096);
    cudaMemset(old, 1, 16), cudaFree(next);
    return 0;"""


@pytest.mark.skipif(sys.platform != "linux", reason="programs are ELF files on Linux")
@pytest.mark.usefixtures("library")
@pytest.mark.parametrize(("recycle", "told"), [("late", [Seen.USED_AFTER_FREE]), ("eager", [])], ids=["late", "eager"])
def test_a_use_after_free_is_not_taken_for_one_of_the_next_block(
    recycle: str, told: list[Seen], tmp_path: Path
) -> None:
    program = compile_client(tmp_path, USES)
    settings = MachineSettings(parse_flavour("cuda:12"), options={"recycle": recycle})
    with run_program([str(program)], settings, os.environ) as ended, open_ledger(ended.ledgers[0]) as ledger:
        seen = [record.seen for record in ledger.records()]
    assert [each for each in seen if each is Seen.USED_AFTER_FREE] == told

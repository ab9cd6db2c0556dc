"""What a program can do to the files of its run: the judge answers, or says in one sentence that they are damaged."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

import pytest
from tests.fuzzing.limits import fuzz

from quiesce.model.errors import QuiesceError
from quiesce.simulator.runtime import ledger, record_log, stacks
from quiesce.simulator.runtime.failed_calls import read_refusals
from quiesce.simulator.runtime.kernel_logs import FIELDS, read_accesses, touched_beside
from quiesce.simulator.runtime.loads import read_loads

pytest.importorskip("llvmlite", reason="kernels are compiled by llvmlite: pip install 'quiesce[kernels]'")


def test_damaged_folders_are_judged_or_refused_in_a_sentence() -> None:
    fuzz("run_folders", 30)


def test_a_log_of_lines_that_make_no_sense_is_refused_by_name(tmp_path: Path) -> None:
    for name, content in {
        "1.accesses": "\t".join("x" * FIELDS),
        "1.refusals": "missing\tcuFree\tmany\t",
    }.items():
        (tmp_path / name).write_text(content)
    for read in (read_accesses, read_refusals):
        with pytest.raises(QuiesceError, match=r"1\.\w+: this file of the run is damaged"):
            read(tmp_path / "1.ledger")


def test_loads_that_make_no_sense_are_left_out(tmp_path: Path) -> None:
    """A disk that was full has cut one, and others follow it."""
    whole = "own\x007\0/a.so\0/b\0"
    (tmp_path / "loads").write_text(f"nothing\x001\0a\0b\0{whole}own\x00many\0{whole}")
    assert [(each.process, str(each.path)) for each in read_loads(tmp_path)] == [(7, "/a.so")] * 2


@pytest.mark.parametrize("record", [(0, 0), (1, 1 << 31), (1, 4000)], ids=["nothing", "huge", "longer"])
def test_logs_of_records_are_read_within_their_bounds(record: tuple[int, int], tmp_path: Path) -> None:
    header = (stacks.MAGIC, stacks.LAYOUT, 0, 1 << 62, 0)
    content = record_log.HEADER.pack(*header) + record_log.RECORD.pack(*record) + bytes(3000)
    with pytest.raises(QuiesceError, match="damaged"):
        stacks.CallStacks(memoryview(content), "log").stack(4)


@pytest.mark.parametrize("content", [b"x", b"x" * 4000])
def test_a_touched_log_that_is_none_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "1.touched").write_bytes(content)
    with pytest.raises(QuiesceError):
        _ = touched_beside(tmp_path / "1.ledger").lost


@pytest.mark.parametrize("field", [8, 9, 10, 11, 12, 14, 19, 20])
def test_a_ledger_whose_parts_lie_outside_of_it_is_refused(field: int, tmp_path: Path) -> None:
    fields = [ledger.MAGIC, ledger.LAYOUT, *[0] * 25]
    fields[5:7], fields[8:13], fields[14], fields[19:21] = [12, 1], [4096, 10, 0, 8192, 4], 4096, [4096, 4]
    data = mmap.mmap(-1, 1 << 18)
    ledger.HEADER.pack_into(data, 0, *fields)
    assert list(ledger.Ledger(data).records()) == []
    fields[field] = 0 if field == 12 else 1 << 60
    ledger.HEADER.pack_into(data, 0, *fields)
    with pytest.raises(QuiesceError, match="damaged"):
        ledger.Ledger(data)


def test_a_ledger_with_more_records_than_its_ring_has_is_refused() -> None:
    data = mmap.mmap(-1, 1 << 18)
    fields = [ledger.MAGIC, ledger.LAYOUT, *[0] * 25]
    fields[5:7], fields[8:14], fields[14] = [12, 1], [4096, 10, 0, 8192, 4, 1 << 62], 4096
    ledger.HEADER.pack_into(data, 0, *fields)
    with pytest.raises(QuiesceError, match="damaged"):
        list(ledger.Ledger(data).records())
    struct.pack_into("<B", data, 8192, 255)
    fields[13] = 1
    ledger.HEADER.pack_into(data, 0, *fields)
    with pytest.raises(QuiesceError, match="damaged"):
        list(ledger.Ledger(data).records())

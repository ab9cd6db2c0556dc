"""What loaders wrote is read as far as it is whole."""

from __future__ import annotations

from pathlib import Path

from quiesce.simulator.runtime.loads import FILE_NAME, Load, Loaded, read_loads


def test_a_run_without_a_loader_that_listens_has_none(tmp_path: Path) -> None:
    assert read_loads(tmp_path) == ()


def test_records_are_read_in_their_order(tmp_path: Path) -> None:
    """A name may hold any character but NUL; a disk that is full cuts the last record short."""
    (tmp_path / FILE_NAME).write_bytes(b"started\x007\0/bin/a b\n\xff\0\0real\x008\0/x/libcudart.so.13\0/m.so\0answ")
    assert read_loads(tmp_path) == (
        Load(Loaded.STARTED, 7, Path("/bin/a b\n\udcff"), Path()),
        Load(Loaded.REAL, 8, Path("/x/libcudart.so.13"), Path("/m.so")),
    )

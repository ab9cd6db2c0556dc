"""Files that others may have put there: replaced whole, no link followed, nothing waited for; and locks of folders."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quiesce.files import locked_folder, open_regular, part_of, write_atomically

HOLDER = """
import sys
from pathlib import Path
from quiesce.files import locked_folder
with locked_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.readline()
"""


def test_a_link_is_replaced_and_its_target_stays(tmp_path: Path) -> None:
    target, path = tmp_path / "target", tmp_path / "report.json"
    target.write_text("precious", encoding="utf-8")
    path.symlink_to(target)
    part_of(path).symlink_to(target)
    write_atomically(path, "größe\n")
    assert target.read_text(encoding="utf-8") == "precious"
    assert (path.read_bytes(), path.is_symlink()) == ("größe\n".encode(), False)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["report.json", "target"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_file_is_as_readable_as_its_user_wants(tmp_path: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "a", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o666 & ~mask


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text", encoding="utf-8")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    for follows in (False, True):
        os.close(open_regular(tmp_path / "file", follows=follows))
    os.close(open_regular(tmp_path / "link", follows=True))
    for path, why in (
        (tmp_path / "link", "it is a symbolic link, and none is followed"),
        (tmp_path / "pipe", r"it is a pipe \(FIFO\), and no regular file"),
        (tmp_path, "it is a folder, and no regular file"),
        (Path("/dev/zero"), "it is a device, and no regular file"),
        (tmp_path / "none", "No such file"),
    ):
        with pytest.raises(OSError, match=rf"{why}.*: '.*{path.name}'"):
            open_regular(path)


def test_a_folder_is_one_process_at_a_time(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "locked\n"
        with pytest.raises(OSError, match="another run of quiesce writes its reports here") as refused:
            locked_folder(tmp_path).__enter__()
        assert refused.value.errno == errno.EBUSY
        holder.communicate("\n")
    with locked_folder(tmp_path):
        pass
    with locked_folder(tmp_path):
        pass


def test_a_lock_ends_with_its_block_although_a_child_has_it_open(tmp_path: Path) -> None:
    ready, told = os.pipe()
    with locked_folder(tmp_path):
        child = os.fork()
        if not child:
            os.close(told)
            os.read(ready, 1)
            os._exit(0)
    with locked_folder(tmp_path):
        os.close(told)
    os.close(ready)
    os.waitpid(child, 0)


def test_a_folder_that_is_not_there_is_not_locked(tmp_path: Path) -> None:
    with locked_folder(tmp_path / "none"):
        assert not (tmp_path / "none").exists()

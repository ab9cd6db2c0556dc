"""Files of the cache: whatever is not as it was kept counts as not there, and one line says so."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.simulator.runtime.cache import find, is_folder_whole, is_whole, keep, seal_folder

CONTENT = bytes(range(256)) * 3
Damage = Callable[[Path], object]


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100] ^= 4
    path.write_bytes(content)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    path = tmp_path / "kept"
    keep(path, CONTENT)
    return path


def test_what_is_kept_is_found(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert find(kept) == CONTENT
    assert is_whole(kept)
    assert is_whole(kept)
    assert kept.stat().st_mode & 0o777 == 0o600
    assert not is_whole(kept.with_name("other"))
    assert find(kept.with_name("other")) is None
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "damage", [cut, flip, lambda path: os.truncate(path, 0), lambda path: os.truncate(path, path.stat().st_size - 1)]
)
@pytest.mark.parametrize("read", [find, is_whole])
def test_what_is_damaged_is_not_found(
    damage: Damage, read: Callable[[Path], object], kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert read(kept)
    damage(kept)
    assert not read(kept)
    assert not read(kept)
    assert capsys.readouterr().err == f"quiesce: '{kept}' in the cache is damaged; it is made again\n"
    keep(kept, CONTENT)
    assert read(kept)


def test_one_under_another_name_is_not_the_same(kept: Path) -> None:
    other = kept.rename(kept.with_name("other"))
    assert find(other) is None
    assert not is_whole(other)


@pytest.mark.parametrize("read", [find, is_whole])
def test_what_others_could_write_is_not_read(
    read: Callable[[Path], object], kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.chmod(0o666)
    assert not read(kept)
    said = f"quiesce: '{kept}' in the cache is not used, because others may write to it, for its mode is 0666; "
    assert capsys.readouterr().err == f"{said}it is made again\n"


def test_a_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def noted(name: str) -> None:
        usual = getattr(os, name)

        def call(*given: object) -> None:
            done.append(name)
            usual(*given)

        monkeypatch.setattr(os, name, call)

    noted("fsync")
    noted("replace")
    keep(tmp_path / "it", CONTENT)
    assert done == ["fsync", "replace", "fsync"]


def test_a_file_that_can_not_be_kept_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        keep(tmp_path / "it", CONTENT)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: cut(folder / "inner" / "a"),
        lambda folder: flip(folder / "inner" / "a"),
        lambda folder: (folder / "inner" / "a").unlink(),
        lambda folder: (folder / "inner" / "b").touch(),
        lambda folder: (folder / "link").unlink(),
        lambda folder: cut(folder / "files"),
        lambda folder: (folder / "files").unlink(),
        lambda folder: folder.chmod(0o777),
    ],
)
def test_a_folder_is_whole_or_made_again(damage: Damage, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "folder"
    assert not is_folder_whole(folder)
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "a").write_bytes(CONTENT)
    (folder / "link").symlink_to("inner")
    (folder / "inner").chmod(0o777)
    seal_folder(folder)
    assert is_folder_whole(folder)
    assert (folder / "inner").stat().st_mode & 0o777 == 0o700
    assert (folder / "inner" / "a").stat().st_mode & 0o777 == 0o600
    assert capsys.readouterr().err == ""
    damage(folder)
    assert not is_folder_whole(folder)
    assert capsys.readouterr().err.endswith("; it is made again\n")

"""The cache: the user's own, else a private folder; a chosen one that can't be used is named."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from quiesce.model.errors import ConfigurationError
from quiesce.simulator.runtime.cache import cache_folder, cache_folders, describe_replacement


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary directory of the test's own, and a home that can't be made: a file is in its way."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    (tmp_path / "file").touch()
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    for name in ("QUIESCE_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_the_users_cache_is_taken_where_it_can_be(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = temporary.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    assert cache_folder() == home / ".cache" / "quiesce" / "simulator"
    assert describe_replacement() == ""
    assert not list(temporary.iterdir())


def test_without_a_home_a_private_folder_is_taken_and_told(temporary: Path) -> None:
    private = temporary / f"quiesce-cache-{os.getuid()}"
    assert cache_folder() == private / "quiesce" / "simulator"
    assert cache_folder().is_dir()
    assert private.stat().st_mode & 0o777 == 0o700
    said = describe_replacement()
    assert "(Not a directory)" in said
    assert f"so '{cache_folder()}' is used; set QUIESCE_CACHE" in said


def test_a_user_without_a_home_has_a_private_folder(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", unknown)
    assert cache_folder().is_relative_to(temporary)
    assert describe_replacement().startswith("there is no home folder for a cache, so")


@pytest.mark.parametrize("kind", ["open", "link", "file"])
def test_a_private_folder_that_others_may_have_made_is_refused(kind: str, temporary: Path, tmp_path: Path) -> None:
    private = temporary / f"quiesce-cache-{os.getuid()}"
    if kind == "open":
        private.mkdir()
        private.chmod(0o770)
    elif kind == "link":
        (tmp_path / "theirs").mkdir(mode=0o700)
        private.symlink_to(tmp_path / "theirs")
    else:
        private.touch()
    with pytest.raises(ConfigurationError, match="set QUIESCE_CACHE"):
        cache_folder()


def test_a_chosen_cache_that_can_not_be_used_is_named(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = temporary.parent / "file"
    monkeypatch.setenv("QUIESCE_CACHE", str(chosen))
    with pytest.raises(ConfigurationError, match=rf"^QUIESCE_CACHE names a folder that can't be used: '{chosen}"):
        cache_folder()
    assert describe_replacement() == ""
    assert not list(temporary.iterdir())


def test_a_chosen_cache_that_can_only_be_read_is_read(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIESCE_CACHE", str(temporary))
    folder = cache_folder()
    monkeypatch.setattr(os, "access", lambda *_: False)  # root may write anywhere
    assert cache_folders() == (folder,)
    with pytest.raises(ConfigurationError, match="it can't be written to"):
        cache_folder()


def test_a_cache_that_others_could_have_filled_is_replaced_and_told(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = temporary.parent / "home"
    monkeypatch.setenv("HOME", str(home))
    usual = cache_folder()
    usual.parent.chmod(0o777)
    assert cache_folder().is_relative_to(temporary)
    assert cache_folders() == (cache_folder(),), "nothing is read from it either"
    said = describe_replacement()
    assert f"('{usual.parent}': others may write to it, for its mode is 0777; remove it)" in said
    assert f"so '{cache_folder()}' is used" in said
    usual.parent.chmod(0o755)
    assert cache_folder() == usual, "as earlier releases made it"
    usual.rename(temporary / "theirs")
    usual.symlink_to(temporary / "theirs")
    assert "it is a symbolic link" in describe_replacement()


def test_a_chosen_cache_that_others_could_have_filled_is_an_error(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUIESCE_CACHE", str(temporary))
    cache_folder().chmod(0o775)
    for ask in (cache_folder, cache_folders):
        with pytest.raises(ConfigurationError, match="others may write to it, for its mode is 0775; remove it"):
            ask()


def test_all_folders_of_the_cache_are_closed_to_others(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUIESCE_CACHE", str(temporary / "chosen"))
    before = os.umask(0)
    try:
        folder = cache_folder()
    finally:
        os.umask(before)
    assert folder.parents[1] == temporary / "chosen"
    assert {each.stat().st_mode & 0o777 for each in (folder, *folder.parents[:2])} == {0o700}

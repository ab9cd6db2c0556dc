"""What others could have made or changed is not taken, and what is made is closed to them, whatever the umask is."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest

from quiesce.files import open_private_file, private_folder, why_open_to_others
from quiesce.model.errors import ConfigurationError

if sys.platform == "win32":
    pytest.skip("there are no such modes", allow_module_level=True)

OTHER: Final = 54_321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user, or become one")


@pytest.fixture(params=[0o000, 0o022, 0o777])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("umask")
def test_folders_and_files_are_the_users_alone(tmp_path: Path) -> None:
    folder = private_folder(tmp_path / "outer" / "inner")
    for _ in range(2):
        os.close(open_private_file(folder / "file"))
    assert mode_of(folder) == mode_of(folder.parent) == 0o700
    assert mode_of(folder / "file") & 0o077 == 0


def make_link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def open_parent(path: Path) -> None:
    path.parent.chmod(0o777)


def open_parent_to_a_group(path: Path) -> None:
    path.parent.chmod(0o770)
    os.chown(path.parent, -1, OTHER)


def give_away(path: Path) -> None:
    os.chown(path, OTHER, OTHER)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (make_link, "it is a symbolic link; remove it"),
        (lambda path: path.chmod(0o770), "others may write to it, for its mode is 0770; remove it"),
        (lambda path: path.chmod(0o702), "others may write to it, for its mode is 0702; remove it"),
        (open_parent, "others may replace it: run chmod go-w '"),
        pytest.param(open_parent_to_a_group, "others may replace it: run chmod go-w '", marks=needs_root),
        pytest.param(give_away, f"it belongs to user {OTHER}; remove it", marks=needs_root),
    ],
)
@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_others_can_change_is_refused(
    kind: str, change: Callable[[Path], object], why: str, tmp_path: Path
) -> None:
    path = private_folder(tmp_path / "parent") / "it"
    path.mkdir(0o755) if kind == "folder" else path.touch(0o644)
    assert why_open_to_others(path) == ""
    change(path)
    assert why_open_to_others(path).startswith(why)
    take = private_folder if kind == "folder" else open_private_file
    with pytest.raises(ConfigurationError) as caught:
        take(path)
    assert str(caught.value).startswith(f"'{path}' is not used, because {why}")
    assert "\n" not in str(caught.value)


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch(0o600)
    with pytest.raises(ConfigurationError, match="it is no folder"):
        private_folder(tmp_path / "file")
    with pytest.raises(NotADirectoryError):
        private_folder(tmp_path / "file" / "below")


def test_a_pipe_in_place_of_a_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigurationError, match="neither a folder nor a file"):
        open_private_file(tmp_path / "pipe")


@pytest.mark.parametrize("mode", [0o755, 0o1777])
def test_what_others_can_only_read_or_add_to_is_taken(mode: int, tmp_path: Path) -> None:
    tmp_path.chmod(mode)
    (tmp_path / "ours").mkdir(0o755)
    assert private_folder(tmp_path / "ours") == tmp_path / "ours"


@needs_root
@pytest.mark.parametrize(("owner", "is_taken"), [(0, True), (OTHER, True), (OTHER + 1, False)])
def test_another_user_takes_its_own_and_those_of_root(owner: int, is_taken: bool, tmp_path: Path) -> None:
    """A cache in an image belongs to root, and is read by the user of the container."""
    private_folder(tmp_path / "cache").chmod(0o755)
    os.chown(tmp_path / "cache", owner, owner)
    folder = os.open(tmp_path, os.O_PATH | os.O_DIRECTORY)  # folders of pytest are root's alone
    tmp_path.chmod(0o755)
    child = os.fork()
    if not child:
        os.fchdir(folder)
        os.setuid(OTHER)
        os._exit(0 if bool(why_open_to_others(Path("cache"))) is not is_taken else 1)
    os.close(folder)
    assert os.waitpid(child, 0)[1] == 0

"""Files in texts: relative to the working directory where they lie below it."""

from __future__ import annotations

from pathlib import Path

import pytest

from quiesce.model.findings import Frame
from quiesce.model.wording import shown_path


@pytest.mark.parametrize(
    ("file", "folder", "shown"),
    [
        ("/srv/app/pkg/sub/mod.py", "/srv/app", "pkg/sub/mod.py"),
        ("/srv/application/a.py", "/srv/app", "/srv/application/a.py"),
        ("/srv/other/a.py", "/srv/app", "/srv/other/a.py"),
        ("/srv/app/a.py", "/", "/srv/app/a.py"),
        ("//srv/app/a.py", "/", "/srv/app/a.py"),
        ("//srv/app/a.py", "/srv", "app/a.py"),
        ("a.py", "/srv/app", "a.py"),
        ("<string>", "/srv/app", "<string>"),
        ("", "/srv/app", ""),
    ],
)
def test_a_file_below_the_folder_is_relative_to_it(file: str, folder: str, shown: str) -> None:
    assert shown_path(file, folder) == shown


def test_the_working_directory_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = Frame("f", f"{tmp_path}/pkg/a.py", 3)
    monkeypatch.chdir(tmp_path)
    assert (frame.shown_place, str(frame)) == ("pkg/a.py:3", "f (pkg/a.py:3)")
    assert frame.place == f"{tmp_path}/pkg/a.py:3", "the JSON report has the whole path"


def test_a_working_directory_that_was_removed_leaves_files_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(OSError, match="directory"):
        Path.cwd()
    assert shown_path("/srv/a.py") == "/srv/a.py"

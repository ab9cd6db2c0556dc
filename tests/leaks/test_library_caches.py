"""What the standard library keeps to save time."""

from __future__ import annotations

import gc
import linecache
import os
import pkgutil
import sqlite3
import sys
import weakref
import zipfile
import zipimport
from pathlib import Path

from quiesce.leaks.stages.settling import LibraryCaches


def references_of(connection: sqlite3.Connection) -> list[weakref.ref[object]]:
    """The weak references that a connection keeps, to cursors and to open blobs."""
    lists = [each for each in gc.get_referents(connection) if type(each) is list]
    return [item for each in lists for item in each if type(item) is weakref.ref]


def test_a_connection_forgets_cursors_that_are_gone_and_no_other() -> None:
    connection = sqlite3.connect(":memory:")
    try:
        caches = LibraryCaches([connection])
        kept = connection.execute("select 1")
        for _ in range(3):
            connection.execute("select 1").close()
        assert len(references_of(connection)) == 4
        caches.empty()
        assert [each() for each in references_of(connection)] == [kept]
        assert kept.fetchone() == (1,)
    finally:
        connection.close()


def test_folders_that_were_searched_since_are_forgotten(tmp_path: Path) -> None:
    (tmp_path / "before").mkdir()
    (tmp_path / "since").mkdir()
    pkgutil.get_importer(os.fspath(tmp_path / "before"))
    caches = LibraryCaches([])
    pkgutil.get_importer(os.fspath(tmp_path / "since"))
    caches.empty()
    searched = [Path(path).name for path in sys.path_importer_cache if path.startswith(os.fspath(tmp_path))]
    assert searched == ["before"]


def test_archives_that_were_read_since_are_forgotten_and_still_serve(tmp_path: Path) -> None:
    def archive(name: str) -> zipimport.zipimporter:
        with zipfile.ZipFile(tmp_path / name, "w") as file:
            file.writestr(f"{name[:-4]}_inside.py", "VALUE = 1\n")
        return zipimport.zipimporter(os.fspath(tmp_path / name))

    archive("before.zip")
    caches = LibraryCaches([])
    importer = archive("since.zip")
    caches.empty()
    kept: dict[str, object] = vars(zipimport)["_zip_directory_cache"]
    assert [Path(path).name for path in kept if path.startswith(os.fspath(tmp_path))] == ["before.zip"]
    assert importer.get_source("since_inside") == "VALUE = 1\n"


def test_lines_of_files_shown_since_are_forgotten_but_not_those_made_at_run_time(tmp_path: Path) -> None:
    def shown(name: str) -> str:
        path = tmp_path / name
        path.write_text("VALUE = 1\n", encoding="utf-8")
        assert linecache.getline(os.fspath(path), 1) == "VALUE = 1\n"
        return os.fspath(path)

    before, made = shown("before.py"), os.fspath(tmp_path / "made")
    caches = LibraryCaches([])
    since = shown("since.py")
    linecache.cache[made] = (10, None, ["VALUE = 2\n"], made)
    try:
        caches.empty()
        assert [name in linecache.cache for name in (before, since, made)] == [True, False, True]
        assert linecache.getline(since, 1) == "VALUE = 1\n"
    finally:
        linecache.clearcache()

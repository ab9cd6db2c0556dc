from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from quiesce.allocators.cases import catalogue
from quiesce.allocators.cases.catalogue import corpus_directory, find_cases, load
from quiesce.model.errors import ConfigurationError

TEXT = "title: Blocks come and go\nkind: control\n\ntrim\n"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a corpus of three cases, one of them broken."""
    package = tmp_path / "checkout" / "harness" / "quiesce"
    folder = tmp_path / "checkout" / "cases"
    for name, text in {"pool/b": TEXT, "pool/a": TEXT, "tape/c": "nonsense"}.items():
        file = folder / f"{name}.case"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    (folder / "README.md").write_text("not a case", encoding="utf-8")
    package.mkdir(parents=True)
    monkeypatch.setattr(catalogue, "_PACKAGE", package)
    monkeypatch.chdir(tmp_path)
    return folder


def test_a_checkout_keeps_its_corpus_beside_the_source_root(corpus: Path) -> None:
    assert corpus_directory() == corpus


def test_a_wheel_keeps_its_corpus_inside_the_package(corpus: Path) -> None:
    installed = corpus.parent / "harness" / "quiesce" / "corpus"
    shutil.copytree(corpus, installed)
    assert corpus_directory() == installed


def test_an_installation_without_a_corpus_says_where_it_looked(corpus: Path) -> None:
    shutil.rmtree(corpus)
    with pytest.raises(ConfigurationError, match=r"holds no cases .*corpus.*cases.*name a folder"):
        corpus_directory()


def _names(files: tuple[Path, ...]) -> list[str]:
    return [f"{file.parent.name}/{file.stem}" for file in files]


def test_no_path_means_the_whole_corpus_in_order(corpus: Path) -> None:
    assert _names(find_cases([])) == ["pool/a", "pool/b", "tape/c"]


def test_files_folders_identifiers_and_topics_are_found_once(corpus: Path) -> None:
    relative = Path("checkout", "cases", "pool", "a.case")
    files = find_cases([Path("tape"), Path("pool/b"), corpus / "pool", relative, Path("pool/a.case")])
    assert _names(files) == ["pool/a", "pool/b", "tape/c"]


def test_what_exists_here_comes_before_the_corpus(corpus: Path, tmp_path: Path) -> None:
    mine = tmp_path / "pool" / "mine.case"
    mine.parent.mkdir()
    mine.write_text(TEXT, encoding="utf-8")
    assert _names(find_cases([Path("pool")])) == ["pool/mine"]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("pool/bb", "there is no case or folder 'pool/bb'; did you mean 'pool/b', 'pool/a' or 'pool'?"),
        ("pol", "there is no case or folder 'pol'; did you mean 'pool', "),
        ("nowhere", "there is no case or folder 'nowhere'; name a case file"),
        ("../cases/pool/a", "there is no case or folder '../cases/pool/a'"),
        ("/absent/x.case", "there is no case or folder '/absent/x.case'"),
        ("empty", "the folder 'empty' holds no case; name a folder of files that end in .case"),
        ("note.txt", "'note.txt' is not a case; name a file that ends in .case"),
    ],
)
def test_a_path_that_names_no_case_is_a_configuration_error(corpus: Path, path: str, text: str) -> None:
    Path("empty").mkdir()
    Path("note.txt").write_text("", encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        find_cases([Path(path)])
    assert str(caught.value).startswith(text)


def test_an_error_in_one_file_never_hides_another(corpus: Path) -> None:
    loaded = load([corpus])
    assert [case.identifier for case in loaded.cases] == ["pool/a", "pool/b"]
    assert [(error.path, error.line) for error in loaded.errors] == [((corpus / "tape" / "c.case").as_posix(), 1)]


def test_two_cases_of_one_identifier_are_told_apart_or_refused(corpus: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "cases" / "pool" / "a.case"
    other.parent.mkdir(parents=True)
    other.write_text(TEXT, encoding="utf-8")
    loaded = load([corpus / "pool", other])
    assert [case.identifier for case in loaded.cases] == ["pool/a", "pool/b"]
    assert [error.what for error in loaded.errors] == [
        f"the case is called 'pool/a' like the one in {(corpus / 'pool' / 'a.case').as_posix()}"
    ]


def test_a_folder_that_may_not_be_read_is_not_taken_for_an_empty_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a" / "locked").mkdir(parents=True)
    (tmp_path / "a" / "b.case").write_text("", encoding="utf-8")
    scandir = os.scandir

    def refuse(path: str) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "locked":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(ConfigurationError, match=r"the folder '.*locked' cannot be read \(Permission denied\); name"):
        find_cases([tmp_path / "a"])

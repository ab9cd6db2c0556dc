"""The data of the matrix, and the pages that list which clients run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from tests.clients.environments import NotInstallable, python_of
from tests.clients.rows import FOLDER, Row, chosen_rows, marked_lines, read_rows

ROOT: Final = Path(__file__).resolve().parent.parent.parent
ENVIRONMENT: Final = "`clients`"


def _table(path: Path, heading: str) -> list[list[str]]:
    """Return the cells of the rows of the table below a heading."""
    section = path.read_text(encoding="utf-8").split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in section.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def _listed(heading: str) -> set[tuple[str, str]]:
    """Return the clients and versions that the page says the environment ``clients`` tries."""
    rows = _table(ROOT / "docs" / "reference" / "software.md", heading)
    return {(row[0], version) for row in rows if ENVIRONMENT in row[4] for version in row[1].split(", ")}


def _program(row: Row, kind: str) -> Path:
    program = row.program(kind)
    assert program is not None
    return program


def test_the_page_lists_the_releases_that_run_and_no_others() -> None:
    assert _listed("Runs") == {(row.client, row.version) for row in read_rows() if not row.fails}


def test_the_page_lists_what_fails_with_the_reason() -> None:
    failing = [row for row in read_rows() if row.fails]
    assert _listed("Runs in part") == {(row.client, row.version) for row in failing}
    told = {row[0]: row[3] for row in _table(ROOT / "docs" / "reference" / "software.md", "Runs in part")}
    assert [row.reason for row in failing if row.reason not in told[row.client]] == []


def test_every_program_belongs_to_a_row() -> None:
    rows = read_rows()
    programs = {
        _program(row, kind) for row in rows for kind in ("correct", "faulty") if kind == "correct" or not row.fails
    }
    assert programs == set((FOLDER / "programs").glob("*.py"))


@pytest.mark.parametrize("listed", read_rows(), ids=lambda listed: listed.identifier)
def test_a_row_names_one_release_and_one_line(listed: Row) -> None:
    assert re.fullmatch(r"[\d.a-z]+", listed.version)
    assert listed.fails or len(marked_lines(_program(listed, "faulty"))) == 1
    assert bool(listed.fails) != bool(listed.rule)
    assert marked_lines(_program(listed, "correct")) == []
    assert bool(listed.fails) == bool(listed.reason)
    assert listed.python[0] <= listed.python[1]


def test_a_release_without_a_row_takes_the_programs_of_the_nearest_one_below() -> None:
    (row,) = chosen_rows(["cupy-cuda12x==13.2.0"])
    assert row.requirements == ("cupy-cuda12x==13.2.0", "numpy<2")
    assert row.programs == "cupy"
    assert chosen_rows(["cupy-cuda12x==99.0"])[0].requirements == ("cupy-cuda12x==99.0",)


def test_a_package_without_a_version_is_all_its_rows() -> None:
    assert [row.version for row in chosen_rows(["cupy-cuda12x"])] == ["13.0.0", "13.6.0", "14.2.0"]
    assert [row.programs for row in chosen_rows(["cuda-bindings==12.9.1"])] == ["bindings_runtime", "bindings_driver"]


def test_a_package_that_no_row_is_about_is_an_error_with_the_packages_that_have_rows() -> None:
    with pytest.raises(ValueError, match=r"no row of rows\.toml is about 'torchvision'.*cupy-cuda11x, cupy-cuda12x"):
        chosen_rows(["torchvision"])


def test_a_package_that_no_row_is_about_runs_with_a_program() -> None:
    (row,) = chosen_rows(["torchvision==0.30 numpy"], [Path(__file__)])
    assert row.requirements == ("torchvision==0.30", "numpy")
    assert (row.package, row.version) == ("torchvision", "0.30")
    assert row.program("correct") == Path(__file__)
    assert row.program("faulty") is None


def test_a_program_takes_the_place_of_those_of_a_row() -> None:
    (row,) = chosen_rows(["faiss-gpu-cu12"], [Path(__file__)])
    assert row.alone
    assert row.rule == ""
    assert row.own == (Path(__file__),)


def test_a_program_needs_one_client_and_has_to_be_there() -> None:
    with pytest.raises(ValueError, match="needs one --client"):
        chosen_rows([], [Path(__file__)])
    with pytest.raises(ValueError, match=r"there is no program gone\.py"):
        chosen_rows(["torchvision"], [Path("gone.py")])


def test_large_rows_run_on_request_only() -> None:
    assert [row.package for row in chosen_rows([]) if row.large] == []
    assert {row.version for row in chosen_rows(["torch"]) if row.large} >= {"2.6.0", "2.15.0"}


def test_a_row_of_the_system_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    (row,) = chosen_rows(["python3-torch-cuda"])
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(NotInstallable, match="apt-get install python3-torch-cuda"):
        python_of(row)

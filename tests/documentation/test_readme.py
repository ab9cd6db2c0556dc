"""README says what quiesce is in few words and in one order, and each of its five bugs fails and passes as it says."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Final

import pytest
from tests.documentation.pages import ROOT

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.parser import parse_case
from quiesce.cli.endings import ExitCode
from quiesce.cli.main import build_parser, main
from quiesce.model.versions import parse_versions
from quiesce.subjects.catalogue import find_subjects
from quiesce.subjects.manifest import BASE, Release

README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS_MAX: Final = 600
"""Outside code and tables."""
WORDS_OF_A_ROW_MAX: Final = 30
HEADINGS: Final = (
    "Keep old bugs from coming back",
    "Find the next one",
    "Find a leak in your tests",
    "Find a bug in a GPU program",
    "Run CUDA kernels without a GPU",
)
REPORTS: Final = (
    "NVIDIA/cccl#4222",
    "tracel-ai/burn#2487",
    "kokkos/kokkos#8041",
    "kokkos/kokkos#8006",
    "cupy/cupy#8090",
)


@dataclass(frozen=True, slots=True)
class Row:
    """A bug of the table: what shows it on the reference, and in which releases."""

    report: str
    on_the_reference: str
    affected: str
    fixed: str
    on_releases: str

    @property
    def arguments(self) -> list[str]:
        """Return the arguments of the command that switches the bug on."""
        return shlex.split(self.on_the_reference)[1:]

    @property
    def case(self) -> Case:
        """Return the case that the command runs."""
        identifier = self.arguments[1]
        return parse_case(ROOT / "cases" / f"{identifier}.case")


def table() -> list[str]:
    """Return the lines of the five bugs."""
    return [line for line in README.splitlines() if line.startswith("| ") and "`quiesce run " in line]


def rows() -> list[Row]:
    """Return the rows of the five bugs."""
    pattern = re.compile(r"\| .*\[([^\]]+#\d+)\]\S* \| `([^`]+)` \| (\S+) \| (\S+) \| `([^`]+)`.* \|")
    return [Row(*match.groups()) for match in map(pattern.fullmatch, table()) if match]


def prose(text: str) -> str:
    """Return a page without its code, its tables and the addresses of its links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("    ", "|")))
    return re.sub(r"\]\([^)]*\)", "]", text)


def words(text: str) -> int:
    """Count words: what blanks separate and what has a letter or a digit."""
    return sum(bool(re.search(r"\w", word)) for word in text.split())


def test_readme_is_short() -> None:
    assert 100 < words(prose(README)) <= WORDS_MAX


def test_code_tables_and_addresses_are_not_counted() -> None:
    page = "# One\n\n    two\n\n| three |\n\n```sh\nfour\n```\n\n[Five](six seven) · eight\n"
    assert words(prose(page)) == len(("One", "Five", "eight"))


def test_readme_begins_with_the_harness_that_it_is() -> None:
    headings = re.findall(r"^## (.+)$", README, re.MULTILINE)
    assert tuple(headings[: len(HEADINGS)]) == HEADINGS


def test_the_first_page_of_the_documentation_begins_like_readme() -> None:
    opening = README.partition("\n## ")[0]
    assert "pytest -m leak" in opening
    assert (ROOT / "docs" / "index.md").read_text(encoding="utf-8").startswith(opening)


def test_the_table_has_a_short_row_for_each_of_the_five_bugs() -> None:
    assert tuple(row.report for row in rows()) == REPORTS
    assert [line for line in table() if words(line) > WORDS_OF_A_ROW_MAX] == []


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.report)
def test_a_bug_fails_where_it_is_switched_on_and_passes_where_it_is_not(
    row: Row, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    fault = f":{row.case.fault}"
    assert row.on_the_reference.endswith(f"--backend reference{fault}")
    assert row.report in " ".join(row.case.upstream)
    assert main(row.arguments) == ExitCode.FINDINGS
    assert re.search(rf"rule: +{row.case.finds}$", capsys.readouterr().out, re.MULTILINE)
    assert main([argument.removesuffix(fault) for argument in row.arguments]) == ExitCode.NOTHING_FOUND


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.report)
def test_a_bug_is_expected_in_the_affected_release_and_not_in_the_fixed_one(row: Row) -> None:
    chosen = build_parser("subjects").parse_args(shlex.split(row.on_releases)[1:])
    (subject,) = find_subjects(chosen.names, ROOT / "fixtures").subjects
    assert row.report in subject.upstream
    assert set(chosen.version) <= {release.version for release in subject.releases}
    run = [r for r in subject.releases if (r.version in chosen.version if chosen.version else r.is_default)]
    affected, fixed = run
    assert row.affected in f"{affected.label} {affected.version}"
    assert row.fixed in f"{fixed.label} {fixed.version}"
    assert is_expected(row, affected, row.affected)
    assert not is_expected(row, fixed, row.fixed)


def is_expected(row: Row, release: Release, number: str) -> bool:
    """Whether the bug is expected in a release, by the manifest or by the case."""
    of_manifest = [each for each in release.expectations or () if each.holds_in(BASE)]
    of_case = [known for known in row.case.known if number in parse_versions(known.versions)]
    return row.report in {*(each.upstream for each in of_manifest), *(known.number for known in of_case)}

"""A row: the cases of one release in one variant, held to what the manifest expects of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.subjects.conftest import GREEN, MANIFEST, RED

from quiesce.allocators.execution import KNOWN_STILL_THERE
from quiesce.model.errors import ConfigurationError
from quiesce.model.results import Verdict
from quiesce.subjects.build import build
from quiesce.subjects.manifest import Subject
from quiesce.subjects.parser import read_manifest
from quiesce.subjects.row import RowResult, rows_of, run_row

pytestmark = pytest.mark.long

Write = Callable[..., Path]
CASE = """\
title:    A case of the subject's own
kind:     found
upstream: nobody
finds:    request_fits_but_out_of_memory
needs:    memory

a = allocate 64
free a
"""


def run(subject: Subject, version: str, *only: str) -> RowResult:
    (row,) = rows_of(subject, [version], ["base"], all_versions=False)
    return run_row(row, build(subject, row.release), only)


def verdicts(result: RowResult) -> dict[str, Verdict]:
    return {each.case: each.verdict for each in result.results}


SQUEEZE, ZERO = "pool/squeeze_before_out_of_memory", "controls/zero_size_and_one_byte"


def test_one_release_is_red_and_the_other_green(write_subject: Write) -> None:
    subject = read_manifest(write_subject() / "subject.toml")
    assert verdicts(run(subject, RED)) == {SQUEEZE: Verdict.KNOWN_UPSTREAM, ZERO: Verdict.PASSED}
    assert verdicts(run(subject, GREEN)) == {SQUEEZE: Verdict.PASSED, ZERO: Verdict.PASSED}


def test_results_name_the_row_and_how_to_see_them_again(write_subject: Write) -> None:
    subject = read_manifest(write_subject() / "subject.toml")
    result = run(subject, RED, "pool/*").results[0]
    assert result.backend == f"host/example {RED}"
    assert result.reproduce == f"quiesce subjects host/example --version {RED} --case {SQUEEZE}"


def test_a_release_that_no_manifest_lists_shows_what_it_finds(write_subject: Write) -> None:
    subject = read_manifest(write_subject() / "subject.toml")
    unlisted = "reference:pool.squeezes_once"
    assert subject.release(unlisted).expectations is None
    manifest = MANIFEST.replace(f'version = "{RED}"', 'version = "reference:pool.ignores_limit"')
    subject = read_manifest(write_subject(manifest) / "subject.toml")
    assert verdicts(run(subject, RED))[SQUEEZE] is Verdict.FAILED


def test_an_expectation_that_nothing_shows_is_a_failure(write_subject: Write) -> None:
    manifest = MANIFEST.replace(f'version = "{RED}"', 'version = "reference:pool.ignores_limit"')
    subject = read_manifest(write_subject(manifest) / "subject.toml")
    (failed,) = [each for each in run(subject, "reference:pool.ignores_limit").results if each.verdict.is_failure]
    assert (failed.case, failed.findings[0].rule) == (SQUEEZE, KNOWN_STILL_THERE)


def test_what_was_not_asked_for_is_not_missed(write_subject: Write) -> None:
    subject = read_manifest(write_subject() / "subject.toml")
    assert verdicts(run(subject, RED, "controls/*")) == {ZERO: Verdict.PASSED}


def test_cases_of_its_own_run_beside_those_of_the_corpus(write_subject: Write) -> None:
    manifest = MANIFEST.replace("cases    = [", 'cases    = ["example/*", ')
    folder = write_subject(manifest, mine__case=CASE)
    assert "example/mine" in verdicts(run(read_manifest(folder / "subject.toml"), GREEN))


def test_a_pattern_without_a_case_is_named(write_subject: Write) -> None:
    subject = read_manifest(write_subject(MANIFEST.replace("pool/squeeze", "pool/squeze")) / "subject.toml")
    with pytest.raises(ConfigurationError, match="no case is named 'pool/squeze_before"):
        run(subject, GREEN)


def test_a_driver_that_dies_at_once_is_a_finding_with_its_words(write_subject: Write) -> None:
    manifest = MANIFEST.replace(
        '"-m", "quiesce.backends.serving", "{version}"', """"-c", "raise SystemExit('too old')\""""
    )
    subject = read_manifest(write_subject(manifest) / "subject.toml")
    results = run(subject, GREEN).results
    assert {each.verdict for each in results} == {Verdict.FAILED}
    assert all("too old" in each.findings[0].evidence for each in results)


def test_rows_are_releases_in_variants(write_subject: Write) -> None:
    manifest = f"{MANIFEST}\n[variants.other]\narguments = ['x']\n"
    subject = read_manifest(write_subject(manifest.replace("default = true\n\n  ", "\n  ")) / "subject.toml")

    def names(versions: list[str], variants: list[str], *, everything: bool = False) -> list[str]:
        return [row.name for row in rows_of(subject, versions, variants, all_versions=everything)]

    assert names([], []) == ["host/example reference", "host/example[other] reference"]
    assert names(["9"], ["other"]) == ["host/example[other] 9"]
    assert names([], ["base"], everything=True) == [f"host/example {RED}", "host/example reference"]
    with pytest.raises(ConfigurationError, match="has no variant 'third'; write one of base, other"):
        names([], ["third"])

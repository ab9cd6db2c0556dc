"""Which items case files make, and how pytest's own selection works on them."""

from __future__ import annotations

import pytest

from .conftest import BAD, GOOD, MALFORMED, Project

HOST = "--quiesce-backend=host"
REFERENCE = "--quiesce-backend=reference"


def collected(project: Project, *arguments: str) -> list[str]:
    """Return the node ids that pytest collects, in its order. (A project's conftest may change quiesce: apart.)"""
    result = project.run_apart("--collect-only", "-q", *arguments)
    return [line for line in result.outlines if "::" in line]


def test_a_case_makes_one_item_for_each_backend(project: Project) -> None:
    project.write("cases/copy/there.case", GOOD)
    assert collected(project, "cases", REFERENCE, HOST) == [
        "cases/copy/there.case::reference",
        "cases/copy/there.case::host",
        "cases/pool/good.case::reference",
        "cases/pool/good.case::host",
    ]


def test_a_case_file_can_be_named(project: Project) -> None:
    project.write("cases/pool/other.case", GOOD)
    assert collected(project, "cases/pool/good.case", HOST) == ["cases/pool/good.case::host"]


def test_an_item_can_be_named(project: Project) -> None:
    result = project.run("cases/pool/good.case::reference", REFERENCE, HOST, "-v")
    result.stdout.fnmatch_lines(["cases/pool/good.case::reference PASSED*"])
    result.assert_outcomes(passed=1)


@pytest.mark.long
def test_the_marker_selects_cases_and_marked_tests(project: Project) -> None:
    project.write(
        "cases/test_ordinary.py",
        "import pytest\n@pytest.mark.leak\ndef test_marked(): pass\ndef test_unmarked(): pass\n",
    )
    result = project.run("-m", "leak", "--strict-markers", HOST, "-v")
    result.stdout.fnmatch_lines(["cases/pool/good.case::host PASSED*", "*::test_marked PASSED*"])
    result.assert_outcomes(passed=2, deselected=1)


def test_keywords_select_by_backend_and_by_file(project: Project) -> None:
    project.write("cases/pool/other.case", GOOD)
    arguments = ("cases", REFERENCE, HOST, "-k")
    assert collected(project, *arguments, "host and other") == ["cases/pool/other.case::host"]


def test_the_first_failure_can_end_the_run(project: Project) -> None:
    project.write("cases/pool/another.case", BAD)
    project.run("cases", HOST, "-x").assert_outcomes(failed=1)


def test_the_last_failures_run_again(project: Project) -> None:
    project.write("cases/pool/another.case", BAD)
    project.run("cases", HOST).assert_outcomes(failed=1, passed=1)
    project.run("cases", HOST, "--lf").assert_outcomes(failed=1)


def test_nothing_needs_the_cache(project: Project) -> None:
    project.run("cases", HOST, "-p", "no:cacheprovider").assert_outcomes(passed=1)
    assert not (project.path / ".pytest_cache").exists()


def test_a_malformed_case_is_one_failing_item_and_the_others_run(project: Project) -> None:
    project.write("cases/pool/wrong.case", MALFORMED)
    result = project.run("cases", HOST, REFERENCE)
    result.assert_outcomes(failed=1, passed=2)
    heads = [line.strip("_ ") for line in result.outlines]
    text, after = result.outlines[heads.index("pool/wrong on malformed") + 1 :][:2]
    assert text.startswith("cases/pool/wrong.case:2: unknown word 'contol' in 'kind:'; write 'control'")
    assert after.strip("= ") == "quiesce"


@pytest.mark.parametrize(("content", "workers"), [("", "0"), ("A note about a case in court.\n", "1")])
def test_a_strangers_file_in_a_folder_is_left_out_and_said(project: Project, content: str, workers: str) -> None:
    project.write("cases/stranger.case", content)
    result = project.run_apart("cases", HOST, "-n", workers)
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["left out cases/stranger.case: it has no line of a case's header*"])


def test_a_strangers_file_that_is_named_fails(project: Project) -> None:
    project.write("cases/stranger.case", "A note about a case in court.\n")
    result = project.run("cases/stranger.case", HOST)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["cases/stranger.case:1: *"])


PACKAGED = """\
import pathlib
import quiesce.allocators.cases.catalogue

quiesce.allocators.cases.catalogue.corpus_directory = lambda: pathlib.Path("{folder}").absolute()
"""


@pytest.mark.parametrize("how", ["option", "ini"])
def test_the_corpus_is_collected_on_request(project: Project, how: str) -> None:
    project.write("elsewhere/corpus/heap/packaged.case", GOOD)
    project.write("conftest.py", PACKAGED.format(folder="elsewhere/corpus"))
    arguments = ["--quiesce-corpus"] if how == "option" else ["-o", "quiesce_corpus=true"]
    assert collected(project, HOST, *arguments) == [
        "cases/pool/good.case::host",
        "elsewhere/corpus/heap/packaged.case::host",
    ]
    assert collected(project, HOST) == ["cases/pool/good.case::host"]


def test_the_corpus_is_not_collected_twice(project: Project) -> None:
    project.write("conftest.py", PACKAGED.format(folder="cases"))
    assert collected(project, HOST, "--quiesce-corpus", ".") == ["cases/pool/good.case::host"]


def test_an_installation_without_a_corpus_says_so_in_one_line(project: Project) -> None:
    project.write(
        "conftest.py",
        "import quiesce.allocators.cases.catalogue\nfrom quiesce.model.errors import ConfigurationError\n"
        "def missing(): raise ConfigurationError('this installation holds no cases; install the wheel')\n"
        "quiesce.allocators.cases.catalogue.corpus_directory = missing\n",
    )
    result = project.run_apart("--quiesce-corpus", HOST)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert [line for line in result.errlines if line] == [
        "ERROR: --quiesce-corpus: this installation holds no cases; install the wheel"
    ]

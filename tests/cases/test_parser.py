from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quiesce.allocators.cases.case import Case
from quiesce.allocators.cases.catalogue import load
from quiesce.allocators.cases.expansion import count_steps
from quiesce.allocators.cases.parser import STEPS_MAX, identify, parse_case, parse_text
from quiesce.model.errors import CaseError

TEXT = "title: Blocks come and go\nkind: control\n\na = allocate 1MiB\nfree a\n"


def test_a_file_is_parsed_under_its_place_in_the_corpus(tmp_path: Path) -> None:
    path = tmp_path / "cases" / "pool" / "come_and_go.case"
    path.parent.mkdir(parents=True)
    path.write_text(TEXT, encoding="utf-8")
    case = parse_case(path)
    assert (case.identifier, case.path) == ("pool/come_and_go", path.as_posix())
    assert parse_case(path, identifier="other").identifier == "other"


@pytest.mark.parametrize(
    ("path", "identifier"),
    [
        ("/a/cases/pool/x.case", "pool/x"),
        ("/a/corpus/pool/deep/x.case", "pool/deep/x"),
        ("/cases/b/cases/x.case", "x"),
        ("/a/b/c/x.case", "c/x"),
        ("/x.case", "x"),
    ],
)
def test_identifiers_follow_the_folder(path: str, identifier: str) -> None:
    assert identify(Path(path)) == identifier


def test_a_relative_path_is_identified_from_where_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "cases" / "pool"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    assert identify(Path("x.case")) == "pool/x"


def test_comments_keep_their_lines() -> None:
    text = "# first\ntitle: T # not a comment\nkind: control\n#\n\n  # indented\ntrim#tight\n"
    case = parse_text(text, "x.case")
    assert case.title == "T # not a comment"
    assert case.comments == ((1, "first"), (4, ""), (6, "indented"), (7, "tight"))


@pytest.mark.parametrize("count", ["1000000000000", "9" * 18])
def test_an_endless_repeat_is_refused_by_arithmetic(body_error: Callable[[str], CaseError], count: str) -> None:
    error = body_error(f"trim\nrepeat {count}:\n    trim\n    trim\n")
    assert error.line == 5
    assert f"repeat {count} makes {2 * int(count) + 1:,} requests" in error.what
    assert f"{STEPS_MAX:,}" in error.instead


def test_a_count_beyond_any_number_is_refused(body_error: Callable[[str], CaseError]) -> None:
    assert "a count of 900 digits" in body_error(f"repeat {'9' * 900}:\n    trim\n").what


def test_nested_repeats_multiply(body_error: Callable[[str], CaseError]) -> None:
    error = body_error("repeat 1000:\n    repeat 1000 as j:\n        trim\n        trim\n")
    assert (error.line, "2,000,000" in error.what) == (4, True)


def test_the_largest_expansion_is_legal(parse_body: Callable[[str], Case]) -> None:
    case = parse_body(f"repeat {STEPS_MAX // 2}:\n    a[i] = allocate 1KiB\n    free a[i]\n")
    assert count_steps(case.body) == STEPS_MAX


def test_errors_carry_their_parts() -> None:
    with pytest.raises(CaseError) as caught:
        parse_text("title: T\nkind: control\n\nfree a\n", Path("topic") / "x.case")
    error = caught.value
    assert (error.path, error.line) == ("topic/x.case", 4)
    assert str(error) == f"topic/x.case:4: {error.what}; {error.instead}"


def _result(text: str) -> Case | CaseError:
    try:
        return parse_text(text, "x.case", "x")
    except CaseError as error:
        return error


def _is_whole(result: Case | CaseError) -> bool:
    """Whether it is a case with a body, or an error that says line, fault and remedy."""
    if isinstance(result, CaseError):
        return result.line >= 1 and bool(result.what) and bool(result.instead)
    return bool(result.body)


@settings(deadline=None)
@given(data=st.binary(max_size=300))
def test_bytes_give_a_case_or_a_case_error(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / f"garbage-{os.getpid()}.case"
    path.write_bytes(data)
    loaded = load([path])
    assert len(loaded.cases) + len(loaded.errors) == 1


@pytest.mark.long
@settings(deadline=None)
@given(text=st.text(max_size=200))
def test_any_text_gives_a_case_or_a_case_error(text: str) -> None:
    assert _is_whole(_result(text))
    assert _is_whole(_result(f"title: T\nkind: control\n\n{text}"))


VOCABULARY = """
allocate free trim copy stage fill launch create destroy synchronize record wait begin end capture query stall
stream event pool graph instance node of to on device mark expect live grows per iteration after policy use
repeat as i j a b a[i] a[i-1] a[] 3: 2 0 1MiB 1MiB*i -1 == = + - -> done out memory rejected allocated
partition hold drop backward collect fail backing with x=1 reads=a align=3 pool=b # , : SIZE_MAX
"""


@settings(deadline=None)
@given(
    lines=st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.sampled_from(VOCABULARY.split()), max_size=7)).map(
            lambda line: "    " * line[0] + " ".join(line[1])
        ),
        max_size=12,
    )
)
def test_lines_of_known_words_give_a_case_or_a_case_error(lines: list[str]) -> None:
    assert _is_whole(_result("title: T\nkind: control\n\n" + "\n".join(lines)))


def _calls(text: str) -> int:
    """Count the function calls that parsing takes."""
    calls = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        parse_text(text, "x.case", "x")
    finally:
        sys.setprofile(before)
    return calls


def test_the_count_of_a_loop_that_ignores_its_variable_costs_nothing() -> None:
    text = "title: T\nkind: control\n\nrepeat {count}:\n    a = allocate 1MiB\n    free a\n"
    _calls(text.format(count=10))
    assert _calls(text.format(count=10)) == _calls(text.format(count=200_000))

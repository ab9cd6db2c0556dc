"""``subject:NAME/VARIANT@VERSION``: a release as a backend, and what is said of a name that is none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.subjects.conftest import GREEN, MANIFEST, RED

from quiesce.allocators.cases.parser import parse_text
from quiesce.allocators.execution import run_case
from quiesce.backends.registry import (
    Lack,
    Unusable,
    Usable,
    bound_answers,
    is_driver_program,
    load_backend,
    probe_backend,
)
from quiesce.model.errors import BackendUnavailable, ConfigurationError
from quiesce.model.results import Verdict
from quiesce.subjects.named import find_row

Write = Callable[..., Path]

SQUEEZE = """\
title:    Cached blocks give way
needs:    pool, capacity
promise:  reclaims-before-oom
device:   capacity=64MiB
{known}
a = allocate 40MiB
free a
b = allocate 41MiB
free b
"""
VARIANTS = """
[variants.served]
arguments = ["--help"]
"""
PROGRAMS = """\
title    = "A program"
upstream = "b#1"

[[programs]]
name    = "one"
command = ["{python}", "-c", "pass"]

[[versions]]
version = "1.0"
label   = "One 0.9"
default = true
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the subjects are."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def example(write_subject: Write) -> Path:
    """The reference, with a fault and without, as a subject."""
    return write_subject()


@pytest.mark.usefixtures("example")
def test_an_affected_release_fails_and_a_fixed_one_passes_whatever_is_expected() -> None:
    case = parse_text(SQUEEZE.format(known=""), "pool/squeeze_before_out_of_memory.case")
    affected = run_case(case, load_backend(f"subject:example@{RED}"))
    assert affected.verdict is Verdict.FAILED
    assert [finding.rule for finding in affected.findings] == ["request_fits_but_out_of_memory"]
    assert run_case(case, load_backend(f"subject:host/example@{GREEN}")).verdict is Verdict.PASSED


@pytest.mark.usefixtures("example")
def test_what_a_case_says_is_known_does_not_count_either() -> None:
    known = parse_text(SQUEEZE.format(known="known: reference * NVIDIA/cccl#4222\n"), "pool/a.case")
    assert run_case(known, load_backend(f"subject:example@{RED}")).verdict is Verdict.FAILED


@pytest.mark.usefixtures("example")
def test_it_has_the_name_that_was_asked_for_and_bounds_its_answers() -> None:
    usable = probe_backend(f"subject:example@{GREEN}")
    assert isinstance(usable, Usable)
    assert usable.description.name == f"subject:example@{GREEN}"
    assert is_driver_program(usable)
    (bounded,) = bound_answers([usable], 5.0)
    assert bounded.backend is not usable.backend
    assert bounded.backend.describe() == usable.description


@pytest.mark.usefixtures("example")
def test_its_driver_is_a_process_of_its_own_already() -> None:
    name = f"subject:example@{GREEN}"
    assert load_backend(f"served:{name}").describe() == load_backend(name).describe()


@pytest.mark.parametrize("text", ["before the fix", "before", RED])
@pytest.mark.usefixtures("example")
def test_a_release_is_named_by_its_version_its_label_or_a_word_of_that(text: str) -> None:
    assert find_row(f"example@{text}", "").release.version == RED


def test_of_releases_with_one_label_that_of_the_default_matrix_is_meant(write_subject: Write) -> None:
    write_subject(MANIFEST.replace('version = "reference"\n', 'version = "reference"\nlabel = "after the fix"\n'))
    with pytest.raises(
        ConfigurationError, match=r"'fix' names 2 releases .*; write reference:.* \(before the fix\), ref"
    ):
        find_row("example@fix", "")
    write_subject(
        MANIFEST.replace('version = "reference"\ndefault = true', 'version = "reference"\nlabel = "not the fix"')
    )
    assert find_row("example@fix", "").release.version == RED


def test_a_variant_is_named_where_there_are_several(write_subject: Write) -> None:
    write_subject(MANIFEST.replace("[generated]", f"{VARIANTS}\n[generated]"))
    assert find_row(f"example/served@{GREEN}", "").variant.name == "served"
    assert find_row(f"host/example/base@{GREEN}", "").variant.name == "base"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("subject:", "'subject:' names no argument; write subject:NAME/VARIANT@VERSION, such as subject:thrust_pool/"),
        ("subject:@1", "'subject:@1' names no subject; write subject:NAME/VARIANT@VERSION"),
        ("subject:@", "'subject:@' names no subject; write subject:NAME/VARIANT@VERSION"),
        ("subject:example@", "'subject:example@' names no release; write subject:NAME/VARIANT@VERSION"),
        ("subject:exmple@reference", "there is no subject 'exmple'; write 'example'"),
        ("subject:exmple/served@reference", "there is no subject 'exmple'; write 'example'"),
        ("subject:example", "'subject:example' names no release; write subject:NAME/VARIANT@VERSION, with reference:"),
        (
            "subject:example/served@referense",
            "'host/example' lists no release 'referense'; write 'reference', or another of reference:pool.no_squeeze "
            "(before the fix), reference ('quiesce subjects host/example --version referense' tries one that is not",
        ),
        (
            "subject:example@reference",
            "'host/example' has 2 variants; write one of subject:host/example/base@reference, "
            "subject:host/example/served@reference",
        ),
        (
            "subject:example/servd@reference",
            "'host/example' has no variant 'servd'; write subject:host/example/served@reference, or another of base",
        ),
        ("subject:one@1.0", "host/one is made of programs, which no case can drive; write quiesce subjects host/one "),
        ("subject:one@0.9", "host/one is made of programs, which no case can drive; write quiesce subjects host/one "),
        ("subject:twice@1.0", "cuda/twice and hip/twice are made of programs, which no case can drive; write quiesce "),
        ("subject:both@reference", "'subject:both@reference' names 2 subjects; write subject:cuda/both or subject:hip"),
    ],
)
def test_what_is_wrong_in_a_name_is_said_with_near_ones(name: str, said: str, write_subject: Write) -> None:
    write_subject(MANIFEST.replace("[generated]", f"{VARIANTS}\n[generated]"))
    for folder in ("cuda", "hip"):
        write_subject(name=f"{folder}/both")
        write_subject(PROGRAMS, f"{folder}/twice")
    write_subject(PROGRAMS, "host/one")
    with pytest.raises(ConfigurationError) as caught:
        load_backend(name)
    assert str(caught.value).startswith(said)


def test_the_command_for_programs_names_the_release(write_subject: Write) -> None:
    write_subject(PROGRAMS, "host/one")
    with pytest.raises(ConfigurationError, match=r"write quiesce subjects host/one --version 1\.0\Z"):
        load_backend("subject:one@0.9")


@pytest.mark.parametrize(
    ("section", "reason"),
    [
        ('[needs]\nprograms = { no-such-tool = "install it" }', "there is no program 'no-such-tool'"),
        ('[build]\nsteps = [["{python}", "-c", "1/0"]]', "ZeroDivisionError"),
    ],
)
def test_what_the_machine_lacks_and_what_is_not_built_make_it_unavailable(
    section: str, reason: str, write_subject: Write
) -> None:
    write_subject(MANIFEST.replace("[run]", f"{section}\n[run]"))
    probed: Any = probe_backend(f"subject:example@{GREEN}")
    assert isinstance(probed, Unusable)
    assert reason in probed.reason
    assert probed.lack is Lack.OTHER


def test_one_that_says_no_hello_is_no_backend(write_subject: Write) -> None:
    write_subject(
        MANIFEST.replace('"-m", "quiesce.backends.serving", "{version}"', '"-c", "import sys; sys.exit(\'no memory\')"')
    )
    with pytest.raises(BackendUnavailable, match=r"no memory; see quiesce subjects host/example --version reference"):
        load_backend(f"subject:example@{GREEN}").describe()

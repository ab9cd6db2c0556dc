"""Builds: from sources to a driver that runs, made anew when and only when what it is made of changed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from quiesce.model.errors import BackendUnavailable, ConfigurationError, SubjectNotBuilt
from quiesce.subjects.build import build
from quiesce.subjects.parser import read_manifest
from quiesce.subjects.row import rows_of, run_row

Write = Callable[..., Path]

EXAMPLE_POOL = Path(__file__).resolve().parents[2] / "fixtures" / "command" / "example_pool" / "example_pool.c"
MANIFEST = """
title    = "A pool in C"
upstream = "owner/project#1"
cases    = ["pool/squeeze_before_out_of_memory", "sizes/*"]

[needs]
programs = { cc = "install a C compiler" }

[build]
steps  = [["cc", "-std=c99", "{source}/driver.c", "-o", "{build}/driver"]]

[run]
command = ["{build}/driver"]

[generated]
operations = 20

[[versions]]
version = "1.0"
"""

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")


def subject_of(folder: Path) -> str:
    subject = read_manifest(folder / "subject.toml")
    return build(subject, subject.release("1.0")).places["build"]


@needs_compiler
def test_a_driver_in_c_is_built_and_examined(write_subject: Write) -> None:
    folder = write_subject(MANIFEST, driver__c=EXAMPLE_POOL.read_text(encoding="utf-8"))
    subject = read_manifest(folder / "subject.toml")
    (row,) = rows_of(subject, ["1.0"], [], all_versions=False)
    results = run_row(row, build(subject, row.release), []).results
    assert [each for each in results if each.verdict.is_failure] == []
    topics = {each.case.partition("/")[0] for each in results}
    assert topics == {"contract", "pool", "sizes", "sweep", "generated"}
    assert {each.backend for each in results} == {"host/example 1.0"}


@needs_compiler
def test_what_it_is_made_of_decides_when_it_is_made_anew(write_subject: Write) -> None:
    program = "int main(void) { return 0; }\n"
    first = subject_of(write_subject(MANIFEST, driver__c=program))
    assert subject_of(write_subject(MANIFEST.replace("A pool", "The pool"), README__md="1")) == first
    assert subject_of(write_subject(MANIFEST, driver__c=f"{program}\n")) != first
    assert subject_of(write_subject(MANIFEST.replace("-std=c99", "-std=c11"))) != first


@needs_compiler
def test_what_is_shared_is_part_of_it(write_subject: Write, tmp_path: Path) -> None:
    shared = tmp_path / "fixtures" / "host" / "shared"
    shared.mkdir(parents=True)
    (shared / "a.h").write_text("#define CODE 0\n", encoding="utf-8")
    manifest = MANIFEST.replace("[build]", '[build]\nshared = ["../shared"]').replace(
        '"-std=c99"', '"-I{source}/../shared"'
    )
    first = subject_of(write_subject(manifest, driver__c='#include "a.h"\nint main(void) { return CODE; }\n'))
    (shared / "a.h").write_text("#define CODE 1\n", encoding="utf-8")
    assert subject_of(tmp_path / "fixtures" / "host" / "example") != first
    (shared / "a.h").unlink()
    shared.rmdir()
    with pytest.raises(ConfigurationError, match=r"build\.shared: there is no"):
        subject_of(tmp_path / "fixtures" / "host" / "example")


@needs_compiler
def test_a_program_that_does_not_compile_shows_the_compilers_words(write_subject: Write) -> None:
    folder = write_subject(MANIFEST, driver__c="int main(void) { return undeclared; }\n")
    with pytest.raises(SubjectNotBuilt) as raised:
        subject_of(folder)
    assert "undeclared" in raised.value.output


def test_a_missing_toolchain_says_what_to_install(write_subject: Write) -> None:
    folder = write_subject(MANIFEST.replace("cc =", "no-such-compiler ="))
    with pytest.raises(BackendUnavailable, match="no program 'no-such-compiler'; install a C compiler"):
        subject_of(folder)
